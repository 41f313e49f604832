/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_CORE_KERNEL_SETTING_H
#define SP_CORE_KERNEL_SETTING_H

/* The number in /proc/sys/NAME, or OTHERWISE when it cannot be read. errno is kept.
 * Threads: any.  Signals: not safe. */
long sp_kernel_setting(const char *name, long otherwise);

#endif
