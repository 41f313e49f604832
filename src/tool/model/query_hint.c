/* SPDX-License-Identifier: Apache-2.0 */
/* Says why a query selects no span, if an attribute or a name is the reason: nothing in the files
 * has its key, its values have another type than the value in the query, or no span has the name or
 * the value. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/reach.h"
#include "core/spelling.h"
#include "tool/model/query.h"

/* ---- the attributes of the files ---- */

/* What attributes belong to. */
typedef enum owner { OF_SPAN = 0, OF_RESOURCE, OF_SCOPE, OWNERS } owner;

enum { NEAREST = 3 };

typedef struct known {
    sp_intern keys[OWNERS];
    /* by number of key: a bit 1 << sp_query_type for each type that was seen */
    uint32_t *types[OWNERS];
    size_t capacity[OWNERS];
    bool failed;
} known;

static void learn(known *known, owner of, Sp__Common__KeyValue *const *attributes, size_t count)
{
    for (size_t i = 0; i < count && !known->failed; i++) {
        const char *key = attributes[i]->key;
        bool is_new = false;
        uint32_t number = sp_intern_put(&known->keys[of], key, strlen(key) + 1, &is_new);
        known->failed = number == SP_INTERN_FAILED ||
                        !SP_REACH(known->types[of], number, known->capacity[of], 64);
        if (known->failed)
            return;
        uint32_t before = is_new ? 0 : known->types[of][number];
        known->types[of][number] = before | 1u << sp_query_value_of(attributes[i]->value).type;
    }
}

/* Learn all attributes of the model. Spans of one resource or scope usually follow each other, so
 * each resource and scope is read only when it changes. */
static void learn_all(known *known, const sp_model *model)
{
    const Sp__Resource__Resource *resource = NULL;
    const Sp__Common__InstrumentationScope *scope = NULL;
    for (uint32_t i = 0; i < model->span_index.count; i++) {
        const sp_model_span *span = &model->spans[i];
        learn(known, OF_SPAN, span->message->attributes, span->message->n_attributes);
        if (span->resource && span->resource != resource)
            learn(known, OF_RESOURCE, span->resource->attributes, span->resource->n_attributes);
        if (span->scope && span->scope != scope)
            learn(known, OF_SCOPE, span->scope->attributes, span->scope->n_attributes);
        resource = span->resource;
        scope = span->scope;
    }
}

static void forget(known *known)
{
    for (int of = 0; of < OWNERS; of++) {
        sp_intern_deinit(&known->keys[of]);
        free(known->types[of]);
    }
}

static uint32_t types_of(const known *known, owner of, const char *key)
{
    uint32_t number = sp_intern_find(&known->keys[of], key, strlen(key) + 1);
    return number == SP_INTERN_FAILED ? 0 : known->types[of][number];
}

/* The types of the attribute that NODE names, as bits; 0: nothing has this attribute. */
static uint32_t types_of_node(const known *known, const sp_query_node *node)
{
    const char *key = node->value.text;
    if (node->op == SP_QUERY_RESOURCE_ATTRIBUTE)
        return types_of(known, OF_RESOURCE, key);
    if (node->op == SP_QUERY_SCOPE_ATTRIBUTE)
        return types_of(known, OF_SCOPE, key);
    uint32_t types = types_of(known, OF_SPAN, key);
    return node->op == SP_QUERY_ATTRIBUTE ? types | types_of(known, OF_RESOURCE, key) : types;
}

/* ---- an attribute that nothing has ---- */

static const char *last_part(const char *key)
{
    const char *point = strrchr(key, '.');
    return point ? point + 1 : key;
}

/* Whether KEY may be another name for ASKED. A name that was changed in a later version of a
 * convention usually has the same ending. */
static bool is_akin(const char *key, const char *asked)
{
    return strstr(key, asked) || strstr(asked, key) ||
           strcmp(last_part(key), last_part(asked)) == 0;
}

/* An attribute of the files that may have been meant. */
typedef struct candidate {
    owner of;
    const char *key;
} candidate;

static bool is_taken(const candidate *list, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].key, key) == 0)
            return true;
    return false;
}

/* Find the attribute that is most similar to ASKED and not among the COUNT members of LIST, and put
 * it at LIST[COUNT]. Returns false when there is no other one. */
static bool find_next(const known *known, const char *asked, candidate *list, size_t count)
{
    sp_spelling spelling = {.text = asked, .length = strlen(asked), .far_off = UINT32_MAX};
    for (int of = 0; of < OWNERS; of++)
        for (uint32_t i = 0; i < known->keys[of].count; i++) {
            const char *key = sp_intern_key(&known->keys[of], i), *before = spelling.found;
            if (is_taken(list, count, key))
                continue;
            if (is_akin(key, asked)) {
                list[count] = (candidate){(owner)of, key};
                return true;
            }
            sp_spelling_try(&spelling, key);
            if (spelling.found != before)
                list[count] = (candidate){(owner)of, key};
        }
    return spelling.found != NULL;
}

/* Write the key of MEANT in the syntax of queries. NODE is the attribute that was asked for; its
 * kind decides whether the short form is used. */
static int write_key(char *out, size_t size, const candidate *meant, const sp_query_node *node)
{
    static const char *const prefixes[OWNERS] = {"span", "resource", "instrumentation"};
    bool is_short = node->op == SP_QUERY_ATTRIBUTE && meant->of != OF_SCOPE;
    bool is_plain = !strpbrk(meant->key, " \t{}()=~!<>&|,^\"`*+");
    return snprintf(out, size, "%s.%s%.60s%s", is_short ? "" : prefixes[meant->of],
                    is_plain ? "" : "\"", meant->key, is_plain ? "" : "\"");
}

static void say_absent(char *out, size_t size, const known *known, const sp_query_node *node)
{
    const char *owners = node->op == SP_QUERY_ATTRIBUTE            ? "no span and no resource"
                         : node->op == SP_QUERY_RESOURCE_ATTRIBUTE ? "no resource"
                         : node->op == SP_QUERY_SCOPE_ATTRIBUTE    ? "no instrumentation scope"
                                                                   : "no span";
    candidate list[NEAREST];
    size_t count = 0;
    int used =
        snprintf(out, size, "%s in the files has an attribute %.60s", owners, node->value.text);
    while (count < NEAREST && find_next(known, node->value.text, list, count)) {
        used += snprintf(out + used, size - (size_t)used, "%s", count ? ", " : "; the nearest: ");
        used += write_key(out + used, size - (size_t)used, &list[count++], node);
    }
    if (!count)
        snprintf(out + used, size - (size_t)used, "; nothing in them has any");
}

/* ---- an attribute of another type ---- */

static bool is_number_text(const char *text)
{
    size_t length = strspn(text, "-0123456789.");
    return length && !text[length];
}

/* Advice about an attribute whose values are all of TYPE, and which the query compares with VALUE.
 * NULL: nothing is wrong. */
static const char *advice_for(sp_query_type type, const sp_query_node *value, bool is_match)
{
    bool is_text = value->type == SP_QUERY_STRING;
    if (type == SP_QUERY_NIL)
        return "a list or a map in these files, and a query cannot compare these";
    if (type == SP_QUERY_NUMBER && is_match)
        return "a number in these files: compare it with = or >, as =~ is for text";
    if (type == SP_QUERY_NUMBER && is_text)
        return is_number_text(value->value.text)
                   ? "a number in these files: write it without quotes"
                   : "a number in these files: compare it with a number";
    if (type == SP_QUERY_NUMBER && value->type == SP_QUERY_BOOL)
        return "a number in these files: compare it with a number";
    if (type == SP_QUERY_BOOL && value->type != SP_QUERY_BOOL)
        return "true or false in these files: write that, without quotes";
    if (type == SP_QUERY_STRING && !is_text)
        return "a text in these files: write it in quotes, \"…\"";
    return NULL;
}

/* The type whose bit is the only one in TYPES, or SP_QUERY_ANY. */
static sp_query_type only_type(uint32_t types)
{
    for (sp_query_type type = SP_QUERY_NIL; type <= SP_QUERY_BOOL; type++)
        if (types == 1u << type)
            return type;
    return SP_QUERY_ANY;
}

/* ---- a name that no span has ---- */

/* Write to OUT that no span has NAME, and the name that was probably meant. Returns false when a
 * span has it. */
static bool say_no_such_name(char *out, size_t size, const sp_model *model, const char *name)
{
    sp_spelling spelling = {
        .text = name, .length = strlen(name), .far_off = sp_spelling_far(strlen(name))};
    for (uint32_t i = 0; i < model->span_index.count; i++) {
        if (strcmp(model->spans[i].name, name) == 0)
            return false;
        sp_spelling_try(&spelling, model->spans[i].name);
    }
    int used = snprintf(out, size, "no span is called \"%.100s\"; ", name);
    if (spelling.found)
        snprintf(out + used, size - (size_t)used, "the nearest: \"%s\"", spelling.found);
    else
        snprintf(out + used, size - (size_t)used, "`spanprof spans --by-name` lists the names");
    return true;
}

bool sp_name_hint(char out[SP_QUERY_HINT_LENGTH], const sp_model *model, const sp_text_list *names)
{
    *out = 0;
    for (size_t i = 0; i < names->count; i++)
        if (say_no_such_name(out, SP_QUERY_HINT_LENGTH, model, names->items[i]))
            return true;
    return false;
}

/* ---- the query ---- */

typedef struct search {
    const sp_model *model;
    char *out;
    size_t size;
    known known;
} search;

static bool is_attribute(const sp_query_node *node)
{
    return node->op >= SP_QUERY_SPAN_ATTRIBUTE && node->op <= SP_QUERY_ATTRIBUTE;
}

static bool say(search *search, const sp_query_node *node, const char *sentence)
{
    snprintf(search->out, search->size, "at character %zu: %s", node->position + 1, sentence);
    return true;
}

/* Say that no span has VALUE, a literal that the node OF compares with LEAF. Returns false when one
 * has it, or another value fulfils the condition. */
static bool explain_value(search *search, const sp_query_node *leaf, const sp_query_node *of,
                          const sp_query_node *value)
{
    char text[SP_QUERY_HINT_LENGTH - 64];
    sp_query_value asked = value->value;
    asked.type = value->type;
    return of->op == SP_QUERY_EQUAL &&
           sp_query_value_hint(text, sizeof text, search->model, leaf, &asked) &&
           say(search, value, text);
}

/* Say what is wrong with ATTRIBUTE, which the node OF compares with VALUE. OF and VALUE are NULL
 * when ATTRIBUTE is a condition by itself. Returns false when nothing is wrong. */
static bool explain(search *search, const sp_query_node *attribute, const sp_query_node *of,
                    const sp_query_node *value)
{
    char text[SP_QUERY_HINT_LENGTH - 64];
    bool is_literal = value && value->op == SP_QUERY_LITERAL;
    bool is_nil = is_literal && value->type == SP_QUERY_NIL;
    uint32_t types = types_of_node(&search->known, attribute);
    if (!types && is_nil && of->op == SP_QUERY_EQUAL)
        return false; /* true for all spans, so this is not the reason */
    if (!types) {
        say_absent(text, sizeof text, &search->known, attribute);
        return say(search, attribute, text);
    }
    sp_query_type type = only_type(types);
    const char *advice = NULL;
    if (!value && type != SP_QUERY_BOOL && type != SP_QUERY_ANY)
        advice = "not true or false in these files: compare it with a value";
    else if (is_literal && !is_nil && type != SP_QUERY_ANY)
        advice = advice_for(type, value, of->regex != NULL);
    if (!advice)
        return is_literal && explain_value(search, attribute, of, value);
    snprintf(text, sizeof text, "%.60s is %s", attribute->value.text, advice);
    return say(search, attribute, text);
}

/* Say that no span has the name, status or kind VALUE, or the text VALUE of its trace or its scope,
 * with which the node OF compares LEAF. Returns false when one has it. */
static bool explain_text(search *search, const sp_query_node *leaf, const sp_query_node *of,
                         const sp_query_node *value)
{
    char text[SP_QUERY_HINT_LENGTH - 64];
    bool is_word = leaf->op == SP_QUERY_KIND_OF || leaf->op == SP_QUERY_STATUS_OF;
    if (value->op == SP_QUERY_LITERAL && is_word)
        return explain_value(search, leaf, of, value);
    if (value->op != SP_QUERY_LITERAL || value->type != SP_QUERY_STRING)
        return false;
    if (leaf->op == SP_QUERY_NAME)
        return say_no_such_name(text, sizeof text, search->model, value->value.text) &&
               say(search, value, text);
    bool is_text = leaf->op == SP_QUERY_STATUS_MESSAGE || leaf->op == SP_QUERY_ROOT_NAME ||
                   leaf->op == SP_QUERY_ROOT_SERVICE || leaf->op == SP_QUERY_SCOPE_NAME ||
                   leaf->op == SP_QUERY_SCOPE_VERSION;
    return is_text && explain_value(search, leaf, of, value);
}

/* Explain the first attribute or name, in the order of the text, that something is wrong with. What
 * is under a ! is ignored, because the negated condition may be true for every span. */
static bool look(search *search, const sp_query_node *node)
{
    if (!node || node->op == SP_QUERY_NOT)
        return false;
    if (is_attribute(node))
        return explain(search, node, NULL, NULL);
    bool compares = node->op >= SP_QUERY_EQUAL && node->op <= SP_QUERY_NO_MATCH;
    if (!compares)
        return look(search, node->left) || look(search, node->right);
    if (node->op == SP_QUERY_EQUAL && (explain_text(search, node->left, node, node->right) ||
                                       explain_text(search, node->right, node, node->left)))
        return true;
    return (is_attribute(node->left) && explain(search, node->left, node, node->right)) ||
           (is_attribute(node->right) && explain(search, node->right, node, node->left));
}

static bool selects_any(const sp_query *query, const sp_model *model)
{
    bool *marks = sp_query_run(query, model), found = !marks;
    for (uint32_t i = 0; marks && !found && i < model->span_index.count; i++)
        found = marks[i];
    free(marks);
    return found;
}

bool sp_query_hint(char out[SP_QUERY_HINT_LENGTH], const sp_model *model, const char *text)
{
    sp_query query;
    sp_query_error error;
    search search = {.model = model, .out = out, .size = SP_QUERY_HINT_LENGTH};
    bool found = false;
    *out = 0;
    if (text && sp_query_parse(&query, text, &error) && !selects_any(&query, model)) {
        learn_all(&search.known, model);
        found = !search.known.failed && look(&search, query.root);
        forget(&search.known);
    }
    if (text)
        sp_query_deinit(&query);
    return found;
}
