/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/waited.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "core/compiler.h"
#include "core/utf8.h"
#include "tool/model/key_sums.h"
#include "tool/text/output.h"

enum { NAME_BYTES = 120 };

bool sp_waited_is_of_a_lock(const char *name)
{
    static const char *const prefixes[] = {"std::", "__gthr", "__glibcxx_rwlock"};
    name = sp_names_function(name);
    for (size_t i = 0; i < SP_ARRAY_LENGTH(prefixes); i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

const char *sp_waited_function(char *stack)
{
    const char *leaf = NULL;
    for (;;) {
        char *last = strrchr(stack, ';');
        const char *name = last ? last + 1 : stack;
        leaf = leaf ? leaf : name;
        if (!sp_waited_is_of_a_lock(name))
            return name;
        if (!last)
            return leaf;
        *last = 0;
    }
}

static void add_name(sp_buffer *out, const char *name)
{
    size_t length = strlen(name), fits = sp_utf8_fit(name, length, NAME_BYTES);
    sp_buffer_add(out, name, fits);
    if (fits < length)
        sp_buffer_add_string(out, SP_UTF8_CUT);
}

static void add_lock(sp_buffer *out, const sp_model *model, const sp_model_sample *sample)
{
    sp_model_lock lock = sp_model_lock_of(model, sample->lock);
    uint32_t told = lock.name != SP_MODEL_NONE ? lock.name : lock.address;
    sp_buffer_add_string(out, "waited for ");
    add_name(out, told != SP_MODEL_NONE ? sp_model_text(model, told) : "a lock");
}

static void add_holder_span(sp_buffer *out, const sp_model *model, uint32_t link)
{
    uint32_t span = sp_model_link_span(model, link);
    sp_buffer_add_string(out, " by ");
    add_name(out,
             span == SP_MODEL_NONE ? "a span that the files do not have" : model->spans[span].name);
}

static void add_holder_function(sp_buffer *out, const sp_model *model, const char *holder_stack)
{
    char *stack = strdup(holder_stack);
    sp_buffer name = SP_BUFFER_INIT(1 << 20);
    sp_buffer_add_string(out, " in ");
    if (stack && sp_names_show_recorded(&model->names, model->options.style,
                                        sp_waited_function(stack), &name))
        add_name(out, (const char *)name.data);
    sp_buffer_deinit(&name);
    free(stack);
}

/* Write in words what SAMPLE waited for; "": unknown. */
static void describe(sp_buffer *out, const sp_model *model, const sp_model_sample *sample)
{
    bool has_stack = sample->holder_stack != SP_MODEL_NONE;
    sp_buffer_clear(out);
    if (sample->lock != SP_MODEL_NONE || sample->holder || has_stack)
        add_lock(out, model, sample);
    if (sample->holder || has_stack)
        sp_buffer_add_string(out, ", held");
    if (sample->holder)
        add_holder_span(out, model, sample->holder);
    if (has_stack)
        add_holder_function(out, model, sp_model_text(model, sample->holder_stack));
}

/* Sum up the selected samples by what they waited for, in words. Returns false when memory is
 * short. */
static bool fill(sp_key_sums *table, const sp_selection *selection)
{
    const sp_model *model = selection->model;
    sp_buffer text = SP_BUFFER_INIT(1 << 12);
    bool done = true;
    for (uint32_t i = 0; i < model->sample_index.count && done; i++) {
        const sp_model_sample *sample = &model->samples[i];
        if (!sp_selection_has(selection, sample))
            continue;
        describe(&text, model, sample);
        done = !text.failed &&
               (!text.length || sp_key_sums_add(table, text.data, text.length, sample->value));
    }
    sp_buffer_deinit(&text);
    return done;
}

/* Write TEXT, with VALUE and the sum WHOLE of all waits after it. */
static void format(char out[SP_WAITED_LENGTH], const char *text, uint64_t value, uint64_t whole,
                   const char *unit)
{
    char value_text[SP_VALUE_LENGTH], whole_text[SP_VALUE_LENGTH];
    if (strcmp(unit, "count") == 0) {
        snprintf(out, SP_WAITED_LENGTH, "%s (%" PRIu64 " of %" PRIu64 " times)", text, value,
                 whole);
        return;
    }
    sp_format_value(value_text, value, unit);
    sp_format_value(whole_text, whole, unit);
    snprintf(out, SP_WAITED_LENGTH, "%s (%s of %s)", text, value_text, whole_text);
}

void sp_waited_format(char out[SP_WAITED_LENGTH], const sp_selection *selection)
{
    const sp_model_type *type = &selection->model->types[selection->type];
    sp_key_sums table = {0};
    *out = 0;
    if (type->is_wait && fill(&table, selection) && table.keys.count) {
        uint32_t best = sp_key_sums_largest(&table);
        format(out, sp_intern_key(&table.keys, best), table.sums[best], selection->value,
               type->unit);
    }
    sp_key_sums_deinit(&table);
}
