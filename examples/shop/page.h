/* SPDX-License-Identifier: Apache-2.0 */
/* A page: text that grows at its end. */
#ifndef SHOP_PAGE_H
#define SHOP_PAGE_H

#include <stdbool.h>
#include <stddef.h>

/* Zero-initialised is an empty page. `failed` stays once memory was short, so that it is checked
 * once, at the end. */
typedef struct page {
    char *text;
    size_t length;
    size_t capacity;
    bool failed;
} page;

void page_printf(page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Append TEXT with what HTML would take for markup escaped. */
void page_escape(page *page, const char *text);
void page_deinit(page *page);

#endif
