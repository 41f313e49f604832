/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates and locks a little under the SDK, and ends well. */
#include <pthread.h>
#include <stdlib.h>

#include <spanprof/spanprof.h>

/* Its address is taken, as a program with a table of functions does. */
static void *(*volatile allocate)(size_t) = malloc;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

int main(void)
{
    if (spanprof_start(NULL, NULL) != SPANPROF_OK)
        return 1;
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&mutex);
        void *block = allocate(10000);
        __asm__ volatile("" : : "r"(block) : "memory");
        free(block);
        pthread_mutex_unlock(&mutex);
    }
    return spanprof_stop(UINT64_MAX) == SPANPROF_OK ? 0 : 1;
}
