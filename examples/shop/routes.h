/* SPDX-License-Identifier: Apache-2.0 */
/* The shop's answers. This file does not use HTTP, except for its status codes. */
#ifndef SHOP_ROUTES_H
#define SHOP_ROUTES_H

#include "page.h"

typedef struct route route;

/* Also answer the routes with planted faults (plants.h). Call it before the server starts. */
void routes_add_plants(void);
/* The route of PATH, or NULL. */
const route *route_find(const char *path);
/* The name of ROUTE's spans: "GET /product". */
const char *route_span_name(const route *route);
/* The query parameter that ROUTE needs, or NULL. */
const char *route_parameter(const route *route);
/* Write the answer to OUT, and return its HTTP status. VALUE is the text of the query parameter, or
 * NULL when the parameter is missing. */
int route_answer(const route *route, const char *value, page *out);

#endif
