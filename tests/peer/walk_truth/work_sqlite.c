/* SPDX-License-Identifier: Apache-2.0 */
/* Inserts, sorts, joins and deletes in a database in memory, on two threads, for ever. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sqlite3.h>

static const char *const statements[] = {
    "create table if not exists t(a integer primary key, b integer, c text)",
    "create index if not exists t_b on t(b)",
    ("with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000) "
     "insert into t select null, i * 7919 % 501, hex(i) || printf('%08.3f', i / 7.0) from n"),
    "select x.b, count(*), group_concat(y.c) from t x join t y on x.b = y.a group by 1 order by 2",
    "select b, avg(a), upper(c) from t where c like '%3F%' group by b having count(*) > 1",
    "select distinct substr(c, 1, 3) from t order by c desc",
    "update t set c = replace(c, '1', 'one') where b % 3 = 0",
    "select json_extract('{\"a\":[1,2,{\"b\":' || b || '}]}', '$.a[2].b') from t limit 300",
    "select strftime('%Y', a, 'unixepoch'), round(abs(b) / 3.0, 2) from t limit 300",
    "delete from t",
};

static void *query(void *unused)
{
    (void)unused;
    sqlite3 *database;
    if (sqlite3_open(":memory:", &database) != SQLITE_OK)
        abort();
    for (size_t i = 0;; i = (i + 1) % (sizeof statements / sizeof *statements)) {
        if (sqlite3_exec(database, statements[i], NULL, NULL, NULL) != SQLITE_OK) {
            fprintf(stderr, "%s: %s\n", statements[i], sqlite3_errmsg(database));
            abort();
        }
    }
    return NULL;
}

int main(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, query, NULL) != 0)
        abort();
    query(NULL);
}
