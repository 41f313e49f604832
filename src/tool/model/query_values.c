/* SPDX-License-Identifier: Apache-2.0 */
/* Says which values there are, when a query asks for a value that no span has. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/spelling.h"
#include "tool/model/query.h"

/* How many values are listed when none is near. WORDS: of statuses and kinds, which are all of
 * them. */
enum { LISTED = 3, WORDS = 6 };

/* The values of all spans, compared with `asked`. */
typedef struct search {
    const sp_query_value *asked;
    bool has; /* a span has the value */
    sp_spelling spelling;
    sp_query_value first[WORDS]; /* different values, in the order of spans */
    size_t count;
    bool has_more;
    sp_query_value nearest; /* of numbers */
} search;

static bool is_equal(const sp_query_value *a, const sp_query_value *b)
{
    if (a->type == SP_QUERY_STRING)
        return strcmp(a->text, b->text) == 0;
    return a->is_integer && b->is_integer ? a->integer == b->integer : a->number == b->number;
}

static bool is_word(const sp_query_value *value)
{
    return value->type == SP_QUERY_STATUS || value->type == SP_QUERY_KIND;
}

static double distance(const sp_query_value *a, const sp_query_value *b)
{
    return a->number > b->number ? a->number - b->number : b->number - a->number;
}

static void list_value(search *search, const sp_query_value *value)
{
    for (size_t i = 0; i < search->count; i++)
        if (is_equal(&search->first[i], value))
            return;
    if (search->count < (is_word(value) ? WORDS : LISTED))
        search->first[search->count++] = *value;
    else
        search->has_more = true;
}

static void try_value(void *user, const sp_query_value *value)
{
    search *search = user;
    if (value->type != search->asked->type || (value->type == SP_QUERY_STRING && !*value->text))
        return;
    search->has |= is_equal(value, search->asked);
    if (value->type == SP_QUERY_STRING)
        sp_spelling_try(&search->spelling, value->text);
    else if (!search->count ||
             distance(value, search->asked) < distance(&search->nearest, search->asked))
        search->nearest = *value;
    list_value(search, value);
}

static int write_value(char *out, size_t size, const sp_query_value *value)
{
    if (value->type == SP_QUERY_STRING)
        return snprintf(out, size, "\"%.60s\"", value->text);
    if (is_word(value))
        return snprintf(out, size, "%s", sp_query_constant_word(value->type, value->integer));
    if (value->is_integer)
        return snprintf(out, size, "%" PRId64, value->integer);
    return snprintf(out, size, "%g", value->number);
}

static void write_values(char *out, size_t size, const search *search)
{
    const char *begin = search->has_more     ? "there are "
                        : search->count == 1 ? "there is only "
                                             : "there are only ";
    size_t used = (size_t)snprintf(out, size, "%s", begin);
    for (size_t i = 0; i < search->count; i++) {
        used += (size_t)snprintf(out + used, size - used, "%s", i ? ", " : "");
        used += (size_t)write_value(out + used, size - used, &search->first[i]);
    }
    if (search->has_more)
        snprintf(out + used, size - used, ", and others");
}

bool sp_query_value_hint(char *out, size_t size, const sp_model *model, const sp_query_node *of,
                         const sp_query_value *asked)
{
    search search = {.asked = asked};
    if (asked->type != SP_QUERY_STRING && asked->type != SP_QUERY_NUMBER && !is_word(asked))
        return false;
    if (asked->type == SP_QUERY_STRING) {
        size_t length = strlen(asked->text);
        search.spelling = (sp_spelling){
            .text = asked->text, .length = length, .far_off = sp_spelling_far(length)};
    }
    if (!sp_query_each_value(model, of, try_value, &search) || search.has || !search.count)
        return false;
    size_t used = (size_t)snprintf(out, size, "no span has the %s ",
                                   asked->type == SP_QUERY_STATUS ? "status"
                                   : asked->type == SP_QUERY_KIND ? "kind"
                                                                  : "value");
    used += (size_t)write_value(out + used, size - used, asked);
    used += (size_t)snprintf(out + used, size - used, "; ");
    if (is_word(asked) || (asked->type == SP_QUERY_STRING && !search.spelling.found)) {
        write_values(out + used, size - used, &search);
        return true;
    }
    sp_query_value near = search.nearest;
    if (asked->type == SP_QUERY_STRING)
        near = (sp_query_value){.type = SP_QUERY_STRING, .text = search.spelling.found};
    used += (size_t)snprintf(out + used, size - used, "the nearest: ");
    write_value(out + used, size - used, &near);
    return true;
}
