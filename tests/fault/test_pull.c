/* SPDX-License-Identifier: Apache-2.0 */
/* The pull endpoint and clients that do what they should not; and the whole of it, from spans to
 * what a client gets. In the first half the test is the collector, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <spanprof/spanprof.h>
#include "context/thread.h"
#include "core/atomic.h"
#include "core/clock.h"
#include "core/compiler.h"
#include "core/log.h"
#include "core/log_queue.h"
#include "cpu/cpu_engine.h"
#include "export/pull_server.h"
#include "proto/pprof.pb-c.h"
#include "sanitizers.h"
#include "sdk/synthetic.h"
#include "wire/gzip.h"

#define PATIENCE_NS (120 * SP_NS_PER_S)
#define HEAP        "GET /debug/pprof/heap HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
#define PROFILE     "GET /debug/pprof/profile?seconds=%u HTTP/1.0\r\n\r\n"

#if defined(__SANITIZE_ADDRESS__)
enum { LEAKS_ARE_FOUND = 1 };
#else
enum { LEAKS_ARE_FOUND = 0 };
#endif

enum { ANSWER_BYTES = 1 << 20, LARGE = 16 << 20, SOON_MS = 100, LATE_MS = 100000 };

/* ---- what was logged ---- */

static struct {
    pthread_mutex_t lock;
    char text[16384];
    size_t length;
    unsigned warnings;
} said = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void note(spanprof_log_level level, const char *message, void *user)
{
    (void)user;
    pthread_mutex_lock(&said.lock);
    said.warnings += level <= SPANPROF_LOG_WARN;
    if (said.length + strlen(message) + 2 < sizeof said.text)
        said.length += (size_t)sprintf(said.text + said.length, "%s\n", message);
    pthread_mutex_unlock(&said.lock);
}

static unsigned count_said(const char *text)
{
    unsigned count = 0;
    pthread_mutex_lock(&said.lock);
    for (const char *at = said.text; (at = strstr(at, text)); at++)
        count++;
    pthread_mutex_unlock(&said.lock);
    return count;
}

static void forget_said(void)
{
    said.length = said.warnings = 0;
    said.text[0] = 0;
}

/* ---- a client ---- */

static int connect_to(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = 120};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
}

static int ask(uint16_t port, const char *request)
{
    int fd = connect_to(port);
    send(fd, request, strlen(request), MSG_NOSIGNAL);
    return fd;
}

/* All that comes until the end, and the end has to come. FD is closed. */
static size_t receive(int fd, char *out, size_t room)
{
    size_t length = 0;
    ssize_t got;
    while ((got = recv(fd, out + length, room - length - 1, 0)) > 0)
        length += (size_t)got;
    if (got < 0 && errno != ECONNRESET)
        fail_msg("the end did not come: %s", strerror(errno));
    out[length] = 0;
    close(fd);
    return length;
}

static void assert_answer(int fd, const char *start, const char *part)
{
    static char answer[ANSWER_BYTES];
    receive(fd, answer, sizeof answer);
    if (strncmp(answer, start, strlen(start)) != 0 || !strstr(answer, part))
        fail_msg("not %s … %s: %s", start, part, answer);
}

/* The body of a good answer, unzipped. FD is closed. */
static void receive_body(int fd, sp_buffer *out)
{
    static char answer[ANSWER_BYTES];
    size_t length = receive(fd, answer, sizeof answer);
    const char *body = strstr(answer, "\r\n\r\n");
    if (strncmp(answer, "HTTP/1.0 200 OK\r\n", 17) != 0 || !body)
        fail_msg("no good answer: %s", answer);
    body += 4;
    assert_true(sp_gunzip(out, body, length - (size_t)(body - answer)));
    assert_true(sp_buffer_add_char(out, 0));
    out->length--;
}

/* ---- the test as collector ---- */

static _Atomic uint64_t wakes; /* how often the window was to end */

static void end_window(void *user)
{
    (void)user;
    sp_count(&wakes, 1);
}

static void wait_for_wakes(uint64_t count)
{
    uint64_t deadline = sp_clock_monotonic_ns() + PATIENCE_NS;
    while (sp_load_relaxed(&wakes) < count && sp_clock_monotonic_ns() < deadline)
        usleep(1000);
    assert_true(sp_load_relaxed(&wakes) >= count);
}

typedef struct fixture {
    sp_pull_server *server;
    uint32_t run;
    uint16_t port;
} fixture;

static sp_pull_config config_of(const char *address)
{
    sp_pull_config config = {.kinds = 1u << SP_PULL_CPU | 1u << SP_PULL_HEAP,
                             .request_ms = LATE_MS,
                             .window_ms = LATE_MS};
    assert_true(sp_pull_address_parse(&config.address, address));
    return config;
}

static void start_with(fixture *f, const sp_pull_config *config)
{
    f->run = sp_pull_open(end_window, NULL);
    f->server = sp_pull_server_start(config);
    assert_non_null(f->server);
    f->port = sp_pull_server_port(f->server);
}

static int setup(void **state)
{
    static fixture f;
    sp_pull_config config = config_of("127.0.0.1:0");
    forget_said();
    sp_log_configure(SPANPROF_LOG_INFO, note, NULL);
    sp_store_relaxed(&wakes, 0);
    start_with(&f, &config);
    *state = &f;
    return 0;
}

/* The same with the time limits LIMIT_MS. */
static void restart(fixture *f, uint32_t request_ms, uint32_t window_ms)
{
    sp_pull_config config = config_of("127.0.0.1:0");
    config.request_ms = request_ms;
    config.window_ms = window_ms;
    sp_pull_close();
    sp_pull_server_stop(f->server, UINT64_MAX);
    start_with(f, &config);
}

static int teardown(void **state)
{
    fixture *f = *state;
    sp_pull_close();
    if (f->server)
        sp_pull_server_stop(f->server, UINT64_MAX);
    return 0;
}

static sp_pull_order end_wanted_window(const fixture *f, bool is_last)
{
    sp_pull_order order = sp_pull_window_ends(f->run);
    assert_true(order.number > 0);
    assert_int_equal(order.is_last, is_last);
    return order;
}

static void give(const sp_pull_order *order, const char *text)
{
    sp_buffer part = SP_BUFFER_INIT(1000);
    sp_buffer_add_string(&part, text);
    sp_pull_window_done(order, &part);
    sp_buffer_deinit(&part);
}

/* One client gets what the collector gives: the server is well. */
static void assert_serves(const fixture *f)
{
    sp_buffer body = SP_BUFFER_INIT(1 << 20);
    uint64_t before = sp_load_relaxed(&wakes);
    int fd = ask(f->port, HEAP);
    wait_for_wakes(before + 1);
    sp_pull_order order = end_wanted_window(f, true);
    assert_int_equal(order.kind, SP_PULL_HEAP);
    give(&order, "snapshot");
    receive_body(fd, &body);
    assert_string_equal((char *)body.data, "snapshot");
    sp_buffer_deinit(&body);
}

static void pull_gives_a_snapshot_at_once(void **state)
{
    assert_serves(*state);
    assert_int_equal(sp_pull_window_ends(((fixture *)*state)->run).number, 0);
}

static void pull_gives_all_windows_of_the_seconds(void **state)
{
    const fixture *f = *state;
    char request[128];
    sp_buffer body = SP_BUFFER_INIT(1 << 20);
    snprintf(request, sizeof request, PROFILE, 1);
    int fd = ask(f->port, request);
    wait_for_wakes(1);
    assert_int_equal(sp_pull_window_ends(f->run).number, 0); /* it began before the request */
    sp_pull_order first = end_wanted_window(f, false);
    wait_for_wakes(2);
    sp_pull_order last = end_wanted_window(f, true);
    assert_int_equal(sp_pull_window_ends(f->run).number, 0);
    give(&first, "first,");
    give(&last, "last");
    receive_body(fd, &body);
    assert_string_equal((char *)body.data, "first,last");
    sp_buffer_deinit(&body);
}

static void pull_answers_garbage_with_a_sentence(void **state)
{
    const fixture *f = *state;
    static char too_long[2 * SP_PULL_HEAD_BYTES];
    memset(too_long, 'x', sizeof too_long - 1);
    static const struct {
        const char *request, *start, *part;
    } cases[] = {
        {"\r\n\r\n", "HTTP/1.0 400 ", "spanprof: "},
        {"\x16\x03\x01\x02\n\n", "HTTP/1.0 400 ", "spanprof: "},
        {too_long, "HTTP/1.0 400 ", "4096 bytes"},
        {"PUT /debug/pprof/heap HTTP/1.1\r\n\r\nbody", "HTTP/1.0 405 ", "only GET"},
        {"HEAD /debug/pprof/heap HTTP/1.1\r\n\r\n", "HTTP/1.0 405 ", "\r\nAllow: GET\r\n"},
        {"GET /debug/pprof/heap HTTP/1.1\r\nHost : ::1\r\n\r\n", "HTTP/1.0 400 ", "right behind"},
        {"GET /etc/passwd HTTP/1.1\r\n\r\n", "HTTP/1.0 404 ", "/debug/pprof/"},
        {"GET /debug/pprof/heap HTTP/1.1\r\nHost: evil.example\r\n\r\n", "HTTP/1.0 403 ", "Host"},
        {"GET /debug/pprof/mutex HTTP/1.1\r\n\r\n", "HTTP/1.0 404 ", "lock in SPANPROF_PROFILES"},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(cases); i++)
        assert_answer(ask(f->port, cases[i].request), cases[i].start, cases[i].part);
    close(connect_to(f->port));
    assert_serves(f);
}

static void pull_gives_up_a_client_that_sends_half_a_request(void **state)
{
    fixture *f = *state;
    restart(f, SOON_MS, LATE_MS);
    assert_answer(ask(f->port, "GET /debug"), "HTTP/1.0 400 ", "no whole request");
    assert_serves(f);
}

static bool is_open(int fd)
{
    char one;
    return recv(fd, &one, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* Its time for the request is longer than the test waits for the others. */
static void pull_serves_others_while_a_client_says_nothing(void **state)
{
    const fixture *f = *state;
    int silent = connect_to(f->port), half = ask(f->port, "GET /debug/pprof/heap HTTP/1.1\r\n");
    assert_serves(f);
    assert_true(is_open(silent) && is_open(half));
    send(half, "\r\n", 2, MSG_NOSIGNAL);
    wait_for_wakes(2);
    sp_pull_order order = end_wanted_window(f, true);
    give(&order, "snapshot");
    assert_answer(half, "HTTP/1.0 200 ", "");
    assert_true(is_open(silent));
    close(silent);
}

static void pull_gives_up_the_oldest_of_many_that_say_nothing(void **state)
{
    const fixture *f = *state;
    enum { MANY = 20 };
    int silent[MANY];
    for (int i = 0; i < MANY; i++)
        silent[i] = connect_to(f->port);
    assert_serves(f);
    assert_answer(silent[0], "HTTP/1.0 400 ", "no whole request");
    assert_true(is_open(silent[MANY - 1]));
    for (int i = 1; i < MANY; i++)
        close(silent[i]);
}

static void pull_gives_up_a_client_that_does_not_read(void **state)
{
    fixture *f = *state;
    static uint8_t noise[LARGE];
    sp_buffer part = {.data = noise, .length = LARGE, .maximum = LARGE};
    for (uint64_t i = 0, z = 1; i < LARGE; i++, z = z * UINT64_C(6364136223846793005) + 1)
        noise[i] = (uint8_t)(z >> 56); /* gzip makes nothing smaller of it */
    restart(f, SOON_MS, LATE_MS);
    int fd = ask(f->port, HEAP);
    wait_for_wakes(1);
    sp_pull_order order = end_wanted_window(f, true);
    sp_pull_window_done(&order, &part);
    assert_serves(f);
    close(fd);
}

/* By Ctrl-C the end of its data comes, else a reset. */
static void check_forgets(const fixture *f, bool by_reset)
{
    char request[128];
    snprintf(request, sizeof request, PROFILE, SP_PULL_MAX_SECONDS);
    uint64_t before = sp_load_relaxed(&wakes);
    int fd = ask(f->port, request);
    wait_for_wakes(before + 1);
    assert_int_equal(sp_pull_window_ends(f->run).number, 0);
    sp_pull_order order = end_wanted_window(f, false);
    struct linger reset = {.l_onoff = by_reset};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd);
    assert_serves(f);
    give(&order, "late"); /* of an order that is over: nothing happens */
    assert_serves(f);
}

static void pull_forgets_a_client_that_goes_away(void **state)
{
    check_forgets(*state, false);
    check_forgets(*state, true);
}

static void pull_says_when_the_window_does_not_end(void **state)
{
    fixture *f = *state;
    restart(f, LATE_MS, SOON_MS);
    assert_answer(ask(f->port, HEAP), "HTTP/1.0 503 ", "not ended in time");
}

static void pull_says_when_memory_is_short(void **state)
{
    const fixture *f = *state;
    sp_buffer failed = {.failed = true};
    int fd = ask(f->port, HEAP);
    wait_for_wakes(1);
    sp_pull_order order = end_wanted_window(f, true);
    sp_pull_window_done(&order, &failed);
    assert_answer(fd, "HTTP/1.0 503 ", "memory is short");
    assert_serves(f);
}

static void pull_stops_while_clients_are_connected(void **state)
{
    fixture *f = *state;
    static char answer[ANSWER_BYTES];
    char request[128];
    snprintf(request, sizeof request, PROFILE, SP_PULL_MAX_SECONDS);
    int waits = ask(f->port, request), silent = connect_to(f->port);
    wait_for_wakes(1);
    sp_pull_close();
    sp_pull_server_stop(f->server, UINT64_MAX);
    f->server = NULL;
    receive(waits, answer, sizeof answer);
    receive(silent, answer, sizeof answer);
    assert_int_equal(sp_pull_window_ends(f->run).number, 0);
}

static void pull_without_its_port_says_so(void **state)
{
    const fixture *f = *state;
    char address[64];
    snprintf(address, sizeof address, "127.0.0.1:%u", f->port);
    sp_pull_config config = config_of(address);
    assert_null(sp_pull_server_start(&config));
    assert_int_equal(count_said("Address already in use"), 1);
    assert_int_equal(count_said(address), 1);
    assert_serves(f);
}

static void pull_on_other_addresses_warns(void **state)
{
    (void)state;
    sp_pull_config config = config_of("0.0.0.0:0");
    sp_pull_server *server = sp_pull_server_start(&config);
    assert_non_null(server);
    assert_int_equal(count_said("everybody who reaches this address"), 1);
    sp_pull_server_stop(server, UINT64_MAX);
}

/* ---- the SDK ---- */

static uint16_t start_sdk(const char *address)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    sp_log_settle(UINT64_MAX);
    forget_said();
    setenv("SPANPROF_PULL", address, 1);
    setenv("SPANPROF_EXPORTER", "none", 1);
    options.log = note;
    options.log_level = SPANPROF_LOG_INFO;
    sp_sdk_use_synthetic_ticks();
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    const char *port = strstr(said.text, "pulled from port ");
    return port ? (uint16_t)atoi(port + strlen("pulled from port ")) : 0;
}

static void tick_in_span(uint32_t periods)
{
    spanprof_span span = spanprof_span_start(NULL, "work", NULL);
    spanprof_scope scope = spanprof_span_attach(span);
    sp_engine_tick_here(periods);
    spanprof_scope_detach(&scope);
    spanprof_span_end(span);
}

/* Of samples; and how many of them have LABEL. */
static int64_t sum_of(const sp_buffer *body, const char *label, size_t *labelled)
{
    Sp__Pprof__Profile *profile = sp__pprof__profile__unpack(NULL, body->length, body->data);
    int64_t sum = 0;
    assert_non_null(profile);
    assert_int_equal(profile->n_sample_type, 2);
    for (size_t i = 0; i < profile->n_sample; i++) {
        sum += profile->sample[i]->value[0];
        for (size_t k = 0; k < profile->sample[i]->n_label; k++)
            *labelled +=
                strcmp(profile->string_table[profile->sample[i]->label[k]->key], label) == 0;
    }
    sp__pprof__profile__free_unpacked(profile, NULL);
    return sum;
}

static bool has_arrived(int fd)
{
    char one;
    return recv(fd, &one, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* A profile of a second into BODY; how many ticks there were in spans meanwhile. Windows end with
 * each flush, too, so that the answer is made of many. */
static uint32_t pull_while_ticking(uint16_t port, sp_buffer *body)
{
    char request[128];
    uint32_t ticks = 0;
    snprintf(request, sizeof request, PROFILE, 1);
    int fd = ask(port, request);
    while (!has_arrived(fd)) {
        tick_in_span(1);
        ticks++;
        assert_int_equal(spanprof_flush(UINT64_MAX), SPANPROF_OK);
        usleep(5000); /* so that they are not thousands */
    }
    receive_body(fd, body);
    return ticks;
}

/* Ticks before the request are in a window that it does not want. */
static void pull_from_the_sdk_has_the_samples_of_the_seconds(void **state)
{
    (void)state;
    uint16_t port = start_sdk("127.0.0.1:0");
    sp_buffer body = SP_BUFFER_INIT(1 << 24);
    size_t linked = 0, with_thread = 0;
    assert_true(port > 0);
    for (int i = 0; i < 5; i++)
        tick_in_span(1000000);
    assert_int_equal(spanprof_flush(UINT64_MAX), SPANPROF_OK);
    uint32_t ticks = pull_while_ticking(port, &body);
    assert_in_range(sum_of(&body, "span_id", &linked), 1, ticks);
    assert_in_range(linked, 1, ticks);
    sum_of(&body, "thread.id", &with_thread);
    assert_int_equal(with_thread, linked);
    sp_buffer_deinit(&body);
    assert_int_equal(spanprof_stop(UINT64_MAX), SPANPROF_OK);
}

static void pull_follows_link_scope_and_thread_attributes(void **state)
{
    (void)state;
    setenv("SPANPROF_LINK_SCOPE", "none", 1);
    setenv("SPANPROF_THREAD_ATTRIBUTES", "0", 1);
    uint16_t port = start_sdk("127.0.0.1:0");
    sp_buffer body = SP_BUFFER_INIT(1 << 24);
    size_t labelled = 0;
    pull_while_ticking(port, &body);
    assert_true(sum_of(&body, "span_id", &labelled) > 0);
    sum_of(&body, "thread.id", &labelled);
    assert_int_equal(labelled, 0);
    sp_buffer_deinit(&body);
    assert_int_equal(spanprof_stop(UINT64_MAX), SPANPROF_OK);
    unsetenv("SPANPROF_LINK_SCOPE");
    unsetenv("SPANPROF_THREAD_ATTRIBUTES");
}

static void pull_starts_again_on_its_port_after_a_stop_that_does_not_wait(void **state)
{
    (void)state;
    uint16_t port = start_sdk("127.0.0.1:0");
    char address[64];
    /* A stop that does not wait leaves memory to threads that have not ended. */
    uint64_t timeout_ns = LEAKS_ARE_FOUND ? UINT64_MAX : 0;
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    for (int i = 0; i < 3; i++) {
        spanprof_stop(i ? timeout_ns : UINT64_MAX);
        assert_int_equal(start_sdk(address), port);
    }
    spanprof_stop(UINT64_MAX);
}

static void start_beside_the_parent(const char *address)
{
    if (why_forked_child_cannot_start())
        _exit(0);
    bool fine = start_sdk(address) == 0 && said.warnings == 0 &&
                count_said("a process that this one comes from has the port") == 1;
    _exit(fine && spanprof_stop(UINT64_MAX) == SPANPROF_OK ? 0 : 1);
}

static void assert_port_is_free(uint16_t port)
{
    char address[64];
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    sp_pull_config config = config_of(address);
    sp_pull_server *server = sp_pull_server_start(&config);
    assert_non_null(server);
    sp_pull_server_stop(server, UINT64_MAX);
}

/* A child that starts the SDK finds the port taken, which is no warning, and goes on. One that
 * lives on does not keep it. */
static void pull_is_the_parents_after_a_fork(void **state)
{
    (void)state;
    uint16_t port = start_sdk("127.0.0.1:0");
    char address[64], byte;
    int ends[2], status = -1;
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    assert_return_code(pipe(ends), 0);
    pid_t starts = fork();
    if (starts == 0)
        start_beside_the_parent(address);
    pid_t waits = fork();
    if (waits == 0) {
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(starts, &status, 0), starts);
    assert_int_equal(status, 0);
    assert_int_equal(spanprof_stop(UINT64_MAX), SPANPROF_OK);
    assert_port_is_free(port);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(waitpid(waits, &status, 0), waits);
    assert_int_equal(status, 0);
}

static void pull_from_an_address_that_is_none_is_off(void **state)
{
    (void)state;
    assert_int_equal(start_sdk("everywhere"), 0);
    assert_int_equal(count_said("SPANPROF_PULL=everywhere is no address"), 1);
    assert_int_equal(spanprof_stop(UINT64_MAX), SPANPROF_OK);
    assert_int_equal(start_sdk("off"), 0);
    assert_int_equal(count_said("SPANPROF_PULL"), 0);
    assert_int_equal(spanprof_stop(UINT64_MAX), SPANPROF_OK);
}

#define SERVES(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVES(pull_gives_a_snapshot_at_once),
        SERVES(pull_gives_all_windows_of_the_seconds),
        SERVES(pull_answers_garbage_with_a_sentence),
        SERVES(pull_gives_up_a_client_that_sends_half_a_request),
        SERVES(pull_serves_others_while_a_client_says_nothing),
        SERVES(pull_gives_up_the_oldest_of_many_that_say_nothing),
        SERVES(pull_gives_up_a_client_that_does_not_read),
        SERVES(pull_forgets_a_client_that_goes_away),
        SERVES(pull_says_when_the_window_does_not_end),
        SERVES(pull_says_when_memory_is_short),
        SERVES(pull_stops_while_clients_are_connected),
        SERVES(pull_without_its_port_says_so),
        SERVES(pull_on_other_addresses_warns),
        cmocka_unit_test(pull_from_the_sdk_has_the_samples_of_the_seconds),
        cmocka_unit_test(pull_follows_link_scope_and_thread_attributes),
        cmocka_unit_test(pull_starts_again_on_its_port_after_a_stop_that_does_not_wait),
        cmocka_unit_test(pull_is_the_parents_after_a_fork),
        cmocka_unit_test(pull_from_an_address_that_is_none_is_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
