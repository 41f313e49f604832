/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SHOP_COMPRESS_H
#define SHOP_COMPRESS_H

#include "page.h"

/* Compress the content of PAGE by gzip. False when memory is short: then PAGE is unchanged. */
bool compress_page(page *page);

#endif
