/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/stack_text.h"

#include <string.h>

typedef struct stack_view {
    const sp_window *window;
    sp_symbolizer *symbolizer;
    const uint32_t *locations; /* leaf first */
    uint32_t count;
} stack_view;

static stack_view view_of(const sp_window *window, sp_symbolizer *symbolizer, uint32_t stack)
{
    uint32_t words = window->stacks.entries[stack].length / sizeof(uint32_t);
    return (stack_view){.window = window,
                        .symbolizer = symbolizer,
                        .locations = sp_intern_key(&window->stacks, stack),
                        .count = words ? words - 1 : 0};
}

/* The functions at frame AT, innermost first; 0: it is a marker, or has no name. */
static uint32_t functions_at(const stack_view *view, uint32_t at, const sp_frame **frames)
{
    uint32_t number = view->locations[at];
    if (number == SP_WINDOW_GAP)
        return 0;
    const sp_window_location *location = sp_intern_key(&view->window->locations, number);
    if (!location->module && sp_pc_is_marker(location->address))
        return 0;
    return sp_symbolizer_frames(view->symbolizer, location->module, location->address, frames);
}

static size_t length_at(const stack_view *view, uint32_t at)
{
    const sp_frame *frames;
    size_t length = 0;
    uint32_t count = functions_at(view, at, &frames);
    for (uint32_t i = 0; i < count; i++)
        length += strlen(frames[i].name) + 1;
    return length;
}

/* How many frames from the leaf on fit into SP_STACK_TEXT_MAX. */
static uint32_t shown_of(const stack_view *view)
{
    size_t length = 0;
    uint32_t shown = 0;
    while (shown < view->count && (length += length_at(view, shown)) < SP_STACK_TEXT_MAX)
        shown++;
    return shown;
}

static void add_name(sp_buffer *out, const char *name, size_t begin)
{
    if (out->length > begin)
        sp_buffer_add_char(out, ';');
    size_t from = out->length;
    sp_buffer_add_string(out, name);
    for (size_t i = from; i < out->length; i++)
        if (out->data[i] == ';')
            out->data[i] = ':';
}

void sp_stack_text(sp_buffer *out, const sp_window *window, sp_symbolizer *symbolizer,
                   uint32_t stack)
{
    const stack_view view = view_of(window, symbolizer, stack);
    size_t begin = out->length;
    for (uint32_t at = shown_of(&view); at-- > 0;) {
        const sp_frame *frames;
        for (uint32_t i = functions_at(&view, at, &frames); i-- > 0;)
            add_name(out, frames[i].name, begin);
    }
}
