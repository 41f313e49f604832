/* SPDX-License-Identifier: Apache-2.0 */
/* spanprof.cpu_time_ns under clocks that the test sets: whose time is whose, to the nanosecond. The
 * program is linked with
 * --wrap for the two functions that read a thread's CPU clock, and for the one that looks through a
 * span's descendants (tests/CMakeLists.txt). */
#include "unit/trace/support.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "context/cpu_accounts.h"
#include "context/self.h"

uint64_t __wrap_sp_clock_own_cpu_ns(void);
bool __wrap_sp_clock_thread_cpu_ns(pid_t tid, uint64_t *out);
sp_cpu_sum __real_sp_cpu_accounts_list(sp_cpu_accounts *accounts, sp_cpu_account *top);
sp_cpu_sum __wrap_sp_cpu_accounts_list(sp_cpu_accounts *accounts, sp_cpu_account *top);
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);

/* The clock of each thread that has worked, by its id: found by others while it waits. */
enum { CLOCKS = 32 };
static struct {
    _Atomic pid_t tid;
    _Atomic uint64_t ns;
} clocks[CLOCKS];
static _Thread_local int own_clock = -1;
static _Atomic int clocks_used, clock_reads;
static bool no_memory;
static _Thread_local void (*after_reading)(
    void);                       /* what happens once this thread has read its own clock */
static uint64_t look_through_ns; /* what it costs to look through a span's descendants */

static void work(uint64_t ns)
{
    if (own_clock < 0) {
        own_clock = atomic_fetch_add(&clocks_used, 1) % CLOCKS;
        atomic_store(&clocks[own_clock].ns, 1000000);
        atomic_store(&clocks[own_clock].tid, gettid());
    }
    atomic_fetch_add(&clocks[own_clock].ns, ns);
}

uint64_t __wrap_sp_clock_own_cpu_ns(void)
{
    work(0);
    atomic_fetch_add(&clock_reads, 1);
    uint64_t now_ns = atomic_load(&clocks[own_clock].ns);
    void (*next)(void) = after_reading;
    after_reading = NULL;
    if (next)
        next();
    return now_ns;
}

bool __wrap_sp_clock_thread_cpu_ns(pid_t tid, uint64_t *out)
{
    atomic_fetch_add(&clock_reads, 1);
    for (int i = 0; i < CLOCKS; i++)
        if (atomic_load(&clocks[i].tid) == tid) {
            *out = atomic_load(&clocks[i].ns);
            return true;
        }
    errno = EINVAL;
    return false;
}

sp_cpu_sum __wrap_sp_cpu_accounts_list(sp_cpu_accounts *accounts, sp_cpu_account *top)
{
    if (look_through_ns)
        work(look_through_ns);
    return __real_sp_cpu_accounts_list(accounts, top);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return no_memory ? NULL : __real_calloc(count, bytes);
}

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return no_memory ? MAP_FAILED : __real_mmap(at, bytes, protection, flags, fd, offset);
}

/* --- a tracer with CPU time, and what its spans say ------------------------------------------- */

static int start_which(sp_cpu_time which)
{
    sp_tracer_config config = {
        .queue_spans = QUEUE, .limits = SP_SPAN_LIMITS_INIT, .record = true, .cpu_time = which};
    return sp_tracer_start(&config);
}

static int start_root(void **state)
{
    (void)state;
    return start_which(SP_CPU_TIME_ROOT);
}

static int start_all(void **state)
{
    (void)state;
    return start_which(SP_CPU_TIME_ALL);
}

#define in_root(test) cmocka_unit_test_setup_teardown(test, start_root, stop_tracer)
#define in_all(test)  cmocka_unit_test_setup_teardown(test, start_all, stop_tracer)

enum { NOTHING = -1 }; /* a span that says nothing of CPU time */

static int64_t cpu_time_of(const sp_span_data *data)
{
    for (uint32_t i = 0; i < data->attribute_count; i++)
        if (strcmp(data->attributes[i].key, "spanprof.cpu_time_ns") == 0) {
            assert_int_equal(data->attributes[i].type, SPANPROF_ATTRIBUTE_INT);
            return data->attributes[i].value.int_value;
        }
    return NOTHING;
}

/* The oldest finished span is NAME and says WANT. */
static void expect(const char *name, int64_t want)
{
    sp_span_data *data = take_one();
    assert_string_equal(data->name, name);
    assert_int_equal(cpu_time_of(data), want);
    sp_span_data_release(data);
}

static uint64_t unattributed(void)
{
    sp_cpu_time_counters c;
    sp_cpu_time_counters_get(&c);
    return c.unattributed_ns;
}

static spanprof_span start(const char *name)
{
    return spanprof_span_start(NULL, name, NULL);
}

static spanprof_span start_under(const char *name, const spanprof_context *parent)
{
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.parent = parent;
    return spanprof_span_start(NULL, name, &options);
}

/* A local root, whatever is active. */
static spanprof_span start_alone(const char *name)
{
    spanprof_context none = {0};
    return start_under(name, &none);
}

static spanprof_span start_child(const char *name, spanprof_span parent)
{
    spanprof_context context = spanprof_span_context(parent);
    return start_under(name, &context);
}

static void work_in(spanprof_span span, uint64_t ns)
{
    spanprof_scope scope = spanprof_span_attach(span);
    work(ns);
    spanprof_scope_detach(&scope);
}

static void work_in_context(const spanprof_context *context, uint64_t ns)
{
    spanprof_scope scope = spanprof_context_attach(context);
    work(ns);
    spanprof_scope_detach(&scope);
}

/* --- one thread ------------------------------------------------------------------------------- */

/* root 1 [ middle 10 [ leaf 100 ] 1000 ] 10000, and 7 around it. */
static void run_nested(void)
{
    work(7);
    spanprof_span root = start("root");
    spanprof_scope of_root = spanprof_span_attach(root);
    work(1);
    spanprof_span middle = start("middle");
    spanprof_scope of_middle = spanprof_span_attach(middle);
    work(10);
    spanprof_span leaf = start("leaf");
    work_in(leaf, 100);
    spanprof_span_end(leaf);
    work(1000);
    spanprof_scope_detach(&of_middle);
    spanprof_span_end(middle);
    work(10000);
    spanprof_scope_detach(&of_root);
    work(7);
    spanprof_span_end(root);
}

static void all_spans_have_their_own_time_and_that_of_descendants(void **state)
{
    (void)state;
    run_nested();
    expect("leaf", 100);
    expect("middle", 1110);
    expect("root", 11111);
    assert_int_equal(unattributed(), 0);
}

static void roots_alone_have_the_time_of_the_request(void **state)
{
    (void)state;
    int before = atomic_load(&clock_reads);
    run_nested();
    assert_int_equal(atomic_load(&clock_reads) - before, 2);
    expect("leaf", NOTHING);
    expect("middle", NOTHING);
    expect("root", 11111);
}

static void without_cpu_time_no_clock_is_read(void **state)
{
    (void)state;
    int before = atomic_load(&clock_reads);
    run_nested();
    assert_int_equal(atomic_load(&clock_reads), before);
    expect("leaf", NOTHING);
    expect("middle", NOTHING);
    expect("root", NOTHING);
}

static void span_never_attached_says_zero(void **state)
{
    (void)state;
    spanprof_span span = start("idle");
    work(5);
    spanprof_span_end(span);
    expect("idle", 0);
}

static void span_attached_again_goes_on_counting(void **state)
{
    (void)state;
    spanprof_span span = start("again");
    for (int i = 0; i < 3; i++) {
        work_in(span, 10);
        work(1000);
    }
    spanprof_span_end(span);
    expect("again", 30);
}

static void span_attached_within_itself_counts_once(void **state)
{
    (void)state;
    spanprof_span span = start("twice");
    spanprof_scope outer = spanprof_span_attach(span), inner = spanprof_span_attach(span);
    work(10);
    spanprof_scope_detach(&inner);
    work(100);
    spanprof_scope_detach(&outer);
    spanprof_span_end(span);
    expect("twice", 110);
}

static void requests_on_one_thread_are_told_apart(void **state)
{
    (void)state;
    spanprof_span first = start_alone("first"), second = start_alone("second");
    spanprof_scope of_first = spanprof_span_attach(first);
    work(1);
    spanprof_scope of_second = spanprof_span_attach(second);
    work(10);
    work_in_context(NULL, 100);
    work(1000);
    spanprof_scope_detach(&of_second);
    work(10000);
    spanprof_scope_detach(&of_first);
    spanprof_span_end(first);
    spanprof_span_end(second);
    expect("first", 10001);
    expect("second", 1010);
    assert_int_equal(unattributed(), 0);
}

static void scope_detached_out_of_order_changes_no_account(void **state)
{
    (void)state;
    spanprof_span outer = start_alone("outer"), inner = start_alone("inner");
    spanprof_scope of_outer = spanprof_span_attach(outer);
    work(1);
    spanprof_scope of_inner = spanprof_span_attach(inner);
    work(10);
    spanprof_scope_detach(&of_outer); /* inner stays active */
    work(100);
    spanprof_scope_detach(&of_inner); /* outer is skipped */
    work(1000);
    spanprof_span_end(outer);
    spanprof_span_end(inner);
    expect("outer", 1);
    expect("inner", 110);
}

static void span_that_ends_attached_has_its_time_up_to_its_end(void **state)
{
    (void)state;
    spanprof_span root = start("root");
    spanprof_scope of_root = spanprof_span_attach(root);
    spanprof_span child = start("child");
    spanprof_scope of_child = spanprof_span_attach(child);
    work(1);
    spanprof_span_end(child);
    work(10); /* still under the child, a descendant of root */
    spanprof_scope_detach(&of_child);
    work(100);
    spanprof_span_end(root);
    work(1000); /* still under root, which has been told */
    spanprof_scope_detach(&of_root);
    work(10000);
    sp_span_data *data = take_one();
    bool all = cpu_time_of(data) != NOTHING;
    assert_int_equal(cpu_time_of(data), all ? 1 : NOTHING);
    sp_span_data_release(data);
    expect("root", 111);
    assert_int_equal(unattributed(), 1000);
}

static void context_of_an_ended_span_counts_for_its_local_root(void **state)
{
    (void)state;
    spanprof_span root = start("root"), child = start_child("child", root);
    spanprof_context carried = spanprof_span_context(child);
    spanprof_span_end(child);
    spanprof_scope scope = spanprof_context_attach(&carried);
    work(10);
    spanprof_span_end(root);
    work(100);
    spanprof_scope_detach(&scope);
    work_in_context(&carried, 1000);
    release_all();
    assert_int_equal(unattributed(), 1100);
}

static void parent_that_ends_first_passes_its_children_on(void **state)
{
    (void)state;
    spanprof_span root = start("root"), parent = start_child("parent", root);
    spanprof_context of_parent = spanprof_span_context(parent);
    spanprof_span child = start_under("child", &of_parent);
    spanprof_scope scope = spanprof_span_attach(child);
    work(1);
    spanprof_span_end(parent); /* the child's time so far is in it */
    work(10);
    spanprof_scope_detach(&scope);
    spanprof_span_end(child);
    spanprof_span late = start_under("late", &of_parent); /* of a parent that does not live */
    work_in(late, 100);
    spanprof_span_end(late);
    spanprof_span_end(root);
    expect("parent", 1);
    expect("child", 11);
    expect("late", 100);
    expect("root", 111);
}

/* What no local root is told of is nobody's in both modes, also where a child says that it was its
 * own. */
static void child_that_outlives_its_root_works_unattributed(void **state)
{
    (void)state;
    spanprof_span root = start("root");
    spanprof_scope of_root = spanprof_span_attach(root);
    work(1);
    spanprof_span child = start("child");
    spanprof_scope of_child = spanprof_span_attach(child);
    work(10);
    spanprof_span_end(root);
    work(100);
    spanprof_span late = start("late");
    work_in(late, 1000);
    spanprof_span_end(late);
    spanprof_span_end(child);
    work(10000);
    spanprof_scope_detach(&of_child);
    work(100000);
    spanprof_scope_detach(&of_root);
    work(1000000);
    expect("root", 11);
    bool all = sp_load_relaxed(&sp_cpu_time_run) % 4 == SP_CPU_TIME_ALL;
    expect("late", all ? 1000 : NOTHING);
    expect("child", all ? 1110 : NOTHING);
    assert_int_equal(unattributed(), 111100);
}

/* It is that of whoever is active then, here the child: the span itself has ended. */
static void work_of_an_end_is_not_that_of_the_span(void **state)
{
    (void)state;
    spanprof_span root = start("root"), parent = start_child("parent", root),
                  child = start_child("child", parent);
    spanprof_scope scope = spanprof_span_attach(child);
    work(1);
    look_through_ns = 10;
    spanprof_span_end(parent);
    look_through_ns = 0;
    work(100);
    spanprof_scope_detach(&scope);
    spanprof_span_end(child);
    spanprof_span_end(root);
    expect("parent", 1);
    expect("child", 111);
    expect("root", 111);
}

/* What has no span of this process, or an unsampled one, behind it costs nothing and counts
 * nowhere. */
static void contexts_without_a_recorded_span_are_not_counted(void **state)
{
    (void)state;
    spanprof_context contexts[2];
    assert_true(spanprof_context_extract(
        &contexts[0], "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", NULL));
    assert_true(spanprof_context_extract(
        &contexts[1], "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", NULL));
    spanprof_span unsampled = start_under("unsampled", &contexts[1]);
    int before = atomic_load(&clock_reads);
    for (int i = 0; i < 2; i++)
        work_in_context(&contexts[i], 10);
    work_in(unsampled, 10);
    spanprof_span_end(unsampled);
    assert_int_equal(atomic_load(&clock_reads), before);
    assert_int_equal(unattributed(), 0);
}

static void span_full_of_attributes_has_its_cpu_time(void **state)
{
    (void)state;
    spanprof_span span = start("full");
    spanprof_scope scope = spanprof_span_attach(span);
    for (int i = 0; i < 2 * ATTRIBUTE_LIMIT; i++) {
        char key[16];
        snprintf(key, sizeof key, "key.%d", i);
        spanprof_span_set_int(span, key, i);
    }
    work(10);
    spanprof_scope_detach(&scope);
    spanprof_span_end(span);
    expect("full", 10);
}

static void span_without_room_for_attributes_has_its_cpu_time(void **state)
{
    (void)state;
    sp_tracer_stop();
    sp_tracer_config config = {.queue_spans = QUEUE,
                               .limits = SP_SPAN_LIMITS_INIT,
                               .record = true,
                               .cpu_time = SP_CPU_TIME_ALL};
    config.limits.attributes = 0;
    assert_int_equal(sp_tracer_start(&config), SPANPROF_OK);
    spanprof_span_end(start("none"));
    sp_span_data *data = take_one();
    assert_int_equal(data->attribute_count, 1);
    assert_string_equal(data->attributes[0].key, "spanprof.cpu_time_ns");
    assert_int_equal(data->dropped_attributes_count, 0);
    sp_span_data_release(data);
}

/* --- many spans ------------------------------------------------------------------------------- */

enum { MANY = 2000 };

/* Accounts come and go in any order: each span keeps its own, and the root has the sum. */
static void many_spans_of_one_request_keep_their_accounts(void **state)
{
    (void)state;
    static spanprof_span spans[MANY];
    static uint64_t spent[MANY];
    spanprof_span root = start("root");
    spanprof_context of_root = spanprof_span_context(root);
    uint64_t sum = 0;
    srandom(20);
    for (int i = 0; i < MANY; i++) {
        spans[i] = start_under("one", &of_root);
        spent[i] = 0;
    }
    for (int i = 0; i < 4 * MANY; i++) {
        int which = (int)(random() % MANY);
        spanprof_scope scope = spanprof_span_attach(spans[which]);
        if (spans[which].slot) {
            work((uint64_t)i);
            spent[which] += (uint64_t)i;
            sum += (uint64_t)i;
        }
        spanprof_scope_detach(&scope);
        if (spans[which].slot && random() % 4 == 0) {
            spanprof_span_end(spans[which]);
            spans[which] = (spanprof_span){0};
            expect("one", (int64_t)spent[which]);
        }
    }
    for (int i = 0; i < MANY; i++)
        if (spans[i].slot) {
            spanprof_span_end(spans[i]);
            expect("one", (int64_t)spent[i]);
        }
    spanprof_span_end(root);
    expect("root", (int64_t)sum);
}

static void deeply_nested_spans_add_up(void **state)
{
    (void)state;
    enum { DEPTH = 500 };
    static spanprof_span spans[DEPTH];
    static spanprof_scope scopes[DEPTH];
    for (int i = 0; i < DEPTH; i++) {
        spans[i] = start("level");
        scopes[i] = spanprof_span_attach(spans[i]);
        work(1);
    }
    for (int i = DEPTH - 1; i >= 0; i--) {
        spanprof_scope_detach(&scopes[i]);
        spanprof_span_end(spans[i]);
        expect("level", DEPTH - i);
    }
}

/* Each end has all the levels below it: so many that anything but one look at each would not come
 * to an end (a look through them all for each of them took 17 s for 2,000, and eight times as long
 * for twice as many). */
static void deeply_nested_spans_end_outermost_first(void **state)
{
    (void)state;
    enum { DEPTH = 5000 };
    static spanprof_span spans[DEPTH];
    spanprof_context above = {0};
    spanprof_scope scope;
    for (int i = 0; i < DEPTH; i++) {
        spans[i] = start_under("level", &above);
        above = spanprof_span_context(spans[i]);
        scope = spanprof_span_attach(spans[i]);
        work(1);
        if (i + 1 < DEPTH)
            spanprof_scope_detach(&scope);
    }
    for (int i = 0; i < DEPTH; i++) {
        spanprof_span_end(spans[i]);
        expect("level", DEPTH); /* 1 for each level from its own on, and 1 for each end before it */
        work(1);
    }
    spanprof_scope_detach(&scope);
    assert_int_equal(unattributed(), DEPTH);
}

/* What a plain count says: all work goes to the active span and to each that it has above it and
 * that lives. */
typedef struct counted_span {
    spanprof_span handle;
    spanprof_context context;
    int parent; /* -1: a local root */
    int root;
    bool lives;
    int64_t worked;
} counted_span;

enum { COUNTED = 600 };
static counted_span counted[COUNTED];

static void start_counted(int number)
{
    counted_span *span = &counted[number];
    int above = number == 0 || random() % 50 == 0 ? -1 : (int)(random() % number);
    *span = (counted_span){.parent = above, .root = above < 0 ? number : counted[above].root};
    span->handle =
        above < 0 ? start_alone("counted") : start_under("counted", &counted[above].context);
    span->context = spanprof_span_context(span->handle);
    span->lives = true;
    if (above >= 0 && !counted[above].lives) /* then it is the root's */
        span->parent = span->root;
}

/* Returns what was not attributed. */
static uint64_t work_counted(int number, uint64_t ns)
{
    work(ns);
    for (int i = number; i >= 0; i = counted[i].parent)
        if (counted[i].lives)
            counted[i].worked += (int64_t)ns;
    return counted[counted[number].root].lives ? 0 : ns;
}

static void end_counted(int number)
{
    spanprof_span_end(counted[number].handle);
    counted[number].lives = false;
    expect("counted", counted[number].worked);
}

static void spans_that_end_in_any_order_say_what_a_plain_count_says(void **state)
{
    (void)state;
    uint64_t of_nobody = 0;
    srandom(7);
    for (int i = 0; i < COUNTED; i++) {
        start_counted(i);
        for (int j = 0; j < 4; j++) {
            int which = (int)(random() % (i + 1));
            if (!counted[which].lives)
                continue;
            spanprof_scope scope = spanprof_span_attach(counted[which].handle);
            of_nobody += work_counted(which, (uint64_t)(i + j));
            int ending = random() % 4 ? which : counted[which].root;
            if (random() % 8 == 0 && counted[ending].lives)
                end_counted(ending);
            of_nobody += work_counted(which, 1000);
            spanprof_scope_detach(&scope);
        }
    }
    for (int i = 0; i < COUNTED; i++)
        if (counted[i].lives)
            end_counted(i);
    assert_true(of_nobody > 0);
    assert_int_equal(unattributed(), of_nobody);
}

static void without_memory_a_span_says_nothing_and_its_root_has_the_time(void **state)
{
    (void)state;
    /* Until a share of the table has to grow. */
    spanprof_span root = start("root");
    spanprof_context of_root = spanprof_span_context(root);
    spanprof_span spans[8];
    no_memory = true;
    int first_without = 0;
    sp_cpu_time_counters c = {0};
    while (c.dropped == 0 && first_without < 8) {
        spans[first_without++] = start_under("child", &of_root);
        sp_cpu_time_counters_get(&c);
    }
    no_memory = false;
    assert_int_equal(c.dropped, 1);
    work_in(spans[first_without - 1], 10);
    for (int i = first_without - 1; i >= 0; i--)
        spanprof_span_end(spans[i]);
    expect("child", NOTHING);
    for (int i = 1; i < first_without; i++)
        expect("child", 0);
    spanprof_span_end(root);
    expect("root", 10);
}

/* What should be active then is not, so what was active before is not charged for it. */
static void attach_without_memory_is_nobodys_time(void **state)
{
    (void)state;
    enum { DEEPEST = 2000 }; /* deeper than any test nests: what has been mapped stays */
    static spanprof_scope scopes[DEEPEST];
    spanprof_span span = start("below");
    int depth = 0;
    no_memory = true;
    while (depth < DEEPEST && (scopes[depth] = spanprof_span_attach(span)).serial != 0)
        depth++;
    no_memory = false;
    assert_in_range(depth, 1, DEEPEST - 1);
    work(1);
    for (int i = depth - 1; i >= 0; i--) {
        spanprof_scope_detach(&scopes[i]);
        work(10);
    }
    spanprof_span_end(span);
    expect("below", 10 * (depth - 1));
}

static void thread_that_ended_without_a_word_is_forgotten(void **state)
{
    (void)state;
    spanprof_span span = start("lost");
    spanprof_scope scope = spanprof_span_attach(span);
    work(1);
    sp_cpu_time_abandon(sp_self_get()); /* as the registry does before it gives the slot away */
    work(10);
    spanprof_span_end(span);
    spanprof_scope_detach(&scope);
    expect("lost", 0);
    assert_int_equal(unattributed(), 0);
}

/* --- several threads -------------------------------------------------------------------------- */

/* A thread that does what it is told, one thing at a time. */
typedef struct helper {
    pthread_t thread;
    pthread_barrier_t barrier;
    void (*task)(void *argument);
    void *argument;
} helper;

static void *serve(void *argument)
{
    helper *self = argument;
    for (;;) {
        pthread_barrier_wait(&self->barrier);
        if (!self->task)
            return NULL;
        self->task(self->argument);
        pthread_barrier_wait(&self->barrier);
    }
}

static void helper_init(helper *self)
{
    pthread_barrier_init(&self->barrier, NULL, 2);
    assert_int_equal(pthread_create(&self->thread, NULL, serve, self), 0);
}

static void helper_run(helper *self, void (*task)(void *), void *argument)
{
    self->task = task;
    self->argument = argument;
    pthread_barrier_wait(&self->barrier);
    pthread_barrier_wait(&self->barrier);
}

static void helper_deinit(helper *self)
{
    self->task = NULL;
    pthread_barrier_wait(&self->barrier);
    pthread_join(self->thread, NULL);
    pthread_barrier_destroy(&self->barrier);
}

/* A helper that works under one span, after it has attached it and before it detaches it. */
typedef struct worker {
    helper thread;
    spanprof_context context;
    spanprof_scope scope;
    uint64_t work_ns;
} worker;

static void worker_init(worker *self, spanprof_span span)
{
    self->context = spanprof_span_context(span);
    helper_init(&self->thread);
}

static void attach_and_work(void *argument)
{
    worker *self = argument;
    self->scope = spanprof_context_attach(&self->context);
    work(self->work_ns);
}

static void worker_attach(worker *self, uint64_t ns)
{
    self->work_ns = ns;
    helper_run(&self->thread, attach_and_work, self);
}

static void work_and_detach(void *argument)
{
    worker *self = argument;
    work(self->work_ns);
    spanprof_scope_detach(&self->scope);
}

static void worker_detach(worker *self, uint64_t ns)
{
    self->work_ns = ns;
    helper_run(&self->thread, work_and_detach, self);
}

static void span_that_moves_between_threads_has_the_time_of_all(void **state)
{
    (void)state;
    worker other;
    spanprof_span span = start("moves");
    worker_init(&other, span);
    work_in(span, 1);
    worker_attach(&other, 10);
    worker_detach(&other, 100);
    worker_attach(&other, 100); /* and the other thread ends it later */
    worker_detach(&other, 100);
    spanprof_span_end(span);
    helper_deinit(&other.thread);
    expect("moves", 311);
}

static void span_active_on_two_threads_ends_with_what_both_spent(void **state)
{
    (void)state;
    worker other;
    spanprof_span span = start("both");
    worker_init(&other, span);
    spanprof_scope scope = spanprof_span_attach(span);
    work(1);
    worker_attach(&other, 10);
    spanprof_span_end(span);
    worker_detach(&other, 100);
    work(1000);
    spanprof_scope_detach(&scope);
    helper_deinit(&other.thread);
    expect("both", 11);
    assert_int_equal(unattributed(), 1100);
}

static helper interrupter;
static spanprof_span interrupted;

static void end_interrupted(void *unused)
{
    (void)unused;
    spanprof_span_end(interrupted);
}

static void let_it_end(void)
{
    work(10);
    helper_run(&interrupter, end_interrupted, NULL);
}

/* What the end has taken, up to a later time than the owner has read, is not the next span's as
 * well. */
static void span_that_ends_amid_a_switch_shares_no_time_with_the_next(void **state)
{
    (void)state;
    helper_init(&interrupter);
    interrupted = start_alone("interrupted");
    spanprof_span next = start_alone("next");
    spanprof_scope of_interrupted = spanprof_span_attach(interrupted);
    work(1);
    after_reading = let_it_end;
    work_in(next, 100);
    spanprof_scope_detach(&of_interrupted);
    spanprof_span_end(next);
    helper_deinit(&interrupter);
    expect("interrupted", 11);
    expect("next", 100);
    assert_int_equal(unattributed(), 0);
}

static void root_ends_with_the_time_of_descendants_that_run_elsewhere(void **state)
{
    (void)state;
    worker other;
    spanprof_span root = start("root"), child = start_child("child", root);
    worker_init(&other, child);
    worker_attach(&other, 10);
    spanprof_span_end(root);
    worker_detach(&other, 100);
    spanprof_span_end(child);
    expect("root", 10);
    sp_span_data *data = take_one();
    if (cpu_time_of(data) != NOTHING)
        assert_int_equal(cpu_time_of(data), 110); /* the child counts for itself nevertheless */
    sp_span_data_release(data);
    assert_int_equal(unattributed(), 100);
    helper_deinit(&other.thread);
}

static void detach_foreign(void *argument)
{
    const spanprof_scope *scope = argument;
    spanprof_scope copy = *scope;
    work(10000);
    assert_int_equal(spanprof_scope_detach(&copy), SPANPROF_ERROR_OTHER_THREAD);
}

/* The owner leaves the span at its own next switch, and until then works for it. */
static void scope_detached_by_another_thread_counts_until_the_owners_switch(void **state)
{
    (void)state;
    helper other;
    helper_init(&other);
    spanprof_span span = start("posted");
    spanprof_scope scope = spanprof_span_attach(span);
    work(1);
    helper_run(&other, detach_foreign, &scope);
    work(10);
    work_in_context(NULL, 100);
    work(1000);
    spanprof_span_end(span);
    helper_deinit(&other);
    expect("posted", 11);
}

static void thread_that_ends_attached_gives_what_it_spent(void **state)
{
    (void)state;
    worker other;
    spanprof_span span = start("left");
    worker_init(&other, span);
    worker_attach(&other, 10);
    helper_deinit(&other.thread);
    for (int i = 0; i < CLOCKS; i++) /* a thread that has ended has no clock */
        if (atomic_load(&clocks[i].tid) != gettid())
            atomic_store(&clocks[i].tid, 0);
    spanprof_span_end(span);
    expect("left", 10);
    assert_int_equal(unattributed(), 0);
}

/* Under ThreadSanitizer, too: spans of one request are attached, worked under and ended on all
 * threads at once. The clocks are those of the threads, so what all have worked under spans is what
 * the roots say, and what came too late for them. */
enum { THREADS = 4, REQUESTS = 250, SPANS = 6 };
_Static_assert(REQUESTS *(SPANS + 1) < QUEUE, "no span is dropped");

typedef struct crowd {
    pthread_barrier_t barrier;
    spanprof_span root, spans[SPANS];
    spanprof_context contexts[SPANS];
    _Atomic uint64_t worked;
} crowd;

static void work_in_crowd(crowd *crowd, int self, int request)
{
    for (int i = 0; i < SPANS; i++) {
        int which = (i + self + request) % SPANS;
        spanprof_scope scope = spanprof_context_attach(&crowd->contexts[which]);
        work((uint64_t)(self + 1));
        atomic_fetch_add(&crowd->worked, (uint64_t)(self + 1));
        if (which % THREADS == self)
            spanprof_span_end(crowd->spans[which]);
        if (self == request % THREADS && i == SPANS / 2)
            spanprof_span_end(crowd->root);
        spanprof_scope_detach(&scope);
    }
}

static _Atomic int crowd_places;

static void *join_crowd(void *argument)
{
    crowd *crowd = argument;
    int self = atomic_fetch_add(&crowd_places, 1);
    for (int request = 0; request < REQUESTS; request++) {
        if (self == 0) {
            crowd->root = start("root");
            spanprof_context parent = spanprof_span_context(crowd->root);
            for (int i = 0; i < SPANS; i++) {
                crowd->spans[i] = start_under("crowded", &parent);
                parent = crowd->contexts[i] = spanprof_span_context(crowd->spans[i]);
            }
        }
        pthread_barrier_wait(&crowd->barrier);
        work_in_crowd(crowd, self, request);
        pthread_barrier_wait(&crowd->barrier);
    }
    return NULL;
}

static void run_crowd(uint64_t *of_roots, uint64_t *worked)
{
    static crowd crowd;
    pthread_t threads[THREADS];
    sp_span_data *data;
    crowd_places = 0;
    crowd.worked = 0;
    pthread_barrier_init(&crowd.barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, join_crowd, &crowd), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&crowd.barrier);
    *of_roots = 0;
    while (sp_tracer_take(&data, 1) == 1) {
        if (strcmp(data->name, "root") == 0)
            *of_roots += (uint64_t)cpu_time_of(data);
        sp_span_data_release(data);
    }
    *worked = crowd.worked;
}

/* In both modes everything is on the root's account, or came behind its end. */
static void crowd_of_threads_loses_and_invents_nothing(void **state)
{
    (void)state;
    uint64_t of_roots, worked;
    run_crowd(&of_roots, &worked);
    assert_int_equal(of_roots + unattributed(), worked);
    assert_true(of_roots > 0 && unattributed() > 0);
}

/* --- starts, stops, forks --------------------------------------------------------------------- */

static void stop_and_start_forget_what_was_not_counted(void **state)
{
    (void)state;
    spanprof_span old = start("old");
    spanprof_scope of_old = spanprof_span_attach(old);
    work(1);
    sp_tracer_stop();
    spanprof_span_end(old);
    work(10);
    assert_int_equal(start_which(SP_CPU_TIME_ALL), SPANPROF_OK);
    spanprof_span fresh = start_alone("fresh");
    work_in(fresh, 100);
    spanprof_span_end(fresh);
    assert_int_equal(unattributed(), 0);
    spanprof_scope_detach(&of_old);
    expect("fresh", 100);
    assert_int_equal(sp_tracer_queued(), 0);
}

static void forked_child_counts_its_own(void **state)
{
    (void)state;
    spanprof_span span = start("parent");
    spanprof_scope scope = spanprof_span_attach(span);
    work(1);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        sp_tracer_after_fork();
        atomic_store(&clocks[own_clock].ns, 0); /* a child's clock begins anew */
        if (start_which(SP_CPU_TIME_ALL) != SPANPROF_OK)
            _exit(2);
        spanprof_span own = start_alone("child");
        work_in(own, 10);
        work(100); /* under the parent's context */
        spanprof_span_end(own);
        spanprof_scope_detach(&scope);
        sp_span_data *data = NULL;
        bool right = sp_tracer_take(&data, 1) == 1 && cpu_time_of(data) == 10;
        _exit(right && unattributed() == 100 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    work(1000);
    spanprof_scope_detach(&scope);
    spanprof_span_end(span);
    expect("parent", 1001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        traced(without_cpu_time_no_clock_is_read),
        in_root(roots_alone_have_the_time_of_the_request),
        in_all(all_spans_have_their_own_time_and_that_of_descendants),
        in_root(span_never_attached_says_zero),
        in_all(span_attached_again_goes_on_counting),
        in_root(span_attached_again_goes_on_counting),
        in_all(span_attached_within_itself_counts_once),
        in_root(requests_on_one_thread_are_told_apart),
        in_all(requests_on_one_thread_are_told_apart),
        in_all(scope_detached_out_of_order_changes_no_account),
        in_root(scope_detached_out_of_order_changes_no_account),
        in_all(span_that_ends_attached_has_its_time_up_to_its_end),
        in_root(span_that_ends_attached_has_its_time_up_to_its_end),
        in_all(context_of_an_ended_span_counts_for_its_local_root),
        in_root(context_of_an_ended_span_counts_for_its_local_root),
        in_all(parent_that_ends_first_passes_its_children_on),
        in_all(child_that_outlives_its_root_works_unattributed),
        in_root(child_that_outlives_its_root_works_unattributed),
        in_all(work_of_an_end_is_not_that_of_the_span),
        in_all(contexts_without_a_recorded_span_are_not_counted),
        in_root(contexts_without_a_recorded_span_are_not_counted),
        in_all(span_full_of_attributes_has_its_cpu_time),
        in_all(span_without_room_for_attributes_has_its_cpu_time),
        in_all(many_spans_of_one_request_keep_their_accounts),
        in_all(deeply_nested_spans_add_up),
        in_all(deeply_nested_spans_end_outermost_first),
        in_all(spans_that_end_in_any_order_say_what_a_plain_count_says),
        in_all(without_memory_a_span_says_nothing_and_its_root_has_the_time),
        in_all(attach_without_memory_is_nobodys_time),
        in_root(thread_that_ended_without_a_word_is_forgotten),
        in_all(span_that_moves_between_threads_has_the_time_of_all),
        in_root(span_that_moves_between_threads_has_the_time_of_all),
        in_all(span_active_on_two_threads_ends_with_what_both_spent),
        in_root(span_active_on_two_threads_ends_with_what_both_spent),
        in_all(span_that_ends_amid_a_switch_shares_no_time_with_the_next),
        in_root(span_that_ends_amid_a_switch_shares_no_time_with_the_next),
        in_all(root_ends_with_the_time_of_descendants_that_run_elsewhere),
        in_root(root_ends_with_the_time_of_descendants_that_run_elsewhere),
        in_all(scope_detached_by_another_thread_counts_until_the_owners_switch),
        in_root(thread_that_ends_attached_gives_what_it_spent),
        in_root(crowd_of_threads_loses_and_invents_nothing),
        in_all(crowd_of_threads_loses_and_invents_nothing),
        in_all(stop_and_start_forget_what_was_not_counted),
        in_all(forked_child_counts_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
