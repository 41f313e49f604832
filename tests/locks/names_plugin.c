/* SPDX-License-Identifier: Apache-2.0 */
#include "locks/names_plugin.h"

static pthread_mutex_t LOCK_NAME = PTHREAD_MUTEX_INITIALIZER;

names_plugin_lock names_plugin;

pthread_mutex_t *names_plugin(void)
{
    return &LOCK_NAME;
}
