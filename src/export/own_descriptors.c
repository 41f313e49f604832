/* SPDX-License-Identifier: Apache-2.0 */
/* A table of file descriptors for the calling thread and the threads that it will start. In the
 * host's table, programs that the host starts would inherit our descriptors (libcurl's wakeup pair
 * is not close-on-exec). And a host that closes all descriptors it did not open would close ours;
 * its next file would get the number of our socket. A copy of the host's table would keep the
 * host's pipes and connections open, so none of its descriptors is kept, not even 2. Another thread
 * writes log messages (log_relay.c). */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/syscall_sig.h"
#include "export/export_internal.h"

#ifndef SYS_close_range
#define SYS_close_range 436 /* on x86-64 and aarch64 */
#endif

enum { UNSHARE = 1 << 1 }; /* CLOSE_RANGE_UNSHARE, which older headers lack */

/* Defined in a process under ThreadSanitizer, which assumes that a descriptor number means one file
 * in all threads, and would report races. */
extern void __tsan_init(void) __attribute__((weak));

/* Our descriptors should not be 0, 1 or 2, because libraries write to these numbers. If /dev/null
 * cannot be opened, they may be. */
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
