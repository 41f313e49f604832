/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers with their noun, for messages: "1 span", "2 spans", "2 processes". Threads: any. Signals:
 * not safe. */
#ifndef SP_CORE_COUNTED_H
#define SP_CORE_COUNTED_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { SP_COUNTED_LENGTH = 64 };

/* The ending of NOUN after the number COUNT: "", "s" or "es". */
static inline const char *sp_plural(uint64_t count, const char *noun)
{
    size_t length = strlen(noun);
    return count == 1 ? "" : length && strchr("hs", noun[length - 1]) ? "es" : "s";
}

/* Write COUNT and NOUN, a singular, with the right ending to OUT. Returns OUT. */
static inline const char *sp_counted(char out[SP_COUNTED_LENGTH], uint64_t count, const char *noun)
{
    snprintf(out, SP_COUNTED_LENGTH, "%llu %.40s%s", (unsigned long long)count, noun,
             sp_plural(count, noun));
    return out;
}

/* The same as an argument of a call. The text lives until the end of the enclosing block. */
#define SP_COUNTED(count, noun) sp_counted((char[SP_COUNTED_LENGTH]){0}, count, noun)

#endif
