/* SPDX-License-Identifier: Apache-2.0 */
/* The shop's data in SQLite: a file in a temporary directory, which is filled at the start and
 * removed at the end. Each thread that reads data opens its own connection, which is closed when
 * the thread ends. */
#ifndef SHOP_STORE_H
#define SHOP_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum store_result { STORE_OK, STORE_NOT_FOUND, STORE_FAILED } store_result;

/* One line of a list: a product, an item of a cart, or an order. */
typedef struct store_line {
    int64_t id;
    char name[48];
    char customer[32]; /* of an order, else "" */
    int quantity;
    int cents; /* the price of one piece */
} store_line;

typedef struct store_lines {
    store_line *items;
    size_t count;
} store_lines;

/* Create and fill the database. Call it once, before any other function. False: it failed, and in
 * most cases a message says why. */
bool store_create(void);
/* Remove the database. Call it after all threads that used it have ended. */
void store_destroy(void);

/* The next three functions fill OUT. The caller frees it by store_lines_deinit, also when the
 * result is not STORE_OK. */
/* The product, followed by the other products of its category. */
store_result store_product(int64_t id, store_lines *out);
store_result store_cart(int64_t user, store_lines *out);
/* The orders of MONTH (1 to 12). */
store_result store_orders(int64_t month, store_lines *out);
void store_lines_deinit(store_lines *lines);

/* Take the items of CART out of the stock, and store the RECEIPT. */
store_result store_checkout(int64_t user, const store_lines *cart, const void *receipt,
                            size_t receipt_length);

#endif
