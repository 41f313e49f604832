/* SPDX-License-Identifier: Apache-2.0 */
/* A page: text that grows at its end. */
#ifndef SHOP_PAGE_H
#define SHOP_PAGE_H

#include <stdbool.h>
#include <stddef.h>

/* A zero-initialised page is empty. After memory was short, `failed` stays true, so that one check
 * at the end is enough. */
typedef struct page {
    char *text;
    size_t length;
    size_t capacity;
    bool failed;
} page;

void page_printf(page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Append TEXT, with all characters escaped that HTML would take for markup. */
void page_escape(page *page, const char *text);
void page_deinit(page *page);

#endif
