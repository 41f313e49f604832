/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of what the dynamic loader has mapped, made while its lock is held, so that nothing can be
 * unmapped meanwhile. Under that lock nothing is allocated, because an allocator may call the
 * loader (this has caused deadlocks in other profilers). Threads: one at a time. Signals: not
 * safe. */
#ifndef SP_UNWIND_LOADER_SNAPSHOT_H
#define SP_UNWIND_LOADER_SNAPSHOT_H

#include "unwind/module.h"
#include "unwind/module_image.h"

/* How many libraries were loaded and unloaded since the process began. */
typedef struct sp_loader_counters {
    uint64_t adds;
    uint64_t subs;
} sp_loader_counters;

typedef struct sp_loader_snapshot {
    sp_loader_counters counters;
    sp_module_image *images; /* image_count, in the loader's order */
    size_t image_count;
    uint8_t *bytes;
} sp_loader_snapshot;

/* glibc does not release the loader's lock (dl_load_write_lock) in a forked child: if another
 * thread holds it during a fork, the child hangs at its next dlopen or dl_iterate_phdr. Between
 * these two calls no thread is inside the loader on behalf of the SDK. */
void sp_loader_fork_prepare(void);
void sp_loader_fork_done(void);

/* Takes a few dozen nanoseconds, whatever the number of libraries. */
sp_loader_counters sp_loader_counters_read(void);

/* Copy BYTES at ADDRESS into OUT, if IMAGE's module is still loaded and its file fills that range.
 * Threads: as above. */
bool sp_loader_copy(const sp_module_image *image, uint64_t address, uint64_t bytes, uint8_t *out);

/* Copy what is loaded into *OUT. Modules that are unchanged since KNOWN (may be NULL) are not
 * copied again. A module without build id counts as unchanged only if nothing was unloaded since
 * BEFORE. False, with *OUT empty, when memory is short. */
bool sp_loader_snapshot_take(sp_loader_snapshot *out, const sp_generation *known,
                             sp_loader_counters before);
void sp_loader_snapshot_deinit(sp_loader_snapshot *snapshot);

/* Create the modules that SNAPSHOT describes, of another process. They are never refreshed;
 * sp_modules_destroy destroys them. NULL: memory is short. */
sp_modules *sp_modules_create_from(const sp_loader_snapshot *snapshot);
/* Publish a new generation with the modules that SNAPSHOT describes. False when memory is short:
 * the old one stays. */
bool sp_modules_replace(sp_modules *modules, const sp_loader_snapshot *snapshot);

#endif
