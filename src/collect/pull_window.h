/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the part of a pprof that an order of the pull endpoint wants of a window. Collector thread.
 */
#ifndef SP_COLLECT_PULL_WINDOW_H
#define SP_COLLECT_PULL_WINDOW_H

#include "export/pull_box.h"
#include "profile/builder.h"
#include "wire/pprof.h"

/* The windows of one order so far. Zero-initialised. */
typedef struct sp_pull_windows {
    uint64_t number;
    sp_pprof_sequence sequence;
} sp_pull_windows;

/* Encode what ORDER wants of WINDOW, as OPTIONS say, and add it to the order (sp_pull_window_done).
 */
void sp_pull_window_make(sp_pull_windows *windows, const sp_pull_order *order,
                         const sp_window *window, const sp_build_options *options,
                         sp_symbolizer *symbolizer, const sp_resource *resource);

#endif
