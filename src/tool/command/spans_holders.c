/* SPDX-License-Identifier: Apache-2.0 */
/* `spanprof spans --holders`: which span waited for which lock, and which span held it. A line has
 * a waiter, the function in which it waited, the lock, a holder, and the function in which the
 * holder released the lock. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hex.h"
#include "core/reach.h"
#include "tool/command/commands.h"
#include "tool/command/spans.h"
#include "tool/model/sum.h"
#include "tool/model/waited.h"
#include "tool/text/messages.h"

/* The columns of text. On a terminal they share the width that the other columns leave, and each
 * has at least LEAST. */
enum { WAITER, FUNCTION, LOCK, HOLDER, HOLDER_FUNCTION, TEXTS, LEAST = 12, OTHERS = 62 };

static const char *const heads[TEXTS] = {"span", "in", "lock", "lock held by", "in"};

typedef struct wait_line {
    uint32_t waiter, function, holder; /* link, string (SP_MODEL_NONE: no stack), link */
    uint32_t holder_function; /* number of the table's holder_functions; SP_MODEL_NONE: unknown */
    uint32_t lock;            /* number of the model's locks; SP_MODEL_NONE: unknown */
    uint64_t delay_ns, contentions;
    /* set when all lines are there, with the name of the request */
    const char *waiter_name, *holder_name;
    const char *lock_name; /* also with the address, if several locks have the name */
} wait_line;

typedef struct wait_table {
    const sp_model *model;
    sp_intern index;            /* keys are the first five members of a line */
    sp_intern holder_functions; /* keys are names with their NUL */
    sp_intern span_names;       /* keys are names with their NUL */
    sp_intern lock_names;       /* keys are names with their NUL */
    bool has_locks;             /* some line has a lock */
    wait_line *lines;
    size_t capacity;
} wait_table;

/* ---- the lines ---- */

/* The innermost function that is not part of the implementation of a lock, or else the innermost of
 * all. */
static uint32_t function_of(const sp_model *model, uint32_t stack)
{
    const uint32_t *frames = sp_intern_key(&model->stacks, stack);
    size_t count = model->stacks.entries[stack].length / sizeof *frames, at = 0;
    while (at < count && sp_waited_is_of_a_lock(sp_model_text(model, frames[at])))
        at++;
    return count == 0 ? SP_MODEL_NONE : frames[at < count ? at : 0];
}

/* The number of the function in which the holder released the lock, SP_MODEL_NONE if it is unknown,
 * or SP_INTERN_FAILED when memory is short. */
static uint32_t holder_function_of(wait_table *table, const sp_model_sample *sample)
{
    if (sample->holder_stack == SP_MODEL_NONE)
        return SP_MODEL_NONE;
    const sp_model *model = table->model;
    char *stack = strdup(sp_model_text(model, sample->holder_stack));
    sp_buffer name = SP_BUFFER_INIT(1 << 24);
    bool done = stack && sp_names_show_recorded(&model->names, model->options.style,
                                                sp_waited_function(stack), &name);
    uint32_t number =
        done ? sp_intern_put(&table->holder_functions, name.data, name.length + 1, NULL)
             : SP_INTERN_FAILED;
    sp_buffer_deinit(&name);
    free(stack);
    return number;
}

static wait_line *line_of(wait_table *table, const sp_model_sample *sample)
{
    bool is_new;
    uint32_t key[5] = {sample->link, function_of(table->model, sample->stack), sample->holder,
                       holder_function_of(table, sample), sample->lock};
    uint32_t number = sp_intern_put(&table->index, key, sizeof key, &is_new);
    bool is_short = key[3] == SP_INTERN_FAILED && sample->holder_stack != SP_MODEL_NONE;
    if (is_short || number == SP_INTERN_FAILED ||
        !SP_REACH(table->lines, number, table->capacity, 64))
        return NULL;
    if (is_new)
        table->lines[number] = (wait_line){.waiter = key[0],
                                           .function = key[1],
                                           .holder = key[2],
                                           .holder_function = key[3],
                                           .lock = key[4]};
    table->has_locks |= is_new && sample->lock != SP_MODEL_NONE;
    return &table->lines[number];
}

static uint32_t span_of(const sp_model *model, uint32_t link)
{
    return link ? sp_model_link_span(model, link) : SP_MODEL_NONE;
}

static bool is_chosen(const sp_model *model, const bool *chosen, const sp_model_sample *sample)
{
    uint32_t span = span_of(model, sample->link);
    return !chosen || (span != SP_MODEL_NONE && chosen[span]);
}

/* The type that is linked to innermost spans, or else to local roots. */
static uint32_t type_of(const sp_model *model, const char *innermost, const char *root)
{
    uint32_t type = sp_model_type_of_name(model, innermost);
    return type != SP_MODEL_NONE ? type : sp_model_type_of_name(model, root);
}

static int fill(wait_table *table, const bool *chosen)
{
    const sp_model *model = table->model;
    uint32_t delay = type_of(model, "delay_innermost", "delay");
    uint32_t contentions = type_of(model, "contentions_innermost", "contentions");
    if (delay == SP_MODEL_NONE)
        return sp_tool_no(
            "spans: --holders: the files have no waits for locks: no thread waited, or "
            "they were not recorded (SPANPROF_PROFILES=lock, with "
            "libspanprof-preload.so in LD_PRELOAD)");
    for (uint32_t i = 0; i < model->sample_index.count; i++) {
        const sp_model_sample *sample = &model->samples[i];
        if ((sample->type != delay && sample->type != contentions) ||
            !is_chosen(model, chosen, sample))
            continue;
        wait_line *line = line_of(table, sample);
        if (!line)
            return sp_tool_no_memory();
        sp_sum_add(sample->type == delay ? &line->delay_ns : &line->contentions, sample->value);
    }
    return table->index.count ? SP_TOOL_DONE
                              : sp_tool_no("spans: --holders: no span that matches waited for a "
                                           "lock");
}

static int by_delay(const void *a, const void *b)
{
    const wait_line *x = a, *y = b;
    if (x->delay_ns != y->delay_ns)
        return x->delay_ns > y->delay_ns ? -1 : 1;
    return memcmp(x, y, 5 * sizeof x->waiter);
}

/* ---- the forms of the lines ---- */

/* The local root of SPAN if it is another span, else SP_MODEL_NONE. */
static uint32_t request_of(const sp_model *model, uint32_t span)
{
    uint32_t root = span == SP_MODEL_NONE ? SP_MODEL_NONE : sp_model_local_root(model, span);
    return root == span ? SP_MODEL_NONE : root;
}

/* The name of a span, as "request: span" if its request is another span. If the files have only
 * samples of the span, its name is unknown. */
static const char *name_of(wait_table *table, uint32_t link)
{
    const sp_model *model = table->model;
    uint32_t span = span_of(model, link), root = request_of(model, span);
    const char *name = span == SP_MODEL_NONE ? "(not in the files)" : model->spans[span].name;
    char *both = NULL;
    if (!link)
        return "-";
    if (root == SP_MODEL_NONE || asprintf(&both, "%s: %s", model->spans[root].name, name) < 0)
        return name;
    uint32_t number = sp_intern_put(&table->span_names, both, strlen(both) + 1, NULL);
    free(both);
    return number == SP_INTERN_FAILED ? name : sp_intern_key(&table->span_names, number);
}

/* By number of string, how many locks have this name. Free the array by free(). NULL: memory is
 * short. */
static uint32_t *count_lock_names(const sp_model *model)
{
    uint32_t *counts = calloc(model->strings.count + 1, sizeof *counts);
    for (uint32_t i = 0; i < model->locks.count && counts; i++) {
        const sp_model_lock *lock = sp_intern_key(&model->locks, i);
        if (lock->name != SP_MODEL_NONE)
            counts[lock->name]++;
    }
    return counts;
}

/* The name of a lock, with its address if other locks have the same name, or the address if it has
 * no name. */
static const char *lock_name_of(wait_table *table, const wait_line *line, const uint32_t *counts)
{
    sp_model_lock lock = sp_model_lock_of(table->model, line->lock);
    const char *name = sp_model_text_or_none(table->model, lock.name);
    const char *address = sp_model_text_or_none(table->model, lock.address);
    char *both = NULL;
    if (!*name || !*address || !counts || counts[lock.name] < 2 ||
        asprintf(&both, "%s (%s)", name, address) < 0)
        return *name ? name : address;
    uint32_t number = sp_intern_put(&table->lock_names, both, strlen(both) + 1, NULL);
    free(both);
    return number == SP_INTERN_FAILED ? name : sp_intern_key(&table->lock_names, number);
}

static void name_lines(wait_table *table)
{
    uint32_t *counts = count_lock_names(table->model);
    for (uint32_t i = 0; i < table->index.count; i++) {
        wait_line *line = &table->lines[i];
        line->waiter_name = name_of(table, line->waiter);
        line->holder_name = name_of(table, line->holder);
        line->lock_name = lock_name_of(table, line, counts);
    }
    free(counts);
}

static const char *function_name(const sp_model *model, const wait_line *line)
{
    return line->function == SP_MODEL_NONE ? "[no stack]" : sp_model_text(model, line->function);
}

/* Returns "" if the function is unknown. */
static const char *holder_function_name(const wait_table *table, const wait_line *line)
{
    return line->holder_function == SP_MODEL_NONE
               ? ""
               : sp_intern_key(&table->holder_functions, line->holder_function);
}

static const char *text_of(const wait_table *table, const wait_line *line, int column)
{
    switch (column) {
    case WAITER:
        return line->waiter_name;
    case FUNCTION:
        return function_name(table->model, line);
    case LOCK:
        return line->lock_name;
    case HOLDER:
        return line->holder_name;
    default:
        return holder_function_name(table, line);
    }
}

static unsigned widest(const wait_table *table, size_t shown, int column)
{
    unsigned columns = (unsigned)strlen(heads[column]);
    for (size_t i = 0; i < shown; i++) {
        unsigned own = sp_spans_cell_columns(text_of(table, &table->lines[i], column));
        columns = own > columns ? own : columns;
    }
    return columns;
}

/* Find the widths of the columns. In a pipe nothing is cut. */
static void fit_columns(unsigned widths[TEXTS], const wait_table *table, size_t shown,
                        const sp_terminal *terminal)
{
    unsigned most = SP_SPANS_WHOLE_NAME, texts = table->has_locks ? TEXTS : TEXTS - 1;
    if (terminal->has_width)
        most = terminal->columns > OTHERS + texts * LEAST ? (terminal->columns - OTHERS) / texts
                                                          : LEAST;
    for (int i = 0; i < TEXTS; i++) {
        unsigned whole = widest(table, shown, i);
        widths[i] = whole < most ? whole : most;
    }
}

static void add_span_id(sp_buffer *out, const sp_model *model, uint32_t link)
{
    char span_id[17] = "";
    if (link)
        sp_hex_encode(span_id, ((const sp_model_link *)sp_intern_key(&model->links, link))->span_id,
                      8);
    sp_buffer_printf(out, "  %-16s  ", span_id);
}

static void trim_line(sp_buffer *out)
{
    while (out->length && out->data[out->length - 1] == ' ')
        out->length--;
    sp_buffer_add_char(out, '\n');
}

static void add_line(sp_buffer *out, const wait_table *table, const wait_line *line,
                     const unsigned widths[TEXTS], const sp_terminal *terminal)
{
    char waited[SP_DURATION_LENGTH];
    sp_format_duration(waited, line->delay_ns);
    sp_buffer_printf(out, "%8s  %8llu  ", waited, (unsigned long long)line->contentions);
    for (int i = 0; i < TEXTS; i++) {
        if (i == LOCK && !table->has_locks)
            continue;
        sp_spans_add_cell(out, text_of(table, line, i), widths[i], true, terminal);
        if (i == FUNCTION || i == LOCK)
            sp_buffer_add_string(out, "  ");
        else if (i != HOLDER_FUNCTION)
            add_span_id(out, table->model, i == WAITER ? line->waiter : line->holder);
    }
    trim_line(out);
}

static int write_text(const wait_table *table, size_t shown)
{
    sp_buffer out = SP_BUFFER_INIT(SP_OUTPUT_MAX_BYTES);
    sp_terminal terminal = sp_terminal_get(false);
    unsigned widths[TEXTS];
    fit_columns(widths, table, shown, &terminal);
    sp_buffer_printf(&out, "%8s  %8s  %-*s  %-16s  %-*s  ", "waited", "times", (int)widths[WAITER],
                     heads[WAITER], "span id", (int)widths[FUNCTION], heads[FUNCTION]);
    if (table->has_locks)
        sp_buffer_printf(&out, "%-*s  ", (int)widths[LOCK], heads[LOCK]);
    sp_buffer_printf(&out, "%-*s  %-16s  %s\n", (int)widths[HOLDER], heads[HOLDER], "span id",
                     heads[HOLDER_FUNCTION]);
    for (size_t i = 0; i < shown; i++)
        add_line(&out, table, &table->lines[sp_spans_line(&terminal, i, shown)], widths, &terminal);
    sp_buffer_add_string(&out, "a wait with several holders names one, drawn by its share of the "
                               "wait\n");
    sp_spans_more(&out, shown, table->index.count, "line", &terminal);
    return sp_output_write(&out, NULL);
}

/* The span as JSON; null: there is none, or it is unknown. */
static json_t *span_json(const sp_model *model, uint32_t link)
{
    char trace_id[33], span_id[17];
    if (!link)
        return json_null();
    const sp_model_link *ids = sp_intern_key(&model->links, link);
    uint32_t span = span_of(model, link), root = request_of(model, span);
    sp_hex_encode(trace_id, ids->trace_id, 16);
    sp_hex_encode(span_id, ids->span_id, 8);
    const char *name = span == SP_MODEL_NONE ? "" : model->spans[span].name;
    return json_pack("{s:s, s:s, s:s, s:s}", "trace_id", trace_id, "span_id", span_id, "name", name,
                     "request", root == SP_MODEL_NONE ? name : model->spans[root].name);
}

static json_t *line_json(const wait_table *table, const wait_line *line)
{
    const sp_model *model = table->model;
    sp_model_lock lock = sp_model_lock_of(model, line->lock);
    return json_pack(
        "{s:o, s:s, s:s, s:s, s:o, s:s, s:I, s:I}", "waiter", span_json(model, line->waiter),
        "function", function_name(model, line), "lock", sp_model_text_or_none(model, lock.name),
        "lock_address", sp_model_text_or_none(model, lock.address), "holder",
        span_json(model, line->holder), "holder_function", holder_function_name(table, line),
        "delay_ns", (json_int_t)line->delay_ns, "contentions", (json_int_t)line->contentions);
}

static int write_json(const wait_table *table, size_t shown)
{
    json_t *waits = json_array();
    for (size_t i = 0; i < shown; i++)
        json_array_append_new(waits, line_json(table, &table->lines[i]));
    return sp_output_write_json(
        json_pack("{s:I, s:o}", "count", (json_int_t)table->index.count, "waits", waits), NULL);
}

int sp_spans_holders(const sp_model *model, const bool *chosen, const sp_spans_options *options)
{
    wait_table table = {.model = model};
    int status = fill(&table, chosen);
    size_t count = table.index.count;
    size_t shown = sp_spans_shown(options, count);
    if (status == SP_TOOL_DONE) {
        qsort(table.lines, count, sizeof *table.lines, by_delay);
        name_lines(&table);
        status = options->json ? write_json(&table, shown) : write_text(&table, shown);
    }
    sp_intern_deinit(&table.index);
    sp_intern_deinit(&table.holder_functions);
    sp_intern_deinit(&table.span_names);
    sp_intern_deinit(&table.lock_names);
    free(table.lines);
    return status;
}
