/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the functions that change the user of a process. Servers such as nginx, Apache and
 * php-fpm start as root, fork workers, and each worker then becomes another user. That user cannot
 * create files in the folder of the run. So a forked child that has no recording yet begins it
 * before the change: open files stay open. */
#include <dlfcn.h>
#include <stddef.h>
#include <unistd.h>

#include "run/change_user.h"
#include "run/keeper.h"

#define EXPORTED __attribute__((visibility("default")))

static struct {
    int (*setuid)(uid_t);
    int (*seteuid)(uid_t);
    int (*setreuid)(uid_t, uid_t);
    int (*setresuid)(uid_t, uid_t, uid_t);
} next;

/* Called before main, or by a constructor of another library that uses these functions earlier. */
void sp_run_prepare_change_user(void)
{
    if (next.setresuid)
        return;
    *(void **)&next.setuid = dlsym(RTLD_NEXT, "setuid");
    *(void **)&next.seteuid = dlsym(RTLD_NEXT, "seteuid");
    *(void **)&next.setreuid = dlsym(RTLD_NEXT, "setreuid");
    *(void **)&next.setresuid = dlsym(RTLD_NEXT, "setresuid"); /* the last one: tested above */
}

static void begin_before_the_change(void)
{
    sp_run_prepare_change_user();
    sp_keeper_hurry();
}

EXPORTED int setuid(uid_t user)
{
    begin_before_the_change();
    return next.setuid(user);
}

EXPORTED int seteuid(uid_t effective)
{
    begin_before_the_change();
    return next.seteuid(effective);
}

EXPORTED int setreuid(uid_t real, uid_t effective)
{
    begin_before_the_change();
    return next.setreuid(real, effective);
}

EXPORTED int setresuid(uid_t real, uid_t effective, uid_t saved)
{
    begin_before_the_change();
    return next.setresuid(real, effective, saved);
}
