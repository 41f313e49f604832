/* SPDX-License-Identifier: Apache-2.0 */
/* live_work OPERATIONS SLOTS PERIOD: 8 threads allocate blocks of 16 bytes to 16 KiB, put each into
 * one of SLOTS places and free the block that was there, whoever allocated it. Then it knows what
 * is live: it prints that, has a snapshot taken, frees all, and has another one taken. PERIOD is
 * SPANPROF_ALLOC_BYTES: by it the error that sampling may have is known, too. */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <spanprof/spanprof.h>

enum { THREADS = 8 };

/* At the begin of a block. */
typedef struct live_block {
    uint64_t bytes;
} live_block;

static _Atomic(live_block *) *slots;
static uint64_t slot_count, operations_each;

static uint64_t next(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

/* Each power of two is as likely as any other. */
static uint64_t draw_bytes(uint64_t *random)
{
    uint64_t low = UINT64_C(16) << next(random) % 10;
    return low + next(random) % low;
}

__attribute__((noinline)) static void live_churn(uint64_t *random)
{
    for (uint64_t i = 0; i < operations_each; i++) {
        uint64_t bytes = draw_bytes(random);
        live_block *block = malloc(bytes);
        if (!block)
            abort();
        block->bytes = bytes;
        free(atomic_exchange(&slots[next(random) % slot_count], block));
    }
}

static void *run(void *argument)
{
    uint64_t random = 0x9e3779b97f4a7c15 * ((uint64_t)(uintptr_t)argument + 1);
    SPANPROF_SPAN("churn") {
        live_churn(&random);
    }
    return NULL;
}

/* What is live, and the standard errors of what is estimated: a block of S bytes counts S/p bytes
 * with probability p = 1 - exp(-S/PERIOD). */
static void print_live(double period)
{
    double bytes = 0, blocks = 0, bytes_variance = 0, blocks_variance = 0;
    for (uint64_t i = 0; i < slot_count; i++) {
        if (!slots[i])
            continue;
        double size = (double)slots[i]->bytes, p = -expm1(-size / period);
        bytes += size;
        blocks += 1;
        bytes_variance += size * size * (1 - p) / p;
        blocks_variance += (1 - p) / p;
    }
    printf("{\"bytes\": %.0f, \"blocks\": %.0f, \"bytes_error\": %.1f, \"blocks_error\": %.1f, ",
           bytes, blocks, sqrt(bytes_variance), sqrt(blocks_variance));
}

static void print_freed(uint64_t freed_ns)
{
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_stats_get(&stats);
    printf("\"freed_unix_nano\": %" PRIu64 ", \"live_blocks\": %" PRIu64
           ", \"dropped_live_blocks\": %" PRIu64 ", \"dropped_calls\": %" PRIu64 "}\n",
           freed_ns, stats.live_blocks, stats.dropped_live_blocks, stats.dropped_calls);
}

static void churn(void)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run, (void *)i); // NOLINT
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    if (argc != 4 || spanprof_start(NULL, NULL) != SPANPROF_OK)
        return 2;
    slot_count = strtoull(argv[2], NULL, 10);
    operations_each = strtoull(argv[1], NULL, 10) / THREADS;
    slots = calloc(slot_count, sizeof *slots);
    churn();
    spanprof_flush(UINT64_MAX);
    print_live(strtod(argv[3], NULL));
    for (uint64_t i = 0; i < slot_count; i++)
        free(slots[i]);
    free(slots);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t freed_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    spanprof_flush(UINT64_MAX);
    print_freed(freed_ns);
    spanprof_stop(UINT64_MAX);
    return 0;
}
