/* SPDX-License-Identifier: Apache-2.0 */
/* Ticks without signals, for tests under ThreadSanitizer, which delivers signals late. */
#ifndef SP_SDK_SYNTHETIC_H
#define SP_SDK_SYNTHETIC_H

/* From the next spanprof_start on there are no timers and no handler: sp_engine_tick_here makes
 * ticks. */
void sp_sdk_use_synthetic_ticks(void);

#endif
