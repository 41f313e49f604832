/* SPDX-License-Identifier: Apache-2.0 */
/* Large files are read by several threads: what comes out is what one thread would make. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/arena.h"
#include "core/buffer.h"
#include "proto/trace.pb-c.h"
#include "tool/read/input.h"
#include "tool/read/parallel.h"

enum { REQUESTS = 250, RESOURCES = 2000 };

/* Request I has RESOURCES + I resources, so that the order shows. */
static void add_framed(sp_buffer *out, int i)
{
    unsigned bytes = 2U * (RESOURCES + (unsigned)i);
    sp_buffer_add_char(out, (char)((bytes & 127) | 128));
    sp_buffer_add_char(out, (char)(bytes >> 7 & 127));
    for (int k = 0; k < RESOURCES + i; k++)
        sp_buffer_add(out, "\x0a\x00", 2);
}

static void add_json(sp_buffer *out, int i)
{
    sp_buffer_add_string(out, "{\"resourceSpans\":[{}");
    for (int k = 1; k < RESOURCES + i; k++)
        sp_buffer_add_string(out, ",{}");
    sp_buffer_add_string(out, "]}\n");
}

static void expect_all(const sp_input *input)
{
    assert_int_equal(input->count, REQUESTS);
    for (int i = 0; i < REQUESTS; i++) {
        const sp_document *document = &input->documents[i];
        const Sp__Trace__TracesData *data = (const Sp__Trace__TracesData *)document->message;
        assert_int_equal(document->number, i + 1);
        assert_int_equal(data->n_resource_spans, RESOURCES + i);
    }
}

static void read_as(void (*add)(sp_buffer *out, int i),
                    int (*read)(sp_input *input, const char *path, const uint8_t *data,
                                size_t length))
{
    sp_buffer bytes = SP_BUFFER_INIT(16 << 20);
    sp_input input = {0};
    for (int i = 0; i < REQUESTS; i++)
        add(&bytes, i);
    assert_false(bytes.failed);
    assert_int_equal(read(&input, "path", bytes.data, bytes.length), 0);
    sp_buffer_deinit(&bytes);
    expect_all(&input);
    sp_input_deinit(&input);
}

static void framed_requests_keep_their_order(void **state)
{
    (void)state;
    read_as(add_framed, sp_input_read_protobuf);
}

static void json_requests_keep_their_order(void **state)
{
    (void)state;
    read_as(add_json, sp_input_read_json);
}

static void count_part(void *state, size_t thread, size_t part)
{
    unsigned(*counts)[SP_PARALLEL_MOST] = state;
    counts[part][thread]++;
}

static void each_part_is_run_once(void **state)
{
    enum { PARTS = 1000 };
    static unsigned counts[PARTS][SP_PARALLEL_MOST];
    (void)state;
    sp_parallel_run(4, PARTS, count_part, counts);
    for (int i = 0; i < PARTS; i++) {
        unsigned sum = 0;
        for (int t = 0; t < SP_PARALLEL_MOST; t++)
            sum += counts[i][t];
        assert_int_equal(sum, 1);
    }
    assert_int_equal(counts[0][0], 1); /* the caller does part 0 */
    sp_parallel_run(4, 0, count_part, NULL);
    assert_int_equal(sp_parallel_threads(0), 1);
    assert_int_equal(sp_parallel_threads(1), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_part_is_run_once),
        cmocka_unit_test(framed_requests_keep_their_order),
        cmocka_unit_test(json_requests_keep_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
