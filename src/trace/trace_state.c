/* SPDX-License-Identifier: Apache-2.0 */
/* The W3C tracestate header (Trace Context level 2, section 3.3, with the key grammar of 2026): up
 * to 32 members key=value of other tracing systems, which the SDK passes on unchanged.
 *
 *     rojo=00f067aa0ba902b7, congo@eu=t61rcWkgMzE
 *
 * One member that is not valid makes the whole list invalid, because the meaning of such a list is
 * uncertain. Duplicate keys are passed on as they are. */
#include "core/compiler.h"
#include "trace/propagators.h"

#include <string.h>

enum {
    KEY_MAX = 256,
    VALUE_MAX = 256,
    /* Longer members are the first to go when the list is too long. */
    LONG_MEMBER = 128,
    LIST_MAX = SP_TRACE_STATE_MEMBERS * (SP_TRACE_STATE_MEMBER_BYTES + 1)
};

static bool is_key_begin(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_key_char(char c)
{
    return is_key_begin(c) || c == '_' || c == '-' || c == '*' || c == '/' || c == '@';
}

/* Commas do not occur, because they separate members. */
static bool is_value_char(char c)
{
    return c >= ' ' && c <= '~' && c != '=';
}

static bool is_member(const char *text, size_t length)
{
    const char *equals = memchr(text, '=', length);
    size_t key = equals ? (size_t)(equals - text) : 0;
    if (key == 0 || key > KEY_MAX || !is_key_begin(text[0]))
        return false;
    for (size_t i = 1; i < key; i++)
        if (!is_key_char(text[i]))
            return false;
    size_t value = length - key - 1;
    if (value == 0 || value > VALUE_MAX)
        return false;
    for (size_t i = key + 1; i < length; i++)
        if (!is_value_char(text[i]))
            return false;
    return true;
}

static void read_member(sp_trace_state *state, const char *text, size_t length)
{
    while (length > 0 && (*text == ' ' || *text == '\t'))
        text++, length--;
    while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t'))
        length--;
    if (length == 0)
        return; /* empty members are allowed, and mean nothing */
    if (state->members == SP_TRACE_STATE_MEMBERS || !is_member(text, length)) {
        state->invalid = true;
        return;
    }
    state->members++;
    sp_propagation_add_member(&state->text, text, length);
}

void sp_trace_state_read(sp_trace_state *state, const char *text, size_t length)
{
    state->text.maximum = LIST_MAX;
    while (length > 0 && !state->invalid) {
        const char *comma = memchr(text, ',', length);
        size_t member = comma ? (size_t)(comma - text) : length;
        read_member(state, text, member);
        member += comma != NULL;
        text += member;
        length -= member;
    }
}

/* The member to leave out next: the last one of more than LONG_MEMBER characters, else the last
 * one. */
static const char *find_victim(const char *list, size_t *length)
{
    const char *victim = list, *last = list;
    size_t victim_length = 0, last_length = 0;
    for (const char *member = list;; member += last_length + 1) {
        last = member;
        last_length = strcspn(member, ",");
        if (last_length > LONG_MEMBER) {
            victim = last;
            victim_length = last_length;
        }
        if (!member[last_length])
            break;
    }
    *length = victim_length ? victim_length : last_length;
    return victim_length ? victim : last;
}

/* Leave out one member of LIST and the comma on one of its sides. */
static void shorten(sp_buffer *list)
{
    size_t length;
    const char *begin = (const char *)list->data, *end = begin + list->length;
    const char *victim = find_victim(begin, &length);
    const char *after = victim + length;
    if (*after)
        after++;
    else if (victim > begin)
        victim--;
    memmove(list->data + (victim - begin), after, (size_t)(end - after) + 1);
    list->length -= (size_t)(after - victim);
}

void sp_trace_state_finish(sp_trace_state *state)
{
    if (state->invalid || state->text.failed)
        sp_buffer_clear(&state->text);
    while (state->text.length > SP_TRACE_STATE_BYTES)
        shorten(&state->text);
}
