/* SPDX-License-Identifier: Apache-2.0 */
/* HERE IS THE BUG that the flamegraph of a slow /report shows. It is a typical bug: no single line
 * looks wrong, and with the ten orders of the developer's own database the report is fast. But each
 * strcat searches the end of the report from its beginning, so the time grows with the square of
 * the number of orders: January takes a millisecond, December some hundred. The other pages use
 * page_printf, which keeps the length of the text. `shop --repaired` makes reports without the
 * bug. */
#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A cell has room for the longest text of a store_line, with each character escaped. */
enum { COLUMNS = 5, CELL_BYTES = 320, ROW_BYTES = COLUMNS * (CELL_BYTES + 10) + 16 };

typedef char cells[COLUMNS][CELL_BYTES];

static bool is_repaired;

void report_repair(void)
{
    is_repaired = true;
}

static void append_row_to_report(char *report, cells row)
{
    strcat(report, "<tr>");
    for (int i = 0; i < COLUMNS; i++) {
        strcat(report, "<td>");
        strcat(report, row[i]);
        strcat(report, "</td>");
    }
    strcat(report, "</tr>\n");
}

/* Append ROW. Returns where the next row is appended: with the bug always the start of the report.
 */
static char *append_row(char *report, cells row)
{
    if (is_repaired) /* then strcat searches only this row */
        *report = 0;
    append_row_to_report(report, row);
    return is_repaired ? report + strlen(report) : report;
}

static void escape_cell(char *cell, const char *text)
{
    page escaped = {0};
    page_escape(&escaped, text);
    snprintf(cell, CELL_BYTES, "%s", escaped.text ? escaped.text : "");
    page_deinit(&escaped);
}

static char *append_order(char *report, const store_line *order)
{
    cells row;
    snprintf(row[0], CELL_BYTES, "%" PRId64, order->id);
    escape_cell(row[1], order->customer);
    escape_cell(row[2], order->name);
    snprintf(row[3], CELL_BYTES, "%d", order->quantity);
    snprintf(row[4], CELL_BYTES, "%d.%02d", order->cents / 100, order->cents % 100);
    return append_row(report, row);
}

static void append_total(char *report, const store_lines *orders)
{
    int64_t pieces = 0, cents = 0;
    for (size_t i = 0; i < orders->count; i++) {
        pieces += orders->items[i].quantity;
        cents += (int64_t)orders->items[i].quantity * orders->items[i].cents;
    }
    cells row = {"Total"};
    snprintf(row[3], CELL_BYTES, "%" PRId64, pieces);
    snprintf(row[4], CELL_BYTES, "%" PRId64 ".%02" PRId64, cents / 100, cents % 100);
    append_row(report, row);
}

void report_render(page *out, int64_t month, const store_lines *orders)
{
    cells titles = {"Order", "Customer", "Product", "Pieces", "Price"};
    char *report = malloc((orders->count + 2) * ROW_BYTES + 1);
    if (!report) {
        out->failed = true;
        return;
    }
    report[0] = 0;
    char *end = append_row(report, titles);
    for (size_t i = 0; i < orders->count; i++)
        end = append_order(end, &orders->items[i]);
    append_total(end, orders);
    page_printf(out, "<h1>Orders of month %" PRId64 "</h1>\n<table>\n%s</table>\n", month, report);
    free(report);
}
