/* SPDX-License-Identifier: Apache-2.0 */
#include "routes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <spanprof/spanprof.h>

#include "compress.h"
#include "plants.h"
#include "render.h"
#include "report.h"
#include "store.h"

struct route {
    const char *path;
    const char *span_name;
    const char *parameter;
    int (*answer)(int64_t value, page *out);
};

static int answer_status(store_result result, page *out)
{
    switch (result) {
    case STORE_OK:
        return 200;
    case STORE_NOT_FOUND:
        render_message(out, "There is no such thing.");
        return 404;
    default:
        render_message(out, "The database did not answer.");
        return 500;
    }
}

static int answer_product(int64_t id, page *out)
{
    store_lines lines = {0};
    store_result result = STORE_FAILED;
    SPANPROF_SPAN("query") {
        result = store_product(id, &lines);
    }
    if (result == STORE_OK) {
        SPANPROF_SPAN("render") {
            render_product(out, &lines);
        }
    }
    store_lines_deinit(&lines);
    return answer_status(result, out);
}

static int answer_cart(int64_t user, page *out)
{
    store_lines lines = {0};
    store_result result = STORE_FAILED;
    SPANPROF_SPAN("query") {
        result = store_cart(user, &lines);
    }
    if (result == STORE_OK) {
        SPANPROF_SPAN("render") {
            render_cart(out, "Cart", user, &lines);
        }
    }
    store_lines_deinit(&lines);
    return answer_status(result, out);
}

/* Compress the rendered receipt and store it. */
static store_result keep_checkout(int64_t user, const store_lines *lines, const page *rendered)
{
    page receipt = {0};
    page_printf(&receipt, "%s", rendered->text ? rendered->text : "");
    store_result result = STORE_FAILED;
    SPANPROF_SPAN("compress receipt") {
        if (!receipt.failed && compress_page(&receipt))
            result = STORE_OK;
    }
    if (result == STORE_OK) {
        SPANPROF_SPAN("commit") {
            result = store_checkout(user, lines, receipt.text, receipt.length);
        }
    }
    page_deinit(&receipt);
    return result;
}

static int answer_checkout(int64_t user, page *out)
{
    store_lines lines = {0};
    store_result result = STORE_FAILED;
    SPANPROF_SPAN("query") {
        result = store_cart(user, &lines);
    }
    if (result == STORE_OK) {
        SPANPROF_SPAN("render") {
            render_cart(out, "Receipt", user, &lines);
        }
        result = keep_checkout(user, &lines, out);
    }
    store_lines_deinit(&lines);
    return answer_status(result, out);
}

static int answer_report(int64_t month, page *out)
{
    store_lines orders = {0};
    store_result result = STORE_FAILED;
    SPANPROF_SPAN("query") {
        result = store_orders(month, &orders);
    }
    if (result == STORE_OK) {
        SPANPROF_SPAN("render") {
            report_render(out, month, &orders);
        }
    }
    store_lines_deinit(&orders);
    return answer_status(result, out);
}

static int answer_healthz(int64_t unused, page *out)
{
    (void)unused;
    page_printf(out, "ok\n");
    return 200;
}

static const route routes[] = {
    {"/product", "GET /product", "id", answer_product},
    {"/cart", "GET /cart", "user", answer_cart},
    {"/checkout", "GET /checkout", "user", answer_checkout},
    {"/report", "GET /report", "month", answer_report},
    {"/healthz", "GET /healthz", NULL, answer_healthz},
};

static const route plants[] = {
    {"/visit", "GET /visit", "user", answer_visit},
    {"/rebuild", "GET /rebuild", "rounds", answer_rebuild},
    {"/search", "GET /search", "word", answer_search},
};

static bool has_plants;

void routes_add_plants(void)
{
    has_plants = true;
}

static const route *find_among(const route *all, size_t count, const char *path)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(path, all[i].path) == 0)
            return &all[i];
    return NULL;
}

const route *route_find(const char *path)
{
    const route *found = find_among(routes, sizeof routes / sizeof routes[0], path);
    return found || !has_plants ? found
                                : find_among(plants, sizeof plants / sizeof plants[0], path);
}

const char *route_span_name(const route *route)
{
    return route->span_name;
}

const char *route_parameter(const route *route)
{
    return route->parameter;
}

static bool parse_number(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    *out = value;
    return end != text && *end == 0 && errno == 0;
}

int route_answer(const route *route, const char *value, page *out)
{
    int64_t number = 0;
    if (route->parameter && (!value || !parse_number(value, &number))) {
        page_printf(out, "<p>%s wants ?%s=NUMBER</p>\n", route->path, route->parameter);
        return 400;
    }
    return route->answer(number, out);
}
