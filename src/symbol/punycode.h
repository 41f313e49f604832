/* SPDX-License-Identifier: Apache-2.0 */
/* Punycode (RFC 3492) as Rust's symbols have it: "_" in the place of "-".  Threads: any. */
#ifndef SP_SYMBOL_PUNYCODE_H
#define SP_SYMBOL_PUNYCODE_H

#include <stddef.h>
#include <stdint.h>

#define SP_PUNYCODE_MAX 128

/* Decode the LENGTH bytes at TEXT into POINTS. Returns how many characters; 0 when TEXT is wrong or
 * has more than SP_PUNYCODE_MAX. */
uint32_t sp_punycode_decode(const char *text, size_t length, uint32_t points[SP_PUNYCODE_MAX]);

#endif
