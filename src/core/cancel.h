/* SPDX-License-Identifier: Apache-2.0 */
/* The host may cancel its threads (pthread_cancel), also while one is inside a call of the SDK.
 * Waiting, closing a descriptor and writing a log line are cancellation points: a thread that ended
 * there would leave the SDK's locks locked for ever. Threads: the calling one. Signals: not safe.
 */
#ifndef SP_CORE_CANCEL_H
#define SP_CORE_CANCEL_H

#include <pthread.h>

static inline int sp_cancel_disable(void)
{
    int before = PTHREAD_CANCEL_ENABLE;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void sp_cancel_restore(const int *before)
{
    pthread_setcancelstate(*before, NULL);
}

/* As the first declaration of a function: it is not cancelled until it returns. */
#define SP_UNCANCELLED                                                                             \
    __attribute__((cleanup(sp_cancel_restore), unused)) int sp_cancel_state = sp_cancel_disable()

#endif
