/* SPDX-License-Identifier: Apache-2.0 */
/* SQL functions that a stack can be told by: truth_work(K, US) and truth_nothing(US), busy for US
 * microseconds, which can be cancelled. And functions that hand PostgreSQL's hooks what extensions
 * may hand them: a statement without its text, and one whose place is not in its text. They know
 * nothing of spanprof. */
#include "postgres.h"

#include "executor/executor.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "optimizer/planner.h"
#include "tcop/dest.h"
#include "tcop/tcopprot.h"
#include "utils/snapmgr.h"

#include "truth/truth_work.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(truth_work_sql);
PG_FUNCTION_INFO_V1(truth_nothing_sql);
PG_FUNCTION_INFO_V1(truth_without_text_sql);
PG_FUNCTION_INFO_V1(truth_outside_text_sql);

Datum truth_work_sql(PG_FUNCTION_ARGS)
{
    for (int32 us = PG_GETARG_INT32(1); us > 0; us -= 50) {
        truth_work((unsigned)PG_GETARG_INT32(0), 50000);
        CHECK_FOR_INTERRUPTS();
    }
    PG_RETURN_INT32(1);
}

Datum truth_nothing_sql(PG_FUNCTION_ARGS)
{
    truth_nothing(1000 * (uint64_t)PG_GETARG_INT32(0));
    PG_RETURN_INT32(1);
}

/* SELECT 1, at LOCATION and LENGTH of what is said to be its text. */
static Query *analyze_select(int location, int length)
{
    static const char text[] = "SELECT 1";
    RawStmt *statement = linitial_node(RawStmt, pg_parse_query(text));
    Query *query =
        linitial_node(Query, pg_analyze_and_rewrite_fixedparams(statement, text, NULL, 0, NULL));

    query->stmt_location = location;
    query->stmt_len = length;
    return query;
}

static void run_plan(PlannedStmt *plan, const char *text)
{
    QueryDesc *query = CreateQueryDesc(plan, text, GetActiveSnapshot(), InvalidSnapshot,
                                       None_Receiver, NULL, NULL, 0);

    ExecutorStart(query, 0);
    ExecutorRun(query, ForwardScanDirection, 0, true);
    ExecutorFinish(query);
    ExecutorEnd(query);
    FreeQueryDesc(query);
}

/* pg_plan_query takes NULL, and so does CreateQueryDesc. */
Datum truth_without_text_sql(PG_FUNCTION_ARGS)
{
    run_plan(pg_plan_query(analyze_select(0, 0), NULL, 0, NULL), NULL);
    PG_RETURN_INT32(1);
}

/* What lies behind the text belongs to somebody else. */
Datum truth_outside_text_sql(PG_FUNCTION_ARGS)
{
    static const char text[] = "short\0secret";

    run_plan(pg_plan_query(analyze_select(6, 6), text, 0, NULL), text);
    PG_RETURN_INT32(1);
}
