/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a resource that are found on the machine itself: host, process, operating system,
 * container (OpenTelemetry semantic conventions, resource/). Setup only. */
#ifndef SP_TRACE_DETECT_H
#define SP_TRACE_DETECT_H

#include "trace/resource.h"

/* The path of the program's file, found below ROOT if that is not "". NULL when the kernel does not
 * say, or memory is short. */
const char *sp_detect_executable(sp_resource *resource, const char *root);

/* Offer (sp_resource_offer) the detected attributes, the most important first, because their number
 * is limited: host.{name,arch}, container.id,
 * process.{pid,executable.path,command,owner,creation.time}, host.id, os.{type,name,version}. The
 * command is argument 0 only, because other arguments may contain secrets. In a container host.id
 * is not offered, because /etc/machine-id belongs to the image. Files are read below ROOT, which is
 * "" except in tests. */
void sp_detect(sp_resource *resource, const char *root);

/* Write the time when a process began to OUT, as ISO 8601 in UTC with milliseconds. STAT is the
 * text of its /proc/PID/stat. The current time is REALTIME_NS since the epoch, and BOOT_NS since
 * the boot, from which STAT counts. TICKS_HZ is sysconf(_SC_CLK_TCK). False when STAT cannot be
 * parsed, or the times contradict each other. */
enum { SP_ISO_TIME_BYTES = 25 };
bool sp_detect_creation_time(char out[SP_ISO_TIME_BYTES], const char *stat, uint64_t realtime_ns,
                             uint64_t boot_ns, uint64_t ticks_hz);

#endif
