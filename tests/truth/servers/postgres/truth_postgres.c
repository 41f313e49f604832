/* SPDX-License-Identifier: Apache-2.0 */
/* SQL functions that a stack can be told by: truth_work(K, US) and truth_nothing(US), busy for US microseconds, which can be cancelled. They
 * know nothing of spanprof. */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"

#include "truth/truth_work.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(truth_work_sql);
PG_FUNCTION_INFO_V1(truth_nothing_sql);

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
