/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the functions that need a process with one thread. Before such a call the recording and
 * all our threads end, and after the call a new recording begins.
 *
 * - unshare and setns: sandboxes and rootless containers enter a user namespace with them. The
 *   kernel allows this only to a process with one thread. The call is tried first. The recording
 *   ends only if the call fails with EINVAL, which may be for this reason.
 * - capset changes only the calling thread. A later change of user would succeed in that thread and
 *   fail in our threads, and the C library then ends the process. Threads that start after the call
 *   have the new capabilities. */
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

/* Called before main, or by a constructor of another library that uses these functions earlier. */
static void prepare(void)
{
    if (next.capset)
        return;
    *(void **)&next.unshare = dlsym(RTLD_NEXT, "unshare");
    *(void **)&next.setns = dlsym(RTLD_NEXT, "setns");
    *(void **)&next.capset = dlsym(RTLD_NEXT, "capset"); /* the last one: tested above */
}

void sp_run_prepare_one_thread(void)
{
    prepare();
}

enum { NEED_ONE_THREAD = CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM };

enum { TRIES = 100 }; /* with a wait of one millisecond after each */

/* The folder has one link for each thread, and two more, as every folder has. True also when the
 * folder cannot be read. */
static bool has_one_thread(void)
{
    struct stat tasks;
    return stat("/proc/self/task", &tasks) != 0 || tasks.st_nlink <= 3;
}

/* End all our threads, and wait until the kernel has removed them: it counts a thread for a moment
 * after the join. */
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

/* TYPE may be 0, and then the kind of namespace is not known here. So each call that fails with
 * EINVAL is tried again without our threads. */
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
