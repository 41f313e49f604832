/* SPDX-License-Identifier: Apache-2.0 */
/* A Pratt parser: each operator has a strength, and an operand between two operators belongs to the
 * stronger one. Conditions have other operators than sets of spans, so parameters say which of the
 * two is parsed. */
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/compiler.h"
#include "core/spelling.h"
#include "tool/model/query.h"

enum { MAX_DEPTH = 64, MAX_LENGTH = 8192 };

typedef struct parser {
    sp_query *query;
    const char *text;
    size_t at; /* the start of the next token; white space before it was skipped */
    unsigned depth;
    sp_query_error *error;
} parser;

static void *fail(parser *parser, size_t position, const char *format, ...) SP_PRINTF(3, 4);

static void *fail(parser *parser, size_t position, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    parser->error->position = position + 1;
    vsnprintf(parser->error->text, sizeof parser->error->text, format, arguments);
    va_end(arguments);
    return NULL;
}

static void skip_space(parser *parser)
{
    while (isspace((unsigned char)parser->text[parser->at]))
        parser->at++;
}

/* Whether WORD, which has no letters, is next. If so, skip it and the white space after it. */
static bool take(parser *parser, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(parser->text + parser->at, word, length) != 0)
        return false;
    parser->at += length;
    skip_space(parser);
    return true;
}

static sp_query_node *new_node(parser *parser, sp_query_op op, sp_query_type type, size_t position)
{
    sp_query_node *node = sp_arena_alloc(&parser->query->memory, sizeof *node);
    if (!node)
        return fail(parser, position, "memory is short");
    *node = (sp_query_node){.op = op, .type = type, .position = position};
    return node;
}

static sp_query_node *new_literal(parser *parser, sp_query_type type, int64_t integer,
                                  size_t position)
{
    sp_query_node *node = new_node(parser, SP_QUERY_LITERAL, type, position);
    if (node)
        node->value = (sp_query_value){
            .type = type, .is_integer = true, .integer = integer, .number = (double)integer};
    return node;
}

/* ---- strings and numbers ---- */

static char unescape(char c)
{
    return c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
}

/* Parse the text in quotes that begins here. */
static char *parse_quoted(parser *parser)
{
    size_t start = parser->at, length = 0;
    char quote = parser->text[parser->at++];
    char *out = sp_arena_alloc(&parser->query->memory, strlen(parser->text + start) + 1);
    if (!out)
        return fail(parser, start, "memory is short");
    for (char c; (c = parser->text[parser->at]) != quote; parser->at++) {
        if (c == '\\' && quote == '"') {
            c = unescape(parser->text[++parser->at]);
            if (!strchr("\"\\ntr", parser->text[parser->at]))
                return fail(parser, parser->at - 1,
                            "this escape is none; there are \\\" \\\\ \\n \\t \\r, and text in "
                            "backquotes has no escapes");
        }
        if (!c)
            return fail(parser, start, "the text that begins here does not end; add %c", quote);
        out[length++] = c;
    }
    parser->at++;
    skip_space(parser);
    return out;
}

static sp_query_node *parse_string(parser *parser)
{
    size_t position = parser->at;
    char *text = parse_quoted(parser);
    sp_query_node *node =
        text ? new_node(parser, SP_QUERY_LITERAL, SP_QUERY_STRING, position) : NULL;
    if (node)
        node->value = (sp_query_value){.type = SP_QUERY_STRING, .text = text};
    return node;
}

typedef struct unit {
    const char *name;
    double factor;
    sp_query_type type;
} unit;

static const unit *find_unit(const char *text, size_t length)
{
    static const unit units[] = {{"ns", 1, SP_QUERY_DURATION},
                                 {"us", 1e3, SP_QUERY_DURATION},
                                 {"\xc2\xb5s", 1e3, SP_QUERY_DURATION},
                                 {"\xce\xbcs", 1e3, SP_QUERY_DURATION},
                                 {"ms", 1e6, SP_QUERY_DURATION},
                                 {"s", 1e9, SP_QUERY_DURATION},
                                 {"m", 60e9, SP_QUERY_DURATION},
                                 {"h", 3600e9, SP_QUERY_DURATION},
                                 {"B", 1, SP_QUERY_NUMBER},
                                 {"kB", 1e3, SP_QUERY_NUMBER},
                                 {"MB", 1e6, SP_QUERY_NUMBER},
                                 {"GB", 1e9, SP_QUERY_NUMBER},
                                 {"KiB", 1024, SP_QUERY_NUMBER},
                                 {"MiB", 1048576, SP_QUERY_NUMBER},
                                 {"GiB", 1073741824, SP_QUERY_NUMBER}};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(units); i++)
        if (strlen(units[i].name) == length && memcmp(units[i].name, text, length) == 0)
            return &units[i];
    return NULL;
}

/* The length of a number: digits with a point and an exponent. Other forms that strtod accepts,
 * such as hex or "inf", are not numbers here. */
static size_t number_length(const char *text)
{
    size_t length = strspn(text, "0123456789");
    if (text[length] == '.')
        length += 1 + strspn(text + length + 1, "0123456789");
    if (text[length] == 'e' || text[length] == 'E') {
        size_t sign = text[length + 1] == '-' || text[length + 1] == '+';
        size_t digits = strspn(text + length + 1 + sign, "0123456789");
        length += digits ? 1 + sign + digits : 0;
    }
    return length;
}

static size_t unit_length(const char *text)
{
    size_t length = 0;
    while (isalpha((unsigned char)text[length]) || (unsigned char)text[length] >= 0x80)
        length++;
    return length;
}

/* Parse one part of a number, such as 1h in 1h30m, and add it to VALUE. */
static bool parse_part(parser *parser, sp_query_value *value, bool is_first)
{
    const char *text = parser->text + parser->at;
    size_t length = number_length(text), unit_start = parser->at + length;
    size_t letters = unit_length(text + length);
    const unit *of = letters ? find_unit(text + length, letters) : NULL;
    double number = strtod(text, NULL);
    if (letters && !of)
        return fail(parser, unit_start,
                    "%.*s is no unit; there are ns, us, ms, s, m, h, and B, kB, MB, GB, KiB, MiB, "
                    "GiB",
                    (int)(letters < 20 ? letters : 20), text + length);
    if (!is_first && (!of || of->type != SP_QUERY_DURATION))
        return fail(parser, parser->at, "a duration goes on here, without a unit such as ms");
    value->type = of ? of->type : SP_QUERY_NUMBER;
    value->number += number * (of ? of->factor : 1);
    value->is_integer = is_first && !of && strspn(text, "0123456789") == length && length < 19;
    value->integer = value->is_integer ? strtoll(text, NULL, 10) : 0;
    parser->at = unit_start + letters;
    if (!isfinite(value->number))
        return fail(parser, unit_start - length, "this number is too large");
    return true;
}

static sp_query_node *parse_number(parser *parser)
{
    size_t position = parser->at;
    bool negative = parser->text[parser->at] == '-';
    sp_query_value value = {0};
    parser->at += negative;
    if (!isdigit((unsigned char)parser->text[parser->at]) && parser->text[parser->at] != '.')
        return fail(parser, parser->at, "a number has to follow the minus");
    for (bool first = true; first || (value.type == SP_QUERY_DURATION &&
                                      isdigit((unsigned char)parser->text[parser->at]));
         first = false)
        if (!parse_part(parser, &value, first))
            return NULL;
    skip_space(parser);
    sp_query_node *node = new_node(parser, SP_QUERY_LITERAL, value.type, position);
    if (!node)
        return NULL;
    value.number = negative ? -value.number : value.number;
    value.integer = negative ? -value.integer : value.integer;
    node->value = value;
    return node;
}

/* ---- words ---- */

/* Whether C may be part of a word or of the name of an attribute. */
static bool is_word(char c)
{
    return c && !isspace((unsigned char)c) && !strchr("{}()=~!<>&|,^\"`*+", c);
}

static size_t word_length(const char *text)
{
    size_t length = 0;
    while (is_word(text[length]))
        length++;
    return length;
}

static const struct {
    const char *word;
    sp_query_op op;
    sp_query_type type;
} intrinsics[] = {
    {"name", SP_QUERY_NAME, SP_QUERY_STRING},
    {"span:name", SP_QUERY_NAME, SP_QUERY_STRING},
    {"duration", SP_QUERY_DURATION_OF, SP_QUERY_DURATION},
    {"span:duration", SP_QUERY_DURATION_OF, SP_QUERY_DURATION},
    {"status", SP_QUERY_STATUS_OF, SP_QUERY_STATUS},
    {"span:status", SP_QUERY_STATUS_OF, SP_QUERY_STATUS},
    {"statusMessage", SP_QUERY_STATUS_MESSAGE, SP_QUERY_STRING},
    {"span:statusMessage", SP_QUERY_STATUS_MESSAGE, SP_QUERY_STRING},
    {"kind", SP_QUERY_KIND_OF, SP_QUERY_KIND},
    {"span:kind", SP_QUERY_KIND_OF, SP_QUERY_KIND},
    {"traceDuration", SP_QUERY_TRACE_DURATION, SP_QUERY_DURATION},
    {"trace:duration", SP_QUERY_TRACE_DURATION, SP_QUERY_DURATION},
    {"rootName", SP_QUERY_ROOT_NAME, SP_QUERY_STRING},
    {"trace:rootName", SP_QUERY_ROOT_NAME, SP_QUERY_STRING},
    {"rootServiceName", SP_QUERY_ROOT_SERVICE, SP_QUERY_STRING},
    {"trace:rootService", SP_QUERY_ROOT_SERVICE, SP_QUERY_STRING},
    {"span:id", SP_QUERY_SPAN_ID, SP_QUERY_STRING},
    {"trace:id", SP_QUERY_TRACE_ID, SP_QUERY_STRING},
    {"instrumentation:name", SP_QUERY_SCOPE_NAME, SP_QUERY_STRING},
    {"instrumentation:version", SP_QUERY_SCOPE_VERSION, SP_QUERY_STRING},
};

static const struct {
    const char *word;
    sp_query_type type;
    int number;
} constants[] = {
    {"true", SP_QUERY_BOOL, 1},     {"false", SP_QUERY_BOOL, 0},
    {"nil", SP_QUERY_NIL, 0},       {"unset", SP_QUERY_STATUS, 0},
    {"ok", SP_QUERY_STATUS, 1},     {"error", SP_QUERY_STATUS, 2},
    {"internal", SP_QUERY_KIND, 1}, {"unspecified", SP_QUERY_KIND, 0},
    {"server", SP_QUERY_KIND, 2},   {"client", SP_QUERY_KIND, 3},
    {"producer", SP_QUERY_KIND, 4}, {"consumer", SP_QUERY_KIND, 5},
};

static const struct {
    const char *prefix;
    sp_query_op op;
} scopes[] = {{"span.", SP_QUERY_SPAN_ATTRIBUTE},
              {"resource.", SP_QUERY_RESOURCE_ATTRIBUTE},
              {"instrumentation.", SP_QUERY_SCOPE_ATTRIBUTE},
              {".", SP_QUERY_ATTRIBUTE}};

/* Parse an attribute. Its scope, such as "span.", was skipped, and its key begins here. */
static sp_query_node *parse_attribute(parser *parser, sp_query_op op, size_t position)
{
    size_t start = parser->at, length = word_length(parser->text + start);
    const char *key;
    if (parser->text[start] == '"') {
        key = parse_quoted(parser);
        if (!key)
            return NULL;
        length = strlen(key);
    } else {
        key = sp_arena_strndup(&parser->query->memory, parser->text + start, length);
        parser->at += length;
        skip_space(parser);
    }
    if (length == 0)
        return fail(parser, start, "the name of an attribute has to follow the point");
    sp_query_node *node = new_node(parser, op, SP_QUERY_ANY, position);
    if (node)
        node->value.text = key;
    return node;
}

static bool is_scope(const char *text)
{
    static const char *const others[] = {"event.", "link.", "parent.", "event:", "link:"};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(others); i++)
        if (strncmp(text, others[i], strlen(others[i])) == 0)
            return true;
    return false;
}

/* Operators of other languages, with ours, for messages. */
static const struct {
    const char *word, *operator;
} word_operators[] = {{"and", "&&"}, {"or", "||"}, {"not", "!"}};

/* Values that `spanprof spans` shows, but that queries do not have, because they are sums of
 * samples. */
static const struct {
    const char *word, *what, *sort;
} measured[] = {{"cpu", "CPU time", "cpu"},
                {"own", "CPU time", "cpu"},
                {"wall", "wall time", "wall"},
                {"queue", "time in a queue", "queue"},
                {"alloc", "allocated memory", "alloc"},
                {"samples", "the number of samples", "samples"}};

/* Report an operator that is written as a word. Returns false when the next word is not such an
 * operator. */
static bool refuse_word_operator(parser *parser, size_t position)
{
    const char *text = parser->text + position;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(word_operators); i++) {
        const char *word = word_operators[i].word;
        if (word_length(text) == strlen(word) && strncasecmp(text, word, strlen(word)) == 0) {
            fail(parser, position, "%s is written %s", word, word_operators[i].operator);
            return true;
        }
    }
    return false;
}

static bool refuse_measured(parser *parser, size_t position)
{
    const char *text = parser->text + position;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(measured); i++) {
        const char *word = measured[i].word;
        if (word_length(text) == strlen(word) && strncmp(text, word, strlen(word)) == 0) {
            fail(parser, position,
                 "%s is not a field of a query; `spanprof spans --sort %s` lists the spans that "
                 "have most of it",
                 measured[i].what, measured[i].sort);
            return true;
        }
    }
    return false;
}

/* What has words as its values. */
static const struct {
    const char *word, *values;
    sp_query_type type;
} owners[] = {
    {"status", "error, ok and unset", SP_QUERY_STATUS},
    {"kind", "server, client, producer, consumer, internal and unspecified", SP_QUERY_KIND}};

/* Report a word that is compared with status or kind and is none of their values. Returns false
 * when the word before the operator is another one. */
static bool refuse_constant(parser *parser, size_t position, size_t length)
{
    size_t end = position;
    while (end > 0 && strchr(" \t!=", parser->text[end - 1]))
        end--;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(owners); i++) {
        size_t word = strlen(owners[i].word);
        if (end >= word && strncmp(parser->text + end - word, owners[i].word, word) == 0) {
            fail(parser, position, "%.*s is no %s: these are %s", (int)(length < 40 ? length : 40),
                 parser->text + position, owners[i].word, owners[i].values);
            return true;
        }
    }
    return false;
}

/* Report a word that asks for the name of a service. Returns false when the word is another one. */
static bool refuse_service(parser *parser, size_t position, size_t length)
{
    static const char *const words[] = {"service", "service.name", "serviceName"};
    const char *text = parser->text + position;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(words); i++)
        if (length == strlen(words[i]) && strncasecmp(text, words[i], length) == 0) {
            fail(parser, position, "%s is unknown; the name of a service is resource.service.name",
                 words[i]);
            return true;
        }
    return false;
}

/* The field whose name is most similar to the word at POSITION, or NULL. A word after = or =~ is a
 * value and has none. */
static const char *nearest_field(const parser *parser, size_t position, size_t length)
{
    size_t end = position;
    while (end > 0 && isspace((unsigned char)parser->text[end - 1]))
        end--;
    if (end > 0 && strchr("=~", parser->text[end - 1]))
        return NULL;
    sp_spelling spelling = {
        .text = parser->text + position, .length = length, .far_off = sp_spelling_far(length)};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(intrinsics); i++)
        sp_spelling_try(&spelling, intrinsics[i].word);
    return spelling.found;
}

static sp_query_node *refuse_word(parser *parser, size_t position, size_t length)
{
    const char *text = parser->text + position;
    if (length == 0)
        return fail(parser, position,
                    *text ? "a name, a value or ( has to stand here"
                          : "the query ends where a name or a value is needed");
    if (refuse_word_operator(parser, position) || refuse_measured(parser, position))
        return NULL;
    if (refuse_constant(parser, position, length) || refuse_service(parser, position, length))
        return NULL;
    const char *nearest = nearest_field(parser, position, length);
    int shown = (int)(length < 40 ? length : 40);
    return fail(
        parser, position,
        "%.*s is unknown%s%s; a text stands in quotes, \"%.*s\", and an attribute is written "
        "span.%.*s or .%.*s",
        shown, text, nearest ? "; the nearest: " : "", nearest ? nearest : "", shown, text, shown,
        text, shown, text);
}

static sp_query_node *parse_word(parser *parser)
{
    const char *text = parser->text + parser->at;
    size_t position = parser->at, length = word_length(text);
    for (size_t i = 0; i < SP_ARRAY_LENGTH(scopes); i++)
        if (strncmp(text, scopes[i].prefix, strlen(scopes[i].prefix)) == 0) {
            parser->at += strlen(scopes[i].prefix);
            return parse_attribute(parser, scopes[i].op, position);
        }
    if (is_scope(text))
        return fail(parser, position,
                    "events, links and parents of spans are not asked for; there "
                    "are span., resource., instrumentation. and . alone");
    parser->at += length;
    skip_space(parser);
    for (size_t i = 0; i < SP_ARRAY_LENGTH(intrinsics); i++)
        if (strlen(intrinsics[i].word) == length && memcmp(intrinsics[i].word, text, length) == 0)
            return new_node(parser, intrinsics[i].op, intrinsics[i].type, position);
    for (size_t i = 0; i < SP_ARRAY_LENGTH(constants); i++)
        if (strlen(constants[i].word) == length && memcmp(constants[i].word, text, length) == 0)
            return new_literal(parser, constants[i].type, constants[i].number, position);
    return refuse_word(parser, position, length);
}

/* ---- operators ---- */

typedef struct infix {
    const char *word;
    sp_query_op op;
    unsigned strength;
} infix;

static const infix value_operators[] = {
    {"||", SP_QUERY_OR, 1},         {"&&", SP_QUERY_AND, 2},        {"=~", SP_QUERY_MATCH, 3},
    {"!~", SP_QUERY_NO_MATCH, 3},   {"!=", SP_QUERY_UNEQUAL, 3},    {"=", SP_QUERY_EQUAL, 3},
    {"<=", SP_QUERY_LESS_EQUAL, 3}, {">=", SP_QUERY_MORE_EQUAL, 3}, {"<", SP_QUERY_LESS, 3},
    {">", SP_QUERY_MORE, 3},
};
static const infix set_operators[] = {
    {"||", SP_QUERY_OR, 1},
    {"&&", SP_QUERY_AND, 2},
    {">>", SP_QUERY_DESCENDANT, 3},
    {">", SP_QUERY_CHILD, 3},
};

/* The next operator, or NULL. */
static const infix *peek(const parser *parser, bool sets)
{
    const infix *all = sets ? set_operators : value_operators;
    size_t count = sets ? SP_ARRAY_LENGTH(set_operators) : SP_ARRAY_LENGTH(value_operators);
    for (size_t i = 0; i < count; i++)
        if (strncmp(parser->text + parser->at, all[i].word, strlen(all[i].word)) == 0)
            return &all[i];
    return NULL;
}

static const char *type_name(sp_query_type type)
{
    static const char *const names[] = {"an attribute", "nil",        "text",
                                        "a number",     "a duration", "true or false",
                                        "a status",     "a kind",     "a set of spans"};
    return names[type];
}

static bool compile(parser *parser, sp_query_node *node)
{
    const char *pattern = node->right->value.text;
    size_t position = node->right->position;
    if (strstr(pattern, "\\d") || strstr(pattern, "(?"))
        return fail(parser, position,
                    "the expression has \\d or (?, which are not of POSIX: write "
                    "[0-9], and plain parentheses");
    char *whole = sp_arena_printf(&parser->query->memory, "^(%s)$", pattern);
    sp_query_regex *regex = sp_arena_alloc(&parser->query->memory, sizeof *regex);
    if (!whole || !regex)
        return fail(parser, position, "memory is short");
    int code = regcomp(&regex->compiled, whole, REG_EXTENDED | REG_NOSUB);
    if (code) {
        char reason[100];
        regerror(code, &regex->compiled, reason, sizeof reason);
        return fail(parser, position, "the regular expression is wrong: %s", reason);
    }
    regex->next = parser->query->regexes;
    parser->query->regexes = regex;
    node->regex = regex;
    return true;
}

static bool check_match(parser *parser, sp_query_node *node)
{
    sp_query_type left = node->left->type;
    if (node->right->op != SP_QUERY_LITERAL || node->right->type != SP_QUERY_STRING)
        return fail(parser, node->right->position, "a regular expression in quotes is needed here");
    if (left != SP_QUERY_ANY && left != SP_QUERY_STRING)
        return fail(parser, node->left->position, "%s has no text to match", type_name(left));
    return compile(parser, node);
}

const char *sp_query_constant_word(sp_query_type type, int64_t number)
{
    for (size_t i = 0; i < SP_ARRAY_LENGTH(constants); i++)
        if (constants[i].type == type && constants[i].number == number)
            return constants[i].word;
    return "unknown";
}

/* Report a text that NODE compares with a status or a kind, whose values have no quotes. Returns
 * false when NODE compares something else. */
static bool refuse_quoted_constant(parser *parser, const sp_query_node *node)
{
    bool is_left = node->left->type == SP_QUERY_STRING;
    const sp_query_node *text = is_left ? node->left : node->right;
    sp_query_type type = is_left ? node->right->type : node->left->type;
    const char *values = NULL, *asked = text->value.text;
    if (text->type != SP_QUERY_STRING || text->op != SP_QUERY_LITERAL)
        return false;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(owners); i++)
        if (owners[i].type == type)
            values = owners[i].values;
    for (size_t i = 0; values && i < SP_ARRAY_LENGTH(constants); i++)
        if (constants[i].type == type && strcasecmp(constants[i].word, asked) == 0) {
            fail(parser, node->right->position,
                 "%s cannot be compared with text: write %s without quotes", type_name(type),
                 constants[i].word);
            return true;
        }
    if (values)
        fail(parser, node->right->position, "%s cannot be compared with text: its values are %s",
             type_name(type), values);
    return values != NULL;
}

static bool check_comparison(parser *parser, const sp_query_node *node)
{
    sp_query_type left = node->left->type, right = node->right->type;
    bool orders = node->op != SP_QUERY_EQUAL && node->op != SP_QUERY_UNEQUAL;
    sp_query_type known = left == SP_QUERY_ANY ? right : left;
    if (orders && (known == SP_QUERY_BOOL || known == SP_QUERY_STATUS || known == SP_QUERY_KIND ||
                   known == SP_QUERY_NIL || right == SP_QUERY_NIL))
        return fail(parser, node->position, "%s is not more or less than another; use = or !=",
                    type_name(right == SP_QUERY_NIL ? right : known));
    if (left == right || left == SP_QUERY_ANY || right == SP_QUERY_ANY || left == SP_QUERY_NIL ||
        right == SP_QUERY_NIL)
        return true;
    if (left == SP_QUERY_DURATION && right == SP_QUERY_NUMBER)
        return fail(parser, node->right->position, "a duration needs a unit, such as 100ms");
    if (refuse_quoted_constant(parser, node))
        return false;
    return fail(parser, node->right->position, "%s cannot be compared with %s", type_name(left),
                type_name(right));
}

/* Check that NODE can be a condition. An attribute can, because its value may be true or false. */
static bool check_condition(parser *parser, const sp_query_node *node)
{
    if (node->type == SP_QUERY_BOOL || node->type == SP_QUERY_ANY)
        return true;
    return fail(parser, node->position, "%s is no condition; compare it with something",
                type_name(node->type));
}

static bool is_value(const sp_query_node *node)
{
    return node->op <= SP_QUERY_ATTRIBUTE;
}

static bool check(parser *parser, sp_query_node *node, bool sets)
{
    if (sets)
        return true;
    if (node->op == SP_QUERY_AND || node->op == SP_QUERY_OR)
        return check_condition(parser, node->left) && check_condition(parser, node->right);
    if (!is_value(node->left) || !is_value(node->right))
        return fail(parser, node->position, "a comparison has a name or a value on each side");
    return node->op == SP_QUERY_MATCH || node->op == SP_QUERY_NO_MATCH
               ? check_match(parser, node)
               : check_comparison(parser, node);
}

/* Report that an operator or CLOSING is needed here. */
static void *fail_unexpected(parser *parser, const char *closing)
{
    static const char *const relations[] = {"<<", "<", "~", "!>", "!<", "!~", "&>", "&<", "&~"};
    const char *rest = parser->text + parser->at;
    if (refuse_word_operator(parser, parser->at))
        return NULL;
    if (*rest == '|')
        return fail(parser, parser->at,
                    "what follows | in TraceQL is not supported: a query only "
                    "selects spans");
    if (strchr("+-*/^%", *rest))
        return fail(parser, parser->at, "arithmetic is not supported; give the number itself");
    for (size_t i = 0; i < SP_ARRAY_LENGTH(relations); i++)
        if (strncmp(rest, relations[i], strlen(relations[i])) == 0)
            return fail(parser, parser->at,
                        "%s is not supported; there are > (child) and >> "
                        "(descendant) between spans in braces",
                        relations[i]);
    return fail(parser, parser->at, "an operator or %s has to stand here", closing);
}

/* Skip CLOSING, which closes what was opened at POSITION. Its absence is an error. */
static bool take_closing(parser *parser, const char *closing, size_t position)
{
    if (take(parser, closing))
        return true;
    if (!parser->text[parser->at])
        return fail(parser, position, "what opens here does not close; add %s", closing);
    return fail_unexpected(parser, closing);
}

/* ---- expressions ---- */

static sp_query_node *parse(parser *parser, unsigned strength, bool sets);

static sp_query_node *parse_parentheses(parser *parser, bool sets)
{
    size_t position = parser->at;
    take(parser, "(");
    sp_query_node *node = parse(parser, 0, sets);
    return node && take_closing(parser, ")", position) ? node : NULL;
}

static sp_query_node *parse_not(parser *parser)
{
    sp_query_node *node = new_node(parser, SP_QUERY_NOT, SP_QUERY_BOOL, parser->at);
    take(parser, "!");
    sp_query_node *inner = node ? parse(parser, 3, false) : NULL;
    if (!inner || !check_condition(parser, inner))
        return NULL;
    node->left = inner;
    return node;
}

/* Parse "{ condition }". */
static sp_query_node *parse_braces(parser *parser)
{
    size_t position = parser->at;
    sp_query_node *node = new_node(parser, SP_QUERY_SELECT, SP_QUERY_SET, position);
    take(parser, "{");
    if (!node || take(parser, "}"))
        return node;
    node->left = parse(parser, 0, false);
    bool closed = node->left && take_closing(parser, "}", position);
    return closed && check_condition(parser, node->left) ? node : NULL;
}

static sp_query_node *parse_operand(parser *parser, bool sets)
{
    char c = parser->text[parser->at];
    if (c == '(')
        return parse_parentheses(parser, sets);
    if (sets)
        return c == '{' ? parse_braces(parser)
                        : fail(parser, parser->at,
                               "spans in braces are needed here, such as "
                               "{ name = \"GET /\" }");
    if (c == '!')
        return parse_not(parser);
    if (c == '"' || c == '`')
        return parse_string(parser);
    if (c == '\'')
        return fail(
            parser, parser->at,
            "a text stands in double quotes, \"…\"; in a shell put single quotes around the "
            "whole query");
    bool is_number = isdigit((unsigned char)c) || c == '-' ||
                     (c == '.' && isdigit((unsigned char)parser->text[parser->at + 1]));
    return is_number ? parse_number(parser) : parse_word(parser);
}

static sp_query_node *parse_operator(parser *parser, const infix *of, sp_query_node *left,
                                     bool sets)
{
    sp_query_node *node = new_node(parser, of->op, sets ? SP_QUERY_SET : SP_QUERY_BOOL, parser->at);
    if (!node)
        return NULL;
    if (of->op == SP_QUERY_EQUAL && parser->text[parser->at + 1] == '=')
        return fail(parser, parser->at, "equal is written =, as in name = \"GET /\"");
    take(parser, of->word);
    node->left = left;
    node->right = parse(parser, of->strength, sets);
    return node->right && check(parser, node, sets) ? node : NULL;
}

/* Parse an expression whose operators are all stronger than STRENGTH. */
static sp_query_node *parse(parser *parser, unsigned strength, bool sets)
{
    if (++parser->depth > MAX_DEPTH)
        return fail(parser, parser->at, "this is nested deeper than %d", MAX_DEPTH);
    sp_query_node *node = parse_operand(parser, sets);
    const infix *next = node ? peek(parser, sets) : NULL;
    while (node && next && next->strength > strength) {
        node = parse_operator(parser, next, node, sets);
        next = peek(parser, sets);
    }
    parser->depth--;
    return node;
}

/* ---- the whole query ---- */

/* Whether TEXT has a brace outside of quotes: then the query is about sets of spans. */
static bool has_braces(const char *text)
{
    char quote = 0;
    for (; *text; text++) {
        if (quote == '"' && *text == '\\' && text[1])
            text++;
        else if (quote)
            quote = *text == quote ? 0 : quote;
        else if (*text == '"' || *text == '`' || *text == '\'')
            quote = *text;
        else if (*text == '{')
            return true;
    }
    return false;
}

static sp_query_node *parse_condition_alone(parser *parser)
{
    sp_query_node *node = new_node(parser, SP_QUERY_SELECT, SP_QUERY_SET, parser->at);
    sp_query_node *condition = node ? parse(parser, 0, false) : NULL;
    if (!condition)
        return NULL;
    if (parser->text[parser->at])
        return fail_unexpected(parser, "the end");
    node->left = condition;
    return check_condition(parser, condition) ? node : NULL;
}

bool sp_query_parse(sp_query *query, const char *text, sp_query_error *error)
{
    *query = (sp_query){0};
    *error = (sp_query_error){0};
    parser parser = {.query = query, .text = text, .error = error};
    if (strlen(text) > MAX_LENGTH)
        return fail(&parser, MAX_LENGTH, "the query is longer than %d bytes", MAX_LENGTH);
    skip_space(&parser);
    if (!text[parser.at])
        return fail(&parser, parser.at, "the query is empty; such as duration > 100ms");
    query->root = has_braces(text) ? parse(&parser, 0, true) : parse_condition_alone(&parser);
    if (query->root && text[parser.at])
        return fail_unexpected(&parser, "the end");
    return query->root;
}

void sp_query_deinit(sp_query *query)
{
    for (sp_query_regex *regex = query->regexes; regex; regex = regex->next)
        regfree(&regex->compiled);
    sp_arena_deinit(&query->memory);
    *query = (sp_query){0};
}
