/* SPDX-License-Identifier: Apache-2.0 */
/* From drained samples to the bytes of requests: aggregate, build with names that are cached,
 * encode. A window of 16,000 samples on 1,500 stacks of 26 frames, 900 functions, 800 spans; with
 * values, and with timestamps. Each stack has some of its callers, from the root on, in common with
 * another one, as those of a program have. Prints samples a second, of the whole and of each step,
 * bytes a sample before compression and after gzip at level 6, and the most memory that the process
 * had. bench_requests [-n SAMPLES] [-f] [-w] [-j] [-c FILE] [ROUNDS] -f: no stack has callers in
 * common with another. -w: one request a window, as in files. -j: JSON. -c: write the content to
 * FILE, for the peers (requests_peers.py). */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <zlib.h>

#include "core/clock.h"
#include "core/compiler.h"
#include "unwind/module.h"
#include "profile/builder.h"
#include "collect/aggregate.h"
#include "collect/requests.h"
#include "context/ring_sig.h"

enum { STACKS = 1500, FRAMES = 26, FUNCTIONS = 900, SPANS = 800, LIMIT = 1 << 20 };

/* Functions 100 to 999, each with a name, a line, and an address of its own. */
#define FUNCTION(n)                                                                                \
    __attribute__((noinline)) static int handle_request_of_bench_##n(int x)                        \
    {                                                                                              \
        __asm__ volatile("" ::: "memory");                                                         \
        return x + 1##n;                                                                           \
    }
#define NAME(n)   handle_request_of_bench_##n,
#define TEN(m, n) m(n##0) m(n##1) m(n##2) m(n##3) m(n##4) m(n##5) m(n##6) m(n##7) m(n##8) m(n##9)
#define HUNDRED(m, n)                                                                              \
    TEN(m, n##0)                                                                                   \
    TEN(m, n##1)                                                                                   \
    TEN(m, n##2)                                                                                   \
    TEN(m, n##3)                                                                                   \
    TEN(m, n##4)                                                                                   \
    TEN(m, n##5)                                                                                   \
    TEN(m, n##6)                                                                                   \
    TEN(m, n##7)                                                                                   \
    TEN(m, n##8)                                                                                   \
    TEN(m, n##9)
#define ALL(m)                                                                                     \
    HUNDRED(m, 1)                                                                                  \
    HUNDRED(m, 2)                                                                                  \
    HUNDRED(m, 3)                                                                                  \
    HUNDRED(m, 4)                                                                                  \
    HUNDRED(m, 5)                                                                                  \
    HUNDRED(m, 6)                                                                                  \
    HUNDRED(m, 7)                                                                                  \
    HUNDRED(m, 8)                                                                                  \
    HUNDRED(m, 9)

ALL(FUNCTION)
static int (*const functions[])(int) = {ALL(NAME)};
_Static_assert(SP_ARRAY_LENGTH(functions) == FUNCTIONS, "as the first lines say");

/* A sample as the drain has it. */
typedef struct drained {
    const sp_sample_record *record;
    uint32_t stack;
    sp_window_link link;
    uint64_t time_ns; /* after the window's start */
} drained;

typedef struct bench {
    sp_modules *modules;
    sp_symbolizer *symbolizer;
    sp_sample_record *stacks[STACKS];
    drained *samples;
    uint64_t *ring; /* their records, one after the other */
    uint32_t sample_count;
    bool is_flat, is_whole;
    sp_otlp_format format;
    sp_window window;
    bool timestamps;
    uint64_t requests, bytes, gzip_bytes;
} bench;

/* Times of the steps of one round. */
typedef struct round_ns {
    uint64_t aggregate, build, encode;
} round_ns;

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

static uint64_t any_function(uint32_t *state)
{
    return (uint64_t)(uintptr_t)functions[next_random(state) % FUNCTIONS] + 1;
}

/* The root is the last of the addresses. */
static void make_stack(bench *b, uint32_t number, uint32_t *state)
{
    sp_sample_record *record = calloc(1, sizeof *record + FRAMES * sizeof(uint64_t));
    if (!record)
        exit(1);
    record->generation = sp_modules_newest_number(b->modules);
    record->periods = 1;
    record->count = record->leaf_count = FRAMES;
    record->end = SP_WALK_COMPLETE;
    bool shares = number > 0 && !b->is_flat;
    const sp_sample_record *other = shares ? b->stacks[next_random(state) % number] : NULL;
    uint32_t shared = shares ? 2 + next_random(state) % (FRAMES - 3) : 0;
    for (uint32_t f = 0; f < FRAMES; f++)
        record->pcs[f] = f + shared >= FRAMES ? other->pcs[f] : any_function(state);
    b->stacks[number] = record;
}

/* As in a thread's ring: each sample has its record, and they are read in their order. */
static void fill_ring(bench *b)
{
    enum { WORDS = sizeof(sp_sample_record) / sizeof(uint64_t) + FRAMES };
    b->ring = calloc(b->sample_count, WORDS * sizeof *b->ring);
    if (!b->ring)
        exit(1);
    for (uint32_t i = 0; i < b->sample_count; i++) {
        uint64_t *record = b->ring + (size_t)i * WORDS;
        memcpy(record, b->stacks[b->samples[i].stack], WORDS * sizeof *record);
        b->samples[i].record = (const sp_sample_record *)(const void *)record;
    }
}

static void make_samples(bench *b)
{
    uint32_t state = 2;
    uint64_t step_ns = 10 * SP_NS_PER_S / b->sample_count;
    b->samples = calloc(b->sample_count, sizeof *b->samples);
    if (!b->samples)
        exit(1);
    for (uint32_t i = 0; i < b->sample_count; i++) {
        drained *sample = &b->samples[i];
        sample->stack = next_random(&state) % STACKS;
        sample->time_ns = i * step_ns + next_random(&state) % 60000 % step_ns;
        uint32_t span = 1 + next_random(&state) % SPANS;
        uint64_t ids[3] = {sp_hash_bytes(&span, sizeof span), span * UINT64_C(0x9e3779b97f4a7c15)};
        ids[2] = sp_hash_bytes(ids, sizeof ids);
        memcpy(sample->link.trace_id, ids, sizeof sample->link.trace_id);
        memcpy(sample->link.span_id, &ids[2], sizeof sample->link.span_id);
    }
}

static void write_hex(FILE *file, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fprintf(file, "%02x", bytes[i]);
    fputc(' ', file);
}

/* Lines: addresses of a stack, leaf first; then, after an empty line, the number of a sample's
 * stack, its ids and its time. */
static void write_content(const bench *b, const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file)
        exit(1);
    for (uint32_t i = 0; i < STACKS; i++)
        for (uint32_t f = 0; f < FRAMES; f++)
            fprintf(file, "%llx%c", (unsigned long long)b->stacks[i]->pcs[f],
                    f + 1 < FRAMES ? ' ' : '\n');
    for (uint32_t i = 0; i < b->sample_count; i++) {
        const drained *sample = &b->samples[i];
        fprintf(file, "%s%u ", i ? "" : "\n", sample->stack);
        write_hex(file, sample->link.trace_id, sizeof sample->link.trace_id);
        write_hex(file, sample->link.span_id, sizeof sample->link.span_id);
        fprintf(file, "%llu\n", (unsigned long long)sample->time_ns);
    }
    if (fclose(file))
        exit(1);
}

static void fold_all(bench *b)
{
    static const sp_window_thread thread = {.tid = 1, .name = "worker"};
    for (const drained *from = b->samples; from < b->samples + b->sample_count; from++) {
        sp_aggregate_sample sample = {
            .record = from->record,
            .generation = sp_modules_generation(b->modules, from->record->generation),
            .thread = &thread,
            .result = SP_JOIN_LINKED,
            .link = from->link,
            .weight = 1,
            .count = 1,
            .counted = 1,
            .time_ns = b->timestamps ? b->window.start_time_ns + from->time_ns : 0,
        };
        if (!sp_aggregate_add(&b->window, &b->window.cpu, &sample, LIMIT))
            exit(1);
    }
}

static void take(void *user, sp_buffer *body, sp_sample_range range)
{
    bench *b = user;
    (void)range;
    b->requests++;
    b->bytes += body->length;
    uLongf length = compressBound(body->length);
    Bytef *packed = malloc(length);
    if (!packed || compress2(packed, &length, body->data, body->length, 6) != Z_OK)
        exit(1);
    b->gzip_bytes += length + 12; /* gzip's frame is 18 bytes, zlib's 6 */
    free(packed);
    sp_buffer_deinit(body);
}

/* Not compressed: that is the exporter's thread. */
static void discard(void *user, sp_buffer *body, sp_sample_range range)
{
    (void)user;
    (void)range;
    sp_buffer_deinit(body);
}

static round_ns run_round(bench *b, sp_request_take take_request)
{
    static const spanprof_attribute name = {.key = "service.name", .value.string_value = "bench"};
    const sp_resource resource = {.attributes = (spanprof_attribute *)&name, .attribute_count = 1};
    const sp_build_options options = {.link_scope = SPANPROF_LINK_SCOPE_ROOT};
    const sp_request_bounds network = {2 * 1024 * 1024, 16000};
    const sp_request_bounds file = {SP_REQUEST_LIMIT_BYTES, 0};
    const sp_request_bounds *bounds = b->is_whole ? &file : &network;
    sp_profile_data data;
    uint64_t start = sp_clock_own_cpu_ns();
    fold_all(b);
    uint64_t aggregated = sp_clock_own_cpu_ns();
    if (!sp_profile_build(&data, &b->window, b->symbolizer, &options))
        exit(1);
    uint64_t built = sp_clock_own_cpu_ns();
    if (sp_requests_make(&data, b->format, &resource, bounds, take_request, b) != 0)
        exit(1);
    uint64_t encoded = sp_clock_own_cpu_ns();
    sp_profile_data_deinit(&data);
    sp_window_clear(&b->window);
    return (round_ns){aggregated - start, built - aggregated, encoded - built};
}

static uint64_t total(const round_ns *r)
{
    return r->aggregate + r->build + r->encode;
}

static double rate(const bench *b, uint64_t ns)
{
    return b->sample_count * 1e3 / (double)ns; /* million samples a second */
}

static void measure(bench *b, bool timestamps, int rounds)
{
    round_ns best = {UINT64_MAX / 4, UINT64_MAX / 4, UINT64_MAX / 4};
    b->timestamps = timestamps;
    b->window.start_time_ns = UINT64_C(1700000000000000000);
    b->window.end_time_ns = b->window.start_time_ns + 10 * SP_NS_PER_S;
    b->window.period_ns = 10101010;
    b->requests = b->bytes = b->gzip_bytes = 0;
    run_round(b, take); /* names are cached from now on */
    for (int i = 0; i < rounds; i++) {
        round_ns now = run_round(b, discard);
        best = total(&now) < total(&best) ? now : best;
    }
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("%-12s %6.2f M samples/s  (aggregate %.2f, build %.2f, encode %.2f)  %llu requests  "
           "%.1f bytes a sample, %.2f after gzip 6  %ld MiB\n",
           timestamps ? "timestamps" : "values", rate(b, total(&best)), rate(b, best.aggregate),
           rate(b, best.build), rate(b, best.encode), (unsigned long long)b->requests,
           (double)b->bytes / b->sample_count, (double)b->gzip_bytes / b->sample_count,
           used.ru_maxrss / 1024);
}

static const char *read_options(bench *b, int argc, char **argv)
{
    const char *content = NULL;
    for (int option; (option = getopt(argc, argv, "n:fwjc:")) != -1;) {
        if (option == 'n')
            b->sample_count = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option == 'f')
            b->is_flat = true;
        else if (option == 'w')
            b->is_whole = true;
        else if (option == 'j')
            b->format = SP_OTLP_JSON;
        else if (option == 'c')
            content = optarg;
        else
            exit(2);
    }
    return content;
}

static void destroy(bench *b)
{
    sp_window_deinit(&b->window);
    sp_symbolizer_destroy(b->symbolizer);
    sp_modules_destroy(b->modules);
    for (uint32_t i = 0; i < STACKS; i++)
        free(b->stacks[i]);
    free(b->samples);
    free(b->ring);
}

int main(int argc, char **argv)
{
    bench b = {.modules = sp_modules_create(),
               .symbolizer = sp_symbolizer_create(),
               .sample_count = 16000};
    const char *content = read_options(&b, argc, argv);
    int rounds = optind < argc ? atoi(argv[optind]) : 50;
    uint32_t state = 1;
    if (!b.modules || !b.symbolizer || !b.sample_count)
        return 1;
    for (uint32_t i = 0; i < STACKS; i++)
        make_stack(&b, i, &state);
    make_samples(&b);
    fill_ring(&b);
    printf("%u samples, %d stacks of %d frames, %d functions, %d spans; CPU time of the best of %d "
           "rounds\n",
           b.sample_count, STACKS, FRAMES, FUNCTIONS, SPANS, rounds);
    if (content)
        write_content(&b, content);
    measure(&b, false, rounds);
    measure(&b, true, rounds);
    destroy(&b);
    return 0;
}
