/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the calls of a table (calls.txt says how it reads) through spanprof, and prints which span
 * of the table has which ids. Where the spans go the environment says. Or prints which ratio
 * samples which trace.
 *
 * usage: api_calls TABLE
 *        api_calls ratios RATIO... < TRACE_IDS */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <spanprof/spanprof.h>

enum { FIELDS_MAX = 64, NAMES_MAX = 256, ELEMENTS_MAX = 64 };

#define LENGTH_OF(array) (sizeof(array) / sizeof((array)[0]))

static _Noreturn void fail(const char *what, const char *which)
{
    fprintf(stderr, "api_calls: %s: %s\n", what, which);
    exit(1);
}

/* --- fields ----------------------------------------------------------------------------------- */

/* Cut TEXT at SEPARATOR; an empty text has no fields. */
static size_t split(char *text, const char *separator, char *fields[], size_t maximum)
{
    size_t count = 0;
    for (char *rest = text; rest && *text && count < maximum;)
        fields[count++] = strsep(&rest, separator);
    return count;
}

/* What calls borrow lives until the end. */
static struct {
    void *memory[1000];
    size_t count;
} kept;

static void *keep(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (!memory || kept.count == LENGTH_OF(kept.memory))
        fail("memory", "of the table's values");
    return kept.memory[kept.count++] = memory;
}

static void free_kept(void)
{
    while (kept.count > 0)
        free(kept.memory[--kept.count]);
}

/* *N, a text that is too long for a table, becomes N letters. */
static const char *expand(const char *text)
{
    if (text[0] != '*')
        return text;
    size_t length = strtoul(text + 1, NULL, 10);
    return memset(keep(length + 1), 'x', length);
}

static uint64_t parse_time(const char *text)
{
    return strtoull(text, NULL, 10);
}

static int index_of(const char *word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(words[i], word) == 0)
            return (int)i;
    fail("no such word", word);
}

/* --- attributes ------------------------------------------------------------------------------- */

static spanprof_attribute_type parse_type(const char *name)
{
    static const char *const names[] = {"string",  "int",  "double",  "bool",
                                        "strings", "ints", "doubles", "bools"};
    return (spanprof_attribute_type)index_of(name, names, LENGTH_OF(names));
}

static void parse_array(spanprof_attribute *out, char *list)
{
    char *elements[ELEMENTS_MAX];
    out->count = (uint32_t)split(list, ",", elements, ELEMENTS_MAX);
    void *memory = keep(ELEMENTS_MAX * sizeof(int64_t));
    const char **strings = memory;
    int64_t *ints = memory;
    double *doubles = memory;
    bool *bools = memory;
    out->value.int_array = ints;
    for (uint32_t i = 0; i < out->count; i++) {
        if (out->type == SPANPROF_ATTRIBUTE_STRING_ARRAY)
            strings[i] = expand(elements[i]);
        else if (out->type == SPANPROF_ATTRIBUTE_INT_ARRAY)
            ints[i] = strtoll(elements[i], NULL, 10);
        else if (out->type == SPANPROF_ATTRIBUTE_DOUBLE_ARRAY)
            doubles[i] = strtod(elements[i], NULL);
        else
            bools[i] = strcmp(elements[i], "true") == 0;
    }
}

static void parse_attribute(spanprof_attribute *out, char *fields[3])
{
    *out = (spanprof_attribute){.key = expand(fields[1]), .type = parse_type(fields[0])};
    if (out->type == SPANPROF_ATTRIBUTE_STRING)
        out->value.string_value = expand(fields[2]);
    else if (out->type == SPANPROF_ATTRIBUTE_INT)
        out->value.int_value = strtoll(fields[2], NULL, 10);
    else if (out->type == SPANPROF_ATTRIBUTE_DOUBLE)
        out->value.double_value = strtod(fields[2], NULL);
    else if (out->type == SPANPROF_ATTRIBUTE_BOOL)
        out->value.bool_value = strcmp(fields[2], "true") == 0;
    else
        parse_array(out, fields[2]);
}

/* The rest of a line, three fields each. */
static uint32_t parse_attributes(spanprof_attribute *out, char *fields[], size_t count)
{
    uint32_t attributes = 0;
    for (; count >= 3; fields += 3, count -= 3)
        parse_attribute(&out[attributes++], fields);
    return attributes;
}

static void set_attribute(spanprof_span span, const spanprof_attribute *a)
{
    switch (a->type) {
    case SPANPROF_ATTRIBUTE_STRING:
        spanprof_span_set_string(span, a->key, a->value.string_value);
        break;
    case SPANPROF_ATTRIBUTE_INT:
        spanprof_span_set_int(span, a->key, a->value.int_value);
        break;
    case SPANPROF_ATTRIBUTE_DOUBLE:
        spanprof_span_set_double(span, a->key, a->value.double_value);
        break;
    case SPANPROF_ATTRIBUTE_BOOL:
        spanprof_span_set_bool(span, a->key, a->value.bool_value);
        break;
    case SPANPROF_ATTRIBUTE_STRING_ARRAY:
        spanprof_span_set_string_array(span, a->key, a->value.string_array, a->count);
        break;
    case SPANPROF_ATTRIBUTE_INT_ARRAY:
        spanprof_span_set_int_array(span, a->key, a->value.int_array, a->count);
        break;
    case SPANPROF_ATTRIBUTE_DOUBLE_ARRAY:
        spanprof_span_set_double_array(span, a->key, a->value.double_array, a->count);
        break;
    case SPANPROF_ATTRIBUTE_BOOL_ARRAY:
        spanprof_span_set_bool_array(span, a->key, a->value.bool_array, a->count);
        break;
    case SPANPROF_ATTRIBUTE_SIZED_STRING:
        spanprof_span_set_attribute(span, a);
        break;
    }
}

/* --- what has a name in the table ------------------------------------------------------------- */

typedef struct named {
    char *name;
    spanprof_tracer *tracer;
    spanprof_span span;
    spanprof_context context;
} named;

static named all[NAMES_MAX];

/* The thing with NAME, which is made when it is new. */
static named *find(const char *name)
{
    named *one = all;
    while (one->name && strcmp(one->name, name) != 0)
        one++;
    if (one == &all[NAMES_MAX - 1])
        fail("too many names", name);
    if (!one->name)
        one->name = strdup(name);
    return one;
}

/* --- calls ------------------------------------------------------------------------------------ */

/* A line behind its verb and name. */
typedef struct call {
    named *on;
    char **fields;
    size_t count;
    spanprof_attribute attributes[FIELDS_MAX / 3];
} call;

static void call_tracer(call *c)
{
    spanprof_tracer_options options = SPANPROF_TRACER_OPTIONS_INIT;
    options.name = c->fields[0];
    options.version = c->fields[1];
    options.schema_url = c->fields[2];
    options.attributes = c->attributes;
    options.attribute_count = parse_attributes(c->attributes, c->fields + 3, c->count - 3);
    c->on->tracer = spanprof_tracer_get_with(&options);
}

static void call_remote(call *c)
{
    char text[64];
    snprintf(text, sizeof text, "00-%s-%s-%s", c->fields[0], c->fields[1], c->fields[2]);
    if (!spanprof_context_extract(&c->on->context, text, NULL))
        fail("no traceparent", text);
}

static void print_hex(const uint8_t *bytes, size_t count)
{
    printf(" ");
    for (size_t i = 0; i < count; i++)
        printf("%02x", bytes[i]);
}

static void call_start(call *c)
{
    static const char *const kinds[] = {"internal", "server", "client", "producer", "consumer"};
    static const spanprof_context none;
    const char *kind = c->fields[2], *parent = c->fields[3];
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.kind = kind[0] ? (spanprof_span_kind)index_of(kind, kinds, LENGTH_OF(kinds)) : 0;
    options.parent = parent[0] ? &find(parent)->context : &none;
    options.start_time_ns = parse_time(c->fields[4]);
    options.attributes = c->attributes;
    options.attribute_count = parse_attributes(c->attributes, c->fields + 5, c->count - 5);
    c->on->span = spanprof_span_start(find(c->fields[0])->tracer, expand(c->fields[1]), &options);
    c->on->context = spanprof_span_context(c->on->span);
    printf("span %s", c->on->name);
    print_hex(c->on->context.trace_id, 16);
    print_hex(c->on->context.span_id, 8);
    printf("\n");
}

static void call_attribute(call *c)
{
    uint32_t count = parse_attributes(c->attributes, c->fields, c->count);
    for (uint32_t i = 0; i < count; i++)
        set_attribute(c->on->span, &c->attributes[i]);
}

static spanprof_event_options event_options(call *c)
{
    spanprof_event_options options = SPANPROF_EVENT_OPTIONS_INIT;
    options.time_ns = parse_time(c->fields[1]);
    options.attributes = c->attributes;
    options.attribute_count = parse_attributes(c->attributes, c->fields + 2, c->count - 2);
    return options;
}

static void call_event(call *c)
{
    spanprof_event_options options = event_options(c);
    spanprof_span_add_event(c->on->span, expand(c->fields[0]), &options);
}

static void call_error(call *c)
{
    spanprof_event_options options = event_options(c);
    spanprof_span_record_error(c->on->span, "main.NotFound", c->fields[0], NULL, &options);
}

static void call_link(call *c)
{
    spanprof_link link = {.context = &find(c->fields[0])->context, .attributes = c->attributes};
    link.attribute_count = parse_attributes(c->attributes, c->fields + 1, c->count - 1);
    spanprof_span_add_link(c->on->span, &link);
}

static void call_status(call *c)
{
    static const char *const names[] = {"unset", "ok", "error"};
    int status = index_of(c->fields[0], names, LENGTH_OF(names));
    spanprof_span_set_status(c->on->span, (spanprof_span_status)status, c->fields[1]);
}

static void call_name(call *c)
{
    spanprof_span_update_name(c->on->span, expand(c->fields[0]));
}

static void call_recording(call *c)
{
    printf("recording %s %s\n", c->on->name,
           spanprof_span_is_recording(c->on->span) ? "true" : "false");
}

static void call_end(call *c)
{
    if (c->fields[0][0])
        spanprof_span_end_at(c->on->span, parse_time(c->fields[0]));
    else
        spanprof_span_end(c->on->span);
}

static void make_call(char *line)
{
    static const char *const verbs[] = {"tracer", "remote", "start", "attribute", "event", "error",
                                        "link",   "status", "name",  "recording", "end"};
    static void (*const calls[])(call *) = {call_tracer, call_remote,    call_start, call_attribute,
                                            call_event,  call_error,     call_link,  call_status,
                                            call_name,   call_recording, call_end};
    char *fields[FIELDS_MAX] = {0};
    size_t count = split(line, "|", fields, FIELDS_MAX);
    if (count < 2)
        fail("a line without a name", line);
    call c = {.on = find(fields[1]), .fields = fields + 2, .count = count - 2};
    calls[index_of(fields[0], verbs, LENGTH_OF(verbs))](&c);
}

static void read_trace_id(uint8_t id[16], const char *text)
{
    for (int i = 0; i < 16; i++)
        if (sscanf(text + 2 * i, "%2hhx", &id[i]) != 1)
            fail("no trace id", text);
}

/* y or n for each ratio, a line for each trace id of the standard input. */
static int print_ratios(char *const *ratios, int count)
{
    uint8_t id[16];
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        read_trace_id(id, line);
        for (int i = 0; i < count; i++)
            putchar(spanprof_ratio_samples(strtod(ratios[i], NULL), id) ? 'y' : 'n');
        putchar('\n');
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "ratios") == 0)
        return print_ratios(argv + 2, argc - 2);
    FILE *table = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (!table)
        fail("usage", "api_calls TABLE");
    if (spanprof_start(NULL, NULL) != SPANPROF_OK)
        fail("cannot start", "spanprof");
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, table) >= 0) {
        line[strcspn(line, "\n")] = 0;
        if (line[0] && line[0] != '#')
            make_call(line);
    }
    free(line);
    fclose(table);
    bool is_sent = spanprof_stop(UINT64_C(30000000000)) == SPANPROF_OK;
    free_kept();
    return is_sent ? 0 : 1;
}
