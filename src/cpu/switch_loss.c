/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/switch_loss.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "core/clock.h"

/* An update of the estimate needs this many ticks, because their number is exact to one period
 * only, and this many slices. It moves the estimate by STEP of the way to the new value. */
enum { TICKS_ENOUGH = 30, SLICES_ENOUGH = 30 };
#define CPU_ENOUGH_NS (5 * SP_NS_PER_MS)
#define LOSS_FIRST_NS 1500
#define LOSS_MAX_NS   10000
#define STEP          0.7

/* The number of the thread's time slices. False when the kernel does not report it. */
static bool read_slices(pid_t tid, uint64_t *out)
{
    char path[64], text[96];
    unsigned long long ran, waited, slices;
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", (int)tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    text[length > 0 ? length : 0] = 0;
    if (sscanf(text, "%llu %llu %llu", &ran, &waited, &slices) != 3)
        return false;
    *out = slices;
    return true;
}

static sp_slices since(const sp_slices *now, const sp_slices *before)
{
    return (sp_slices){.cpu_ns = now->cpu_ns - before->cpu_ns,
                       .count = now->count - before->count,
                       .weights = now->weights - before->weights};
}

static void update_estimate(sp_switch_loss *loss, const sp_slices *now, uint64_t period_ns)
{
    sp_slices step = since(now, &loss->learned_at);
    if (step.weights < TICKS_ENOUGH || step.count < SLICES_ENOUGH)
        return;
    double missing_ns = (double)step.cpu_ns - (double)(step.weights * period_ns);
    loss->slice_ns += STEP * missing_ns / (double)step.count;
    if (loss->slice_ns < 0)
        loss->slice_ns = 0;
    if (loss->slice_ns > LOSS_MAX_NS)
        loss->slice_ns = LOSS_MAX_NS;
    loss->learned_at = *now;
}

uint64_t sp_switch_loss_period(sp_thread *thread, uint64_t period_ns)
{
    sp_switch_loss *loss = &sp_cpu_thread_of(thread)->switch_loss;
    sp_slices now = {.weights = sp_load_relaxed(&thread->tick.weights)};
    uint64_t before_ns = sp_load_relaxed(&thread->tick.event_period_ns);
    if (now.weights == loss->seen_at.weights || /* most threads sleep: no system call for them */
        !sp_clock_thread_cpu_ns(thread->registered.tid, &now.cpu_ns) ||
        now.cpu_ns - loss->seen_at.cpu_ns < CPU_ENOUGH_NS ||
        !read_slices(thread->registered.tid, &now.count))
        return before_ns;
    if (loss->seen_at.cpu_ns == 0) { /* the first check: the values before it are not known */
        loss->slice_ns = LOSS_FIRST_NS;
        loss->seen_at = loss->learned_at = now;
        return before_ns;
    }
    update_estimate(loss, &now, period_ns);
    sp_slices step = since(&now, &loss->seen_at);
    loss->seen_at = now;
    double lost = loss->slice_ns * (double)step.count / (double)step.cpu_ns;
    uint64_t period = (uint64_t)((double)period_ns * (lost < 0.25 ? 1 - lost : 0.75));
    uint64_t change_ns = period > before_ns ? period - before_ns : before_ns - period;
    return change_ns > period_ns / 1000 ? period : before_ns;
}
