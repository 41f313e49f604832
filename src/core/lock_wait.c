/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock.h"

static _Thread_local bool waiting;

bool sp_lock_is_waiting(void)
{
    return waiting;
}

void sp_lock_take_slowly(sp_lock *lock)
{
    waiting = true;
    pthread_mutex_lock(&lock->mutex);
    waiting = false;
}

int sp_lock_take_slowly_until(sp_lock *lock, const struct timespec *until)
{
    waiting = true;
    int error = pthread_mutex_timedlock(&lock->mutex, until);
    waiting = false;
    return error;
}

int sp_lock_wait(sp_lock *lock, pthread_cond_t *condition)
{
    waiting = true;
    int error = pthread_cond_wait(condition, &lock->mutex);
    waiting = false;
    return error;
}

int sp_lock_wait_until(sp_lock *lock, pthread_cond_t *condition, const struct timespec *until)
{
    waiting = true;
    int error = pthread_cond_timedwait(condition, &lock->mutex, until);
    waiting = false;
    return error;
}
