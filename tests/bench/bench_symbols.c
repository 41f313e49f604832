/* SPDX-License-Identifier: Apache-2.0 */
/* What naming addresses of a big program costs: asked for the first time (cold), again (warm), and
 * what memory that takes. bench_symbols PROGRAM ADDRESSES [ANSWERS] ADDRESSES has one hexadecimal
 * ELF address a line. Figures go to standard output, "name value" a line; the frames to ANSWERS in
 * the form of `addr2line -afie`, linkage names where there are some. bench_symbols.py asks the same
 * of other tools and compares. */
#include <stdio.h>
#include <time.h>

#include "symbol/symbolizer.h"
#include "unit/symbol/test_module.h"

enum { ADDRESSES_MAX = 1000000, WARM_ROUNDS = 20 };

typedef struct questions {
    uint64_t *addresses;
    uint32_t count;
} questions;

static double now_ms(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static questions read_questions(const char *path)
{
    questions q = {.addresses = calloc(ADDRESSES_MAX, sizeof *q.addresses)};
    FILE *file = fopen(path, "r");
    unsigned long long address;
    while (q.addresses && file && q.count < ADDRESSES_MAX && fscanf(file, "%llx", &address) == 1)
        q.addresses[q.count++] = address;
    if (file)
        fclose(file);
    return q;
}

/* A line of /proc/self/status in KiB, printed as NAME. */
static void print_memory(const char *name, const char *field)
{
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, field, strlen(field)) == 0 && line[strlen(field)] == ':')
            printf("%s %ld\n", name, atol(line + strlen(field) + 1));
    if (status)
        fclose(status);
}

static uint64_t ask(sp_symbolizer *symbolizer, const sp_module *module, const questions *q)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < q->count; i++) {
        const sp_frame *frames;
        sum += sp_symbolizer_frames(symbolizer, module, q->addresses[i], &frames);
    }
    return sum;
}

static void print_answers(const char *path, sp_symbolizer *symbolizer, const sp_module *module,
                          const questions *q)
{
    FILE *out = fopen(path, "w");
    for (uint32_t i = 0; out && i < q->count; i++) {
        const sp_frame *frames;
        uint32_t count = sp_symbolizer_frames(symbolizer, module, q->addresses[i], &frames);
        fprintf(out, "0x%016llx\n", (unsigned long long)q->addresses[i]);
        for (uint32_t f = 0; f < count; f++)
            fprintf(out, "%s\n%s:%u\n",
                    frames[f].system_name[0] ? frames[f].system_name : frames[f].name,
                    frames[f].file[0] ? frames[f].file : "??", frames[f].line);
    }
    if (!out || fclose(out) != 0)
        perror(path);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s PROGRAM ADDRESSES [ANSWERS]\n", argv[0]);
        return 1;
    }
    questions q = read_questions(argv[2]);
    sp_module *module = test_module_make(argv[1], 0, UINT64_MAX, 0);
    sp_symbolizer *symbolizer = sp_symbolizer_create();
    if (!q.count || !symbolizer)
        return 1;
    print_memory("before_private_kib", "RssAnon");
    double begin = now_ms(CLOCK_MONOTONIC), cpu_begin = now_ms(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t frames = ask(symbolizer, module, &q);
    printf("frames %llu\n", (unsigned long long)frames);
    printf("cold_ms %.1f\ncold_cpu_ms %.1f\n", now_ms(CLOCK_MONOTONIC) - begin,
           now_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin);
    print_memory("cold_private_kib", "RssAnon");
    print_memory("cold_file_kib", "RssFile");
    double best = 1e9, worst = 0;
    for (int round = 0; round < WARM_ROUNDS; round++) {
        begin = now_ms(CLOCK_MONOTONIC);
        ask(symbolizer, module, &q);
        double took = now_ms(CLOCK_MONOTONIC) - begin;
        best = took < best ? took : best;
        worst = took > worst ? took : worst;
    }
    printf("warm_ms %.2f\nwarm_worst_ms %.2f\n", best, worst);
    print_memory("peak_kib", "VmHWM");
    if (argc > 3)
        print_answers(argv[3], symbolizer, module, &q);
    for (int round = 0; round < 6; round++)
        sp_symbolizer_rest(symbolizer);
    print_memory("closed_private_kib", "RssAnon");
    print_memory("closed_file_kib", "RssFile");
    sp_symbolizer_destroy(symbolizer);
    free(q.addresses);
    free(module);
    return 0;
}
