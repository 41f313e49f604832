/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks that are not as a walk would like them: being unwound, jumped out of, switched, or lying
 * elsewhere. */
#include "hazard.h"

#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

unsigned hazard_throw_and_catch(unsigned count);

/* Half a second, in which 125 ticks come at HZ 250. */
static hazard_work work_of_case(void)
{
    return hazard_work_of(hazard_sized(0.1, 0.5), hazard_many(20, 51, 51));
}

static void check_ticks(const spanprof_stats *stats)
{
    printf("%llu ticks, %llu stacks incomplete\n", (unsigned long long)stats->ticks,
           (unsigned long long)stats->stacks_incomplete);
    hazard_within("unknown samples", (double)stats->samples_unknown, 0, (double)stats->ticks / 20,
                  (double)stats->ticks / 20 + 3);
}

/* --- exceptions ------------------------------------------------------------------------------- */

static int exceptions_under_ticks(void)
{
    hazard_start(10000);
    hazard_work work = work_of_case();
    while (hazard_work_goes_on(&work))
        SPANPROF_SPAN("throwing")
            CHECK_EQUAL(hazard_throw_and_catch(100), 2100);
    spanprof_stats stats = hazard_stop();
    check_ticks(&stats);
    return 0;
}

/* --- jumps ------------------------------------------------------------------------------------ */

static jmp_buf target;
static sigjmp_buf handler_target;

/* Not a tail call, so that the frames are there. */
__attribute__((noinline)) static unsigned jump_from(unsigned depth)
{
    unsigned below = depth > 0 ? jump_from(depth - 1) : 0;
    if (depth == 0)
        longjmp(target, 1);
    return below + 1;
}

/* The span's scope is left by the jump, and never detached: the outer one's end takes it along. */
static void jump_out_of_a_span(void)
{
    if (setjmp(target) == 0)
        SPANPROF_SPAN("left by a jump")
            jump_from(20);
}

static int jumps_under_ticks(void)
{
    hazard_start(10000);
    hazard_work work = work_of_case();
    while (hazard_work_goes_on(&work))
        SPANPROF_SPAN("outer")
            for (int i = 0; i < 100; i++)
                jump_out_of_a_span();
    spanprof_stats stats = hazard_stop();
    check_ticks(&stats);
    return 0;
}

static void jump_out_of_handler(int signal)
{
    (void)signal;
    spin(0.0001);
    siglongjmp(handler_target, 1);
}

static void install(int signal, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    CHECK_EQUAL(sigaction(signal, &action, NULL), 0);
}

static int jumps_out_of_handlers_under_ticks(void)
{
    install(SIGUSR1, jump_out_of_handler, 0);
    hazard_start(10000);
    hazard_work work = work_of_case();
    while (hazard_work_goes_on(&work))
        SPANPROF_SPAN("raising")
            if (sigsetjmp(handler_target, 1) == 0)
                raise(SIGUSR1);
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    CHECK_EQUAL(sigismember(&mask, SIGPROF), 0);
    spanprof_stats stats = hazard_stop();
    check_ticks(&stats);
    return 0;
}

/* --- alternate stack -------------------------------------------------------------------------- */

static void *stack_of(size_t size)
{
    void *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stack != MAP_FAILED);
    return stack;
}

static void burn_a_little(int signal)
{
    (void)signal;
    spin(0.001);
}

/* The tick's frame lies on top of the handler's, on the same stack, and the walk has to cross to
 * the other. */
static int handler_on_stack_of(size_t size, uint32_t hz)
{
    stack_t stack = {.ss_sp = stack_of(size), .ss_size = size}, none = {.ss_flags = SS_DISABLE};
    CHECK_EQUAL(sigaltstack(&stack, NULL), 0);
    install(SIGUSR1, burn_a_little, SA_ONSTACK);
    hazard_start(hz);
    hazard_work work = work_of_case();
    while (hazard_work_goes_on(&work))
        SPANPROF_SPAN("raising")
            raise(SIGUSR1);
    spanprof_stats stats = hazard_stop();
    check_ticks(&stats);
    CHECK_EQUAL(stats.dropped_samples_small_stack, 0);
    CHECK_EQUAL(sigaltstack(&none, NULL), 0);
    munmap(stack.ss_sp, size);
    return 0;
}

static int handler_on_an_alternate_stack(void)
{
    return handler_on_stack_of(128 * 1024, 10000);
}

/* Room for two signal frames with all registers, and not for much more. */
static int handler_on_an_alternate_stack_of_16_kib(void)
{
    return handler_on_stack_of(16 * 1024, 5000);
}

/* --- the smallest stack of a thread ----------------------------------------------------------- */

static atomic_bool stopping;

static int thread_of_16_kib(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    if (HAZARD_ASAN)
        return hazard_skip("ASan's own frames do not fit onto 16 KiB");
    CHECK_EQUAL(pthread_attr_init(&attributes), 0);
    CHECK_EQUAL(pthread_attr_setstacksize(&attributes, 16 * 1024), 0);
    hazard_start(5000);
    CHECK_EQUAL(pthread_create(&thread, &attributes, hazard_burn_until, &stopping), 0);
    hazard_work work = work_of_case();
    while (hazard_work_goes_on(&work))
        usleep(1000);
    atomic_store(&stopping, true);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    spanprof_stats stats = hazard_stop();
    check_ticks(&stats);
    CHECK_EQUAL(stats.dropped_samples_small_stack, 0);
    pthread_attr_destroy(&attributes);
    return 0;
}

/* --- fibers ----------------------------------------------------------------------------------- */

enum { FIBERS = 4, FIBER_STACK = 128 * 1024 };

static ucontext_t fibers[FIBERS], back;
static hazard_work fibers_work;

/* Each carries its context along, as a runtime of fibers has to: attached after a switch, detached
 * before the next. */
static void be_a_fiber(int self)
{
    spanprof_span span = spanprof_span_start(NULL, "fiber", NULL);
    while (hazard_work_goes_on(&fibers_work)) {
        spanprof_scope scope = spanprof_span_attach(span);
        spin(0.00005);
        spanprof_scope_detach(&scope);
        swapcontext(&fibers[self], &fibers[(self + 1) % FIBERS]);
    }
    spanprof_span_end(span);
    setcontext(&back);
}

static int fibers_under_ticks(void)
{
    if (HAZARD_ASAN)
        return hazard_skip("ASan does not know which stack is in use after swapcontext");
    hazard_start(10000);
    fibers_work = work_of_case();
    for (int i = 0; i < FIBERS; i++) {
        CHECK_EQUAL(getcontext(&fibers[i]), 0);
        fibers[i].uc_stack = (stack_t){.ss_sp = stack_of(FIBER_STACK), .ss_size = FIBER_STACK};
        fibers[i].uc_link = NULL;
        makecontext(&fibers[i], (void (*)(void))be_a_fiber, 1, i);
    }
    swapcontext(&back, &fibers[0]);
    spanprof_stats stats = hazard_stop();
    check_ticks(&stats);
    hazard_within("linked samples", (double)stats.samples_linked, (double)stats.ticks / 2,
                  (double)stats.ticks, (double)stats.ticks / 4);
    return 0;
}

int main(int argc, char **argv)
{
    static const hazard_case cases[] = {
        {"exceptions_under_ticks_run_every_destructor", exceptions_under_ticks, false},
        {"jumps_out_of_spans_under_ticks", jumps_under_ticks, false},
        {"jumps_out_of_handlers_under_ticks", jumps_out_of_handlers_under_ticks, false},
        {"ticks_in_a_handler_on_an_alternate_stack", handler_on_an_alternate_stack, false},
        {"ticks_in_a_handler_on_an_alternate_stack_of_16_kib",
         handler_on_an_alternate_stack_of_16_kib, false},
        {"ticks_on_a_thread_of_16_kib", thread_of_16_kib, false},
        {"ticks_on_fibers", fibers_under_ticks, false},
    };
    return hazard_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
