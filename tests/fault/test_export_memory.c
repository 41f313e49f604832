/* SPDX-License-Identifier: Apache-2.0 */
/* Each allocation of the exporter fails in turn, on all its ways out: what is lost is counted, and
 * what comes later arrives. A leak is for a sanitizer to see. Memory that libraries ask for is not
 * ours to fail. */
#include "fault/export_fixture.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "core/log.h"
#include "export/export_internal.h"
#include "failing_memory.h"
#include "fault/grpc_receiver.h"
#include "remove_folder.h"

/* Which one fails is for ASan to see; TSan, under which each run takes three times as long, looks
 * at the threads only. */
#if defined(__SANITIZE_THREAD__)
enum { STEP = 4 };
#else
enum { STEP = 1 };
#endif

/* --- allocations ------------------------------------------------------------------------------ */

static _Atomic uint64_t allocations;  /* of the exporter so far */
static _Atomic uint64_t failing;      /* the one that fails, from 1; 0: none */
static _Thread_local bool is_calling; /* this thread calls the exporter */

static bool is_exporters(void)
{
    char name[17] = "";
    return is_calling || (prctl(PR_GET_NAME, name) == 0 && strcmp(name, "spanprof-export") == 0);
}

static bool allocation_fails(void)
{
    return atomic_load(&failing) && is_exporters() &&
           atomic_fetch_add(&allocations, 1) + 1 == atomic_load(&failing);
}

char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t length);
DIR *__real_opendir(const char *path);
char *__real_realpath(const char *path, char *out);
int __real_scandir(const char *path, struct dirent ***entries, int (*filter)(const struct dirent *),
                   int (*compare)(const struct dirent **, const struct dirent **));
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t length);
DIR *__wrap_opendir(const char *path);
char *__wrap_realpath(const char *path, char *out);
int __wrap_scandir(const char *path, struct dirent ***entries, int (*filter)(const struct dirent *),
                   int (*compare)(const struct dirent **, const struct dirent **));
int __wrap_asprintf(char **out, const char *format, ...);

char *__wrap_strdup(const char *text)
{
    return allocation_fails() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t length)
{
    return allocation_fails() ? NULL : __real_strndup(text, length);
}

DIR *__wrap_opendir(const char *path)
{
    return allocation_fails() ? NULL : __real_opendir(path);
}

char *__wrap_realpath(const char *path, char *out)
{
    return allocation_fails() ? NULL : __real_realpath(path, out);
}

int __wrap_scandir(const char *path, struct dirent ***entries, int (*filter)(const struct dirent *),
                   int (*compare)(const struct dirent **, const struct dirent **))
{
    return allocation_fails() ? -1 : __real_scandir(path, entries, filter, compare);
}

int __wrap_asprintf(char **out, const char *format, ...)
{
    va_list arguments;
    if (allocation_fails())
        return -1;
    va_start(arguments, format);
    int length = vasprintf(out, format, arguments);
    va_end(arguments);
    return length;
}

/* --- ways out --------------------------------------------------------------------------------- */

static char directory[64];

typedef struct way {
    sp_otlp_protocol protocol;
    bool to_network, to_file, has_spool, has_receiver, is_refused;
    sp_otlp_format file_format;
    const grpc_answer *grpc; /* of a receiver of gRPC; NULL: there is none */
} way;

static void configure(fixture *f, const way *w, char *prefix)
{
    static char headers[] = "authorization=Bearer%20abcdefghijkl,x=y";
    static char ca_file[] = "/etc/ssl/none.pem";
    for (int i = 0; i < 2; i++) {
        f->config.http[i].enabled = w->to_network;
        f->config.http[i].protocol = w->protocol;
        f->config.http[i].headers = headers;
        f->config.http[i].ca_file = ca_file;
    }
    f->config.file_enabled = w->to_file;
    f->config.file_prefix = prefix;
    f->config.file_format = w->file_format;
    f->config.file_maximum_bytes = 16; /* each request begins a file */
    f->config.spool = w->has_spool ? directory : NULL;
}

/* Requests go to RECEIVER instead of the fixture's. */
static void send_to(fixture *f, const grpc_receiver *receiver)
{
    for (int i = 0; i < 2; i++)
        snprintf(f->url[i], sizeof f->url[i], "http://127.0.0.1:%u/", grpc_receiver_port(receiver));
}

/* False when there was no memory for it, which was said. */
static bool create(fixture *f)
{
    spanprof_error error = {0};
    is_calling = true;
    f->exporter = sp_exporter_create(&f->config, &f->resource, &error);
    is_calling = false;
    assert_true(f->exporter || error.status == SPANPROF_ERROR_NO_MEMORY ||
                error.status == SPANPROF_ERROR_SYSTEM);
    return f->exporter != NULL;
}

/* One profile and one batch of a span, to each destination. */
static void export_once(fixture *f, const way *w, const char *name)
{
    for (size_t i = 0; i < (size_t)w->to_network + w->to_file; i++) {
        sp_buffer body = SP_BUFFER_INIT(1 << 20);
        assert_true(sp_buffer_add_string(&body, name));
        is_calling = true;
        sp_exporter_submit_profiles(f->exporter, i, &body, 1);
        is_calling = false;
        f->submitted++;
    }
    end_spans(f, name, 1);
    f->submitted += (uint64_t)w->to_network + w->to_file - 1;
    flush(f);
}

/* Everything that one run of W does while allocation number NUMBER fails; then once more, with
 * memory. Returns whether it came to that allocation. */
static bool run_without(fixture *f, const way *w, uint64_t number)
{
    static const server_step refusal = {
        .status = 400, .headers = "Content-Type: text/plain\r\n", .body = "no", .body_length = 2};
    char prefix[96];
    snprintf(prefix, sizeof prefix, "%s/out", directory);
    configure(f, w, prefix);
    if (w->is_refused)
        server_script(f->server, PROFILES, &refusal, 1);
    hold_time(f);
    skip_time(f);
    atomic_store(&allocations, 0);
    atomic_store(&failing, number);
    bool created = create(f);
    if (created) {
        export_once(f, w, "first");
        export_once(f, w, "second");
    }
    atomic_store(&failing, 0);
    uint64_t reached = atomic_load(&allocations);
    if (!created) {
        f->submitted = 0;
        assert_true(create(f));
    }
    export_once(f, w, "third");
    fixture_stop(f, PATIENCE_NS);
    if (w->has_receiver && !w->is_refused)
        assert_true(f->counted.requests >= 2);
    return reached >= number;
}

static void fail_each(void **initial)
{
    const way *w = *initial;
    bool reached = true;
    uint64_t number = 1;
    for (; reached; number += STEP) {
        void *state;
        strcpy(directory, "/tmp/spanprof-test-XXXXXX");
        assert_non_null(mkdtemp(directory));
        if (w->has_receiver)
            fixture_setup(&state);
        else
            fixture_setup_absent(&state);
        grpc_receiver *receiver = w->grpc ? grpc_receiver_start(w->grpc) : NULL;
        if (receiver)
            send_to(state, receiver);
        reached = run_without(state, w, number);
        fixture_teardown(&state);
        if (receiver)
            grpc_receiver_stop(receiver);
        assert_int_equal(remove_folder(directory), 0);
    }
    assert_true(number > 10);
    print_message("%d allocations\n", (int)number - 1 - STEP);
}

/* A case is a way out: fail_each finds it in the state that cmocka hands over. */
#define CASE(name, ...) ((struct CMUnitTest){#name, fail_each, NULL, NULL, &(way){__VA_ARGS__}})

static const grpc_answer fine = {"0", NULL, NULL};
static const grpc_answer refusing = {"3", "bad%20index%20%C3%A9", NULL};
/* RESOURCE_EXHAUSTED with a RetryInfo of two seconds. */
static const grpc_answer busy = {"8", "quota",
                                 "CAgaMAoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5m"
                                 "bxIECgIIAg"};

int main(void)
{
    alarm(540);
    const struct CMUnitTest tests[] = {
        CASE(http_protobuf, .to_network = true, .has_receiver = true),
        CASE(http_json, .protocol = SP_PROTOCOL_HTTP_JSON, .to_network = true,
             .has_receiver = true),
        CASE(http_that_refuses, .to_network = true, .has_receiver = true, .is_refused = true),
        CASE(grpc, .protocol = SP_PROTOCOL_GRPC, .to_network = true, .has_receiver = true,
             .grpc = &fine),
        CASE(grpc_that_refuses, .protocol = SP_PROTOCOL_GRPC, .to_network = true,
             .has_receiver = true, .is_refused = true, .grpc = &refusing),
        CASE(grpc_that_names_a_wait, .protocol = SP_PROTOCOL_GRPC, .to_network = true,
             .has_receiver = true, .is_refused = true, .grpc = &busy),
        CASE(grpc_without_a_receiver, .protocol = SP_PROTOCOL_GRPC, .to_network = true),
        CASE(grpc_with_a_spool, .protocol = SP_PROTOCOL_GRPC, .to_network = true,
             .has_spool = true),
        CASE(spool_with_a_receiver, .to_network = true, .has_spool = true, .has_receiver = true),
        CASE(files_of_json, .to_file = true, .file_format = SP_OTLP_JSON),
        CASE(files_of_protobuf_beside_the_network, .to_network = true, .to_file = true,
             .has_receiver = true, .file_format = SP_OTLP_PROTOBUF),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
