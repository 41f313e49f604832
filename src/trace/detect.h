/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a resource that are found on the machine itself: host, process, operating system,
 * container (OpenTelemetry semantic conventions, resource/). Setup only. */
#ifndef SP_TRACE_DETECT_H
#define SP_TRACE_DETECT_H

#include "trace/resource.h"

/* The path of the program's file, found below ROOT if that is not "". NULL when the kernel does not
 * say, or memory is short. */
const char *sp_detect_executable(sp_resource *resource, const char *root);

/* Offer (sp_resource_offer) what is detected, what matters most first:
 * process.{pid,executable.name,executable.path,command,owner,creation.time}, host.{name,arch,id},
 * container.id, os.{type,name,version}. The command is the zeroth argument alone: others may be
 * secrets. In a container there is no host.id, for /etc/machine-id is the image's there. Files are
 * looked for below ROOT, "" but in tests. */
void sp_detect(sp_resource *resource, const char *root);

/* When a process began, ISO 8601 in UTC to milliseconds. STAT is its /proc/PID/stat; REALTIME_NS
 * since the epoch and BOOT_NS since the boot (which the kernel counts STAT's time from) are now;
 * TICKS_HZ is sysconf(_SC_CLK_TCK). False when STAT cannot be read. */
enum { SP_ISO_TIME_BYTES = 25 };
bool sp_detect_creation_time(char out[SP_ISO_TIME_BYTES], const char *stat, uint64_t realtime_ns,
                             uint64_t boot_ns, uint64_t ticks_hz);

#endif
