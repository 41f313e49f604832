/* SPDX-License-Identifier: Apache-2.0 */
#include "render.h"

#include <inttypes.h>

static void render_line(page *out, const store_line *line)
{
    page_printf(out, "<tr><td><a href=\"/product?id=%" PRId64 "\">", line->id);
    page_escape(out, line->name);
    page_printf(out, "</a></td><td>%d</td><td>%d.%02d</td></tr>\n", line->quantity,
                line->cents / 100, line->cents % 100);
}

static void render_table(page *out, const store_line *lines, size_t count)
{
    page_printf(out, "<table>\n");
    for (size_t i = 0; i < count; i++)
        render_line(out, &lines[i]);
    page_printf(out, "</table>\n");
}

void render_product(page *out, const store_lines *lines)
{
    const store_line *product = &lines->items[0];
    page_printf(out, "<h1>");
    page_escape(out, product->name);
    page_printf(out, "</h1>\n<p>%d.%02d, %d in stock</p>\n<h2>More like this</h2>\n",
                product->cents / 100, product->cents % 100, product->quantity);
    render_table(out, lines->items + 1, lines->count - 1);
}

void render_cart(page *out, const char *title, int64_t user, const store_lines *lines)
{
    int64_t cents = 0;
    for (size_t i = 0; i < lines->count; i++)
        cents += (int64_t)lines->items[i].quantity * lines->items[i].cents;
    page_printf(out, "<h1>%s of user %" PRId64 "</h1>\n", title, user);
    render_table(out, lines->items, lines->count);
    page_printf(out, "<p>Total: %" PRId64 ".%02" PRId64 "</p>\n", cents / 100, cents % 100);
}

void render_message(page *out, const char *message)
{
    page_printf(out, "<p>");
    page_escape(out, message);
    page_printf(out, "</p>\n");
}
