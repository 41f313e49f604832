/* SPDX-License-Identifier: Apache-2.0 */
/* A program that uses spanprof itself. */
#include <spanprof/spanprof.h>

int main(void)
{
    spanprof_error error;
    if (spanprof_start(NULL, &error) != SPANPROF_OK)
        return 1;
    SPANPROF_SPAN("own work") {
        spanprof_flush(UINT64_C(10000000000));
    }
    return spanprof_stop(UINT64_C(10000000000)) == SPANPROF_OK ? 0 : 1;
}
