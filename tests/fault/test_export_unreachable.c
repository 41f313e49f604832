/* SPDX-License-Identifier: Apache-2.0 */
/* The exporter when nobody answers at all: a closed port, a host without address, a name server
 * that hangs. What matters to the host: the stop returns by its deadline, one line is said, and
 * everything is counted. A stop that does not return ends the test by the test's time limit. */
#include "fault/export_fixture.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/compiler.h"

static sem_t resolver_entered, resolver_may_go, resolver_left;
static _Atomic bool resolver_knows; /* returns.invalid */

/* In place of the C library's: libcurl's resolver thread calls it. */
__attribute__((visibility("default"))) int getaddrinfo(const char *node, const char *service,
                                                       const struct addrinfo *hints,
                                                       struct addrinfo **result)
{
    if (strcmp(node, "hangs.invalid") == 0) {
        sem_post(&resolver_entered);
        while (sem_wait(&resolver_may_go) != 0)
            ;
        sem_post(&resolver_left);
        return EAI_AGAIN;
    }
    if (strcmp(node, "nowhere.invalid") == 0)
        return EAI_NONAME;
    if (strcmp(node, "returns.invalid") == 0) {
        if (!atomic_load(&resolver_knows))
            return EAI_AGAIN;
        node = "127.0.0.1";
    }
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
        (int (*)(const char *, const char *, const struct addrinfo *, struct addrinfo **))dlsym(
            RTLD_NEXT, "getaddrinfo");
    return real(node, service, hints, result);
}

/* A port that nobody listens on, and nobody else can get while FD is open. */
static unsigned closed_port(int *fd)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(*fd, (struct sockaddr *)&address, sizeof address), 0);
    getsockname(*fd, (struct sockaddr *)&address, &length);
    return ntohs(address.sin_port);
}

static void dead_endpoint_is_said_once_and_counted(void **state)
{
    fixture *f = *state;
    int fd;
    snprintf(f->url[SP_PROFILES], sizeof f->url[0], "http://127.0.0.1:%u" PROFILES,
             closed_port(&fd));
    hold_time(f);
    fixture_start(f);
    for (int i = 0; i < 2; i++)
        submit(f, "profile");
    skip_time(f);
    assert_int_equal(flush(f), SPANPROF_ERROR_EXPORT);
    assert_int_equal(log_awaited("Connection refused; trying again", 1), 1);
    assert_int_equal(log_awaited("", 1), 1);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.dropped_unreachable, 2);
    assert_int_equal(log_awaited("stopping: 2 requests for http://127.0.0.1:", 1), 1);
    assert_int_equal(log_awaited("since the last warning: Connection refused", 1), 1);
    assert_int_equal(log_awaited("", 2), 2);
    close(fd);
}

static void dead_endpoint_stop_does_not_wait_for_its_deadline(void **state)
{
    fixture *f = *state;
    int fd;
    snprintf(f->url[SP_PROFILES], sizeof f->url[0], "http://127.0.0.1:%u" PROFILES,
             closed_port(&fd));
    f->config.http[SP_PROFILES].timeout_ms = 0; /* no limit but the five attempts */
    fixture_start(f);
    for (int i = 0; i < 100; i++)
        submit(f, "profile");
    assert_int_equal(fixture_stop(f, UINT64_MAX), SPANPROF_ERROR_EXPORT);
    assert_int_equal(f->counted.dropped_unreachable, 100);
    assert_int_equal(log_awaited("stopping with 100 requests", 1), 1);
    assert_int_equal(log_awaited("not delivered: Connection refused; dropped and counted", 1), 1);
    close(fd);
}

static void host_without_address_is_said_and_counted(void **state)
{
    fixture *f = *state;
    snprintf(f->url[SP_PROFILES], sizeof f->url[0], "http://nowhere.invalid:4318" PROFILES);
    hold_time(f);
    skip_time(f);
    fixture_start(f);
    submit(f, "profile");
    assert_int_equal(flush(f), SPANPROF_ERROR_EXPORT);
    assert_int_equal(log_awaited("Could not resolve host: nowhere.invalid", 1), 1);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.dropped_unreachable, 1);
}

static void name_server_fails_and_comes_back_all_arrives(void **state)
{
    fixture *f = *state;
    snprintf(f->url[SP_PROFILES], sizeof f->url[0], "http://returns.invalid:%u" PROFILES,
             server_port(f->server));
    hold_time(f);
    fixture_start(f);
    submit(f, "first");
    submit(f, "second");
    assert_int_equal(log_awaited("Could not resolve host: returns.invalid; trying again", 1), 1);
    assert_int_equal(server_count(f->server, PROFILES), 0);
    atomic_store(&resolver_knows, true);
    skip_time(f);
    assert_int_equal(flush(f), SPANPROF_OK);
    assert_int_equal(log_awaited("delivering again", 1), 1);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.requests, 2);
}

/* Each request has its attempts, and is dropped; what comes after the outage arrives. That all are
 * counted fixture_stop checks. */
static void receiver_is_away_for_ten_minutes_what_comes_later_arrives(void **state)
{
    fixture *f = *state;
    enum { MOST = 50 };
    hold_time(f);
    skip_time(f);
    fixture_start(f);
    uint64_t begin_ns = sp_clock_monotonic_ns();
    while (sp_clock_monotonic_ns() - begin_ns < 600 * SP_NS_PER_S) {
        submit(f, "lost");
        if (f->submitted % MOST == 0)
            flush(f);
        usleep(1000);
    }
    flush(f);
    assert_true(log_awaited("Connection refused", 1) <= 12); /* said by one line a minute */
    server_listen(f->server);
    submit(f, "later");
    assert_int_equal(flush(f), SPANPROF_OK);
    assert_int_equal(log_awaited("delivering again", 1), 1);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.requests, 1);
    assert_int_equal(f->counted.dropped_unreachable, f->submitted - 1);
}

static void name_server_hangs_stop_returns_by_its_deadline(void **state)
{
    fixture *f = *state;
    snprintf(f->url[SP_PROFILES], sizeof f->url[0], "http://hangs.invalid:4318" PROFILES);
    fixture_start(f);
    submit(f, "profile");
    sem_wait(&resolver_entered);
    fixture_stop(f,
                 0); /* with a wait for the resolver this would never return: it is let go below */
    assert_int_equal(f->counted.dropped_unreachable, 1);
    /* The thread left behind finds the exporter gone, and must not touch it. */
    sem_post(&resolver_may_go);
    sem_wait(&resolver_left);
    usleep(100000); /* not for the test to be right, but for a sanitizer to see */
}

static void receiver_hangs_stop_returns_by_its_deadline(void **state)
{
    fixture *f = *state;
    static const server_step step = {.kind = STEP_HANG};
    server_script(f->server, PROFILES, &step, 1);
    server_script(f->server, TRACES, &step, 1);
    f->config.http[SP_PROFILES].timeout_ms = f->config.http[SP_TRACES].timeout_ms = 0;
    fixture_start(f);
    submit(f, "profile");
    end_spans(f, "span", 1);
    uint64_t soon = sp_clock_monotonic_ns() + 50 * SP_NS_PER_MS;
    assert_int_equal(sp_exporter_flush(f->exporter, soon), SPANPROF_ERROR_TIMEOUT);
    server_wait(f->server, PROFILES, 1);
    server_wait(f->server, TRACES, 1);
    assert_int_equal(fixture_stop(f, 50 * SP_NS_PER_MS), SPANPROF_ERROR_TIMEOUT);
    assert_int_equal(f->counted.dropped_unreachable, 2);
}

static void stop_without_time_everything_left_is_counted(void **state)
{
    fixture *f = *state;
    fixture_start(f);
    end_spans(f, "span", 10);
    submit(f, "profile");
    fixture_stop(f, 0);
}

static void stop_with_time_delivers_what_is_left(void **state)
{
    fixture *f = *state;
    fixture_start(f);
    end_spans(f, "span", 10);
    submit(f, "profile");
    assert_int_equal(fixture_stop(f, PATIENCE_NS), SPANPROF_OK);
    assert_int_equal(f->counted.requests, 2);
    assert_int_equal(f->counted.spans, 10);
}

static void nothing_to_do_flush_and_stop_return(void **state)
{
    fixture *f = *state;
    fixture_start(f);
    assert_int_equal(sp_exporter_flush(f->exporter, UINT64_MAX), SPANPROF_OK);
    sp_exporter_destroy(NULL, 0, NULL);
    fixture_stop(f, UINT64_MAX);
    assert_int_equal(server_count(f->server, TRACES) + server_count(f->server, PROFILES), 0);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)

int main(void)
{
    sem_init(&resolver_entered, 0, 0);
    sem_init(&resolver_may_go, 0, 0);
    sem_init(&resolver_left, 0, 0);
    const struct CMUnitTest tests[] = {
        CASE(dead_endpoint_is_said_once_and_counted),
        CASE(dead_endpoint_stop_does_not_wait_for_its_deadline),
        CASE(host_without_address_is_said_and_counted),
        CASE(name_server_fails_and_comes_back_all_arrives),
        cmocka_unit_test_setup_teardown(receiver_is_away_for_ten_minutes_what_comes_later_arrives,
                                        fixture_setup_absent, fixture_teardown),
        CASE(name_server_hangs_stop_returns_by_its_deadline),
        CASE(receiver_hangs_stop_returns_by_its_deadline),
        CASE(stop_without_time_everything_left_is_counted),
        CASE(stop_with_time_delivers_what_is_left),
        CASE(nothing_to_do_flush_and_stop_return),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
