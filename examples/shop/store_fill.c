/* SPDX-License-Identifier: Apache-2.0 */
/* Fills the database with invented data of one year. The numbers are the same at each start, so
 * that two runs can be compared. */
#include "store_fill.h"

#include <stddef.h>

static const char schema[] =
    "PRAGMA journal_mode = WAL;"
    "PRAGMA synchronous = OFF;" /* invented data: a crash of the machine loses nothing */
    "CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT, category INTEGER, cents INTEGER, "
    "stock INTEGER);"
    "CREATE INDEX products_category ON products (category);"
    "CREATE TABLE carts (user INTEGER, product INTEGER, quantity INTEGER);"
    "CREATE INDEX carts_user ON carts (user);"
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, month INTEGER, customer TEXT, product INTEGER, "
    "quantity INTEGER);"
    "CREATE INDEX orders_month ON orders (month);"
    "CREATE TABLE invoices (id INTEGER PRIMARY KEY, user INTEGER, cents INTEGER, receipt BLOB);";

/* 4,000 products in 8 categories; 500 users with 8 to 39 items in their carts; and orders, from 700
 * in January to 8,400 in December. 2654435761 is the factor of Knuth's multiplicative hash: it
 * scatters numbers without a random generator. */
static const char rows[] =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)"
    " INSERT INTO products SELECT i, 'Lamp & shade, model ' || i, i % 8, 100 + i * 2654435761 % "
    "9900, 1000000 FROM n;"
    "WITH RECURSIVE u(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM u WHERE i < 500),"
    " k(j) AS (SELECT 1 UNION ALL SELECT j + 1 FROM k WHERE j < 39)"
    " INSERT INTO carts SELECT i, 1 + (i * 40 + j) * 2654435761 % 4000, 1 + j % 3 FROM u, k WHERE "
    "j <= 8 + i % 32;"
    "WITH RECURSIVE m(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM m WHERE i < 12),"
    " k(j) AS (SELECT 1 UNION ALL SELECT j + 1 FROM k WHERE j < 8400)"
    " INSERT INTO orders (month, customer, product, quantity)"
    " SELECT i, 'Customer <' || (j * 2654435761 % 500) || '>', 1 + j * 2654435761 % 4000, 1 + j % 5"
    " FROM m, k WHERE j <= i * 700;";

int store_fill(sqlite3 *database)
{
    int result = sqlite3_exec(database, schema, NULL, NULL, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_exec(database, "BEGIN", NULL, NULL, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_exec(database, rows, NULL, NULL, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_exec(database, "COMMIT", NULL, NULL, NULL);
    return result;
}
