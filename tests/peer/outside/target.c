/* SPDX-License-Identifier: Apache-2.0 */
/* A process to look at: its threads stand still, and a line for each says what a reader has to
 * find. Built in many ways (CMakeLists.txt):
 *
 *   WRITER_SPANPROF or WRITER_FOREIGN   who publishes: this SDK, or the small tracer of tests/truth
 *   LOADS                               the writer is loaded at run time, from the library that the
 * first argument names
 *
 * Prints "TID WORK" or "TID none" for each thread, then "ready", and ends when its input does. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "truth/foreign_tracer.h"

#ifdef WRITER_SPANPROF
#include <spanprof/spanprof.h>
#endif

#ifdef LOADS
static void *library;

static void load(const char *path)
{
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
}
#define CALL(name) (*(__typeof__(name) **)(void *[1]){dlsym(library, #name)})
#else
static void load(const char *path)
{
    (void)path;
}
#define CALL(name) name
#endif

#ifdef WRITER_SPANPROF
static void begin_all(void)
{
    if (CALL(spanprof_start)(NULL, NULL) != SPANPROF_OK)
        exit(1);
}

static void begin(unsigned work)
{
    spanprof_context context = {.trace_id = {0xf0, (uint8_t)work, 1}, .trace_flags = 3};
    uint64_t span = foreign_checksum(context.trace_id);
    memcpy(context.span_id, &span, sizeof span);
    CALL(spanprof_context_attach)(&context);
}

static void begin_and_end(unsigned work)
{
    spanprof_context context = {.trace_id = {0xf0, (uint8_t)work, 1}, .span_id = {1}};
    spanprof_scope scope = CALL(spanprof_context_attach)(&context);
    CALL(spanprof_scope_detach)(&scope);
}
#else
static void begin_all(void)
{
}

static void begin(unsigned work)
{
    CALL(foreign_begin)(work % 2 ? FOREIGN_SWAPS : FOREIGN_FLAGS, work);
}

static void begin_and_end(unsigned work)
{
    CALL(foreign_begin)(work % 2 ? FOREIGN_SWAPS : FOREIGN_FLAGS, work);
    CALL(foreign_end)(work % 2 ? FOREIGN_SWAPS : FOREIGN_FLAGS);
}
#endif

enum { NOTHING = 0, ENDED = 100 };

static pthread_barrier_t loaded, all_stand;

static void say(unsigned work)
{
    int tid = (int)syscall(SYS_gettid);
    if (work % ENDED)
        printf("%d %u\n", tid, work);
    else
        printf("%d none\n", tid);
}

static void stand(unsigned work)
{
    if (work >= ENDED)
        begin_and_end(work % 2 ? 7 : 8);
    else if (work != NOTHING)
        begin(work);
    say(work);
    pthread_barrier_wait(&all_stand);
    for (;;)
        pause();
}

static void *late(void *work)
{
    stand((unsigned)(uintptr_t)work);
    return NULL;
}

/* Begun before anything is loaded. */
static void *early(void *work)
{
    pthread_barrier_wait(&loaded);
    stand((unsigned)(uintptr_t)work);
    return NULL;
}

int main(int argc, char **argv)
{
    static const unsigned works[] = {NOTHING, ENDED, 1, 2, 3, 4}; /* each once early, once late */
    enum { WORKS = sizeof works / sizeof works[0] };
    pthread_t thread;
    pthread_barrier_init(&loaded, NULL, WORKS + 1);
    pthread_barrier_init(&all_stand, NULL, 2 * WORKS + 1);
    for (int i = 0; i < WORKS; i++)
        if (pthread_create(&thread, NULL, early, (void *)(uintptr_t)works[i]) != 0)
            abort();
    load(argc > 1 ? argv[1] : "");
    begin_all();
    pthread_barrier_wait(&loaded);
    for (int i = 0; i < WORKS; i++)
        if (pthread_create(
                &thread, NULL, late,
                (void *)(uintptr_t)(works[i] ? works[i] + 10 * (works[i] < ENDED) : 0)) != 0)
            abort();
    pthread_barrier_wait(&all_stand);
    begin(9);
    say(9);
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    _exit(0);
}
