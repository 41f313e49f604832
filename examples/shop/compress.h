/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SHOP_COMPRESS_H
#define SHOP_COMPRESS_H

#include "page.h"

/* Replace what is in PAGE by its gzip form. False, and PAGE is untouched, when memory is short. */
bool compress_page(page *page);

#endif
