/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of a sample: its thread, what it waited for, and those of its context. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "context/sample_keys.h"
#include "core/hex.h"
#include "profile/build.h"
#include "profile/stack_text.h"

enum { CONTEXT_ATTRIBUTES_MAX = 8, SAMPLE_ATTRIBUTES_MAX = 2 + 5 + CONTEXT_ATTRIBUTES_MAX };

static uint32_t add_thread(sp_build *b, uint32_t number, uint32_t *attributes)
{
    const sp_window_thread *thread = sp_intern_key(&b->window->threads, number);
    char name[sizeof thread->name + 1] = {0};
    uint32_t count = 0;
    if (!thread->tid) /* the sample was folded */
        return 0;
    memcpy(name, thread->name, sizeof thread->name);
    attributes[count++] = sp_dictionary_int_attribute(&b->dictionary, "thread.id", "", thread->tid);
    if (name[0])
        attributes[count++] = sp_dictionary_string_attribute(&b->dictionary, "thread.name", name);
    return count;
}

static uint32_t add_live(sp_build *b, uint32_t live, uint32_t *attributes)
{
    static const char *const ages[SP_LIVE_AGES] = {"0s", "10s", "1m", "10m", "1h"};
    static const char *const ends[] = {"", "span", "request"};
    uint32_t count = 0, end = live >> 8 & 3;
    attributes[count++] =
        sp_dictionary_string_attribute(&b->dictionary, "spanprof.live.age", ages[live & 0xff]);
    if (end)
        attributes[count++] =
            sp_dictionary_string_attribute(&b->dictionary, "spanprof.live.outlived", ends[end]);
    return count;
}

static uint32_t add_holder_span(sp_build *b, const sp_window_link *link, uint32_t *attributes)
{
    char trace[2 * sizeof link->trace_id + 1], span[2 * sizeof link->span_id + 1];
    sp_hex_encode(trace, link->trace_id, sizeof link->trace_id);
    sp_hex_encode(span, link->span_id, sizeof link->span_id);
    attributes[0] =
        sp_dictionary_string_attribute(&b->dictionary, "spanprof.holder.trace_id", trace);
    attributes[1] = sp_dictionary_string_attribute(&b->dictionary, "spanprof.holder.span_id", span);
    return 2;
}

static uint32_t add_holder_stack(sp_build *b, uint32_t stack, uint32_t *attributes)
{
    sp_buffer text = SP_BUFFER_INIT(SP_STACK_TEXT_MAX);
    sp_stack_text(&text, b->window, b->symbolizer, stack);
    bool has_text = text.length > 0;
    if (has_text)
        attributes[0] = sp_dictionary_string_attribute(&b->dictionary, "spanprof.holder.stack",
                                                       (const char *)text.data);
    b->dictionary.failed |= text.failed;
    sp_buffer_deinit(&text);
    return has_text ? 1 : 0;
}

static uint32_t add_lock_name(sp_build *b, const sp_window_location *lock, uint32_t *attributes)
{
    const char *name = sp_symbolizer_variable(b->symbolizer, lock->module, lock->address);
    b->dictionary.failed |= !name;
    if (!name || !*name)
        return 0;
    attributes[0] = sp_dictionary_string_attribute(&b->dictionary, "spanprof.lock.name", name);
    return 1;
}

static uint32_t add_lock(sp_build *b, uint32_t number, uint32_t *attributes)
{
    const sp_window_location *lock = sp_intern_key(&b->window->locks, number);
    uint64_t address = lock->address + (lock->module ? lock->module->bias : 0);
    char text[24];
    snprintf(text, sizeof text, "0x%" PRIx64, address);
    attributes[0] = sp_dictionary_string_attribute(&b->dictionary, "spanprof.lock.address", text);
    return 1 + add_lock_name(b, lock, attributes + 1);
}

static uint32_t add_holder(sp_build *b, uint32_t number, uint32_t *attributes)
{
    const sp_window_holder *holder = sp_intern_key(&b->window->holders, number);
    uint32_t count = 0;
    if (holder->link)
        count = add_holder_span(b, sp_intern_key(&b->window->links, holder->link), attributes);
    if (holder->stack)
        count += add_holder_stack(b, holder->stack - 1, attributes + count);
    if (holder->lock)
        count += add_lock(b, holder->lock - 1, attributes + count);
    return count;
}

static uint32_t add_wait(sp_build *b, uint32_t number, uint32_t *attributes)
{
    uint32_t count = 0;
    if (number & SP_WINDOW_LIVE)
        return add_live(b, number, attributes);
    if (number & SP_WINDOW_HOLDER)
        return add_holder(b, sp_window_holder_number(number), attributes);
    sp_wait wait = sp_window_wait_of(number);
    attributes[count++] = sp_dictionary_string_attribute(&b->dictionary, "spanprof.wait",
                                                         sp_wait_class_name(wait.wait_class));
    if (wait.descriptor != SP_DESCRIPTOR_NONE)
        attributes[count++] = sp_dictionary_string_attribute(
            &b->dictionary, "spanprof.wait.descriptor", sp_wait_descriptor_name(wait.descriptor));
    return count;
}

/* Add the attributes of the sample's context. Values hold no NUL, because they were strings. */
static uint32_t add_context(sp_build *b, uint32_t number, uint32_t *attributes)
{
    const uint8_t *data = sp_intern_key(&b->window->attribute_sets, number);
    uint32_t length = b->window->attribute_sets.entries[number].length, count = 0;
    for (uint32_t at = 0; at < length && count < CONTEXT_ATTRIBUTES_MAX; at += 2u + data[at + 1]) {
        char value[256];
        memcpy(value, data + at + 2, data[at + 1]);
        value[data[at + 1]] = 0;
        attributes[count++] =
            sp_dictionary_string_attribute(&b->dictionary, sp_sample_key(data[at]), value);
    }
    return count;
}

/* The attributes of a sample's thread, its wait and its context, as the number of a list. */
uint32_t sp_build_attributes(sp_build *b, const sp_window_key *from)
{
    uint32_t attributes[SAMPLE_ATTRIBUTES_MAX], count = 0;
    bool has_wait = b->options->wait_attributes && from->wait != SP_WAIT_CPU;
    bool has_more = has_wait || from->attributes;
    if (b->options->thread_attributes && !has_more && b->threads[from->thread])
        return b->threads[from->thread] - 1;
    if (b->options->thread_attributes)
        count += add_thread(b, from->thread, attributes);
    if (has_wait)
        count += add_wait(b, from->wait, attributes + count);
    if (from->attributes)
        count += add_context(b, from->attributes - 1, attributes + count);
    if (count == 0)
        return 0;
    uint32_t list = sp_dictionary_attributes(&b->dictionary, attributes, count);
    if (!has_more)
        b->threads[from->thread] = list + 1;
    return list;
}
