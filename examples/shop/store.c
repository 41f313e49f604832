/* SPDX-License-Identifier: Apache-2.0 */
#include "store.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store_fill.h"

static char directory[256];
static char path[300];
static pthread_key_t connection_key; /* the thread's connection, a sqlite3 */

static void close_connection(void *connection)
{
    sqlite3_close(connection);
}

static sqlite3 *open_database(void)
{
    sqlite3 *database = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(path, &database, flags, NULL) != SQLITE_OK) {
        fprintf(stderr, "shop: cannot open %s: %s\n", path, sqlite3_errmsg(database));
        sqlite3_close(database);
        return NULL;
    }
    sqlite3_busy_timeout(database, 5000);
    return database;
}

static sqlite3 *connection(void)
{
    sqlite3 *database = pthread_getspecific(connection_key);
    if (!database) {
        database = open_database();
        if (database && pthread_setspecific(connection_key, database) != 0) {
            sqlite3_close(database);
            database = NULL;
        }
        if (database)
            sqlite3_exec(database, "PRAGMA synchronous = OFF", NULL, NULL, NULL);
    }
    return database;
}

static bool make_directory(void)
{
    const char *parent = getenv("TMPDIR");
    int length = snprintf(directory, sizeof directory, "%s/shop-XXXXXX", parent ? parent : "/tmp");
    if (length < 0 || (size_t)length >= sizeof directory || !mkdtemp(directory)) {
        fprintf(stderr, "shop: cannot make a directory like %s: %s\n", directory, strerror(errno));
        return false;
    }
    snprintf(path, sizeof path, "%s/shop.db", directory);
    return true;
}

bool store_create(void)
{
    if (pthread_key_create(&connection_key, close_connection) != 0 || !make_directory())
        return false;
    sqlite3 *database = open_database();
    if (!database)
        return false;
    bool filled = store_fill(database) == SQLITE_OK;
    if (!filled)
        fprintf(stderr, "shop: cannot fill %s: %s\n", path, sqlite3_errmsg(database));
    sqlite3_close(database);
    return filled;
}

void store_destroy(void)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        char name[310];
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        unlink(name);
    }
    rmdir(directory);
}

static void copy_text(char *out, size_t size, sqlite3_stmt *statement, int column)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    snprintf(out, size, "%s", text ? text : "");
}

static bool add_line(store_lines *lines, size_t *capacity, sqlite3_stmt *statement)
{
    if (lines->count == *capacity) {
        *capacity = *capacity ? *capacity * 2 : 64;
        store_line *items = realloc(lines->items, *capacity * sizeof *items);
        if (!items)
            return false;
        lines->items = items;
    }
    store_line *line = &lines->items[lines->count++];
    line->id = sqlite3_column_int64(statement, 0);
    copy_text(line->name, sizeof line->name, statement, 1);
    copy_text(line->customer, sizeof line->customer, statement, 2);
    line->quantity = sqlite3_column_int(statement, 3);
    line->cents = sqlite3_column_int(statement, 4);
    return true;
}

/* Every list is one query with one parameter and the columns of a store_line. */
static store_result select_lines(const char *sql, int64_t parameter, store_lines *out)
{
    *out = (store_lines){0};
    sqlite3 *database = connection();
    sqlite3_stmt *statement = NULL;
    if (!database || sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK)
        return STORE_FAILED;
    sqlite3_bind_int64(statement, 1, parameter);
    size_t capacity = 0;
    int step = sqlite3_step(statement);
    while (step == SQLITE_ROW)
        step = add_line(out, &capacity, statement) ? sqlite3_step(statement) : SQLITE_NOMEM;
    sqlite3_finalize(statement);
    if (step != SQLITE_DONE)
        return STORE_FAILED;
    return out->count ? STORE_OK : STORE_NOT_FOUND;
}

store_result store_product(int64_t id, store_lines *out)
{
    return select_lines("SELECT id, name, '', stock, cents FROM products"
                        " WHERE category = (SELECT category FROM products WHERE id = ?1)"
                        " ORDER BY id != ?1, cents",
                        id, out);
}

store_result store_cart(int64_t user, store_lines *out)
{
    return select_lines("SELECT p.id, p.name, '', c.quantity, p.cents"
                        " FROM carts c JOIN products p ON p.id = c.product"
                        " WHERE c.user = ?1 ORDER BY p.name",
                        user, out);
}

store_result store_orders(int64_t month, store_lines *out)
{
    return select_lines("SELECT o.id, p.name, o.customer, o.quantity, p.cents"
                        " FROM orders o JOIN products p ON p.id = o.product"
                        " WHERE o.month = ?1 ORDER BY o.id",
                        month, out);
}

void store_lines_deinit(store_lines *lines)
{
    free(lines->items);
    *lines = (store_lines){0};
}

static bool take_from_stock(sqlite3 *database, const store_lines *cart)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(database, "UPDATE products SET stock = stock - ?2 WHERE id = ?1", -1,
                           &statement, NULL) != SQLITE_OK)
        return false;
    bool done = true;
    for (size_t i = 0; i < cart->count && done; i++) {
        sqlite3_bind_int64(statement, 1, cart->items[i].id);
        sqlite3_bind_int(statement, 2, cart->items[i].quantity);
        done = sqlite3_step(statement) == SQLITE_DONE;
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    return done;
}

static bool keep_receipt(sqlite3 *database, int64_t user, const void *receipt, size_t length)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(database, "INSERT INTO invoices (user, receipt) VALUES (?1, ?2)", -1,
                           &statement, NULL) != SQLITE_OK)
        return false;
    sqlite3_bind_int64(statement, 1, user);
    sqlite3_bind_blob64(statement, 2, receipt, length, SQLITE_STATIC);
    bool done = sqlite3_step(statement) == SQLITE_DONE;
    sqlite3_finalize(statement);
    return done;
}

store_result store_checkout(int64_t user, const store_lines *cart, const void *receipt,
                            size_t receipt_length)
{
    sqlite3 *database = connection();
    /* IMMEDIATE takes the write lock at the start of the transaction, so the second of two
     * checkouts waits. Without it, a checkout could fail after its first statements. */
    if (!database || sqlite3_exec(database, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
        return STORE_FAILED;
    bool done = take_from_stock(database, cart) &&
                keep_receipt(database, user, receipt, receipt_length) &&
                sqlite3_exec(database, "COMMIT", NULL, NULL, NULL) == SQLITE_OK;
    if (!done)
        sqlite3_exec(database, "ROLLBACK", NULL, NULL, NULL);
    return done ? STORE_OK : STORE_FAILED;
}
