/* SPDX-License-Identifier: Apache-2.0 */
#include "sdk/run_first.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "core/env.h"

/* The first process writes its PID into the file `first` (src/run/process_span.c). */
bool sp_run_has_another_first(void)
{
    char path[PATH_MAX];
    long first = 0;
    const char *folder = sp_env("SPANPROF_RUN");
    if (!folder || snprintf(path, sizeof path, "%s/first", folder) >= (int)sizeof path)
        return false;
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool is_known = fscanf(file, "%ld", &first) == 1;
    fclose(file);
    return is_known && first != (long)getpid();
}
