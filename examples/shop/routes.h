/* SPDX-License-Identifier: Apache-2.0 */
/* What the shop answers. Knows nothing of HTTP but its status codes. */
#ifndef SHOP_ROUTES_H
#define SHOP_ROUTES_H

#include "page.h"

typedef struct route route;

/* Also answer the routes with planted faults (plants.h). Before the server starts. */
void routes_add_plants(void);
/* The route of PATH, or NULL. */
const route *route_find(const char *path);
/* What its spans are called: "GET /product". */
const char *route_span_name(const route *route);
/* The query parameter that it wants, or NULL. */
const char *route_parameter(const route *route);
/* Write the answer into OUT and return its HTTP status. VALUE is the parameter's text, NULL when it
 * is missing. */
int route_answer(const route *route, const char *value, page *out);

#endif
