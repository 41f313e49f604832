/* SPDX-License-Identifier: Apache-2.0 */
/* A library with a lock of its own, under the name that LOCK_NAME says. */
#ifndef TESTS_LOCKS_NAMES_PLUGIN_H
#define TESTS_LOCKS_NAMES_PLUGIN_H

#include <pthread.h>

typedef pthread_mutex_t *names_plugin_lock(void);

#endif
