/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the kernel, as sysctl(8) shows them. Nothing is kept between two calls: the file is
 * read each time.  Threads: any.  Signals: not safe. */
#ifndef SP_CORE_KERNEL_SETTING_H
#define SP_CORE_KERNEL_SETTING_H

/* The number in /proc/sys/NAME, or OTHERWISE when it cannot be read. errno is kept. */
long sp_kernel_setting(const char *name, long otherwise);

#endif
