/* SPDX-License-Identifier: Apache-2.0 */
/* A small shop: an HTTP service with threads, a database and compression, profiled by span.
 *
 *     SPANPROF_EXPORTER=file SPANPROF_FILE=/tmp/shop ./shop --port 8080
 *     curl 'http://127.0.0.1:8080/report?month=12'
 *
 * The code for spanprof is in this file (start and stop), in server.c (a span for each request),
 * and in routes.c (spans for the steps of a request). All other code would be the same without
 * spanprof. */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <spanprof/spanprof.h>

#include "report.h"
#include "routes.h"
#include "server.h"
#include "store.h"

#define SECOND_NS UINT64_C(1000000000)

typedef struct arguments {
    unsigned long port;
    unsigned long threads;
    unsigned long requests;
} arguments;

static const char usage[] =
    "Usage: shop [--port N] [--threads N] [--requests N] [--plants] [--repaired]\n"
    "  --port N      listen on 127.0.0.1:N; 0 takes a free port, which is printed (8080)\n"
    "  --threads N   threads that answer, 1 to 64 (4)\n"
    "  --requests N  stop after N requests; 0 runs until SIGTERM or SIGINT (0)\n"
    "  --plants      also answer /visit?user=N, which leaks, and /rebuild?rounds=1..1000, for "
    "whose "
    "lock\n                /search?word=N waits\n"
    "  --repaired    make /report without its bug\n"
    "Pages: /product?id=1..4000  /cart?user=1..500  /checkout?user=1..500  /report?month=1..12  "
    "/healthz\n"
    "Spans and profiles go where SPANPROF_* and OTEL_* environment variables say.\n";

static unsigned long number(const char *option, const char *text, unsigned long minimum,
                            unsigned long maximum)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (end == text || *end || *text == '-' || value < minimum || value > maximum) {
        fprintf(stderr, "shop: --%s %s: give a number from %lu to %lu\n", option, text, minimum,
                maximum);
        exit(2);
    }
    return value;
}

static arguments read_arguments(int argc, char **argv)
{
    static const struct option options[] = {{"port", required_argument, NULL, 'p'},
                                            {"threads", required_argument, NULL, 't'},
                                            {"requests", required_argument, NULL, 'r'},
                                            {"plants", no_argument, NULL, 'l'},
                                            {"repaired", no_argument, NULL, 'd'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    arguments result = {.port = 8080, .threads = 4};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'p') {
            result.port = number("port", optarg, 0, 65535);
        } else if (option == 't') {
            result.threads = number("threads", optarg, 1, 64);
        } else if (option == 'r') {
            result.requests = number("requests", optarg, 0, UINT32_MAX);
        } else if (option == 'l') {
            routes_add_plants();
        } else if (option == 'd') {
            report_repair();
        } else {
            fputs(usage, option == 'h' ? stdout : stderr);
            exit(option == 'h' ? 0 : 2);
        }
    }
    if (optind < argc) {
        fprintf(stderr, "shop: what is %s?\n%s", argv[optind], usage);
        exit(2);
    }
    return result;
}

/* If the SDK does not start, the shop runs without it. */
static void start_profiling(void)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    spanprof_error error;
    if (!getenv("OTEL_SERVICE_NAME"))
        options.service_name = "shop";
    if (spanprof_start(&options, &error) != SPANPROF_OK)
        fprintf(stderr, "shop: running without profiles: %s\n", error.message);
}

static void stop_profiling(void)
{
    spanprof_status status = spanprof_stop(5 * SECOND_NS);
    if (status != SPANPROF_OK)
        fprintf(stderr, "shop: not all spans and profiles were delivered: %s\n",
                spanprof_status_text(status));
}

/* Block SIGTERM and SIGINT before the first thread starts: all threads inherit the mask, so only
 * sigwait receives these signals. */
static void block_signals(sigset_t *signals)
{
    sigemptyset(signals);
    sigaddset(signals, SIGTERM);
    sigaddset(signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, signals, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static int run(const arguments *arguments, const sigset_t *signals)
{
    server *server =
        server_start((uint16_t)arguments->port, (unsigned)arguments->threads, arguments->requests);
    if (!server)
        return 1;
    printf("shop: listening on http://127.0.0.1:%u\n", server_port(server));
    fflush(stdout);
    int signal_number;
    sigwait(signals, &signal_number);
    printf("shop: %" PRIu64 " requests answered\n", server_stop(server));
    return 0;
}

int main(int argc, char **argv)
{
    arguments arguments = read_arguments(argc, argv);
    sigset_t signals;
    block_signals(&signals);
    start_profiling();
    int code = store_create() ? run(&arguments, &signals) : 1;
    store_destroy();
    stop_profiling();
    return code;
}
