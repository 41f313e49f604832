/* SPDX-License-Identifier: Apache-2.0 */
/* What spans take from the system once a program has warmed up: no allocation, and 512 bytes for
 * each one that lives. */
#include "unit/trace/support.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { ROUNDS = 200, SPANS = 100, NESTED = 10, LIVE = 100000, LIVE_BYTES = 512 };

/* The linker sends the allocations of what is linked into this program here (tests/CMakeLists.txt).
 */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);

static unsigned allocations;
static size_t allocated_bytes; /* by malloc and its like; what is given back is not subtracted */

void *__wrap_malloc(size_t bytes)
{
    allocations++;
    allocated_bytes += bytes;
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    allocations++;
    allocated_bytes += count * bytes;
    return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    allocations++;
    allocated_bytes += bytes;
    return __real_realloc(memory, bytes);
}

static size_t mapped_bytes;

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    allocations++;
    mapped_bytes += bytes;
    return __real_mmap(at, bytes, protection, flags, fd, offset);
}

static void attach_and_detach(void)
{
    spanprof_span span = spanprof_span_start(NULL, "kept", NULL);
    for (int i = 0; i < SPANS; i++) {
        spanprof_scope scopes[NESTED];
        for (int k = 0; k < NESTED; k++)
            scopes[k] = spanprof_span_attach(span);
        for (int k = 0; k < NESTED; k++) /* out of order */
            spanprof_scope_detach(&scopes[k]);
    }
    spanprof_span_end(span);
}

static spanprof_span start_with_four_attributes(void)
{
    spanprof_span span = spanprof_span_start(NULL, "GET /cart", NULL);
    spanprof_span_set_string(span, "http.request.method", "GET");
    spanprof_span_set_int(span, "http.response.status_code", 200);
    spanprof_span_set_string(span, "url.path", "/cart");
    spanprof_span_set_bool(span, "cached", true);
    return span;
}

static void make_spans(void)
{
    for (int i = 0; i < SPANS; i++) {
        spanprof_span span = start_with_four_attributes();
        spanprof_scope scope = spanprof_span_attach(span);
        spanprof_scope_detach(&scope);
        spanprof_span_end(span);
    }
}

/* As many as the queue has held before: the consumer's array has room for them. */
static void warm_up(void (*make)(void))
{
    for (int i = 0; i < 3; i++) {
        make();
        release_all();
    }
}

static void assert_allocates_nothing(void (*make)(void))
{
    warm_up(make);
    unsigned before = allocations;
    assert_true(before > 0); /* or they are not counted */
    for (int i = 0; i < ROUNDS; i++) {
        make();
        release_all();
    }
    assert_int_equal(allocations - before, 0);
}

static void attach_and_detach_allocate_nothing(void **state)
{
    (void)state;
    assert_allocates_nothing(attach_and_detach);
}

static void spans_allocate_nothing(void **state)
{
    (void)state;
    assert_allocates_nothing(make_spans);
}

/* Slots are mapped in chunks of 1,024, of which the last may be nearly empty and slot 0 is never
 * used. */
static void live_span_with_four_attributes_takes_512_bytes(void **state)
{
    (void)state;
    spanprof_span *live = calloc(LIVE, sizeof *live);
    size_t allocated = allocated_bytes, mapped = mapped_bytes;
    for (int i = 0; i < LIVE; i++)
        live[i] = start_with_four_attributes();
    assert_int_equal(counters().dropped_memory, 0);
    assert_int_equal(allocated_bytes - allocated, 0);
    assert_in_range(mapped_bytes - mapped, 1, (LIVE + 1024) * (size_t)LIVE_BYTES);
    for (int i = 0; i < LIVE; i++) {
        spanprof_span_end(live[i]);
        if (i % QUEUE == 0)
            release_all();
    }
    release_all();
    free(live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(live_span_with_four_attributes_takes_512_bytes,
                                        start_tracer, stop_tracer),
        cmocka_unit_test_setup_teardown(attach_and_detach_allocate_nothing, start_tracer,
                                        stop_tracer),
        cmocka_unit_test_setup_teardown(spans_allocate_nothing, start_tracer, stop_tracer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
