/* SPDX-License-Identifier: Apache-2.0 */
/* Threads wait for locks in functions that are named after their spans, and other threads hold
 * these locks meanwhile, each under a span of its own: every wait is certain, and ends only after
 * it was seen. Then threads take one mutex as they come. */
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>

#include <spanprof/spanprof.h>

#include "locks/blocked.h"

enum { WORKS = 8, ROUNDS = 40, THREADS = 4, FREE_ROUNDS = 1000, CONVOY = 5 };

#define NOINLINE __attribute__((noinline))
/* So that a call is not the last thing that a function does. */
#define STAY() __asm__ volatile("" : : : "memory")

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, index_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static mtx_t mtx;
static struct timespec until;

/* --- a pair: one waits for what the other has ------------------------------------------------- */

typedef void lock_work(void);

static void take_mutex(void)
{
    pthread_mutex_lock(&mutex);
}

static void give_mutex(void)
{
    pthread_mutex_unlock(&mutex);
    STAY();
}

static void take_write(void)
{
    pthread_rwlock_wrlock(&rwlock);
}

static void give_rwlock(void)
{
    pthread_rwlock_unlock(&rwlock);
    STAY();
}

static void take_mtx(void)
{
    mtx_lock(&mtx);
}

static void give_mtx(void)
{
    mtx_unlock(&mtx);
    STAY();
}

#define WORK(n, take)                                                                              \
    NOINLINE static void truth_work_##n(void)                                                      \
    {                                                                                              \
        take;                                                                                      \
        STAY();                                                                                    \
    }
WORK(0, pthread_mutex_lock(&mutex))
WORK(1, pthread_mutex_timedlock(&mutex, &until))
WORK(2, pthread_mutex_lock(&mutex))
WORK(3, pthread_rwlock_rdlock(&rwlock))
WORK(4, pthread_rwlock_wrlock(&rwlock))
WORK(5, pthread_rwlock_timedwrlock(&rwlock, &until))
WORK(6, mtx_lock(&mtx))
WORK(none, pthread_mutex_lock(&mutex))

static const struct {
    lock_work *hold, *wait, *give;
} works[WORKS] = {
    {take_mutex, truth_work_0, give_mutex},  {take_mutex, truth_work_1, give_mutex},
    {take_mutex, truth_work_2, give_mutex},  {take_write, truth_work_3, give_rwlock},
    {take_write, truth_work_4, give_rwlock}, {take_write, truth_work_5, give_rwlock},
    {take_mtx, truth_work_6, give_mtx},      {take_mutex, truth_work_none, give_mutex},
};

static _Atomic int waiter_tid;
static sem_t held, finished;

/* The last work waits under no span, and the lock that work 2 waits for is held under none. */
static void *wait_for_each(void *unused)
{
    for (int i = 0; i < ROUNDS * WORKS; i++) {
        char name[32];
        int work = i % WORKS;
        snprintf(name, sizeof name, "work %d", work);
        spanprof_span span = {0};
        spanprof_scope scope = {0};
        if (work < WORKS - 1) {
            span = spanprof_span_start(NULL, name, NULL);
            scope = spanprof_span_attach(span);
        }
        sem_wait(&held);
        waiter_tid = own_tid();
        works[work].wait();
        works[work].give();
        sem_post(&finished);
        if (work < WORKS - 1) {
            spanprof_scope_detach(&scope);
            spanprof_span_end(span);
        }
    }
    return unused;
}

static void hold(int work)
{
    works[work].hold();
    waiter_tid = 0;
    sem_post(&held);
    wait_until_blocked(&waiter_tid);
    works[work].give();
    sem_wait(&finished);
}

static void hold_for_each(void)
{
    for (int i = 0; i < ROUNDS * WORKS; i++) {
        char name[32];
        int work = i % WORKS;
        snprintf(name, sizeof name, "hold %d", work);
        if (work == 2) {
            hold(work);
            continue;
        }
        spanprof_span span = spanprof_span_start(NULL, name, NULL);
        spanprof_scope scope = spanprof_span_attach(span);
        hold(work);
        spanprof_scope_detach(&scope);
        spanprof_span_end(span);
    }
}

/* --- a convoy --------------------------------------------------------------------------------- */

static _Atomic int convoy_tids[CONVOY];

/* When a request asked for the lock, had it, and gave it back: what it took lies between the last
 * two. */
typedef struct turn {
    int64_t asked_ns, got_ns, giving_ns, gave_ns;
} turn;

static void record(spanprof_span span, const turn *turn)
{
    spanprof_span_set_int(span, "asked_ns", turn->asked_ns);
    spanprof_span_set_int(span, "got_ns", turn->got_ns);
    spanprof_span_set_int(span, "giving_ns", turn->giving_ns);
    spanprof_span_set_int(span, "gave_ns", turn->gave_ns);
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

NOINLINE static void look_up(turn *turn)
{
    turn->asked_ns = now_ns();
    pthread_mutex_lock(&index_lock);
    turn->got_ns = turn->giving_ns = now_ns();
    pthread_mutex_unlock(&index_lock);
    turn->gave_ns = now_ns();
}

static void *request(void *argument)
{
    spanprof_span span = spanprof_span_start(NULL, "GET /search", NULL);
    spanprof_scope scope = spanprof_span_attach(span);
    turn turn;
    convoy_tids[(intptr_t)argument] = own_tid();
    look_up(&turn);
    record(span, &turn);
    spanprof_scope_detach(&scope);
    spanprof_span_end(span);
    return NULL;
}

/* One request holds what all others want. */
NOINLINE static void rebuild_index(pthread_t *threads, turn *turn)
{
    turn->asked_ns = now_ns();
    pthread_mutex_lock(&index_lock);
    turn->got_ns = now_ns();
    for (intptr_t i = 0; i < CONVOY; i++)
        pthread_create(&threads[i], NULL, request, (void *)i); // NOLINT
    for (int i = 0; i < CONVOY; i++)
        wait_until_blocked(&convoy_tids[i]);
    turn->giving_ns = now_ns();
    pthread_mutex_unlock(&index_lock);
    turn->gave_ns = now_ns();
}

static void run_convoy(void)
{
    pthread_t threads[CONVOY];
    turn turn;
    spanprof_span span = spanprof_span_start(NULL, "POST /rebuild", NULL);
    spanprof_scope scope = spanprof_span_attach(span);
    rebuild_index(threads, &turn);
    record(span, &turn);
    spanprof_scope_detach(&scope);
    spanprof_span_end(span);
    for (int i = 0; i < CONVOY; i++)
        pthread_join(threads[i], NULL);
}

/* --- no contention ---------------------------------------------------------------------------- */

static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static bool is_ready;
static sem_t work;
static _Atomic int worker_tid;

NOINLINE static void truth_work_condition(void)
{
    pthread_mutex_lock(&mutex);
    while (!is_ready)
        pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
    STAY();
}

NOINLINE static void truth_work_semaphore(void)
{
    sem_wait(&work);
    STAY();
}

static void *work_when_told(void *unused)
{
    SPANPROF_SPAN("work condition") {
        worker_tid = own_tid();
        truth_work_condition();
    }
    SPANPROF_SPAN("work semaphore") {
        worker_tid = own_tid();
        truth_work_semaphore();
    }
    return unused;
}

static void run_worker(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, work_when_told, NULL);
    wait_until_blocked(&worker_tid);
    pthread_mutex_lock(&mutex);
    is_ready = true;
    worker_tid = 0;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
    wait_until_blocked(&worker_tid);
    sem_post(&work);
    pthread_join(thread, NULL);
}

/* --- as they come ----------------------------------------------------------------------------- */

static uint64_t counter;

static void count(void)
{
    for (int i = 0; i < 200; i++) {
        counter++;
        STAY();
    }
}

NOINLINE static void truth_work_free(void)
{
    pthread_mutex_lock(&mutex);
    count();
    sched_yield(); /* so that others come to wait */
    pthread_mutex_unlock(&mutex);
    STAY();
}

/* The mutex is held under spans "work free" only; between them each thread has another span, or
 * none. */
static void *take_as_they_come(void *unused)
{
    for (int i = 0; i < FREE_ROUNDS; i++) {
        SPANPROF_SPAN("outside") {
            SPANPROF_SPAN("work free") {
                truth_work_free();
            }
            count();
        }
    }
    return unused;
}

static void run_free(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, take_as_they_come, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    spanprof_error error;
    pthread_t waiting;
    if (spanprof_start(NULL, &error) != SPANPROF_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 3600;
    mtx_init(&mtx, mtx_plain);
    sem_init(&held, 0, 0);
    sem_init(&finished, 0, 0);
    sem_init(&work, 0, 0);
    pthread_create(&waiting, NULL, wait_for_each, NULL);
    hold_for_each();
    pthread_join(waiting, NULL);
    run_worker();
    run_convoy();
    run_free();
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_flush(UINT64_MAX);
    spanprof_stats_get(&stats);
    printf("calls linked %llu none %llu unknown %llu dropped %llu\n",
           (unsigned long long)stats.calls_linked, (unsigned long long)stats.calls_none,
           (unsigned long long)stats.calls_unknown, (unsigned long long)stats.dropped_calls);
    return spanprof_stop(UINT64_MAX) == SPANPROF_OK ? 0 : 1;
}
