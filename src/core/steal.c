/* SPDX-License-Identifier: Apache-2.0 */
#include "core/steal.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

/* The weight of a window falls by this factor with each later window: the sums hold about eight
 * windows. */
#define KEPT 0.875

typedef unsigned long long ticks;

/* "cpu  user nice system idle iowait irq softirq steal …": the sum of all cores since the machine
 * started. */
static bool read_sums(const char *stat, uint64_t *busy, uint64_t *stolen)
{
    ticks user, nice, system, idle, iowait, irq, softirq, steal;
    if (sscanf(stat, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle,
               &iowait, &irq, &softirq, &steal) != 8)
        return false;
    *busy = user + nice + system + irq + softirq;
    *stolen = steal;
    return true;
}

/* Both only grow, except in kernels whose steal time sometimes decreases. */
static void add_machine(sp_steal *steal, uint64_t busy, uint64_t stolen)
{
    bool is_first = steal->last_busy == 0;
    if (!is_first && busy >= steal->last_busy && stolen >= steal->last_stolen) {
        steal->busy += (double)(busy - steal->last_busy);
        steal->stolen += (double)(stolen - steal->last_stolen);
    }
    steal->last_busy = busy;
    steal->last_stolen = stolen;
}

double sp_steal_share_of(sp_steal *steal, const char *stat, uint64_t on_core_ns, uint64_t ran_ns)
{
    uint64_t busy, stolen;
    if (!read_sums(stat, &busy, &stolen))
        return 0;
    steal->on_core = steal->on_core * KEPT + (double)on_core_ns;
    steal->ran = steal->ran * KEPT + (double)ran_ns;
    steal->busy *= KEPT;
    steal->stolen *= KEPT;
    add_machine(steal, busy, stolen);
    double bound = steal->busy > 0 ? steal->stolen / steal->busy : 0;
    double share = steal->ran > 0 ? steal->on_core / steal->ran - 1 : 0;
    return share < 0 ? 0 : share > bound ? bound : share;
}

/* Reads the first line; an empty text when it cannot be read. */
static void read_stat(char *text, size_t size)
{
    int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = 0;
}

double sp_steal_share(sp_steal *steal, uint64_t on_core_ns, uint64_t ran_ns)
{
    char text[256];
    read_stat(text, sizeof text);
    return sp_steal_share_of(steal, text, on_core_ns, ran_ns);
}

void sp_steal_begin(sp_steal *steal)
{
    sp_steal_share(steal, 0, 0);
}
