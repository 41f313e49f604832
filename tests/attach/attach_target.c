/* SPDX-License-Identifier: Apache-2.0 */
/* A process to attach to. It says "ready" when its threads run, and works until its input ends;
 * then it starts one thread more where it was asked to, says "end" and exits with 7.
 *
 *   attach_target spin          two threads, in functions of their own
 *   attach_target spans         likewise, under spans that change all the time: each function works
 *                               for one span only
 *   attach_target late          a second thread begins when a line comes
 *   attach_target wait          one thread waits in a function of its own, one works
 *   attach_target calls         the second thread makes system calls all the time that the kernel
 * does not begin anew by itself; it exits with 8 if one of them ended with EINTR
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#ifdef WITH_SPANS
#include <spanprof/spanprof.h>
#endif

static atomic_bool is_over, was_interrupted;
static volatile uint64_t sum;

__attribute__((noinline)) static void spin_a_while(unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++)
        sum += i;
}

__attribute__((noinline)) static void work_in_main(void)
{
    struct pollfd input = {.fd = 0, .events = POLLIN};
    while (poll(&input, 1, 0) == 0)
        spin_a_while(100000);
    sum++;
}

__attribute__((noinline)) static void *work_in_thread(void *unused)
{
    while (!atomic_load(&is_over))
        spin_a_while(100000);
    sum++;
    return unused;
}

#ifdef WITH_SPANS
/* The first byte of a span's id says which of the two functions it is for. */
static spanprof_scope begin(uint8_t kind)
{
    spanprof_context context = {
        .trace_id = {0xa7, 7}, .span_id = {kind, 1}, .trace_flags = SPANPROF_TRACE_FLAG_SAMPLED};
    return spanprof_context_attach(&context);
}

__attribute__((noinline)) static void work_for_one(void)
{
    spin_a_while(300);
    sum++;
}

__attribute__((noinline)) static void work_for_two(void)
{
    spin_a_while(200);
    sum += 2;
}

static void change_spans(void)
{
    spanprof_scope one = begin(1);
    work_for_one();
    spanprof_scope two = begin(2);
    work_for_two();
    spanprof_scope_detach(&two);
    work_for_one();
    spanprof_scope_detach(&one);
}

static void *change_until_over(void *unused)
{
    while (!atomic_load(&is_over))
        change_spans();
    return unused;
}

static void change_until_input(void)
{
    struct pollfd input = {.fd = 0, .events = POLLIN};
    while (poll(&input, 1, 0) == 0)
        for (int i = 0; i < 100; i++)
            change_spans();
}
#endif

__attribute__((noinline)) static void wait_for_input(void)
{
    struct pollfd input = {.fd = 0, .events = POLLIN};
#ifdef WITH_SPANS
    spanprof_scope scope = begin(3);
#endif
    while (poll(&input, 1, -1) != 1)
        continue;
    sum++;
#ifdef WITH_SPANS
    spanprof_scope_detach(&scope);
#endif
}

__attribute__((noinline)) static void *call_all_the_time(void *unused)
{
    struct epoll_event event;
    int epoll = epoll_create1(0);
#ifdef WITH_SPANS
    spanprof_scope scope = begin(1);
#endif
    while (!atomic_load(&is_over)) {
        if (epoll_wait(epoll, &event, 1, 1) < 0 && errno == EINTR)
            atomic_store(&was_interrupted, true);
        spin_a_while(30000);
    }
#ifdef WITH_SPANS
    spanprof_scope_detach(&scope);
#endif
    close(epoll);
    return unused;
}

/* Works for 10 ms of CPU time, sleeps for 30 ms, and so on. */
__attribute__((noinline)) static void *work_and_sleep(void *unused)
{
    const struct timespec pause = {.tv_nsec = 30000000};
    while (!atomic_load(&is_over)) {
        struct timespec begin, now;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
        do {
            spin_a_while(1000);
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        } while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec <
                 10000000);
        nanosleep(&pause, NULL);
    }
    return unused;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    void *(*in_thread)(void *) = work_in_thread;
    pthread_t thread;
    char line[16];
#ifdef WITH_SPANS
    if (strcmp(what, "spans") == 0)
        in_thread = change_until_over;
#endif
    if (strcmp(what, "calls") == 0)
        in_thread = call_all_the_time;
    if (strcmp(what, "sleep") == 0)
        in_thread = work_and_sleep;
    bool is_late = strcmp(what, "late") == 0;
    if (!is_late && pthread_create(&thread, NULL, in_thread, NULL) != 0)
        return 1;
    puts("ready");
    fflush(stdout);
    if (is_late &&
        (!fgets(line, sizeof line, stdin) || pthread_create(&thread, NULL, in_thread, NULL) != 0))
        return 1;
    if (strcmp(what, "wait") == 0 || strcmp(what, "sleep") == 0)
        wait_for_input();
#ifdef WITH_SPANS
    else if (strcmp(what, "spans") == 0)
        change_until_input();
#endif
    else
        work_in_main();
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
    puts("end");
    return atomic_load(&was_interrupted) ? 8 : 7;
}
