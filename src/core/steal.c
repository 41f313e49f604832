/* SPDX-License-Identifier: Apache-2.0 */
#include "core/steal.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_BYTES = 64 * 1024 };

typedef unsigned long long ticks;

/* LINE is "cpu7 user nice system idle iowait irq softirq steal …": the number of the core, or -1. */
static int read_core(const char *line, sp_steal_core *out)
{
    int number;
    ticks user, nice, system, idle, iowait, irq, softirq, stolen;
    if (line[3] < '0' || line[3] > '9') /* "cpu  …" is the sum of all */
        return -1;
    if (sscanf(line, "cpu%d %llu %llu %llu %llu %llu %llu %llu %llu", &number, &user, &nice,
               &system, &idle, &iowait, &irq, &softirq, &stolen) != 9)
        return -1;
    *out = (sp_steal_core){
        .busy = user + nice + system + irq + softirq, .idle = idle + iowait, .stolen = stolen};
    return number >= 0 && number < SP_STEAL_CORES ? number : -1;
}

/* A core that woke has been idle, and the host may have let it wait before any thread of ours could run on it: that time is no running
 * thread's. How much of it was is not told. Taken is the part of the time that the core was not idle. */
static void add_core(sp_steal *steal, int number, const sp_steal_core *now)
{
    sp_steal_core before = steal->cores[number];
    steal->cores[number] = *now;
    bool is_first = before.busy + before.idle + before.stolen == 0;
    if (is_first || now->busy < before.busy || now->idle < before.idle ||
        now->stolen < before.stolen)
        return;
    double busy = (double)(now->busy - before.busy), idle = (double)(now->idle - before.idle);
    double stolen = (double)(now->stolen - before.stolen);
    steal->busy += busy;
    if (stolen > 0)
        steal->stolen += stolen * (busy + stolen) / (busy + stolen + idle);
}

void sp_steal_look_at(sp_steal *steal, const char *text)
{
    for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
        sp_steal_core now;
        if (strncmp(text, "cpu", 3) != 0)
            break; /* the cores come first */
        int number = read_core(text, &now);
        if (number >= 0)
            add_core(steal, number, &now);
    }
}

void sp_steal_look(sp_steal *steal)
{
    static char text[TEXT_BYTES];
    int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    text[length > 0 ? length : 0] = 0;
    sp_steal_look_at(steal, text);
}

double sp_steal_take(sp_steal *steal)
{
    double share = steal->busy > 0 ? steal->stolen / steal->busy : 0;
    steal->busy = steal->stolen = 0;
    return share;
}
