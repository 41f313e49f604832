/* SPDX-License-Identifier: Apache-2.0 */
/* truth_work.h for programs that are not C, and how long they have to run: what the process has
 * used of CPU time does not depend on how busy the machine is. */
#include "truth/truth_work.h"

__attribute__((visibility("default"))) void truth_run(unsigned work, uint64_t ns)
{
    truth_work(work, ns);
}

__attribute__((visibility("default"))) uint64_t truth_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

__attribute__((visibility("default"))) void truth_run_nothing(uint64_t ns)
{
    truth_nothing(ns);
}
