/* SPDX-License-Identifier: Apache-2.0 */
/* The modules of another process, read from its map and its memory: the same data as the loader
 * gives of our own. Files are opened only for what memory does not have. Threads: one at a time.
 * Signals: not safe. */
#ifndef SP_ATTACH_IMAGES_H
#define SP_ATTACH_IMAGES_H

#include <sys/types.h>

#include "unwind/loader_snapshot.h"

/* Fill *OUT with the modules that process PID has mapped now; the caller calls
 * sp_loader_snapshot_deinit. Of a module that KNOWN (may be NULL) has with the same range, bias and
 * build id, only headers and notes are read. A module without a build id is read again. False, with
 * *OUT empty, when the map cannot be read or memory is short. */
bool sp_attach_images_take(sp_loader_snapshot *out, pid_t pid, const sp_generation *known);

#endif
