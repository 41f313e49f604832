/* SPDX-License-Identifier: Apache-2.0 */
/* A library to be loaded and unloaded under ticks, with a thread-local variable that each thread's
 * first touch has to allocate. */
#include <string.h>
#include <unistd.h>

int hazard_plugin_work(int rounds);
int hazard_plugin_touch(void);
void hazard_plugin_nap(unsigned us);

enum { BIG = 1024 * 1024 };

/* Through __tls_get_addr, as in any library built for dlopen. */
static __attribute__((tls_model("global-dynamic"))) _Thread_local volatile char big[BIG] = {1};

int hazard_plugin_work(int rounds)
{
    volatile unsigned x = 1;
    for (int i = 0; i < rounds; i++)
        x = x * 3 + 1;
    return x != 0;
}

int hazard_plugin_touch(void)
{
    int sum = 0;
    for (int i = 0; i < BIG; i += 4096)
        sum += big[i];
    return sum;
}

void hazard_plugin_nap(unsigned us)
{
    usleep(us);
}
