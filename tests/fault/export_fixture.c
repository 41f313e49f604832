/* SPDX-License-Identifier: Apache-2.0 */
#include "fault/export_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <spanprof/tracer.h>
#include "core/buffer.h"
#include "core/log.h"
#include "core/log_queue.h"
#include "trace/provider.h"

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static sp_buffer log_text = SP_BUFFER_INIT(1 << 20);

static void capture(spanprof_log_level level, const char *line, void *user)
{
    (void)user;
    pthread_mutex_lock(&log_lock);
    sp_buffer_printf(&log_text, "%s\n", line);
    pthread_mutex_unlock(&log_lock);
    if (getenv("TEST_SHOW_LOG"))
        fprintf(stderr, "[log %d] %s\n", level, line);
}

unsigned log_count(const char *text)
{
    unsigned count = 0;
    pthread_mutex_lock(&log_lock);
    for (char *line = (char *)log_text.data; line && *line;) {
        size_t length = strcspn(line, "\n");
        count += memmem(line, length, text, strlen(text)) != NULL;
        line += length + (line[length] != 0);
    }
    pthread_mutex_unlock(&log_lock);
    return count;
}

unsigned log_awaited(const char *text, unsigned least)
{
    enum { PATIENCE_MS = 60 * 1000 };
    for (int ms = 0; log_count(text) < least && ms < PATIENCE_MS; ms++) {
        sp_log_settle(UINT64_MAX); /* a stop that came too late has left lines */
        usleep(1000);
    }
    return log_count(text);
}

/* Also what a stop without time, of the case before, has left to be said. */
void log_forget(void)
{
    sp_log_settle(UINT64_MAX);
    pthread_mutex_lock(&log_lock);
    sp_buffer_deinit(&log_text);
    pthread_mutex_unlock(&log_lock);
}

/* --- time ------------------------------------------------------------------------------------- */

#define WAITS_FOR_WORK_NS (3600 * SP_NS_PER_S)

static _Atomic uint64_t held_ns; /* what the clock shows; 0: the real one does */
static _Atomic bool skips;
static pthread_t main_thread;

/* The linker sends the exporter here (CMakeLists.txt). */
uint64_t __real_sp_clock_monotonic_ns(void);
uint64_t __wrap_sp_clock_monotonic_ns(void);
int __real_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
                                  const struct timespec *deadline);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
                                  const struct timespec *deadline);

uint64_t __wrap_sp_clock_monotonic_ns(void)
{
    uint64_t now_ns = atomic_load(&held_ns);
    return now_ns ? now_ns : __real_sp_clock_monotonic_ns();
}

/* The main thread waits in a flush, and has its patience in real time. */
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
                                  const struct timespec *deadline)
{
    uint64_t now_ns = atomic_load(&held_ns);
    uint64_t end_ns = (uint64_t)deadline->tv_sec * SP_NS_PER_S + (uint64_t)deadline->tv_nsec;
    if (!now_ns || pthread_equal(pthread_self(), main_thread))
        return __real_pthread_cond_timedwait(condition, lock, deadline);
    if (!atomic_load(&skips) || end_ns > now_ns + WAITS_FOR_WORK_NS)
        return pthread_cond_wait(condition, lock);
    if (end_ns > now_ns)
        atomic_store(&held_ns, end_ns);
    return ETIMEDOUT;
}

void hold_time(fixture *f)
{
    main_thread = pthread_self();
    f->config.batch_delay_ms = 2 * WAITS_FOR_WORK_NS / SP_NS_PER_MS;
    atomic_store(&held_ns, __real_sp_clock_monotonic_ns());
}

void skip_time(fixture *f)
{
    atomic_store(&skips, true);
    if (f->exporter)
        sp_exporter_wake(f->exporter);
}

static void use_real_time(void)
{
    atomic_store(&skips, false);
    atomic_store(&held_ns, 0);
}

/* --- the fixture ------------------------------------------------------------------------------ */

void fixture_prepare(fixture *f, unsigned port)
{
    use_real_time();
    sp_log_configure(SPANPROF_LOG_WARN, capture, NULL);
    log_forget();
    snprintf(f->url[0], sizeof f->url[0], "http://127.0.0.1:%u" TRACES, port);
    snprintf(f->url[1], sizeof f->url[1], "http://127.0.0.1:%u" PROFILES, port);
    for (int i = 0; i < 2; i++)
        f->config.http[i] =
            (sp_http_target){.enabled = true, .url = f->url[i], .gzip = true, .timeout_ms = 30000};
    f->config.traces_enabled = true;
    f->config.batch_delay_ms = 60000;
    assert_true(sp_resource_init(&f->resource, "fault-test", NULL));
    sp_tracer_config tracer = {.queue_spans = 2048, .limits = SP_SPAN_LIMITS_INIT, .record = true};
    assert_int_equal(sp_tracer_start(&tracer), SPANPROF_OK);
}

static int set_up(void **state, scripted_server *server)
{
    fixture *f = calloc(1, sizeof *f);
    *state = f;
    f->server = server;
    fixture_prepare(f, server_port(f->server));
    return 0;
}

int fixture_setup(void **state)
{
    return set_up(state, server_start());
}

int fixture_setup_absent(void **state)
{
    return set_up(state, server_bind());
}

void fixture_end(fixture *f)
{
    if (f->exporter)
        fixture_stop(f, 0);
    use_real_time();
    sp_tracer_stop();
    sp_resource_deinit(&f->resource);
    log_forget();
}

int fixture_teardown(void **state)
{
    fixture *f = *state;
    fixture_end(f);
    server_stop(f->server);
    free(f);
    return 0;
}

void fixture_start(fixture *f)
{
    spanprof_error error = {0};
    f->exporter = sp_exporter_create(&f->config, &f->resource, &error);
    assert_non_null(f->exporter);
}

bool submit(fixture *f, const char *text)
{
    sp_buffer body = SP_BUFFER_INIT(16 << 20);
    assert_true(sp_buffer_add_string(&body, text));
    f->submitted++;
    return sp_exporter_submit_profiles(f->exporter, 0, &body, 1);
}

void end_spans(fixture *f, const char *name, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        spanprof_span_end(spanprof_span_start(NULL, name, NULL));
    f->submitted++;
}

spanprof_status flush(fixture *f)
{
    return sp_exporter_flush(f->exporter, sp_clock_monotonic_ns() + PATIENCE_NS);
}

spanprof_status fixture_stop(fixture *f, uint64_t timeout_ns)
{
    spanprof_status status = sp_exporter_destroy(
        f->exporter, sp_deadline_after(sp_clock_monotonic_ns(), timeout_ns), &f->counted);
    f->exporter = NULL;
    assert_int_equal(f->submitted + f->counted.taken_over,
                     f->counted.requests + f->counted.dropped_queue_full +
                         f->counted.dropped_refused + f->counted.dropped_unreachable +
                         f->counted.dropped_spool + f->counted.spooled);
    return status;
}

size_t gunzip(const server_request *request, char *out, size_t room)
{
    z_stream stream = {.next_in = request->body,
                       .avail_in = (uInt)request->body_length,
                       .next_out = (Bytef *)out,
                       .avail_out = (uInt)room - 1};
    assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    assert_int_equal(stream.avail_in, 0);
    inflateEnd(&stream);
    out[stream.total_out] = 0;
    return stream.total_out;
}

bool has_header(const server_request *request, const char *text)
{
    char line[512];
    snprintf(line, sizeof line, "\r\n%s\r\n", text);
    return strstr(request->head, line) != NULL;
}
