/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SHOP_STORE_FILL_H
#define SHOP_STORE_FILL_H

#include <sqlite3.h>

/* Make the tables in an empty DATABASE and fill them. Returns SQLITE_OK or SQLite's error code. */
int store_fill(sqlite3 *database);

#endif
