/* SPDX-License-Identifier: Apache-2.0 */
/* Samplers: who decides for which parent, the ratio, callbacks, and spans that are recorded only.
 */
#include "unit/trace/support.h"

#include <math.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <spanprof/propagation.h>
#include <spanprof/sampler.h>
#include "core/log.h"
#include "trace/sampling.h"
#include "trace/random_id.h"

static int warnings;
static char last_warning[512];

static void keep_warning(spanprof_log_level level, const char *line, void *user)
{
    (void)level, (void)user;
    warnings++;
    snprintf(last_warning, sizeof last_warning, "%s", line);
}

static int setup(void **state)
{
    (void)state;
    warnings = 0;
    sp_log_configure(SPANPROF_LOG_WARN, keep_warning, NULL);
    return 0;
}

#define sampled(test) cmocka_unit_test_setup_teardown(test, setup, stop_tracer)

/* A tracer with SAMPLER, in the place of one that may run. */
static void use(const spanprof_sampler *sampler)
{
    sp_tracer_config config = {
        .queue_spans = QUEUE, .limits = SP_SPAN_LIMITS_INIT, .sampler = sampler, .record = true};
    sp_tracer_stop();
    assert_int_equal(sp_tracer_start(&config), SPANPROF_OK);
}

static spanprof_sampler make(spanprof_sampler_kind kind)
{
    return (spanprof_sampler){.struct_size = sizeof(spanprof_sampler), .kind = kind};
}

static spanprof_sampler make_ratio(double ratio)
{
    spanprof_sampler sampler = make(SPANPROF_SAMPLER_TRACE_ID_RATIO);
    sampler.ratio = ratio;
    return sampler;
}

/* A parent of each sort; the one without ids is no parent. */
static spanprof_context parent_of(sp_sampling_parent sort)
{
    spanprof_context context = {0};
    if (sort == SP_PARENT_NONE)
        return context;
    memset(context.trace_id, 0xab, sizeof context.trace_id);
    memset(context.span_id, 0xcd, sizeof context.span_id);
    context.remote = sort == SP_PARENT_REMOTE_SAMPLED || sort == SP_PARENT_REMOTE_NOT_SAMPLED;
    context.trace_flags = SPANPROF_TRACE_FLAG_RANDOM;
    if (sort == SP_PARENT_LOCAL_SAMPLED || sort == SP_PARENT_REMOTE_SAMPLED)
        context.trace_flags |= SPANPROF_TRACE_FLAG_SAMPLED;
    return context;
}

/* The context of a span that was started under PARENT, and has ended. */
static spanprof_context start_under(const spanprof_context *parent)
{
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.parent = parent;
    spanprof_span span = spanprof_span_start(NULL, "span", &options);
    spanprof_context context = spanprof_span_context(span);
    assert_true(is_valid(&context)); /* whatever the decision, it has ids */
    assert_int_equal(spanprof_span_is_recording(span),
                     context.trace_flags & SPANPROF_TRACE_FLAG_SAMPLED);
    spanprof_span_end(span);
    release_all();
    return context;
}

static bool is_sampled_under(sp_sampling_parent sort)
{
    spanprof_context parent = parent_of(sort);
    spanprof_context context = start_under(&parent);
    assert_true(context.trace_flags & SPANPROF_TRACE_FLAG_RANDOM);
    return context.trace_flags & SPANPROF_TRACE_FLAG_SAMPLED;
}

/* EXPECTED has a letter for no parent, local unsampled, local sampled, remote unsampled, remote
 * sampled. */
static void expect(const char *what, const spanprof_sampler *sampler, const char *expected)
{
    use(sampler);
    for (int i = 0; i < SP_PARENTS; i++)
        if (is_sampled_under((sp_sampling_parent)i) != (expected[i] == 'y'))
            fail_msg("%s: parent of sort %d: not %c", what, i, expected[i]);
}

/* --- who decides ------------------------------------------------------------------------------ */

static void each_sampler_decides_for_each_sort_of_parent(void **state)
{
    (void)state;
    spanprof_sampler on = make(SPANPROF_SAMPLER_ALWAYS_ON), off = make(SPANPROF_SAMPLER_ALWAYS_OFF);
    spanprof_sampler all = make_ratio(1), none = make_ratio(0);
    spanprof_sampler by_parent = make(SPANPROF_SAMPLER_PARENT_BASED);
    expect("default", NULL, "ynyny");
    expect("parentbased", &by_parent, "ynyny");
    expect("always_on", &on, "yyyyy");
    expect("always_off", &off, "nnnnn");
    expect("ratio 1", &all, "yyyyy");
    expect("ratio 0", &none, "nnnnn");
    by_parent.root = &off;
    expect("parentbased, off", &by_parent, "nnyny");
    by_parent.root = &none;
    expect("parentbased, ratio 0", &by_parent, "nnyny");
    assert_int_equal(warnings, 0);
}

static void each_branch_of_parentbased_may_be_another_sampler(void **state)
{
    (void)state;
    spanprof_sampler on = make(SPANPROF_SAMPLER_ALWAYS_ON), off = make(SPANPROF_SAMPLER_ALWAYS_OFF);
    for (unsigned i = 0; i < 1u << SP_PARENTS; i++) {
        const spanprof_sampler *branches[SP_PARENTS];
        char expected[SP_PARENTS + 1] = "";
        for (int j = 0; j < SP_PARENTS; j++) {
            branches[j] = i >> j & 1 ? &on : &off;
            expected[j] = i >> j & 1 ? 'y' : 'n';
        }
        spanprof_sampler sampler = make(SPANPROF_SAMPLER_PARENT_BASED);
        sampler.root = branches[SP_PARENT_NONE];
        sampler.local_not_sampled = branches[SP_PARENT_LOCAL_NOT_SAMPLED];
        sampler.local_sampled = branches[SP_PARENT_LOCAL_SAMPLED];
        sampler.remote_not_sampled = branches[SP_PARENT_REMOTE_NOT_SAMPLED];
        sampler.remote_sampled = branches[SP_PARENT_REMOTE_SAMPLED];
        expect("branches", &sampler, expected);
        spanprof_sampler outer = make(SPANPROF_SAMPLER_PARENT_BASED);
        outer.root = outer.remote_not_sampled =
            &sampler; /* nested, its branch for that parent decides */
        expected[SP_PARENT_LOCAL_NOT_SAMPLED] = 'n';
        expected[SP_PARENT_LOCAL_SAMPLED] = expected[SP_PARENT_REMOTE_SAMPLED] = 'y';
        expect("nested", &outer, expected);
    }
    assert_int_equal(warnings, 0);
}

static void samplers_that_cannot_be_used_are_named(void **state)
{
    (void)state;
    spanprof_sampler bad[] = {
        make_ratio(-0.1),
        make_ratio(1.1),
        make_ratio(NAN),
        make(SPANPROF_SAMPLER_CALLBACK),
        make((spanprof_sampler_kind)99),
        make(SPANPROF_SAMPLER_PARENT_BASED),
    };
    static const char *const said[] = {
        "from 0 to 1", "from 0 to 1", "from 0 to 1", "no function", "no sampler of its kind",
        "16 deep"};
    enum { BAD = SP_ARRAY_LENGTH(bad) };
    bad[BAD - 1].root = &bad[BAD - 1]; /* its own root */
    for (int i = 0; i < BAD; i++) {
        warnings = 0;
        expect("bad", &bad[i], "ynyny");
        assert_int_equal(warnings, 1);
        if (!strstr(last_warning, said[i]) || !strstr(last_warning, "using parentbased_always_on"))
            fail_msg("%s: not %s", last_warning, said[i]);
    }
    spanprof_sampler without_size = {.kind = SPANPROF_SAMPLER_ALWAYS_OFF};
    expect("no size", &without_size, "ynyny");
    assert_non_null(strstr(last_warning, "struct_size is 0"));
}

static void a_sampler_is_copied(void **state)
{
    (void)state;
    spanprof_sampler *off = malloc(sizeof *off), *sampler = malloc(sizeof *sampler);
    assert_true(off && sampler);
    *off = make(SPANPROF_SAMPLER_ALWAYS_OFF);
    *sampler = make(SPANPROF_SAMPLER_PARENT_BASED);
    sampler->root = off;
    use(sampler);
    memset(off, 0xff, sizeof *off);
    memset(sampler, 0xff, sizeof *sampler);
    free(off);
    free(sampler);
    assert_false(is_sampled_under(SP_PARENT_NONE));
    assert_true(is_sampled_under(SP_PARENT_LOCAL_SAMPLED));
}

/* --- the ratio -------------------------------------------------------------------------------- */

static void write_random_bits(uint8_t trace_id[16], uint64_t bits)
{
    for (int i = 15; i > 8; i--, bits >>= 8)
        trace_id[i] = (uint8_t)bits;
}

/* The edge of each ratio is where the specification's threshold puts it: 2^56 (1 - ratio), on the
 * last seven bytes alone. */
static void a_ratio_is_a_threshold_on_the_last_seven_bytes(void **state)
{
    (void)state;
    static const struct {
        double ratio;
        uint64_t lowest; /* that is sampled */
    } cases[] = {
        {1, 0},
        {2, 0},
        {0.75, UINT64_C(0x40000000000000)},
        {0.5, UINT64_C(0x80000000000000)},
        {0.25, UINT64_C(0xc0000000000000)},
        {0.0625, UINT64_C(0xf0000000000000)},
        {0x1p-56, UINT64_C(0xffffffffffffff)},
        {1 - 0x1p-53, 8},
        {0x1p-57, UINT64_C(1) << 56},
        {0, UINT64_C(1) << 56},
        {-1, UINT64_C(1) << 56},
        {NAN, UINT64_C(1) << 56},
    };
    uint8_t id[16];
    for (size_t i = 0; i < SP_ARRAY_LENGTH(cases); i++)
        for (int other = 0; other < 256; other += 255) {
            uint64_t lowest = cases[i].lowest;
            memset(id, other, sizeof id); /* what the first nine bytes are does not matter */
            if (lowest > 0) {
                write_random_bits(id, lowest - 1);
                assert_false(spanprof_ratio_samples(cases[i].ratio, id));
            }
            if (lowest < UINT64_C(1) << 56) {
                write_random_bits(id, lowest);
                assert_true(spanprof_ratio_samples(cases[i].ratio, id));
                memset(id + 9, 255, 7);
                assert_true(spanprof_ratio_samples(cases[i].ratio, id));
            }
        }
}

static const double ratios[] = {0.0001, 0.001, 0.01, 0.1, 0.25, 1 / 3.0, 0.5, 0.9, 0.999};
enum { RATIOS = SP_ARRAY_LENGTH(ratios) };

/* Of 10^6 ids as spans get them, the share of each ratio is sampled, within five standard
 * deviations of the binomial distribution: one run in 200,000 is outside by chance, all ratios
 * taken together. What a ratio samples, each higher one samples. */
static void a_ratio_samples_its_share_and_what_lower_ones_do(void **state)
{
    (void)state;
    enum { IDS = 1000000 };
    uint32_t counts[RATIOS] = {0};
    for (int i = 0; i < IDS; i++) {
        uint8_t id[16];
        sp_random_id(id, sizeof id);
        bool lower = false;
        for (int j = 0; j < RATIOS; j++) {
            bool is_sampled = spanprof_ratio_samples(ratios[j], id);
            assert_true(is_sampled || !lower);
            counts[j] += is_sampled;
            lower = is_sampled;
        }
    }
    for (int j = 0; j < RATIOS; j++) {
        double expected = IDS * ratios[j], variance = expected * (1 - ratios[j]);
        double distance = counts[j] - expected;
        if (distance * distance > 25 * variance)
            fail_msg("ratio %g: %u of %d", ratios[j], counts[j], IDS);
    }
}

static void spans_are_sampled_by_the_ratio_of_their_trace(void **state)
{
    (void)state;
    enum { SPANS = 2000 };
    const spanprof_context no_parent = {0};
    spanprof_sampler ratio = make_ratio(0.3), sampler = make(SPANPROF_SAMPLER_PARENT_BASED);
    sampler.root = &ratio;
    use(&sampler);
    uint64_t kept = 0;
    for (int i = 0; i < SPANS; i++) {
        spanprof_context root = start_under(&no_parent), child = start_under(&root);
        bool is_sampled = spanprof_ratio_samples(0.3, root.trace_id);
        assert_int_equal(root.trace_flags, is_sampled ? 3 : 2);
        assert_int_equal(child.trace_flags, root.trace_flags);
        kept += is_sampled;
    }
    sp_tracer_counters c = counters();
    assert_true(kept > 0 && kept < SPANS);
    assert_int_equal(c.spans_started, 2 * kept);
    assert_int_equal(c.spans_ended, 2 * kept);
    assert_int_equal(c.spans_unsampled, 2 * (SPANS - kept));
}

/* A ratio that decides for children, too, whatever the parent's flag says; its presumption is told
 * once. */
static void a_ratio_for_children_presumes_that_ids_are_random(void **state)
{
    (void)state;
    spanprof_sampler ratio = make_ratio(0.5);
    use(&ratio);
    for (int sort = SP_PARENT_LOCAL_NOT_SAMPLED; sort < SP_PARENTS; sort++)
        for (int i = 0; i < 100; i++) {
            spanprof_context parent = parent_of((sp_sampling_parent)sort);
            sp_random_id(parent.trace_id, sizeof parent.trace_id);
            spanprof_context context = start_under(&parent);
            assert_int_equal(context.trace_flags & SPANPROF_TRACE_FLAG_SAMPLED,
                             spanprof_ratio_samples(0.5, parent.trace_id));
        }
    assert_int_equal(warnings, 0);
    for (int i = 0; i < 2; i++) {
        spanprof_context parent = parent_of(SP_PARENT_REMOTE_SAMPLED);
        parent.trace_flags = SPANPROF_TRACE_FLAG_SAMPLED;
        assert_int_equal(start_under(&parent).trace_flags, SPANPROF_TRACE_FLAG_SAMPLED);
        assert_int_equal(warnings, 1);
    }
    assert_non_null(strstr(last_warning, "random flag"));
}

/* --- callbacks -------------------------------------------------------------------------------- */

/* What a callback saw, and what it is to say. */
typedef struct script {
    spanprof_sampling_decision decision;
    spanprof_sampling_result result;
    int calls;
    spanprof_sampling_request request;
    spanprof_context parent;
    uint8_t trace_id[16];
    char name[32], trace_state[64];
    spanprof_attribute attribute;
    spanprof_context link;
} script;

static spanprof_sampling_decision follow(const spanprof_sampling_request *request,
                                         spanprof_sampling_result *result, void *user)
{
    script *s = user;
    s->calls++;
    s->request = *request;
    s->parent = *request->parent;
    memcpy(s->trace_id, request->trace_id, sizeof s->trace_id);
    snprintf(s->name, sizeof s->name, "%s", request->name);
    snprintf(s->trace_state, sizeof s->trace_state, "%s", request->trace_state);
    if (request->attribute_count)
        s->attribute = request->attributes[0];
    if (request->link_count)
        s->link = *request->links[0].context;
    assert_int_equal(result->struct_size, sizeof *result);
    assert_true(!result->attributes && !result->attribute_count && !result->trace_state);
    *result = s->result;
    return s->decision;
}

static spanprof_sampler make_callback(script *s)
{
    spanprof_sampler sampler = make(SPANPROF_SAMPLER_CALLBACK);
    sampler.function = follow;
    sampler.user = s;
    return sampler;
}

static void a_callback_sees_what_is_known(void **state)
{
    (void)state;
    script s = {.decision = SPANPROF_SAMPLING_RECORD_AND_SAMPLE};
    spanprof_sampler sampler = make_callback(&s);
    use(&sampler);
    spanprof_context parent, linked = parent_of(SP_PARENT_REMOTE_SAMPLED);
    assert_true(spanprof_context_extract(
        &parent, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", "rojo=1"));
    const spanprof_attribute attribute = {.key = "k", .value = {.string_value = "v"}};
    const spanprof_link link = {.context = &linked};
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.parent = &parent;
    options.kind = SPANPROF_SPAN_KIND_SERVER;
    options.attributes = &attribute;
    options.attribute_count = 1;
    options.links = &link;
    options.link_count = 1;
    spanprof_span span = spanprof_span_start(NULL, "GET /cart", &options);
    assert_int_equal(s.calls, 1);
    assert_int_equal(s.request.struct_size, sizeof s.request);
    assert_int_equal(s.request.kind, SPANPROF_SPAN_KIND_SERVER);
    assert_string_equal(s.name, "GET /cart");
    assert_string_equal(s.trace_state, "rojo=1");
    assert_memory_equal(&s.parent, &parent, sizeof parent);
    assert_memory_equal(s.trace_id, parent.trace_id, 16);
    assert_string_equal(s.attribute.key, "k");
    assert_memory_equal(&s.link, &linked, sizeof linked);
    spanprof_context context = spanprof_span_context(span); /* it wins over the parent's flag */
    assert_int_equal(context.trace_flags, SPANPROF_TRACE_FLAG_SAMPLED);
    assert_memory_equal(context.trace_id, parent.trace_id, 16);
    spanprof_span_end(span);
    sp_span_data *data = take_one();
    assert_string_equal(data->trace_state, "rojo=1");
    sp_span_data_release(data);
}

static void a_callback_for_a_root_sees_its_trace_id(void **state)
{
    (void)state;
    script s = {.decision = SPANPROF_SAMPLING_RECORD_AND_SAMPLE};
    spanprof_sampler callback = make_callback(&s), sampler = make(SPANPROF_SAMPLER_PARENT_BASED);
    sampler.root = &callback;
    use(&sampler);
    spanprof_span_options odd = SPANPROF_SPAN_OPTIONS_INIT;
    odd.kind = (spanprof_span_kind)77;
    odd.attribute_count = odd.link_count = 7; /* of nothing */
    spanprof_span root = spanprof_span_start(NULL, NULL, &odd);
    spanprof_context context = spanprof_span_context(root);
    assert_int_equal(s.calls, 1);
    assert_string_equal(s.name, "");
    assert_string_equal(s.trace_state, "");
    assert_int_equal(s.request.kind, SPANPROF_SPAN_KIND_INTERNAL);
    assert_int_equal(s.request.attribute_count + s.request.link_count, 0);
    assert_memory_equal(s.trace_id, context.trace_id, 16);
    assert_memory_equal(s.parent.trace_id, zeroes, 16);
    assert_int_equal(context.trace_flags, 3);
    start_under(&context); /* a child does as its parent: the root's sampler is not asked */
    assert_int_equal(s.calls, 1);
    spanprof_span_end(root);
    release_all();
}

static const char *string_of(const sp_span_data *data, const char *key)
{
    for (uint32_t i = 0; i < data->attribute_count; i++)
        if (strcmp(data->attributes[i].key, key) == 0)
            return data->attributes[i].value.string_value;
    return NULL;
}

static void attributes_of_a_callback_are_the_spans(void **state)
{
    (void)state;
    const spanprof_attribute given[] = {{.key = "sampler", .value = {.string_value = "mine"}},
                                        {.key = "both", .value = {.string_value = "sampler"}}};
    const spanprof_attribute own[] = {{.key = "both", .value = {.string_value = "span"}}};
    script s = {.decision = SPANPROF_SAMPLING_RECORD_AND_SAMPLE,
                .result = {.attributes = given, .attribute_count = 2}};
    spanprof_sampler sampler = make_callback(&s);
    use(&sampler);
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.attributes = own;
    options.attribute_count = 1;
    spanprof_span_end(spanprof_span_start(NULL, "span", &options));
    sp_span_data *data = take_one();
    assert_int_equal(data->attribute_count, 2);
    assert_string_equal(string_of(data, "sampler"), "mine");
    assert_string_equal(string_of(data, "both"), "span");
    sp_span_data_release(data);
    s.result.attributes = NULL; /* a count of nothing */
    spanprof_span_end(spanprof_span_start(NULL, "span", NULL));
    data = take_one();
    assert_int_equal(data->attribute_count, 0);
    sp_span_data_release(data);
}

/* The tracestate and the baggage that CONTEXT carries, as headers. */
static char headers[256];

static void write_header(void *user, const char *name, const char *value)
{
    (void)user;
    if (strcmp(name, "traceparent") != 0)
        snprintf(headers + strlen(headers), sizeof headers - strlen(headers), "%s: %s;", name,
                 value);
}

static const char *headers_of(const spanprof_context *context)
{
    headers[0] = 0;
    spanprof_propagation_inject(context, write_header, NULL);
    return headers;
}

static void a_callback_replaces_the_tracestate_and_keeps_the_baggage(void **state)
{
    (void)state;
    static const struct {
        const char *given, *expected;
        int warnings;
    } cases[] = {
        {NULL, "tracestate: rojo=1;baggage: user=alice;", 0},
        {"rojo=1", "tracestate: rojo=1;baggage: user=alice;", 0},
        {"", "baggage: user=alice;", 0},
        {" , ", "baggage: user=alice;", 0},
        {"ot=th:8,rojo=2", "tracestate: ot=th:8,rojo=2;baggage: user=alice;", 0},
        {"NOT VALID", "tracestate: rojo=1;baggage: user=alice;", 1},
        {"a=b=c", "tracestate: rojo=1;baggage: user=alice;", 1}, /* warned of once */
    };
    script s = {0};
    spanprof_sampler sampler = make_callback(&s);
    use(&sampler);
    spanprof_context remote, parent;
    assert_true(spanprof_context_extract(
        &remote, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "rojo=1"));
    assert_int_equal(spanprof_baggage_set(&parent, &remote, "user", "alice", NULL), SPANPROF_OK);
    for (size_t i = 0; i < SP_ARRAY_LENGTH(cases); i++)
        for (int decision = SPANPROF_SAMPLING_DROP; decision <= SPANPROF_SAMPLING_RECORD_AND_SAMPLE;
             decision++) {
            s.decision = (spanprof_sampling_decision)decision;
            s.result.trace_state = cases[i].given;
            spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
            options.parent = &parent;
            spanprof_span span = spanprof_span_start(NULL, "span", &options);
            spanprof_context context = spanprof_span_context(span);
            assert_string_equal(headers_of(&context), cases[i].expected);
            assert_int_equal(warnings, cases[i].warnings);
            spanprof_span_end(span);
        }
    assert_string_equal(headers_of(&parent), cases[0].expected);
    assert_int_equal(release_all(), SP_ARRAY_LENGTH(cases));
}

static void a_callbacks_decision_that_is_none_is_drop(void **state)
{
    (void)state;
    script s = {.decision = (spanprof_sampling_decision)3};
    spanprof_sampler sampler = make_callback(&s);
    expect("3", &sampler, "nnnnn");
    s.decision = (spanprof_sampling_decision)-1;
    expect("-1", &sampler, "nnnnn");
}

/* --- recorded only ---------------------------------------------------------------------------- */

static spanprof_sampling_decision fork_inside(const spanprof_sampling_request *request,
                                              spanprof_sampling_result *result, void *user)
{
    (void)request, (void)result;
    *(pid_t *)user = fork();
    if (*(pid_t *)user == 0)
        sp_tracer_after_fork();
    return SPANPROF_SAMPLING_RECORD_AND_SAMPLE;
}

/* The child gets a span, which ends into nothing. */
static void a_callback_may_fork(void **state)
{
    (void)state;
    pid_t child = -1;
    int status = -1;
    spanprof_sampler sampler = make(SPANPROF_SAMPLER_CALLBACK);
    sampler.function = fork_inside;
    sampler.user = &child;
    use(&sampler);
    spanprof_span span = spanprof_span_start(NULL, "span", NULL);
    spanprof_span_set_int(span, "k", 1);
    spanprof_span_end(span);
    if (child == 0)
        _exit(sp_tracer_queued() ? 1 : 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(release_all(), 1);
}

static void a_span_that_is_only_recorded_is_not_exported(void **state)
{
    (void)state;
    enum { SPANS = 3000 }; /* more than the queue has room for */
    script s = {.decision = SPANPROF_SAMPLING_RECORD_ONLY};
    spanprof_sampler callback = make_callback(&s), sampler = make(SPANPROF_SAMPLER_PARENT_BASED);
    sampler.root = &callback;
    use(&sampler);
    for (int i = 0; i < SPANS; i++) {
        spanprof_span span = spanprof_span_start(NULL, "span", NULL);
        spanprof_context context = spanprof_span_context(span);
        assert_true(spanprof_span_is_recording(span));
        assert_int_equal(context.trace_flags,
                         SPANPROF_TRACE_FLAG_RANDOM); /* for all others: unsampled */
        spanprof_span_set_int(span, "key", i);
        assert_int_equal(start_under(&context).trace_flags, SPANPROF_TRACE_FLAG_RANDOM);
        spanprof_span_end(span);
        assert_int_equal(sp_tracer_queued(), 0);
    }
    sp_tracer_counters c = counters();
    assert_int_equal(c.spans_started, 0);
    assert_int_equal(c.spans_ended, 0);
    assert_int_equal(c.spans_unsampled, 2 * SPANS);
    assert_int_equal(c.dropped_queue_full, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        sampled(each_sampler_decides_for_each_sort_of_parent),
        sampled(each_branch_of_parentbased_may_be_another_sampler),
        sampled(samplers_that_cannot_be_used_are_named),
        sampled(a_sampler_is_copied),
        cmocka_unit_test(a_ratio_is_a_threshold_on_the_last_seven_bytes),
        cmocka_unit_test(a_ratio_samples_its_share_and_what_lower_ones_do),
        sampled(spans_are_sampled_by_the_ratio_of_their_trace),
        sampled(a_ratio_for_children_presumes_that_ids_are_random),
        sampled(a_callback_sees_what_is_known),
        sampled(a_callback_for_a_root_sees_its_trace_id),
        sampled(attributes_of_a_callback_are_the_spans),
        sampled(a_callback_replaces_the_tracestate_and_keeps_the_baggage),
        sampled(a_callbacks_decision_that_is_none_is_drop),
        sampled(a_callback_may_fork),
        sampled(a_span_that_is_only_recorded_is_not_exported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
