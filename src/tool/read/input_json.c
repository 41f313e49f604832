/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP/JSON files. Objects are told apart by their braces, not by newlines, so that a bare request
 * may be spread over lines. */
#include <stdio.h>
#include <string.h>

#include "tool/read/input.h"
#include "tool/read/json_locate.h"
#include "tool/read/json_read.h"
#include "tool/text/messages.h"
#include "tool/text/progress.h"

size_t sp_input_skip_space(const uint8_t *data, size_t length, size_t position)
{
    static const uint8_t mark[] = {0xef, 0xbb, 0xbf}; /* U+FEFF, which some editors put in front */
    for (;;) {
        if (position < length && data[position] && strchr(" \t\r\n", data[position]))
            position++;
        else if (length - position >= sizeof mark &&
                 memcmp(data + position, mark, sizeof mark) == 0)
            position += sizeof mark;
        else
            return position;
    }
}

/* What the keys of an object's outermost level say it is. */
typedef struct object_kind {
    bool traces;
    bool profiles;
    bool other; /* logs or metrics */
} object_kind;

static void note_key(object_kind *kind, const char *key, size_t length)
{
    static const struct {
        const char *key;
        size_t offset;
    } keys[] = {
        {"resourceSpans", offsetof(object_kind, traces)},
        {"resource_spans", offsetof(object_kind, traces)},
        {"resourceProfiles", offsetof(object_kind, profiles)},
        {"resource_profiles", offsetof(object_kind, profiles)},
        {"dictionary", offsetof(object_kind, profiles)},
        {"resourceLogs", offsetof(object_kind, other)},
        {"resourceMetrics", offsetof(object_kind, other)},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(keys); i++)
        if (strlen(keys[i].key) == length && memcmp(keys[i].key, key, length) == 0)
            *(bool *)((char *)kind + keys[i].offset) = true;
}

/* The position behind the string that begins (with its quote) at START; LENGTH when it does not
 * end. */
static size_t string_end(const char *text, size_t start, size_t length)
{
    for (size_t i = start + 1; i < length; i++) {
        if (text[i] == '\\')
            i++;
        else if (text[i] == '"')
            return i + 1;
    }
    return length;
}

/* The position behind the object that begins at START, or 0 when it does not end. */
static size_t object_end(const char *text, size_t start, size_t length, object_kind *kind)
{
    size_t depth = 0;
    for (size_t i = start; i < length; i++) {
        if (text[i] == '"') {
            size_t end = string_end(text, i, length);
            if (depth == 1)
                note_key(kind, text + i + 1, end - i >= 2 ? end - i - 2 : 0);
            i = end - 1;
        } else if (text[i] == '{' || text[i] == '[') {
            depth++;
        } else if ((text[i] == '}' || text[i] == ']') && --depth == 0) {
            return i + 1;
        }
    }
    return 0;
}

static int read_object(sp_input *input, const char *path, const char *text, size_t start,
                       size_t end, object_kind kind)
{
    if (kind.other)
        return sp_tool_wrong("%s: line %zu: holds logs or metrics; traces or profiles are needed",
                             path, sp_json_line(text, start));
    if (!kind.traces && !kind.profiles && end - start > 2)
        return sp_tool_wrong("%s: line %zu: is JSON, but no OTLP request of traces or profiles "
                             "(no resourceSpans, resourceProfiles or dictionary)",
                             path, sp_json_line(text, start));
    if (kind.traces && kind.profiles)
        return sp_tool_wrong("%s: line %zu: one object holds traces and profiles; a request has "
                             "one of them",
                             path, sp_json_line(text, start));
    sp_signal signal = kind.profiles ? SP_SIGNAL_PROFILES : SP_SIGNAL_TRACES;
    sp_json_error error;
    ProtobufCMessage *message = sp_otlp_json_read(&input->memory, sp_signal_descriptor(signal),
                                                  text + start, end - start, &error);
    if (!message)
        return sp_tool_wrong("%s: line %zu, byte %zu: %s", path,
                             sp_json_line(text, start + error.position), start + error.position,
                             error.text);
    return sp_input_add(input, path, signal, end - start, message);
}

/* The object at START does not end. */
static int end_at_cut(sp_input *input, const char *path, const char *text, size_t start,
                      size_t length, bool is_first)
{
    char where[32];
    bool is_last_line = !memchr(text + start, '\n', length - start);
    if (is_first || !is_last_line)
        return sp_tool_wrong("%s: line %zu: the JSON object that begins here is cut: the file "
                             "ends at byte %zu; copy or record the file again",
                             path, sp_json_line(text, start), length);
    snprintf(where, sizeof where, "line %zu", sp_json_line(text, start));
    sp_input_note_torn(input, path, where, length);
    return SP_TOOL_DONE;
}

int sp_input_read_json(sp_input *input, const char *path, const uint8_t *data, size_t length)
{
    const char *text = (const char *)data;
    size_t first = sp_input_skip_space(data, length, 0);
    for (size_t position = first;;) {
        position = sp_input_skip_space(data, length, position);
        if (position >= length)
            return SP_TOOL_DONE;
        if (text[position] != '{')
            return sp_tool_wrong("%s: line %zu, byte %zu: a JSON object has to begin here", path,
                                 sp_json_line(text, position), position);
        object_kind kind = {0};
        size_t end = object_end(text, position, length, &kind);
        if (!end)
            return end_at_cut(input, path, text, position, length, position == first);
        sp_progress_step("decoding", path, position, length);
        int status = read_object(input, path, text, position, end, kind);
        if (status != SP_TOOL_DONE)
            return status;
        position = end;
    }
}
