/* SPDX-License-Identifier: Apache-2.0 */
/* Reads collapsed stacks: on each line "root;caller;leaf 12", as stackcollapse scripts, py-spy,
 * async-profiler and Python's profiling.sampling write them. A line of another form is reported by
 * its number, and the other lines are read. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/reach.h"
#include "tool/read/foreign_profile.h"
#include "tool/text/messages.h"

/* How many wrong lines are reported one by one; how many bytes are enough to recognize the format;
 * the size of a number's text. */
enum { NAMED_MISTAKES = 5, LOOKED_AT = 4096, MAX_NUMBER = 64 };

typedef struct line {
    const char *text;
    size_t length; /* without trailing white space */
} line;

/* The line at *POSITION. *POSITION moves to the next line. */
static line next_line(const char *text, size_t length, size_t *position)
{
    const char *start = text + *position, *end = memchr(start, '\n', length - *position);
    line found = {.text = start, .length = end ? (size_t)(end - start) : length - *position};
    *position += found.length + (end != NULL);
    while (found.length && strchr(" \t\r", found.text[found.length - 1]) &&
           found.text[found.length - 1])
        found.length--;
    return found;
}

static bool is_comment(const line *of)
{
    return of->length == 0 || of->text[0] == '#';
}

/* Parse a decimal number. strtod alone would also accept "inf", "nan" and hexadecimal. */
static bool parse_number(const char *text, size_t length, double *out)
{
    char copy[MAX_NUMBER];
    if (length == 0 || length >= sizeof copy)
        return false;
    memcpy(copy, text, length);
    copy[length] = 0;
    if (strspn(copy, "0123456789.eE+-") < length)
        return false;
    char *end;
    *out = strtod(copy, &end);
    return *end == 0 && isfinite(*out);
}

/* Parse OF: the stack is its first *LENGTH bytes, then follows *VALUE. Returns NULL, or what is
 * wrong. */
static const char *parse_line(const line *of, size_t *length, double *value)
{
    size_t i = of->length;
    while (i > 0 && of->text[i - 1] != ' ' && of->text[i - 1] != '\t')
        i--;
    if (!parse_number(of->text + i, of->length - i, value))
        return "has no number at its end";
    if (*value < 0 || *value >= (double)INT64_MAX)
        return "has a number that is negative or too large";
    while (i > 0 && (of->text[i - 1] == ' ' || of->text[i - 1] == '\t'))
        i--;
    *length = i;
    return i ? NULL : "has no stack in front of its number";
}

bool sp_input_is_collapsed(const uint8_t *data, size_t length)
{
    size_t looked_at = length < LOOKED_AT ? length : LOOKED_AT;
    for (size_t i = 0; i < looked_at; i++)
        if (data[i] == 0x7f || (data[i] < ' ' && (!data[i] || !strchr("\t\r\n", data[i]))))
            return false;
    for (size_t position = 0; position < looked_at;) {
        line one = next_line((const char *)data, length, &position);
        size_t stack;
        double value;
        if (!is_comment(&one) && !parse_line(&one, &stack, &value))
            return true;
    }
    return false;
}

/* ---- reading ---- */

typedef struct reader {
    sp_foreign foreign;
    sp_foreign_profile profile;
    const char *path;
    int32_t *locations; /* of the line that is being read */
    size_t capacity;
    double *values; /* sums by stack index: fractions are added before the sum is rounded */
    size_t value_capacity, value_count;
    size_t mistakes, fractions;
} reader;

static int32_t put_frame(reader *reader, const char *name, size_t length)
{
    sp_foreign_function function = {.name = sp_foreign_string(&reader->foreign, name, length)};
    sp_foreign_line one = {.function = sp_foreign_function_put(&reader->foreign, &function)};
    return sp_foreign_location(&reader->foreign, 0, 0, &one, 1);
}

/* Put the frames of the stack TEXT into locations, leaf first. Empty names, as in "a;;b", are
 * skipped. */
static bool put_frames(reader *reader, const char *text, size_t length, size_t *count)
{
    *count = 0;
    for (size_t end = length; end > 0;) {
        size_t start = end;
        while (start > 0 && text[start - 1] != ';')
            start--;
        if (!SP_REACH(reader->locations, *count, reader->capacity, 64))
            return false;
        if (start < end)
            reader->locations[(*count)++] = put_frame(reader, text + start, end - start);
        end = start ? start - 1 : 0;
    }
    return true;
}

static bool add_value(reader *reader, int32_t stack, double value)
{
    size_t number = (size_t)stack;
    if (!SP_REACH(reader->values, number, reader->value_capacity, 256))
        return false;
    while (reader->value_count <= number)
        reader->values[reader->value_count++] = 0;
    reader->values[number] += value;
    return true;
}

static bool add_line(reader *reader, const line *one, size_t stack_length, double value)
{
    size_t count;
    if (!put_frames(reader, one->text, stack_length, &count))
        return false;
    reader->fractions += value != floor(value);
    int32_t stack = sp_foreign_stack(&reader->foreign, reader->locations, count);
    return add_value(reader, stack, value) && !reader->foreign.failed;
}

static void name_mistake(reader *reader, size_t number, const char *mistake)
{
    if (++reader->mistakes <= NAMED_MISTAKES)
        sp_tool_note("%s: line %zu: %s, as in main;work 12; the other lines are read", reader->path,
                     number, mistake);
}

static bool read_lines(reader *reader, const char *text, size_t length)
{
    size_t number = 0;
    for (size_t position = 0; position < length;) {
        line one = next_line(text, length, &position);
        size_t stack = 0;
        double value = 0;
        number++;
        if (is_comment(&one))
            continue;
        const char *mistake = parse_line(&one, &stack, &value);
        if (mistake)
            name_mistake(reader, number, mistake);
        else if (!add_line(reader, &one, stack, value))
            return false;
    }
    return true;
}

static void say_rest(const reader *reader)
{
    size_t more = reader->mistakes - NAMED_MISTAKES;
    if (reader->mistakes > NAMED_MISTAKES)
        sp_tool_note("%s: %zu more %s no stack with a number", reader->path, more,
                     more == 1 ? "line is" : "lines are");
    if (reader->fractions)
        sp_tool_note("%s: %zu %s a fraction: the sum of each stack is rounded", reader->path,
                     reader->fractions, reader->fractions == 1 ? "number has" : "numbers have");
}

/* Make samples of the sums. A double holds integers up to 2^53 exactly. */
static void take_values(reader *reader)
{
    reader->profile.type = sp_foreign_string(&reader->foreign, "samples", 7);
    reader->profile.unit = sp_foreign_string(&reader->foreign, "count", 5);
    for (size_t i = 0; i < reader->value_count; i++) {
        double value = round(reader->values[i]);
        sp_foreign_sample sample = {
            .stack = (int32_t)i, .value = value < (double)INT64_MAX ? (int64_t)value : INT64_MAX};
        if (sample.value)
            sp_foreign_add(&reader->foreign, &reader->profile, &sample);
    }
}

int sp_input_read_collapsed(sp_input *input, const char *path, const uint8_t *data, size_t length)
{
    reader reader = {.path = path};
    ProtobufCMessage *message = NULL;
    sp_foreign_init(&reader.foreign, &input->memory);
    if (read_lines(&reader, (const char *)data, length)) {
        say_rest(&reader);
        take_values(&reader);
        message = sp_foreign_take(&reader.foreign, &reader.profile, 1);
    }
    int status = message ? sp_input_add(input, path, SP_SIGNAL_PROFILES, length, message)
                         : sp_tool_no_memory();
    sp_foreign_deinit(&reader.foreign);
    free(reader.profile.samples);
    free(reader.locations);
    free(reader.values);
    return status;
}
