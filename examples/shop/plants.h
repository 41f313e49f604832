/* SPDX-License-Identifier: Apache-2.0 */
/* Faults that were planted so that users can find them, in routes that exist only with --plants:
 * memory that a request keeps after its end, and a lock that one request holds while others wait.
 */
#ifndef SHOP_PLANTS_H
#define SHOP_PLANTS_H

#include <stdint.h>

#include "page.h"

/* A leak: each visit of USER is kept forever. */
int answer_visit(int64_t user, page *out);
/* A convoy: while the index is rebuilt, every search waits for it. */
int answer_rebuild(int64_t rounds, page *out);
int answer_search(int64_t word, page *out);

#endif
