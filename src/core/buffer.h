/* SPDX-License-Identifier: Apache-2.0 */
/* A growing byte buffer with a fixed maximum. An append that does not fit sets `failed`, which
 * stays, so that a writer may check once at its end; an append is never done partly. After the
 * first append there is always a NUL after the last byte. Threads: one at a time. Signals: not
 * safe. */
#ifndef SP_CORE_BUFFER_H
#define SP_CORE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sp_buffer {
    uint8_t *data; /* NULL while nothing was added */
    size_t length; /* <= maximum */
    size_t capacity;
    size_t maximum;
    bool failed;
} sp_buffer;

#define SP_BUFFER_INIT(max)                                                                        \
    {                                                                                              \
        .maximum = (max)                                                                           \
    }

/* Make room for BYTES more after `length`. Returns where to write them, or NULL (and sets failed).
 * The caller then adds the number of bytes that it wrote to `length`. */
uint8_t *sp_buffer_reserve(sp_buffer *buffer, size_t bytes);
bool sp_buffer_add(sp_buffer *buffer, const void *data, size_t bytes);
bool sp_buffer_add_string(sp_buffer *buffer, const char *text);
/* Add as much of the LENGTH bytes of TEXT as there is room for. A text that does not fit is cut
 * after a whole character, and SP_UTF8_CUT (utf8.h) is added. Fails only when memory is short, or
 * there is no room even for the mark. */
bool sp_buffer_add_cut(sp_buffer *buffer, const char *text, size_t length);
bool sp_buffer_add_char(sp_buffer *buffer, char c);
bool sp_buffer_printf(sp_buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Empty it, keep its memory. */
void sp_buffer_clear(sp_buffer *buffer);
void sp_buffer_deinit(sp_buffer *buffer);

#endif
