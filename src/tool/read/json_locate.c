/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/read/json_locate.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/env.h"

/* A place in the text. The text is valid JSON, so the checks against `end` are only a safeguard. */
typedef struct json_place {
    const char *next;
    const char *end;
} json_place;

static void skip_space(json_place *place)
{
    while (place->next < place->end && strchr(" \t\r\n", *place->next))
        place->next++;
}

static bool take(json_place *place, char c)
{
    skip_space(place);
    if (place->next == place->end || *place->next != c)
        return false;
    place->next++;
    return true;
}

/* Move PLACE to the end of the string whose opening quote is next. */
static void skip_string(json_place *place)
{
    for (place->next++; place->next < place->end; place->next++) {
        if (*place->next == '"') {
            place->next++;
            return;
        }
        if (*place->next == '\\' && place->next + 1 < place->end)
            place->next++;
    }
}

/* Move PLACE to the end of the value that is next. Counts brackets and does not recurse, because
 * deep nesting must not overflow the stack. */
static void skip_value(json_place *place)
{
    size_t open = 0;
    skip_space(place);
    while (place->next < place->end) {
        char c = *place->next;
        if (open == 0 && strchr(",]}", c))
            return;
        if (c == '"') {
            skip_string(place);
            continue;
        }
        if (c == '{' || c == '[')
            open++;
        else if (c == '}' || c == ']')
            open--;
        place->next++;
    }
}

/* Move PLACE from an object to the object's value of KEY. False: there is none. */
static bool enter_key(json_place *place, const char *key)
{
    size_t length = strlen(key);
    if (!take(place, '{'))
        return false;
    do {
        skip_space(place);
        const char *quote = place->next;
        if (quote == place->end || *quote != '"')
            return false;
        skip_string(place);
        bool found =
            (size_t)(place->next - quote) == length + 2 && memcmp(quote + 1, key, length) == 0;
        if (!take(place, ':'))
            return false;
        if (found)
            return true;
        skip_value(place);
    } while (take(place, ','));
    return false;
}

/* Move PLACE from an array to the array's element INDEX. False: there is none. */
static bool enter_index(json_place *place, size_t index)
{
    if (!take(place, '['))
        return false;
    for (; index > 0; index--) {
        skip_value(place);
        if (!take(place, ','))
            return false;
    }
    return true;
}

size_t sp_json_locate(const char *text, size_t length, const sp_json_step *path, size_t count)
{
    json_place place = {.next = text, .end = text + length};
    skip_space(&place);
    const char *found = place.next;
    for (size_t i = 0; i < count; i++) {
        bool entered =
            path[i].key ? enter_key(&place, path[i].key) : enter_index(&place, path[i].index);
        if (!entered)
            break;
        skip_space(&place);
        found = place.next;
    }
    return (size_t)(found - text);
}

size_t sp_json_line(const char *text, size_t position)
{
    size_t line = 1;
    for (size_t i = 0; i < position; i++)
        line += text[i] == '\n';
    return line;
}

size_t sp_json_path_print(char *out, size_t size, const sp_json_step *path, size_t count)
{
    size_t used = 0;
    out[0] = 0;
    for (size_t i = 0; i <= count && count > 0; i++) {
        int step;
        if (i == count)
            step = snprintf(out + used, size - used, ": ");
        else if (path[i].key)
            step = snprintf(out + used, size - used, "%s%s", i ? "." : "", path[i].key);
        else
            step = snprintf(out + used, size - used, "[%zu]", path[i].index);
        if (step < 0 || (size_t)step >= size - used)
            return (size_t)snprintf(out + size - 7, 7, "...: ") + size - 7;
        used += (size_t)step;
    }
    return used;
}
