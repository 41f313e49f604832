/* SPDX-License-Identifier: Apache-2.0 */
/* An exporter, the receiver it sends to, and what it said, for tests of what happens when things
 * fail. */
#ifndef TESTS_FAULT_EXPORT_FIXTURE_H
#define TESTS_FAULT_EXPORT_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/clock.h"
#include "export/exporter.h"
#include "fault/scripted_server.h"

#define TRACES   "/v1/traces"
#define PROFILES "/v1development/profiles"

typedef struct fixture {
    scripted_server *server;
    sp_export_config config; /* to be changed before fixture_start */
    sp_resource resource;
    sp_exporter *exporter;
    uint64_t submitted; /* requests */
    char url[2][256];
    char headers[256];
    sp_export_counters counted; /* after fixture_stop */
} fixture;

/* cmocka's setup and teardown. The log is captured; the receiver answers 200. */
int fixture_setup(void **state);
/* The same with a receiver that refuses connections until server_listen. */
int fixture_setup_absent(void **state);
int fixture_teardown(void **state);

/* Setup and teardown without a receiver: what F exports goes to PORT. F is zeroed. */
void fixture_prepare(fixture *f, unsigned port);
void fixture_end(fixture *f);

/* In place of the real clock, to be called before fixture_start: the exporter's clock stands still,
 * and its pauses do not end. skip_time then ends each pause at once, with the clock where the pause
 * would have ended. So a case knows how long a pause was, and what happened before its end, however
 * slow the machine is. Transfers still take real time, and are given up after real time. A pause of
 * an hour or more is a wait for work, and not skipped. */
void hold_time(fixture *f);
void skip_time(fixture *f);

void fixture_start(fixture *f);
/* Submit a profile whose bytes are TEXT. Returns what the exporter said. */
bool submit(fixture *f, const char *text);
/* Let COUNT spans end. They are sent as one request with the next flush (COUNT is at most
 * config.batch_spans). */
void end_spans(fixture *f, const char *name, unsigned count);
/* Flush with a deadline that only a test that hangs will reach. */
spanprof_status flush(fixture *f);
/* Destroy the exporter with TIMEOUT_NS, and check that every request submitted is accounted for. */
spanprof_status fixture_stop(fixture *f, uint64_t timeout_ns);

/* What was logged at warning level and above so far: how many lines have TEXT in them. */
unsigned log_count(const char *text);
/* The same, once there are LEAST of them or a minute has passed: another thread delivers them, and
 * a busy machine lets it wait. */
unsigned log_awaited(const char *text, unsigned least);
void log_forget(void);

/* BODY uncompressed into OUT, with a NUL; returns its length. */
size_t gunzip(const server_request *request, char *out, size_t room);
/* Whether the request has the header line TEXT, as a whole. */
bool has_header(const server_request *request, const char *text);

#define PATIENCE_NS (300 * SP_NS_PER_S)

#endif
