/* SPDX-License-Identifier: Apache-2.0 */
/* The shop's small pages. The large one is report.h. */
#ifndef SHOP_RENDER_H
#define SHOP_RENDER_H

#include "page.h"
#include "store.h"

/* The page of a product: the first of LINES. The other lines are listed as similar products. */
void render_product(page *out, const store_lines *lines);
void render_cart(page *out, const char *title, int64_t user, const store_lines *lines);
void render_message(page *out, const char *message);

#endif
