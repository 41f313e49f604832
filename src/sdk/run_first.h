/* SPDX-License-Identifier: Apache-2.0 */
/* A run of `spanprof run` has many processes with one environment. A resource that only one of them
 * can have belongs to the first process. */
#ifndef SP_SDK_RUN_FIRST_H
#define SP_SDK_RUN_FIRST_H

#include <stdbool.h>

/* Whether this process belongs to a run whose first process is another one. */
bool sp_run_has_another_first(void);

#endif
