/* SPDX-License-Identifier: Apache-2.0 */
/* Punycode (RFC 3492) as Rust's symbols have it: "_" in the place of "-".  Threads: any. */
#ifndef SP_SYMBOL_PUNYCODE_H
#define SP_SYMBOL_PUNYCODE_H

#include <stddef.h>
#include <stdint.h>

#define SP_PUNYCODE_MAX 128

/* The characters that LENGTH bytes at TEXT stand for into POINTS; how many, 0 when TEXT is wrong,
 * or longer than that. */
uint32_t sp_punycode_decode(const char *text, size_t length, uint32_t points[SP_PUNYCODE_MAX]);

#endif
