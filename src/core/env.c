/* SPDX-License-Identifier: Apache-2.0 */
#include "core/env.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/buffer.h"
#include "core/log.h"

static char **kept; /* NAME=value; the last is NULL. NULL: nothing was kept */

/* The pointers and their texts are one block, so that an allocation that fails leaves nothing to
 * free. environ is NULL after clearenv. */
void sp_env_keep(void)
{
    size_t count = 0, bytes = 0;
    for (; environ && environ[count]; count++)
        bytes += strlen(environ[count]) + 1;
    char **copy = malloc((count + 1) * sizeof *copy + bytes);
    if (!copy)
        return;
    char *text = (char *)(copy + count + 1);
    for (size_t i = 0; i < count; i++) {
        copy[i] = text;
        text = stpcpy(text, environ[i]) + 1;
    }
    copy[count] = NULL;
    kept = copy;
}

static const char *kept_value(const char *name)
{
    size_t length = strlen(name);
    for (char **at = kept; at && *at; at++)
        if (strncmp(*at, name, length) == 0 && (*at)[length] == '=')
            return *at + length + 1;
    return NULL;
}

const char *sp_env(const char *name)
{
    const char *value = secure_getenv(name);
    if (!value)
        value = kept_value(name);
    return value && *value ? value : NULL;
}

bool sp_parse_u64(const char *text, uint64_t *out)
{
    uint64_t value = 0;
    if (!*text)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return false;
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            return false;
    }
    *out = value;
    return true;
}

uint32_t sp_env_u32(const char *name, uint32_t minimum, uint32_t maximum, uint32_t fallback)
{
    const char *text = sp_env(name);
    if (!text)
        return fallback;
    uint64_t value;
    if (sp_parse_u64(text, &value) && value >= minimum && value <= maximum)
        return (uint32_t)value;
    sp_log_warn("config", "%s=%s is not a whole number from %u to %u: using %u", name, text,
                minimum, maximum, fallback);
    return fallback;
}

bool sp_env_bool(const char *name)
{
    const char *text = sp_env(name);
    if (!text || strcasecmp(text, "false") == 0)
        return false;
    if (strcasecmp(text, "true") == 0)
        return true;
    sp_log_warn("config", "%s=%s is neither true nor false: using false", name, text);
    return false;
}

static int find_word(const char *text, size_t length, const char *const *words, int count)
{
    for (int i = 0; i < count; i++)
        if (strlen(words[i]) == length && strncasecmp(words[i], text, length) == 0)
            return i;
    return -1;
}

static void warn_word(const char *name, const char *text, size_t length, const char *const *words,
                      int count, const char *instead)
{
    sp_buffer list = SP_BUFFER_INIT(4096);
    for (int i = 0; i < count; i++)
        sp_buffer_printf(&list, "%s%s", i ? ", " : "", words[i]);
    sp_log_warn("config", "%s=%.*s is none of %s: using %s", name, (int)length, text,
                list.data ? (const char *)list.data : "?", instead);
    sp_buffer_deinit(&list);
}

int sp_env_word(const char *name, const char *const *words, int count, int fallback)
{
    return sp_parse_word(name, sp_env(name), words, count, fallback);
}

int sp_parse_word(const char *name, const char *text, const char *const *words, int count,
                  int fallback)
{
    if (!text)
        return fallback;
    int index = find_word(text, strlen(text), words, count);
    if (index >= 0)
        return index;
    warn_word(name, text, strlen(text), words, count,
              fallback >= 0 && fallback < count ? words[fallback] : "the default");
    return fallback;
}

uint32_t sp_parse_word_list(const char *name, const char *text, const char *const *words, int count,
                            uint32_t fallback)
{
    uint32_t found = 0;
    while (*text) {
        while (*text == ',' || isspace((unsigned char)*text))
            text++;
        size_t length = strcspn(text, ",");
        size_t trimmed = length;
        while (trimmed && isspace((unsigned char)text[trimmed - 1]))
            trimmed--;
        if (trimmed) {
            int index = find_word(text, trimmed, words, count);
            if (index >= 0)
                found |= 1u << index;
            else
                warn_word(name, text, trimmed, words, count, "the rest of the list");
        }
        text += length;
    }
    return found ? found : fallback;
}
