/* SPDX-License-Identifier: Apache-2.0 */
/* The watchers of switches. All of them share one word, so that an attach or a detach reads one
 * word, however many there are. */
#ifndef SP_CONTEXT_WATCHERS_H
#define SP_CONTEXT_WATCHERS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/atomic.h"

typedef enum sp_watcher {
    SP_WATCH_CPU_TIME = 1,   /* cpu_time.h */
    SP_WATCH_RECORDER = 2,   /* switch_recorder.h */
    SP_WATCH_ATTRIBUTES = 4, /* sample_attributes.h: some context of this process had attributes */
} sp_watcher;

/* A set of sp_watcher; 0 while a switch only has to publish. */
extern __attribute__((visibility("hidden"))) _Atomic uint32_t sp_switch_watchers;

static inline bool sp_switch_is_watched_by(sp_watcher watcher)
{
    return (sp_load_relaxed(&sp_switch_watchers) & (uint32_t)watcher) != 0;
}

/* Any thread. Switches that are under way may still use the old set. */
static inline void sp_switch_watch(sp_watcher watcher, bool on)
{
    if (on)
        atomic_fetch_or_explicit(&sp_switch_watchers, (uint32_t)watcher, memory_order_release);
    else
        atomic_fetch_and_explicit(&sp_switch_watchers, ~(uint32_t)watcher, memory_order_relaxed);
}

#endif
