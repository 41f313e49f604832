/* SPDX-License-Identifier: Apache-2.0 */
/* The exporter thread's own table of file descriptors. In the host's, ours would be inherited by
 * programs that it starts (libcurl's wakeup pair is not close-on-exec), and closed by a host that
 * closes whatever it does not know, whose next file then has the number of our socket. The other
 * way round, a copy of the host's descriptors would keep its pipes and connections open: so none is
 * kept, not even 2. What the thread has to say is written by another one (log_relay.c). */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/syscall_sig.h"
#include "export/export_internal.h"

#ifndef SYS_close_range
#define SYS_close_range 436 /* on every architecture */
#endif

enum { UNSHARE = 1 << 1 }; /* CLOSE_RANGE_UNSHARE, which older headers do not have */

/* Defined in a process under ThreadSanitizer, which assumes that a descriptor number means one file
 * in all threads, and would report races. */
extern void __tsan_init(void) __attribute__((weak));

/* No descriptor of ours may be 0, 1 or 2: libraries write to these numbers. */
static void fill_standard(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC); /* 0, because all are closed */
    if (null < 0)
        return;
    dup3(null, STDOUT_FILENO, O_CLOEXEC);
    dup3(null, STDERR_FILENO, O_CLOEXEC);
}

bool sp_descriptors_unshare(void)
{
    if (__tsan_init)
        return false;
    long result = sp_syscall6(SYS_close_range, STDIN_FILENO, (long)~0U, UNSHARE, 0, 0, 0);
    if (result < 0) {
        sp_log_debug("export",
                     "a descriptor table for the exporter's thread: %s: it uses the host's",
                     strerror((int)-result));
        return false;
    }
    fill_standard();
    return true;
}
