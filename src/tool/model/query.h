/* SPDX-License-Identifier: Apache-2.0 */
/* Queries that select spans, in the syntax of TraceQL (docs/formats/query.md has the grammar).
 * query_parse.c makes a tree of a text, query_run.c applies the tree to a model, and query_hint.c
 * and query_values.c say why a query selects nothing. Threads: one at a time. */
#ifndef SP_TOOL_MODEL_QUERY_H
#define SP_TOOL_MODEL_QUERY_H

#include <regex.h>

#include "tool/model/model.h"
#include "tool/text/options.h"

/* The type of a value. ANY: an attribute, whose type is known only from its value in a span. */
typedef enum sp_query_type {
    SP_QUERY_ANY = 0,
    SP_QUERY_NIL, /* absent */
    SP_QUERY_STRING,
    SP_QUERY_NUMBER,
    SP_QUERY_DURATION, /* a number of nanoseconds */
    SP_QUERY_BOOL,
    SP_QUERY_STATUS, /* a number of the enum in OTLP */
    SP_QUERY_KIND,
    SP_QUERY_SET, /* a set of spans */
} sp_query_type;

typedef enum sp_query_op {
    /* values, the leaves of the tree */
    SP_QUERY_LITERAL = 0,
    SP_QUERY_NAME,
    SP_QUERY_DURATION_OF,
    SP_QUERY_STATUS_OF,
    SP_QUERY_STATUS_MESSAGE,
    SP_QUERY_KIND_OF,
    SP_QUERY_TRACE_DURATION,
    SP_QUERY_ROOT_NAME,
    SP_QUERY_ROOT_SERVICE,
    SP_QUERY_SPAN_ID,
    SP_QUERY_TRACE_ID,
    SP_QUERY_SCOPE_NAME,
    SP_QUERY_SCOPE_VERSION,
    SP_QUERY_SPAN_ATTRIBUTE,
    SP_QUERY_RESOURCE_ATTRIBUTE,
    SP_QUERY_SCOPE_ATTRIBUTE,
    SP_QUERY_ATTRIBUTE, /* of the span, or else of its resource */
    /* comparisons of values */
    SP_QUERY_EQUAL,
    SP_QUERY_UNEQUAL,
    SP_QUERY_LESS,
    SP_QUERY_LESS_EQUAL,
    SP_QUERY_MORE,
    SP_QUERY_MORE_EQUAL,
    SP_QUERY_MATCH,
    SP_QUERY_NO_MATCH,
    /* operators on conditions; AND and OR also on sets */
    SP_QUERY_NOT,
    SP_QUERY_AND,
    SP_QUERY_OR,
    /* operators on sets; SELECT makes a set from a condition, or the set of all spans if it has no
     * condition */
    SP_QUERY_SELECT,
    SP_QUERY_CHILD,
    SP_QUERY_DESCENDANT,
} sp_query_op;

/* A bool, a status and a kind are numbers, too. Integers are also in `integer`, which keeps all
 * bits. */
typedef struct sp_query_value {
    sp_query_type type;
    bool is_integer;
    int64_t integer;
    double number;
    const char *text;
} sp_query_value;

typedef struct sp_query_node {
    sp_query_op op;
    sp_query_type type;
    size_t position;
    sp_query_value value; /* the value of a literal; value.text is the key of an attribute */
    struct sp_query_node *left, *right;
    struct sp_query_regex *regex;
} sp_query_node;

typedef struct sp_query_regex {
    regex_t compiled;
    struct sp_query_regex *next;
} sp_query_regex;

typedef struct sp_query {
    sp_arena memory;
    sp_query_regex *regexes;
    sp_query_node *root; /* a set */
} sp_query;

typedef struct sp_query_error {
    size_t position; /* the byte of the text, counted from 1 */
    char text[320];  /* one sentence */
} sp_query_error;

/* Parse TEXT. Returns false, with the reason in *ERROR, when it is not a query. Free QUERY by
 * sp_query_deinit in any case. */
bool sp_query_parse(sp_query *query, const char *text, sp_query_error *error);
void sp_query_deinit(sp_query *query);

/* The word of queries for the status or kind NUMBER; "unknown" when there is none. */
const char *sp_query_constant_word(sp_query_type type, int64_t number);

/* For each span of MODEL, whether QUERY selects it: an array, by number of span. Free it by free().
 * NULL: memory is short. */
bool *sp_query_run(const sp_query *query, const sp_model *model);
/* Call EACH with the value of NODE, which is a leaf of a query, for each span of MODEL. The text of
 * an id lives only during the call. Returns false when memory is short. */
typedef void sp_query_take(void *user, const sp_query_value *value);
bool sp_query_each_value(const sp_model *model, const sp_query_node *node, sp_query_take *each,
                         void *user);
/* VALUE (may be NULL) as a value of queries. It is SP_QUERY_NIL when VALUE is absent, a list, a map
 * or bytes. */
sp_query_value sp_query_value_of(const Sp__Common__AnyValue *value);

/* Say that no span has the value ASKED of OF, which is a leaf of a query, and which value was
 * probably meant, or which there are. Returns false when a span has it, none has a value of that
 * type, or memory is short. In query_values.c. */
bool sp_query_value_hint(char *out, size_t size, const sp_model *model, const sp_query_node *of,
                         const sp_query_value *asked);

#define SP_QUERY_HINT_LENGTH 512
/* Say why the query TEXT (may be NULL) selects no span of MODEL, with the position in TEXT: an
 * attribute that nothing has, or that has another type, or a name or value that no span has.
 * Returns false, with "" in OUT, when it selects spans, or the reason is another one. */
bool sp_query_hint(char out[SP_QUERY_HINT_LENGTH], const sp_model *model, const char *text);
/* Say which of NAMES no span of MODEL has, and which name was probably meant. Returns false, with
 * "" in OUT, when there is none. */
bool sp_name_hint(char out[SP_QUERY_HINT_LENGTH], const sp_model *model, const sp_text_list *names);

#endif
