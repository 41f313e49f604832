/* SPDX-License-Identifier: Apache-2.0 */
/* The runs of one kind of sampled calls. While calls are sampled, libspanprof-preload.so has the
 * number of the run, else 0.
 *
 * Setup is the start and the stop of the SDK, which its lock serializes.
 *
 * | operation     | setup | any thread |
 * | start, stop   |  yes  |            |
 * | pause, resume |       |    yes     |
 * | load `number` |       |    yes     |
 * Signals: loading `number` is safe.  Fork: the child calls stop. */
#ifndef SP_CALL_SAMPLING_RUN_H
#define SP_CALL_SAMPLING_RUN_H

#include <stdatomic.h>
#include <stdint.h>

/* Zero-initialised. */
typedef struct sp_sampling_run {
    _Atomic uint32_t number;      /* of the current run; 0: nothing is sampled */
    _Atomic uint32_t last;        /* of the run that was started last */
    _Atomic uint32_t started;     /* between start and stop, paused or not */
    _Atomic uint32_t *in_library; /* a copy of `number`; NULL: the library is not loaded */
} sp_sampling_run;

/* The number of the run that the next start begins. The caller stores the data of that run before
 * the start. */
uint32_t sp_sampling_run_next(const sp_sampling_run *run);
/* IN_LIBRARY may be NULL; it has to live as long as the process. */
void sp_sampling_run_start(sp_sampling_run *run, _Atomic uint32_t *in_library);
/* A second call does nothing. */
void sp_sampling_run_stop(sp_sampling_run *run);
void sp_sampling_run_pause(sp_sampling_run *run);
/* Does nothing between stop and start. */
void sp_sampling_run_resume(sp_sampling_run *run);

#endif
