/* SPDX-License-Identifier: Apache-2.0 */
/* What visits cost.
 *
 * First a visit of a thread that is blocked anew: clock, state, wait, a stack of FRAMES frames
 * without frame pointers, context, clock. The threads block at the bottom of different stacks, and
 * each is visited as if for the first time; beside it what the kernel's part costs by itself. Then
 * the sampler as it is, at 20 Hz, with more and more idle threads that have a span: CPU time of its
 * thread and of the collector's, as shares of one core. After the first rounds no clock moves, so
 * nearly all visits are of threads unmoved.
 *
 *   bench_wall [SECONDS [THREADS …]] */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <spanprof/spanprof.h>
#include "bench/deep.h"
#include "bench/figures.h"
#include "wall/visit.h"
#include "wall/wall.h"
#include "context/self.h"

enum {
    BLOCKED = 200,
    FRAMES = 26,
    ROUNDS = 50,
    IDLE_MAX = 20000,
    HZ = 20,
    STACK_BYTES = 64 * 1024
};

typedef struct blocked_thread {
    pthread_t thread;
    sp_thread *state;
    pid_t tid;
    uint32_t stack;
    sp_syscall_file file;
} blocked_thread;

static blocked_thread blocked[BLOCKED];
static pthread_t idle[IDLE_MAX];
static sem_t ready, over;

/* --- threads that wait ------------------------------------------------------------------------ */

static void block(void *unused)
{
    (void)unused;
    sem_post(&ready);
    while (sem_wait(&over) != 0)
        ;
}

static void *block_deep(void *argument)
{
    blocked_thread *me = argument;
    SPANPROF_SPAN("blocked") {
        me->state = sp_self;
        me->tid = me->state->registered.tid;
        deep_call(DEEP_WITHOUT_FRAME_POINTERS, me->stack, FRAMES - 6, block, NULL);
    }
    return NULL;
}

static void *block_idle(void *unused)
{
    SPANPROF_SPAN("idle")
        block(NULL);
    return unused;
}

static void wait_for(uint32_t count)
{
    for (uint32_t n = 0; n < count; n++)
        while (sem_wait(&ready) != 0)
            ;
    usleep(200000); /* they say so before they block */
}

static void release(uint32_t count)
{
    for (uint32_t n = 0; n < count; n++)
        sem_post(&over);
}

/* --- one visit -------------------------------------------------------------------------------- */

static sp_visitor visitor;
static _Atomic(const sp_generation *) hazard;
static double ns[ROUNDS * BLOCKED];
static double counts_per_ns;

static void visit_whole(blocked_thread *thread)
{
    static sp_visit visit;
    if (sp_visit_thread(&visit, thread->state, thread->tid, &thread->file, &visitor) !=
        SP_VISIT_WAITS)
        printf("   a thread did not wait\n");
    const sp_sample_record *sample = sp_visit_sample((const sp_visit_record *)(void *)visit.record);
    if (!visit.is_proven || sample->end != SP_WALK_COMPLETE || sample->count < FRAMES)
        printf("   a visit without its whole stack: %d frames, end %d\n", sample->count,
               sample->end);
}

static void visit_clock(blocked_thread *thread)
{
    uint64_t cpu_ns;
    sp_clock_thread_cpu_ns(thread->tid, &cpu_ns);
}

static void visit_state(blocked_thread *thread)
{
    sp_syscall_line line;
    sp_syscall_file_read(&visitor.files, &thread->file, thread->tid, &line);
}

static void measure(const char *what, void (*visit)(blocked_thread *))
{
    uint32_t count = 0;
    for (uint32_t round = 0; round < ROUNDS; round++)
        for (uint32_t n = 0; n < BLOCKED; n++) {
            uint64_t begin = figures_count();
            visit(&blocked[n]);
            ns[count++] = (double)(figures_count() - begin) / counts_per_ns;
        }
    printf("%-36s %8.0f %8.0f %8.0f\n", what, figures_quantile(ns, count, 0.1),
           figures_quantile(ns, count, 0.5), figures_quantile(ns, count, 0.9));
}

static void measure_visits(void)
{
    sp_modules *modules = sp_modules_create();
    visitor = (sp_visitor){
        .modules = modules, .max_depth = 128, .copy = sp_stack_copy_create(), .hazard = &hazard};
    counts_per_ns = figures_counts_per_ns();
    if (!modules || !visitor.copy || !sp_syscall_files_open(&visitor.files))
        return;
    for (uint32_t n = 0; n < BLOCKED; n++) {
        blocked[n].stack = n;
        pthread_create(&blocked[n].thread, NULL, block_deep, &blocked[n]);
    }
    wait_for(BLOCKED);
    printf("a visit of one of %d threads, %d frames, ns:    10 %%     median    90 %%\n", BLOCKED,
           FRAMES);
    measure("CPU clock (unmoved: this is all)", visit_clock);
    measure("its file's line", visit_state);
    measure("blocked anew", visit_whole);
    release(BLOCKED);
    for (uint32_t n = 0; n < BLOCKED; n++)
        pthread_join(blocked[n].thread, NULL);
    sp_syscall_files_close(&visitor.files);
    sp_stack_copy_destroy(visitor.copy);
    sp_modules_destroy(modules);
}

/* --- the sampler ------------------------------------------------------------------------------ */

static pid_t thread_called(const char *name)
{
    for (uint32_t slot = 0; slot < sp_thread_slots(); slot++) {
        const sp_thread *thread = sp_thread_by_slot(slot);
        char path[64], found[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%d/comm", (int)thread->registered.tid);
        FILE *file =
            sp_load_relaxed(&thread->registered.life) == SP_THREAD_LIVE ? fopen(path, "r") : NULL;
        if (!file)
            continue;
        bool read = fgets(found, sizeof found, file);
        (void)fclose(file);
        if (read && strncmp(found, name, strlen(name)) == 0)
            return thread->registered.tid;
    }
    return 0;
}

static double cpu_share(pid_t tid, uint64_t *before_ns, double elapsed_ns)
{
    uint64_t now_ns = 0;
    sp_clock_thread_cpu_ns(tid, &now_ns);
    double share = 100 * (double)(now_ns - *before_ns) / elapsed_ns;
    *before_ns = now_ns;
    return share;
}

static bool start(void)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    spanprof_error error;
    options.exporter = "none";
    options.profiles = "cpu,wall";
    options.wall_hz = HZ;
    if (spanprof_start(&options, &error) == SPANPROF_OK)
        return true;
    printf("spanprof_start: %s\n", error.message);
    return false;
}

static spanprof_stats stats_now(void)
{
    spanprof_stats stats = {.struct_size = sizeof stats};
    spanprof_stats_get(&stats);
    return stats;
}

static void measure_idle(uint32_t count, uint32_t seconds)
{
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK_BYTES);
    uint32_t made = 0;
    while (made < count && pthread_create(&idle[made], &small, block_idle, NULL) == 0)
        made++;
    pthread_attr_destroy(&small);
    wait_for(made);
    sleep(2); /* the first rounds look at each */
    pid_t wall = thread_called("spanprof-wall"), collector = thread_called("spanprof-collec");
    uint64_t wall_ns = 0, collector_ns = 0, begin_ns = sp_clock_monotonic_ns();
    spanprof_stats before = stats_now();
    cpu_share(wall, &wall_ns, 1);
    cpu_share(collector, &collector_ns, 1);
    sleep(seconds);
    double elapsed_ns = (double)(sp_clock_monotonic_ns() - begin_ns);
    spanprof_stats after = stats_now();
    double visits = (double)(after.visits - before.visits);
    double wall_share = cpu_share(wall, &wall_ns, elapsed_ns);
    printf("%8u %10.0f %9.2f %% %12.2f %% %12.2f %% %12.0f\n", made, visits / elapsed_ns * 1e9,
           100 * (double)(after.visits_unmoved - before.visits_unmoved) / visits, wall_share,
           cpu_share(collector, &collector_ns, elapsed_ns), wall_share / 100 * elapsed_ns / visits);
    (void)fflush(stdout);
    release(made);
    for (uint32_t n = 0; n < made; n++)
        pthread_join(idle[n], NULL);
}

int main(int argc, char **argv)
{
    static const uint32_t usual[] = {1, 10, 100, 1000, 2000, 5000, 10000};
    uint32_t seconds = argc > 1 ? (uint32_t)atoi(argv[1]) : 10;
    sem_init(&ready, 0, 0);
    sem_init(&over, 0, 0);
    measure_visits();
    if (!start())
        return 1;
    printf(
        "\n threads   visits/s    unmoved   wall profiler     collector   ns a visit, all told\n");
    for (int n = 2; n < argc; n++)
        measure_idle((uint32_t)atoi(argv[n]) % (IDLE_MAX + 1), seconds);
    for (size_t n = 0; argc <= 2 && n < SP_ARRAY_LENGTH(usual); n++)
        measure_idle(usual[n], seconds);
    spanprof_stop(5 * SP_NS_PER_S);
    return 0;
}
