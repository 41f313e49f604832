/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs test_hazard_*.c share. Each case runs in a process of its own, which the
 * program starts again with the case's name, so that a crash or a hang is that case's failure, and
 * what it leaves behind can be counted. By hand: signal_hazard_process CASE. */
#ifndef TESTS_SIGNAL_HAZARD_H
#define TESTS_SIGNAL_HAZARD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include <spanprof/spanprof.h>
#include "cpu_work.h"

#define SECOND UINT64_C(1000000000)

/* Exit codes of a case beside 0, as in verdict.h; what a role does not mean to return is 1 or a
 * signal. */
enum { HAZARD_FAILED = 1, HAZARD_UNSURE = 75, HAZARD_SKIPPED = 77 };

/* A child that takes longer hangs: many times what it takes beside busy neighbours. */
enum { HAZARD_PATIENCE_S = 200 };

#if defined(__SANITIZE_ADDRESS__)
#define HAZARD_ASAN 1
#else
#define HAZARD_ASAN 0
#endif

typedef struct hazard_case {
    const char *name;
    int (*run)(void); /* what the process ends with: 0, or HAZARD_SKIPPED after saying why;
                         hazard_unsure is apart */
    bool is_role;     /* a program that other cases start, no case */
} hazard_case;

/* To be returned by main: runs all cases, or the one that the command line names. */
int hazard_main(int argc, char **argv, const hazard_case *cases, size_t count);

/* Ends the process when CONDITION does not hold. Allocates nothing: also for forked children. */
#define CHECK(condition)                                                                           \
    ((condition) ? (void)0 : hazard_failed(__FILE__, __LINE__, #condition, 0, 0))
/* The same for two integers, which are printed. */
#define CHECK_EQUAL(a, b)                                                                          \
    hazard_check_equal(__FILE__, __LINE__, #a " == " #b, (long long)(a), (long long)(b))
_Noreturn void hazard_failed(const char *file, int line, const char *what, long long a,
                             long long b);
void hazard_check_equal(const char *file, int line, const char *what, long long a, long long b);
int hazard_skip(const char *reason);

/* A case that measures (tests/verdict.py). What CHECK finds is broken. What this run cannot answer
 * is unsure: the case goes on, and then its process ends with HAZARD_UNSURE. */
__attribute__((format(printf, 1, 2))) void hazard_unsure(const char *format, ...);
/* Fewer than WANTED cannot answer the question. */
void hazard_enough(const char *what, double got, double wanted);
/* VALUE belongs between LOW and HIGH: MARGIN beyond them is unsure, and what is further out is
 * broken. */
void hazard_within(const char *what, double value, double low, double high, double margin);
/* What a forked child of a case ends with: 0 or HAZARD_UNSURE. */
int hazard_verdict(void);
/* Seconds that the hypervisor took away since the start: engines whose ticks follow a clock that
 * goes on count them. */
double hazard_steal(void);

/* Whether the test runs the engine perf. */
bool hazard_is_perf(void);
/* How many times: in the gate, in the full form (SPANPROF_TEST_MEASURE=1), and when
 * SPANPROF_TEST_HAZARD_LONG is set. */
unsigned hazard_many(unsigned gate, unsigned full, unsigned endurance);
/* How much, in the gate and otherwise. */
double hazard_sized(double gate, double full);

/* Start sampling at HZ, exporting nothing. What the process has open is counted before. */
void hazard_start(uint32_t hz);
void hazard_start_with(spanprof_options *options);
/* Stop. The books have to balance, and nothing may be left behind: no timer, no descriptor. */
spanprof_stats hazard_stop(void);
spanprof_stats hazard_stats(void);
/* The SDK's warnings so far that contain TEXT. */
unsigned hazard_warnings(const char *text);
/* The same, once there are LEAST of them or a minute has passed: a thread of the SDK delivers them,
 * and a busy machine lets it wait. */
unsigned hazard_awaited_warnings(const char *text, unsigned least);

/* Spend CPU time on this thread (cpu_work.h); a breakpoint of gdb's is here. */
void hazard_burn(double seconds);
/* Work for SECONDS of the process's CPU time, and on until the run has TICKS in all: how many come
 * in a given time depends on the machine. A run that does not have them after ten seconds of CPU
 * time never will. For a loop around what ticks have to meet:
 *
 *     for (hazard_work work = hazard_work_of(0.5, 50); hazard_work_goes_on(&work);) */
typedef struct hazard_work {
    cpu_work part, patience;
    uint64_t ticks;
} hazard_work;
hazard_work hazard_work_of(double seconds, uint64_t ticks);
bool hazard_work_goes_on(hazard_work *work);
/* The same with nothing but CPU time. */
void hazard_burn_to_ticks(double seconds, uint64_t ticks);
/* Statistics after a flush: ticks are counted once they have been taken from the rings. */
spanprof_stats hazard_flushed_stats(void);
/* Goes on until CONDITION holds: for what comes from other threads or from outside, which come when
 * they get a core. One that does not hold after half a minute of CPU time never will. */
#define HAZARD_WORK_UNTIL(condition)                                                               \
    for (cpu_work patience = cpu_work_of(CLOCK_THREAD_CPUTIME_ID, 30); !(condition);)              \
    CHECK(cpu_work_goes_on(&patience) && #condition)
/* Burns under a span until *STOP, an atomic bool: for pthread_create. */
void *hazard_burn_until(void *stop);
double hazard_process_cpu(void);
double hazard_now(void);
pthread_t hazard_thread(void *(*function)(void *), void *argument);

/* Read without allocating; -1 where /proc does not tell. */
long hazard_descriptors(void);
long hazard_descriptors_of(const char *kind); /* whose file's name in /proc/self/fd contains KIND */
long hazard_timers(void);
long hazard_queued_signals(void); /* of all processes of this user; timers count, too */
long hazard_resident_kib(void);
long hazard_mapped_kib(void);
long hazard_threads(void);

/* Start this program once more as the role NAME. The role may write to HAZARD_READY_FD; the other
 * end is *PIPE, unless that is NULL. */
enum { HAZARD_READY_FD = 3 };
pid_t hazard_role(const char *name, int *pipe);
/* The same for a role that calls hazard_say_ready: waits for that. */
pid_t hazard_ready_role(const char *name);
void hazard_say_ready(void);
/* The wait status of CHILD, which has SECONDS of time to end: a hang is a failure. */
int hazard_wait(pid_t child, unsigned seconds);
/* Wait, and take nothing but exit code 0, or HAZARD_UNSURE, which makes this case unsure. */
void hazard_wait_well(pid_t child, unsigned seconds);
/* The path of this program. */
extern const char *hazard_program;

#endif
