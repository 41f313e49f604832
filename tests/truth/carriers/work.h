/* SPDX-License-Identifier: Apache-2.0 */
/* In place of examples/include/work.h: the work of each request is a function that the next 63
 * requests do not call. */
#ifndef TRUTH_CARRIERS_WORK_H
#define TRUTH_CARRIERS_WORK_H

#include "truth/truth_work.h"

static inline void work(unsigned request)
{
    truth_work(request, 150000);
}

static inline void tidy_up(void)
{
    truth_nothing(50000);
}

#endif
