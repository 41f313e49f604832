/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that need a process with one thread. The recording and all our threads end before the call,
 * and a new recording begins after it.
 *
 * - Entering a user namespace (unshare, setns), with which sandboxes and rootless containers begin:
 *   the kernel allows it to a process with one thread only. The call is tried first; the recording
 *   ends only when the call fails for that reason.
 * - capset changes the calling thread only. A later change of user would succeed in that thread and
 *   fail in ours, and the C library ends a process where that happens. Threads that start after the
 *   call have its capabilities. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <time.h>

#include "run/keeper.h"
#include "run/one_thread.h"

#define EXPORTED __attribute__((visibility("default")))

static struct {
    int (*unshare)(int);
    int (*setns)(int, int);
    int (*capset)(cap_user_header_t, const cap_user_data_t);
} next;

/* Before main, and in another library's constructor when that comes first. */
static void prepare(void)
{
    if (next.capset)
        return;
    *(void **)&next.unshare = dlsym(RTLD_NEXT, "unshare");
    *(void **)&next.setns = dlsym(RTLD_NEXT, "setns");
    *(void **)&next.capset = dlsym(RTLD_NEXT, "capset"); /* the last: then all are there */
}

void sp_run_prepare_one_thread(void)
{
    prepare();
}

enum { NEED_ONE_THREAD = CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM };

enum { TRIES = 100 }; /* of a millisecond each */

/* One link for each thread, and two that every folder has. */
static bool has_one_thread(void)
{
    struct stat tasks;
    return stat("/proc/self/task", &tasks) != 0 || tasks.st_nlink <= 3;
}

/* End all threads of ours. The kernel counts a thread for a moment after it was joined. */
static bool leave(void)
{
    static const struct timespec millisecond = {.tv_nsec = 1000 * 1000};
    if (!sp_keeper_leave())
        return false;
    for (int i = 0; i < TRIES && !has_one_thread(); i++)
        nanosleep(&millisecond, NULL);
    return true;
}

EXPORTED int unshare(int flags)
{
    prepare();
    int result = next.unshare(flags);
    if (result == 0 || errno != EINVAL || !(flags & NEED_ONE_THREAD) || !leave())
        return result;
    result = next.unshare(flags);
    sp_keeper_return();
    return result;
}

/* Which namespace it is may not be known, because TYPE may be 0: so each EINVAL is tried again. */
EXPORTED int setns(int fd, int type)
{
    prepare();
    int result = next.setns(fd, type);
    if (result == 0 || errno != EINVAL || !leave())
        return result;
    result = next.setns(fd, type);
    sp_keeper_return();
    return result;
}

EXPORTED int capset(cap_user_header_t header, const cap_user_data_t data)
{
    prepare();
    bool has_left = leave();
    int result = next.capset(header, data);
    if (has_left)
        sp_keeper_return();
    return result;
}
