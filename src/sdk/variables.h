/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_SDK_VARIABLES_H
#define SP_SDK_VARIABLES_H

/* One warning for each variable of the environment that begins with SPANPROF_ and is none of ours,
 * with the one that was probably meant; SPANPROF_TEST_… is for tests. Of those that begin with
 * OTEL_ only the ones that differ from one of ours in a letter or two. Once a process. Setup. */
void sp_variables_check(void);

#endif
