/* SPDX-License-Identifier: Apache-2.0 */
/* Applies a query to a model. A value that is absent, and values of different types, are neither
 * equal nor unequal. Only comparisons with nil are different: they find out whether a value is
 * absent. */
#include <stdlib.h>
#include <string.h>

#include "core/hex.h"
#include "tool/model/query.h"

/* What queries can ask about a whole trace. */
typedef struct trace {
    uint64_t start_ns, end_ns;
    uint32_t root; /* the number of a span */
    bool root_is_top;
} trace;

typedef struct runner {
    const sp_model *model;
    sp_intern trace_index; /* trace ids; number n is traces[n] */
    trace *traces;
    uint32_t *trace_of; /* by span */
} runner;

/* ---- traces ---- */

static bool has_no_parent(const sp_model_span *span)
{
    static const uint8_t none[8];
    return memcmp(span->parent_span_id, none, sizeof none) == 0;
}

/* Add a span to its trace. The root of a trace is its first span without a parent id, or else its
 * first span whose parent is not in the files. */
static void note_span(trace *trace, const sp_model_span *span, uint32_t number, bool is_new)
{
    bool is_top = has_no_parent(span);
    if (is_new)
        *trace = (struct trace){span->start_ns, span->end_ns, number, is_top};
    if (is_top && !trace->root_is_top) {
        trace->root = number;
        trace->root_is_top = true;
    }
    trace->start_ns = span->start_ns < trace->start_ns ? span->start_ns : trace->start_ns;
    trace->end_ns = span->end_ns > trace->end_ns ? span->end_ns : trace->end_ns;
}

/* Find all traces, in span_order: roots by start, then their descendants. */
static bool find_traces(runner *runner)
{
    const sp_model *model = runner->model;
    size_t count = model->span_index.count;
    runner->traces = calloc(count + 1, sizeof *runner->traces);
    runner->trace_of = calloc(count + 1, sizeof *runner->trace_of);
    if (!runner->traces || !runner->trace_of)
        return false;
    for (size_t i = 0; i < count; i++) {
        uint32_t number = model->span_order[i];
        const sp_model_span *span = &model->spans[number];
        bool is_new;
        uint32_t trace = sp_intern_put(&runner->trace_index, span->id.trace_id,
                                       sizeof span->id.trace_id, &is_new);
        if (trace == SP_INTERN_FAILED)
            return false;
        runner->trace_of[number] = trace;
        note_span(&runner->traces[trace], span, number, is_new);
    }
    return true;
}

/* ---- values ---- */

/* A value, and room for the text of an id. */
typedef struct answer {
    sp_query_value value;
    char id[33];
} answer;

static sp_query_value text_value(const char *text)
{
    return (sp_query_value){.type = SP_QUERY_STRING, .text = text ? text : ""};
}

static sp_query_value integer_value(sp_query_type type, int64_t number)
{
    return (sp_query_value){
        .type = type, .is_integer = true, .integer = number, .number = (double)number};
}

sp_query_value sp_query_value_of(const Sp__Common__AnyValue *value)
{
    switch (value ? value->value_case : SP__COMMON__ANY_VALUE__VALUE__NOT_SET) {
    case SP__COMMON__ANY_VALUE__VALUE_STRING_VALUE:
        return text_value(value->string_value);
    case SP__COMMON__ANY_VALUE__VALUE_BOOL_VALUE:
        return integer_value(SP_QUERY_BOOL, value->bool_value);
    case SP__COMMON__ANY_VALUE__VALUE_INT_VALUE:
        return integer_value(SP_QUERY_NUMBER, value->int_value);
    case SP__COMMON__ANY_VALUE__VALUE_DOUBLE_VALUE:
        return (sp_query_value){.type = SP_QUERY_NUMBER, .number = value->double_value};
    default:
        return (sp_query_value){.type = SP_QUERY_NIL};
    }
}

static sp_query_value find_attribute(Sp__Common__KeyValue *const *attributes, size_t count,
                                     const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(attributes[i]->key, key) == 0)
            return sp_query_value_of(attributes[i]->value);
    return (sp_query_value){.type = SP_QUERY_NIL};
}

static sp_query_value of_span(const sp_model_span *span, const char *key)
{
    return find_attribute(span->message->attributes, span->message->n_attributes, key);
}

static sp_query_value of_resource(const sp_model_span *span, const char *key)
{
    return span->resource
               ? find_attribute(span->resource->attributes, span->resource->n_attributes, key)
               : (sp_query_value){.type = SP_QUERY_NIL};
}

static sp_query_value of_scope(const sp_model_span *span, const char *key)
{
    return span->scope ? find_attribute(span->scope->attributes, span->scope->n_attributes, key)
                       : (sp_query_value){.type = SP_QUERY_NIL};
}

static sp_query_value attribute(const sp_query_node *node, const sp_model_span *span)
{
    const char *key = node->value.text;
    if (node->op == SP_QUERY_RESOURCE_ATTRIBUTE)
        return of_resource(span, key);
    if (node->op == SP_QUERY_SCOPE_ATTRIBUTE)
        return of_scope(span, key);
    sp_query_value value = of_span(span, key);
    return value.type == SP_QUERY_NIL && node->op == SP_QUERY_ATTRIBUTE ? of_resource(span, key)
                                                                        : value;
}

static sp_query_value duration_value(uint64_t start_ns, uint64_t end_ns)
{
    uint64_t duration = end_ns - start_ns;
    return integer_value(SP_QUERY_DURATION, duration < INT64_MAX ? (int64_t)duration : INT64_MAX);
}

/* The value of the trace of span NUMBER that OP asks for. */
static sp_query_value trace_value(const runner *runner, sp_query_op op, uint32_t number)
{
    const trace *trace = &runner->traces[runner->trace_of[number]];
    const sp_model_span *root = &runner->model->spans[trace->root];
    if (op == SP_QUERY_TRACE_DURATION)
        return duration_value(trace->start_ns, trace->end_ns);
    return text_value(op == SP_QUERY_ROOT_NAME ? root->name : root->service);
}

static void find_value(const runner *runner, const sp_query_node *node, uint32_t number,
                       answer *out)
{
    const sp_model_span *span = &runner->model->spans[number];
    const Sp__Trace__Status *status = span->message->status;
    switch (node->op) {
    case SP_QUERY_LITERAL:
        out->value = node->value;
        break;
    case SP_QUERY_NAME:
        out->value = text_value(span->name);
        break;
    case SP_QUERY_DURATION_OF:
        out->value = duration_value(span->start_ns, span->end_ns);
        break;
    case SP_QUERY_STATUS_OF:
        out->value = integer_value(SP_QUERY_STATUS, status ? (int64_t)status->code : 0);
        break;
    case SP_QUERY_STATUS_MESSAGE:
        out->value = text_value(status ? status->message : "");
        break;
    case SP_QUERY_KIND_OF:
        out->value = integer_value(SP_QUERY_KIND, (int64_t)span->message->kind);
        break;
    case SP_QUERY_SPAN_ID:
        sp_hex_encode(out->id, span->id.span_id, sizeof span->id.span_id);
        out->value = text_value(out->id);
        break;
    case SP_QUERY_TRACE_ID:
        sp_hex_encode(out->id, span->id.trace_id, sizeof span->id.trace_id);
        out->value = text_value(out->id);
        break;
    case SP_QUERY_SCOPE_NAME:
        out->value = text_value(span->scope ? span->scope->name : "");
        break;
    case SP_QUERY_SCOPE_VERSION:
        out->value = text_value(span->scope ? span->scope->version : "");
        break;
    case SP_QUERY_TRACE_DURATION:
    case SP_QUERY_ROOT_NAME:
    case SP_QUERY_ROOT_SERVICE:
        out->value = trace_value(runner, node->op, number);
        break;
    default:
        out->value = attribute(node, span);
    }
}

/* ---- conditions ---- */

static bool is_numeric(sp_query_type type)
{
    return type == SP_QUERY_NUMBER || type == SP_QUERY_DURATION;
}

/* *OUT: below 0, 0 or above 0. Returns false when A and B cannot be compared: they have different
 * types, or one is not a number (NaN). A number and a duration can be compared. */
static bool compare(const sp_query_value *a, const sp_query_value *b, int *out)
{
    if (a->type != b->type && !(is_numeric(a->type) && is_numeric(b->type)))
        return false;
    if (a->type == SP_QUERY_STRING)
        *out = strcmp(a->text, b->text);
    else if (a->is_integer && b->is_integer)
        *out = (a->integer > b->integer) - (a->integer < b->integer);
    else
        *out = (a->number > b->number) - (a->number < b->number);
    return a->number == a->number && b->number == b->number; /* false for NaN */
}

static bool decide(sp_query_op op, int order)
{
    switch (op) {
    case SP_QUERY_EQUAL:
        return order == 0;
    case SP_QUERY_UNEQUAL:
        return order != 0;
    case SP_QUERY_LESS:
        return order < 0;
    case SP_QUERY_LESS_EQUAL:
        return order <= 0;
    case SP_QUERY_MORE:
        return order > 0;
    default:
        return order >= 0;
    }
}

static bool holds_comparison(const runner *runner, const sp_query_node *node, uint32_t number)
{
    answer left, right;
    int order;
    find_value(runner, node->left, number, &left);
    if (node->regex)
        return left.value.type == SP_QUERY_STRING &&
               (regexec(&node->regex->compiled, left.value.text, 0, NULL, 0) == 0) ==
                   (node->op == SP_QUERY_MATCH);
    find_value(runner, node->right, number, &right);
    bool one_is_nil = (left.value.type == SP_QUERY_NIL) != (right.value.type == SP_QUERY_NIL);
    bool asks_for_nil = (node->left->op == SP_QUERY_LITERAL && node->left->type == SP_QUERY_NIL) ||
                        (node->right->op == SP_QUERY_LITERAL && node->right->type == SP_QUERY_NIL);
    if (asks_for_nil)
        return one_is_nil == (node->op == SP_QUERY_UNEQUAL);
    return left.value.type != SP_QUERY_NIL && compare(&left.value, &right.value, &order) &&
           decide(node->op, order);
}

static bool holds(const runner *runner, const sp_query_node *node, uint32_t number)
{
    if (node->op == SP_QUERY_NOT)
        return !holds(runner, node->left, number);
    if (node->op == SP_QUERY_AND)
        return holds(runner, node->left, number) && holds(runner, node->right, number);
    if (node->op == SP_QUERY_OR)
        return holds(runner, node->left, number) || holds(runner, node->right, number);
    if (node->left)
        return holds_comparison(runner, node, number);
    answer own; /* a value without a comparison: the word `true`, or an attribute that is true */
    find_value(runner, node, number, &own);
    return own.value.type == SP_QUERY_BOOL && own.value.integer;
}

/* ---- sets ---- */

static bool *run_set(const runner *runner, const sp_query_node *node);

static bool *select_spans(const runner *runner, const sp_query_node *node)
{
    uint32_t count = runner->model->span_index.count;
    bool *marks = calloc((size_t)count + 1, sizeof *marks);
    for (uint32_t i = 0; marks && i < count; i++)
        marks[i] = !node->left || holds(runner, node->left, i);
    return marks;
}

/* Keep in RIGHT only spans whose parent is in LEFT, or with DEEP an ancestor. span_order has
 * parents before children, so LEFT can be extended to descendants on the way. */
static void keep_below(const runner *runner, bool *left, bool *right, bool deep)
{
    const sp_model *model = runner->model;
    for (uint32_t i = 0; i < model->span_index.count; i++) {
        uint32_t span = model->span_order[i], parent = model->spans[span].parent;
        bool below = parent != SP_MODEL_NONE && left[parent];
        right[span] = right[span] && below;
        left[span] = left[span] || (deep && below);
    }
}

/* Make RIGHT the union of LEFT and RIGHT. BOTH: only with spans of traces that have spans in LEFT
 * and also in RIGHT. Returns false when memory is short. */
static bool unite(const runner *runner, const bool *left, bool *right, bool both)
{
    uint32_t count = runner->model->span_index.count;
    uint8_t *seen = calloc((size_t)runner->trace_index.count + 1, 1);
    for (uint32_t i = 0; seen && i < count; i++)
        seen[runner->trace_of[i]] |= (uint8_t)(left[i] | right[i] << 1);
    for (uint32_t i = 0; seen && i < count; i++)
        right[i] = (left[i] || right[i]) && (!both || seen[runner->trace_of[i]] == 3);
    free(seen);
    return seen;
}

static bool *run_set(const runner *runner, const sp_query_node *node)
{
    if (node->op == SP_QUERY_SELECT)
        return select_spans(runner, node);
    bool *left = run_set(runner, node->left), *right = left ? run_set(runner, node->right) : NULL;
    bool done = right;
    if (done && (node->op == SP_QUERY_CHILD || node->op == SP_QUERY_DESCENDANT))
        keep_below(runner, left, right, node->op == SP_QUERY_DESCENDANT);
    else if (done)
        done = unite(runner, left, right, node->op == SP_QUERY_AND);
    free(left);
    if (!done)
        free(right);
    return done ? right : NULL;
}

static void runner_deinit(runner *runner)
{
    sp_intern_deinit(&runner->trace_index);
    free(runner->traces);
    free(runner->trace_of);
}

bool *sp_query_run(const sp_query *query, const sp_model *model)
{
    runner runner = {.model = model};
    bool *marks = find_traces(&runner) ? run_set(&runner, query->root) : NULL;
    runner_deinit(&runner);
    return marks;
}

bool sp_query_each_value(const sp_model *model, const sp_query_node *node, sp_query_take *each,
                         void *user)
{
    runner runner = {.model = model};
    bool done = find_traces(&runner);
    for (uint32_t i = 0; done && i < model->span_index.count; i++) {
        answer own;
        find_value(&runner, node, i, &own);
        each(user, &own.value);
    }
    runner_deinit(&runner);
    return done;
}
