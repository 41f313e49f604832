/* SPDX-License-Identifier: Apache-2.0 */
/* What the collector does in the middle of work that takes long: it drains the rings, because they
 * would become full. */
#ifndef SP_SYMBOL_MEANWHILE_H
#define SP_SYMBOL_MEANWHILE_H

/* Zero-initialised: nothing. CALL must not call the symbolizer. */
typedef struct sp_meanwhile {
    void (*call)(void *user);
    void *user;
} sp_meanwhile;

static inline void sp_meanwhile_do(const sp_meanwhile *meanwhile)
{
    if (meanwhile->call)
        meanwhile->call(meanwhile->user);
}

#endif
