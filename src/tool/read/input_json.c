/* SPDX-License-Identifier: Apache-2.0 */
/* Reads OTLP/JSON files. First each line is taken for one object, which is fast. From the first
 * line that is not one object, an object ends at its closing brace, so it may have several lines.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/read/input.h"
#include "tool/read/json_locate.h"
#include "tool/read/json_read.h"
#include "tool/read/parallel.h"
#include "tool/text/messages.h"
#include "tool/text/progress.h"

size_t sp_input_skip_space(const uint8_t *data, size_t length, size_t position)
{
    static const uint8_t mark[] = {0xef, 0xbb, 0xbf}; /* U+FEFF: some editors write it first */
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

/* What an object holds, by the keys of its outermost level. */
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

/* The position after the string whose opening quote is at START; LENGTH when it does not end. */
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

/* The position after the object that begins at START, or 0 when it does not end. KIND is filled
 * from the keys. */
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

/* ---- objects, some at a time ---- */

/* How many objects are read at a time, on all cores: BATCH_OBJECTS, or fewer when these have
 * BATCH_BYTES together. */
enum { BATCH_OBJECTS = 256, BATCH_BYTES = 64 * 1024 * 1024 };

/* An object of the file. After it was read: its message, or what is wrong. */
typedef struct object {
    size_t start, end;
    bool is_guess; /* `end` is the end of the line, and may not be the object's */
    bool is_wrong; /* the guess was wrong: the line is no object */
    object_kind kind;
    ProtobufCMessage *message;
    sp_json_error error;
} object;

typedef struct batch {
    const char *path;
    const char *text;
    size_t length;
    object *items; /* BATCH_OBJECTS of them */
    size_t count;
    bool guesses;                      /* guess the ends of objects: no guess was wrong yet */
    sp_arena memory[SP_PARALLEL_MOST]; /* by thread */
} batch;

static sp_signal signal_of(const object *of)
{
    return of->kind.profiles ? SP_SIGNAL_PROFILES : SP_SIGNAL_TRACES;
}

/* Check by the outermost keys of OF that it is a request of a signal that we read. */
static int check_kind(const batch *all, const object *of)
{
    const object_kind *kind = &of->kind;
    if (kind->other)
        return sp_tool_wrong("%s: line %zu: holds logs or metrics; traces or profiles are needed",
                             all->path, sp_json_line(all->text, of->start));
    if (!kind->traces && !kind->profiles && of->end - of->start > 2)
        return sp_tool_wrong("%s: line %zu: is JSON, but no OTLP request of traces or profiles "
                             "(no resourceSpans, resourceProfiles or dictionary)",
                             all->path, sp_json_line(all->text, of->start));
    if (kind->traces && kind->profiles)
        return sp_tool_wrong("%s: line %zu: one object holds traces and profiles; a request has "
                             "one of them",
                             all->path, sp_json_line(all->text, of->start));
    return SP_TOOL_DONE;
}

static void note_keys(object_kind *kind, const sp_json_tree *tree)
{
    sp_json_walk walk = sp_json_members(sp_json_tree_root(tree));
    sp_json_text key;
    sp_json_value value;
    while (sp_json_next_member(&walk, &key, &value))
        note_key(kind, key.data, key.length);
}

static void read_guess(const batch *all, object *own, sp_arena *memory)
{
    const char *why, *text = all->text + own->start;
    size_t length = own->end - own->start;
    sp_json_tree *tree = sp_json_tree_parse(text, length, &why);
    own->is_wrong = !tree;
    if (!tree)
        return;
    note_keys(&own->kind, tree);
    own->message = sp_otlp_json_read_tree(memory, sp_signal_descriptor(signal_of(own)), tree, text,
                                          length, &own->error);
    sp_json_tree_free(tree);
}

static void read_object(void *state, size_t thread, size_t number)
{
    batch *all = state;
    object *own = &all->items[number];
    sp_arena *memory = &all->memory[thread];
    if (thread == 0)
        sp_progress_step("decoding", all->path, own->start, all->length);
    if (own->is_guess)
        read_guess(all, own, memory);
    else
        own->message =
            sp_otlp_json_read(memory, sp_signal_descriptor(signal_of(own)), all->text + own->start,
                              own->end - own->start, &own->error);
}

static int take_object(sp_input *input, const batch *all, const object *of)
{
    int status = check_kind(all, of);
    if (status != SP_TOOL_DONE)
        return status;
    if (!of->message)
        return sp_tool_wrong("%s: line %zu, byte %zu: %s", all->path,
                             sp_json_line(all->text, of->start + of->error.position),
                             of->start + of->error.position, of->error.text);
    return sp_input_add(input, all->path, signal_of(of), of->end - of->start, of->message);
}

/* The objects are read in any order, and added in the order of the file. When the end of an object
 * was guessed wrong, this object and those after it are dropped, and *POSITION is set to its start,
 * so that they are read again. */
static int read_batch(sp_input *input, batch *all, size_t *position)
{
    int status = SP_TOOL_DONE;
    size_t bytes = all->count ? all->items[all->count - 1].end - all->items[0].start : 0;
    size_t parts = bytes / SP_PARALLEL_PART_BYTES + 1;
    size_t threads = sp_parallel_threads(parts < all->count ? parts : all->count);
    sp_parallel_run(threads, all->count, read_object, all);
    for (size_t i = 0; i < all->count && status == SP_TOOL_DONE; i++) {
        if (all->items[i].is_wrong) {
            all->guesses = false;
            *position = all->items[i].start;
            break;
        }
        status = take_object(input, all, &all->items[i]);
    }
    return status;
}

/* The end of the line at START, without trailing white space; 0: no object can end there. */
static size_t line_end(const batch *all, size_t start)
{
    const char *end = memchr(all->text + start, '\n', all->length - start);
    size_t position = end ? (size_t)(end - all->text) : all->length;
    while (position > start && strchr(" \t\r", all->text[position - 1]))
        position--;
    return position > start + 1 && all->text[position - 1] == '}' ? position : 0;
}

static object find_object(const batch *all, size_t start)
{
    object found = {.start = start};
    if (all->text[start] != '{')
        return found;
    if (all->guesses)
        found.end = line_end(all, start);
    found.is_guess = found.end != 0;
    if (!found.is_guess)
        found.end = object_end(all->text, start, all->length, &found.kind);
    return found;
}

/* Fill ALL with the next objects from *POSITION on, and move *POSITION to the end of the last one.
 * *IS_BROKEN: no whole object begins after it. */
static void fill_batch(batch *all, size_t *position, bool *is_broken)
{
    size_t first = *position;
    all->count = 0;
    while (all->count < BATCH_OBJECTS && *position - first < BATCH_BYTES) {
        *position = sp_input_skip_space((const uint8_t *)all->text, all->length, *position);
        if (*position >= all->length)
            return;
        object next = find_object(all, *position);
        *is_broken = next.end == 0;
        if (*is_broken)
            return;
        all->items[all->count++] = next;
        *position = next.end;
    }
}

/* Report that no whole object begins at POSITION. If a cut object is the last line and not the
 * first, the program was probably killed while it wrote, and the requests before it are used. */
static int say_broken(sp_input *input, const batch *all, size_t position)
{
    char where[32];
    bool is_first = position == sp_input_skip_space((const uint8_t *)all->text, all->length, 0);
    bool is_last_line = !memchr(all->text + position, '\n', all->length - position);
    if (all->text[position] != '{')
        return sp_tool_wrong("%s: line %zu, byte %zu: a JSON object has to begin here", all->path,
                             sp_json_line(all->text, position), position);
    if (is_first || !is_last_line)
        return sp_tool_wrong("%s: line %zu: the JSON object that begins here is cut: the file ends "
                             "at byte %zu; copy or record the file again",
                             all->path, sp_json_line(all->text, position), all->length);
    snprintf(where, sizeof where, "line %zu", sp_json_line(all->text, position));
    sp_input_note_torn(input, all->path, where, all->length);
    return SP_TOOL_DONE;
}

static int read_batches(sp_input *input, batch *all)
{
    int status = SP_TOOL_DONE;
    bool is_broken = false;
    for (size_t position = 0; status == SP_TOOL_DONE && position < all->length && !is_broken;) {
        bool guessed = all->guesses;
        fill_batch(all, &position, &is_broken);
        status = read_batch(input, all, &position);
        is_broken = is_broken && guessed == all->guesses;
        if (status == SP_TOOL_DONE && is_broken)
            status = say_broken(input, all, position);
    }
    return status;
}

int sp_input_read_json(sp_input *input, const char *path, const uint8_t *data, size_t length)
{
    batch all = {.path = path, .text = (const char *)data, .length = length, .guesses = true};
    all.items = malloc(BATCH_OBJECTS * sizeof *all.items);
    int status = all.items ? SP_TOOL_DONE : sp_tool_no_memory();
    if (status == SP_TOOL_DONE)
        status = read_batches(input, &all);
    for (size_t i = 0; i < SP_PARALLEL_MOST; i++)
        sp_arena_join(&input->memory, &all.memory[i]);
    free(all.items);
    return status;
}
