/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 as RFC 3629 defines it: no surrogates, nothing above U+10FFFF, no overlong forms.
 * Threads: any.  Signals: safe. */
#ifndef SP_CORE_UTF8_H
#define SP_CORE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Length in bytes of the sequence at TEXT, of which LEFT bytes are readable; 0 when it is not
 * valid. */
size_t sp_utf8_sequence(const char *text, size_t left);
bool sp_utf8_valid(const char *text, size_t length);
/* Copy LENGTH bytes of TEXT into OUT with each byte that is not part of valid UTF-8 replaced by
 * U+FFFD (3 bytes), and a NUL. OUT needs 3 * LENGTH + 1 bytes in the worst case. Returns the bytes
 * written, without the NUL. */
size_t sp_utf8_repair(char *out, const char *text, size_t length);
/* The mark at the end of a text that was cut: an ellipsis. */
#define SP_UTF8_CUT "\xe2\x80\xa6"
/* How much of TEXT, which has LENGTH bytes, fits into LIMIT bytes without cutting through a
 * character. Bytes that are not UTF-8 count as characters. */
size_t sp_utf8_fit(const char *text, size_t length, size_t limit);
/* Make LENGTH bytes of TEXT, which may be foreign input, safe for a log or a terminal: one line of
 * valid UTF-8 and a NUL in OUT, which has SIZE (>= 4) bytes. Characters that could end the line,
 * control a terminal or reorder the text become '?', and so does each byte that is not UTF-8. A
 * text that does not fit is cut after a whole character, and ends with "...". OUT may be TEXT.
 * Returns the bytes written, without the NUL. */
size_t sp_utf8_show(char *out, size_t size, const char *text, size_t length);

#endif
