/* SPDX-License-Identifier: Apache-2.0 */
/* The shop's data in SQLite: a file in a temporary directory, filled at start, removed at the end.
 * Each thread that asks opens a connection of its own, which is closed when the thread ends. */
#ifndef SHOP_STORE_H
#define SHOP_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum store_result { STORE_OK, STORE_NOT_FOUND, STORE_FAILED } store_result;

/* One line of a list: a product, what lies in a cart, or an order. */
typedef struct store_line {
    int64_t id;
    char name[48];
    char customer[32]; /* of an order, else "" */
    int quantity;
    int cents; /* price of one */
} store_line;

typedef struct store_lines {
    store_line *items;
    size_t count;
} store_lines;

/* Create and fill the database. Once, before any other call; false: why was printed. */
bool store_create(void);
/* Remove it. After all threads that used it have ended. */
void store_destroy(void);

/* Each fills OUT, to be freed by store_lines_deinit, also when the result is not STORE_OK. */
/* The product, and behind it those of the same category. */
store_result store_product(int64_t id, store_lines *out);
store_result store_cart(int64_t user, store_lines *out);
/* The orders of a month of last year, 1 to 12. */
store_result store_orders(int64_t month, store_lines *out);
void store_lines_deinit(store_lines *lines);

/* Take what is in CART out of stock and keep the RECEIPT. */
store_result store_checkout(int64_t user, const store_lines *cart, const void *receipt,
                            size_t receipt_length);

#endif
