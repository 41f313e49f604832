/* SPDX-License-Identifier: Apache-2.0 */
#include "core/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/utf8.h"

uint8_t *sp_buffer_reserve(sp_buffer *buffer, size_t bytes)
{
    if (bytes > buffer->maximum - buffer->length) {
        buffer->failed = true;
        return NULL;
    }
    size_t needed = buffer->length + bytes + 1; /* the NUL */
    if (needed > buffer->capacity) {
        /* A buffer that is filled by one append, such as a request, takes no more than it needs. */
        size_t capacity = buffer->capacity ? buffer->capacity : needed > 256 ? needed : 256;
        while (capacity < needed)
            capacity *= 2;
        uint8_t *data = realloc(buffer->data, capacity);
        if (!data) {
            buffer->failed = true;
            return NULL;
        }
        buffer->data = data;
        buffer->capacity = capacity;
    }
    return buffer->data + buffer->length;
}

bool sp_buffer_add(sp_buffer *buffer, const void *data, size_t bytes)
{
    uint8_t *end = sp_buffer_reserve(buffer, bytes);
    if (!end)
        return false;
    if (bytes)
        memcpy(end, data, bytes);
    end[bytes] = 0;
    buffer->length += bytes;
    return true;
}

bool sp_buffer_add_string(sp_buffer *buffer, const char *text)
{
    return sp_buffer_add(buffer, text, strlen(text));
}

bool sp_buffer_add_cut(sp_buffer *buffer, const char *text, size_t length)
{
    static const char mark[] = SP_UTF8_CUT;
    size_t room = buffer->maximum - buffer->length, mark_bytes = sizeof mark - 1;
    if (length <= room || room < mark_bytes)
        return sp_buffer_add(buffer, text, length);
    size_t kept = sp_utf8_fit(text, length, room - mark_bytes);
    return sp_buffer_reserve(buffer, kept + mark_bytes) && sp_buffer_add(buffer, text, kept) &&
           sp_buffer_add(buffer, mark, mark_bytes);
}

bool sp_buffer_add_char(sp_buffer *buffer, char c)
{
    return sp_buffer_add(buffer, &c, 1);
}

bool sp_buffer_printf(sp_buffer *buffer, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) {
        buffer->failed = true;
        return false;
    }
    uint8_t *end = sp_buffer_reserve(buffer, (size_t)length);
    if (!end)
        return false;
    va_start(arguments, format);
    vsnprintf((char *)end, (size_t)length + 1, format, arguments);
    va_end(arguments);
    buffer->length += (size_t)length;
    return true;
}

void sp_buffer_clear(sp_buffer *buffer)
{
    buffer->length = 0;
    buffer->failed = false;
}

void sp_buffer_deinit(sp_buffer *buffer)
{
    free(buffer->data);
    buffer->data = NULL;
    buffer->length = buffer->capacity = 0;
}
