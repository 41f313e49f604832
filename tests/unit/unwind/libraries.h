/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries that a test loads while it runs. If one is not installed, the test prints a message and
 * is skipped. */
#ifndef TESTS_UNIT_UNWIND_LIBRARIES_H
#define TESTS_UNIT_UNWIND_LIBRARIES_H

#include <dlfcn.h>
#include <stdio.h>

#define SQLITE "libsqlite3.so.0"

static inline void *open_library(const char *name)
{
    void *handle = dlopen(name, RTLD_LAZY);
    if (!handle) {
        printf("SKIP: %s is not installed\n", name);
        skip();
    }
    return handle;
}

static inline void *find_function(const char *library, const char *name)
{
    void *address = dlsym(open_library(library), name);
    assert_non_null(address);
    return address;
}

/* --- a database in memory --------------------------------------------------------------------- */

static void *database;
static int (*database_exec)(void *, const char *, void *, void *, void *);

static inline void run_sql(const char *statements)
{
    database_exec(database, statements, NULL, NULL, NULL);
}

static inline void open_database(const char *statements)
{
    int (*sqlite_open)(const char *, void **);
    *(void **)&sqlite_open = find_function(SQLITE, "sqlite3_open");
    *(void **)&database_exec = find_function(SQLITE, "sqlite3_exec");
    assert_int_equal(sqlite_open(":memory:", &database), 0);
    run_sql(statements);
}

static inline void close_database(void)
{
    int (*sqlite_close)(void *);
    *(void **)&sqlite_close = find_function(SQLITE, "sqlite3_close");
    sqlite_close(database);
}

#endif
