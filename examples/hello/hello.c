/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest program that is profiled by span: start, one span around the work, stop.
 *
 *     SPANPROF_EXPORTER=file SPANPROF_FILE=/tmp/hello ./hello
 *     spanprof flame /tmp/hello.*.jsonl
 *
 * Without the environment variables the spans and profiles go to http://localhost:4318 (OTLP). */
#include <spanprof/spanprof.h>

#include <inttypes.h>
#include <stdio.h>

#define SECOND_NS UINT64_C(1000000000)

static uint64_t count_primes(uint64_t limit)
{
    uint64_t primes = 0;
    for (uint64_t n = 2; n < limit; n++) {
        uint64_t divisor = 2;
        while (divisor * divisor <= n && n % divisor != 0)
            divisor++;
        primes += divisor * divisor > n;
    }
    return primes;
}

int main(void)
{
    spanprof_error error;
    if (spanprof_start(NULL, &error) != SPANPROF_OK)
        fprintf(stderr, "hello: running without profiles: %s\n", error.message);

    uint64_t primes = 0;
    SPANPROF_SPAN("count primes") {
        primes = count_primes(3000000);
    }
    printf("hello: %" PRIu64 " primes\n", primes);

    spanprof_status status = spanprof_stop(5 * SECOND_NS);
    if (status != SPANPROF_OK)
        fprintf(stderr, "hello: %s\n", spanprof_status_text(status));
    return 0;
}
