/* SPDX-License-Identifier: Apache-2.0 */
/* The monthly report: all orders of a month in one table. */
#ifndef SHOP_REPORT_H
#define SHOP_REPORT_H

#include "page.h"
#include "store.h"

/* Make all reports without the bug. Call it before the first report. */
void report_repair(void);
void report_render(page *out, int64_t month, const store_lines *orders);

#endif
