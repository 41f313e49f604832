/* SPDX-License-Identifier: Apache-2.0 */
/* Threads in all their ways to come and go, under ticks. */
#include "hazard.h"

#include <asm/prctl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <x86intrin.h>

enum { AT_ONCE = 20 };

/* --- created and gone ------------------------------------------------------------------------- */

static void *live_briefly(void *number)
{
    if ((uintptr_t)number % 3 == 0)
        SPANPROF_SPAN("brief")
            hazard_burn(0.00002);
    return NULL;
}

/* The collector takes down what has ended in its next round; a busy machine may keep it waiting. */
static void wait_until_alone(void)
{
    double end = hazard_now() + HAZARD_PATIENCE_S;
    while (hazard_stats().threads > 1 && hazard_now() < end)
        usleep(5000);
    CHECK_EQUAL(hazard_stats().threads, 1); /* this one */
}

/* Waits for the collector after each 2,500, so that never more slots than those are in use at once,
 * on a busy machine, too. */
enum { THREADS_A_ROUND = 2500 };

static void create_and_join(unsigned count)
{
    for (unsigned done = 0; done < count; done += AT_ONCE) {
        if (done % THREADS_A_ROUND == 0)
            wait_until_alone();
        pthread_t threads[AT_ONCE];
        for (unsigned i = 0; i < AT_ONCE; i++)
            threads[i] = hazard_thread(live_briefly, (void *)(uintptr_t)i);
        for (unsigned i = 0; i < AT_ONCE; i++)
            CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    }
}

/* A slot and its ring are used again, so memory follows the most threads between two rounds of the
 * collector, not their number. A ring that is not given back would show as at least 16 KiB for each
 * third of them. */
static int created_and_gone_leave_nothing(void)
{
    unsigned count = hazard_many(10000, 10000, 1000000);
    hazard_start(100); /* the smallest rings */
    create_and_join(count / 4);
    long before = hazard_resident_kib();
    create_and_join(count - count / 4);
    long growth = hazard_resident_kib() - before;
    wait_until_alone();
    spanprof_stats stats = hazard_stop();
    printf("%u threads, %llu ticks, %ld KiB grown, %llu failed\n", count,
           (unsigned long long)stats.ticks, growth, (unsigned long long)stats.failed_threads);
#if !defined(__SANITIZE_ADDRESS__) /* which keeps what is freed for a while */
    CHECK(growth < 20 * 1024);     /* of 40 MiB in the suite, were each ring lost */
#endif
    CHECK_EQUAL(stats.failed_threads, 0);
    CHECK_EQUAL(stats.failed_attaches, 0);
    return 0;
}

/* --- ways to end ------------------------------------------------------------------------------ */

static pthread_key_t keys[3];

/* Runs after or before the SDK's own destructor, as the keys' numbers have it; attaches again, so
 * that the state comes back. */
static void burn_in_destructor(void *rounds)
{
    SPANPROF_SPAN("destructor")
        spin(0.001);
    uintptr_t left = (uintptr_t)rounds - 1;
    if (left > 0)
        pthread_setspecific(keys[left % 3], (void *)left);
}

static void burn_in_cleanup(void *unused)
{
    (void)unused;
    spin(0.001);
}

/* In this many frames, that the end has to unwind. Returns when nothing ends it. */
__attribute__((noinline)) static void end_deep(unsigned depth, bool by_exit)
{
    if (depth > 0)
        end_deep(depth - 1, by_exit);
    else if (by_exit)
        pthread_exit(NULL);
    else
        sleep(30); /* a cancellation point */
    __asm__ volatile("");
}

static void *end_somehow(void *number)
{
    for (int i = 0; i < 3; i++)
        pthread_setspecific(keys[i], (void *)(uintptr_t)3);
    pthread_cleanup_push(burn_in_cleanup, NULL);
    SPANPROF_SPAN("ending") {
        spin(0.001);
        switch ((uintptr_t)number % 3) {
        case 0:
            end_deep(20, true);
            break;
        case 1:
            end_deep(20, false);
            break;
        }
    }
    pthread_cleanup_pop(1);
    return NULL;
}

static int ending_by_exit_cancel_and_return_under_ticks(void)
{
    pthread_key_create(&keys[0], burn_in_destructor);
    hazard_start(10000);
    SPANPROF_SPAN("registers")
        spin(0.001);
    pthread_key_create(&keys[1], burn_in_destructor);
    pthread_key_create(&keys[2], burn_in_destructor);
    hazard_work work = hazard_work_of(0, 21);
    for (unsigned round = 0; round < hazard_many(8, 40, 1000) || hazard_work_goes_on(&work);
         round++) {
        pthread_t threads[9];
        for (unsigned i = 0; i < 9; i++)
            threads[i] = hazard_thread(end_somehow, (void *)(uintptr_t)i);
        usleep(2000);
        for (unsigned i = 0; i < 9; i++) {
            if (i % 3 == 1)
                pthread_cancel(threads[i]);
            CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
        }
    }
    hazard_stop();
    return 0;
}

static void *flush_for_ever(void *unused)
{
    for (;;) {
        spanprof_flush(SECOND);
        pthread_testcancel();
    }
    return unused;
}

/* A cancelled thread must not take one of our locks with it, wherever it was: in an attach, in a
 * flush. */
static int cancelled_in_a_call_leaves_no_lock(void)
{
#if defined(__SANITIZE_ADDRESS__)
    return hazard_skip("ASan takes a cancelled thread's stack for one in use");
#endif
    hazard_start(1000);
    for (unsigned round = 0; round < hazard_many(50, 50, 2000); round++) {
        pthread_t flusher = hazard_thread(flush_for_ever, NULL);
        pthread_t attacher = hazard_thread(live_briefly, NULL);
        usleep(round * 20 % 400);
        pthread_cancel(attacher);
        usleep(round % 10 * 300);
        pthread_cancel(flusher);
        CHECK_EQUAL(pthread_join(attacher, NULL), 0);
        CHECK_EQUAL(pthread_join(flusher, NULL), 0);
    }
    hazard_stop();
    return 0;
}

/* --- signals blocked -------------------------------------------------------------------------- */

static void *burn_deaf(void *unused)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    SPANPROF_SPAN("deaf")
        hazard_burn(0.3);
    return unused;
}

/* Its tick stays pending and dies with it. Nobody can tell under which span: its time is
 * unattributed, but for what came before the block. */
static int blocked_to_its_end_is_unattributed(void)
{
    hazard_start(1000);
    double before = hazard_process_cpu();
    pthread_join(hazard_thread(burn_deaf, NULL), NULL);
    double cpu = hazard_process_cpu() - before;
    spanprof_stats stats = hazard_stop();
    double told = (double)stats.unattributed_ns / 1e9, weighed = (double)stats.weights / 1000;
    printf("%.3f s CPU, %.3f s unattributed, %.3f s weights\n", cpu, told, weighed);
    /* Of 0.3, less ten periods and what the clocks disagree by; with the start's and the stop's own
     * work on this thread. */
    hazard_within("unattributed", told, 0.27, 0.5, 0.1 + hazard_steal());
    hazard_within("unattributed and weights", told + weighed, 0.27, 0.5, 0.1 + hazard_steal());
    return 0;
}

/* --- clone without TLS ------------------------------------------------------------------------ */

/* What a runtime of its own does: a thread that glibc knows nothing of. Without CLONE_SETTLS its
 * thread pointer is the one of the thread that made it, or, when the runtime clears it, none at
 * all: a handler that touches a thread-local variable dies here. */
typedef struct bare_thread {
    bool clear_thread_pointer;
    long nanoseconds; /* of CPU time, at least */
    atomic_bool may_end;
    _Atomic int tid; /* cleared by the kernel when it ends */
} bare_thread;

/* What libc's calls do, but for errno, which is thread-local. */
static inline __attribute__((always_inline)) long bare_call(long number, long first, long second)
{
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(first), "S"(second)
                     : "rcx", "r11", "memory");
    return result;
}

/* Its CPU time by its own clock, and on until it may end, but not for ever. */
enum { BARE_S = 10 };
__attribute__((noreturn, no_stack_protector, no_sanitize("address", "undefined"))) static int
run_bare(void *argument)
{
    bare_thread *self = argument;
    struct timespec used = {0};
    if (self->clear_thread_pointer)
        bare_call(SYS_arch_prctl, (long)ARCH_SET_FS, 0);
    while ((used.tv_sec == 0 && used.tv_nsec < self->nanoseconds) ||
           (used.tv_sec < BARE_S && !atomic_load(&self->may_end))) {
        for (uint64_t begin = __rdtsc(); __rdtsc() - begin < 100000;)
            ;
        bare_call(SYS_clock_gettime, (long)CLOCK_THREAD_CPUTIME_ID, (long)&used);
    }
    for (;;)
        bare_call(SYS_exit, 0, 0);
}

/* This thread sleeps, and would not come to as many in the time that the other has. */
enum { BARE_TICKS = 20 };

/* Descriptors are shared, memory is shared, handlers are shared: a thread in all but glibc's eyes.
 */
static void run_and_wait(bare_thread *self, char *stack, size_t size)
{
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                CLONE_CHILD_CLEARTID;
    atomic_store(&self->tid, 1);
    CHECK(clone(run_bare, stack + size, flags, self, NULL, NULL, &self->tid) > 0);
    double end = hazard_now() + HAZARD_PATIENCE_S;
    while (atomic_load(&self->tid) != 0 && hazard_now() < end) {
        usleep(20000);
        if (hazard_flushed_stats().ticks > BARE_TICKS)
            atomic_store(&self->may_end, true);
    }
    CHECK_EQUAL(atomic_load(&self->tid), 0);
}

static int clone_without_tls(bool clear_thread_pointer)
{
    enum { STACK = 256 * 1024 };
    char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stack != MAP_FAILED);
    bare_thread self = {.clear_thread_pointer = clear_thread_pointer,
                        .nanoseconds = (long)hazard_many(100000000, 500000000, 500000000)};
    hazard_start(10000);
    run_and_wait(&self, stack, STACK);
    spanprof_stats stats = hazard_stop();
    munmap(stack, STACK);
    printf("%llu ticks\n", (unsigned long long)stats.ticks);
    CHECK(stats.ticks > BARE_TICKS); /* the scan found it, and it was sampled */
    return 0;
}

static int clone_with_its_makers_thread_pointer(void)
{
    return clone_without_tls(false);
}

static int clone_without_a_thread_pointer(void)
{
    if (HAZARD_ASAN)
        return hazard_skip("ASan's own code in the handler uses thread-local variables");
    return clone_without_tls(true);
}

int main(int argc, char **argv)
{
    static const hazard_case cases[] = {
        {"threads_created_and_gone_leave_nothing", created_and_gone_leave_nothing, false},
        {"threads_ending_by_exit_cancel_and_return_under_ticks",
         ending_by_exit_cancel_and_return_under_ticks, false},
        {"threads_cancelled_in_a_call_leave_no_lock", cancelled_in_a_call_leaves_no_lock, false},
        {"thread_blocked_to_its_end_is_unattributed", blocked_to_its_end_is_unattributed, false},
        {"clone_with_its_makers_thread_pointer_is_sampled", clone_with_its_makers_thread_pointer,
         false},
        {"clone_without_a_thread_pointer_is_sampled", clone_without_a_thread_pointer, false},
    };
    return hazard_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
