/* SPDX-License-Identifier: Apache-2.0 */
/* The builder makes profiles with one dictionary from a window, with names, in the form that one
 * destination wants. Collector thread. */
#ifndef SP_PROFILE_BUILDER_H
#define SP_PROFILE_BUILDER_H

#include <spanprof/sdk.h>
#include "profile/profile_data.h"
#include "profile/window.h"
#include "symbol/symbolizer.h"

typedef struct sp_build_options {
    spanprof_link_scope link_scope; /* not DEFAULT */
    bool thread_attributes;         /* thread.id and thread.name on each sample */
    bool wait_attributes;           /* spanprof.wait and its like, on samples that wait */
    bool without_cpu;               /* no CPU profile: ticks are a part of wall time only */
} sp_build_options;

/* Project WINDOW's samples as OPTIONS say, merge those that became equal, and build the tables.
 * Free DATA by sp_profile_data_deinit, whatever is returned. False when memory is short: DATA must
 * not be used then. A window without samples gives profile_count 0. */
bool sp_profile_build(sp_profile_data *data, const sp_window *window, sp_symbolizer *symbolizer,
                      const sp_build_options *options);
void sp_profile_data_deinit(sp_profile_data *data);

#endif
