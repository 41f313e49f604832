/* SPDX-License-Identifier: Apache-2.0 */
/* One signal's requests over HTTP, one after the other, so that their order is kept. The transfers
 * run in the exporter's curl_multi; this file begins them and handles their ends.
 * docs/design/export.md has the rules and why. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>
#include <sys/socket.h>

#include "core/counted.h"
#include "core/log.h"
#include "export/export_internal.h"
#include "trace/random_id.h"

#define USER_AGENT "spanprof-OTLP-Exporter-C/0.1.0"

enum { CONNECT_TIMEOUT_MS = 10000, ANSWER_KEPT_BYTES = 65536, LEFT_TEXT = SP_OUTCOME_TEXT + 120 };

static const char *const item_names[] = {"span", "sample"};

/* ---- Setting up ---- */

static size_t receive(char *data, size_t size, size_t count, void *user)
{
    sp_sender *sender = user;
    if (!sp_buffer_add(&sender->answer, data, size * count)) {
        sender->answer_too_long = true;
        return 0; /* ends the transfer with CURLE_WRITE_ERROR */
    }
    return size * count;
}

/* Close-on-exec: programs that the host starts must not keep our connections open. */
static curl_socket_t open_socket(void *user, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)user;
    (void)purpose;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static bool build_headers(sp_sender *sender)
{
    static const char *const own[][4] = {
        [SP_PROTOCOL_HTTP_PROTOBUF] = {"Content-Type: application/x-protobuf", "Expect:"},
        [SP_PROTOCOL_GRPC] = {"Content-Type: application/grpc",
                              "grpc-accept-encoding: identity,gzip", "Expect:", "TE: trailers"},
        [SP_PROTOCOL_HTTP_JSON] = {"Content-Type: application/json", "Expect:"},
    };
    static char encodings[][32] = {"Content-Encoding: gzip", "grpc-encoding: gzip"};
    sp_otlp_protocol protocol = sender->target->protocol;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(own[0]) && own[protocol][i]; i++) {
        struct curl_slist *longer = curl_slist_append(sender->headers, own[protocol][i]);
        if (!longer)
            return false;
        sender->headers = longer;
    }
    sender->gzip_header = (struct curl_slist){.data = encodings[protocol == SP_PROTOCOL_GRPC],
                                              .next = sender->headers};
    return (!sender->target->headers ||
            sp_headers_parse(&sender->headers, sender->target->headers, NULL)) &&
           sp_headers_set_version(sender->headers, sender->signal);
}

static void set_security(CURL *easy, const sp_http_target *target)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    if (target->ca_file)
        curl_easy_setopt(easy, CURLOPT_CAINFO, target->ca_file);
    if (target->client_key)
        curl_easy_setopt(easy, CURLOPT_SSLKEY, target->client_key);
    if (target->client_certificate)
        curl_easy_setopt(easy, CURLOPT_SSLCERT, target->client_certificate);
    if (getauxval(
            AT_SECURE)) /* a setuid program ignores the environment, also where libcurl reads it */
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
}

/* gRPC needs HTTP/2. TLS negotiates the version; without TLS, HTTP/2 is used without asking.
 * libcurl 7.88 fails with the second request on such a connection (curl's issue 10634, mended in
 * 8.0), so with it each request gets a connection of its own. */
static void set_version(CURL *easy, const sp_http_target *target)
{
    if (target->protocol != SP_PROTOCOL_GRPC)
        return;
    bool plain = strncasecmp(target->url, "http://", strlen("http://")) == 0;
    uint32_t number = curl_version_info(CURLVERSION_NOW)->version_num;
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
                     (long)(plain ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE : CURL_HTTP_VERSION_2TLS));
    if (!plain || number < 0x075800 || number >= 0x080000)
        return;
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L); /* nor a connection of the other signal */
}

/* Set the options that are the same for every attempt. */
static void set_up(sp_sender *sender)
{
    CURL *easy = sender->easy;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, sender);
    curl_easy_setopt(easy, CURLOPT_URL, sender->target->url);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, USER_AGENT);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, sender->error_text);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, sender);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
#if LIBCURL_VERSION_NUM >= 0x075700
    /* A name lookup cannot be cancelled: at the stop libcurl's resolver thread is left running,
     * because waiting for a name server that does not answer would take long. */
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
    set_version(easy, sender->target);
    set_security(easy, sender->target);
}

bool sp_sender_init(sp_sender *sender, sp_telemetry_signal signal, const sp_http_target *target,
                    CURLM *multi, size_t queue_maximum_bytes, sp_export_counters *counters)
{
    *sender = (sp_sender){.target = target,
                          .counters = counters,
                          .signal = signal,
                          .multi = multi,
                          .allowance = {.maximum_bytes = queue_maximum_bytes},
                          .answer = SP_BUFFER_INIT(SP_ANSWER_MAX_BYTES),
                          .message = SP_BUFFER_INIT(SP_ANSWER_MAX_BYTES)};
    sender->last = &sender->first;
    sender->easy = curl_easy_init();
    sender->shown_url = sp_endpoint_shown(target->url);
    if (!sender->easy || !sender->shown_url || !build_headers(sender) ||
        !sp_secrets_init(&sender->secrets, sender->headers, target->url))
        return false;
    set_up(sender);
    return true;
}

void sp_sender_deinit(sp_sender *sender)
{
    if (sender->busy)
        curl_multi_remove_handle(sender->multi, sender->easy);
    if (sender->easy)
        curl_easy_cleanup(sender->easy);
    if (sender->headers)
        curl_slist_free_all(sender->headers);
    free(sender->shown_url);
    sp_secrets_deinit(&sender->secrets);
    sp_buffer_deinit(&sender->answer);
    sp_buffer_deinit(&sender->message);
    sp_gzip_deinit(&sender->gzip);
    for (sp_request *next, *request = sender->first; request; request = next) {
        next = request->next;
        sp_request_free(request);
    }
    *sender = (sp_sender){0};
}

/* ---- The queue ---- */

static void compress_body(sp_sender *sender, sp_request *request)
{
    if (!sender->target->gzip || !sp_gzip_body(&sender->gzip, &request->body))
        return;
    request->gzip = true;
    size_t smaller = sp_min_u64(request->body.length, request->charged_bytes);
    sp_allowance_give(&sender->allowance, request->charged_bytes - smaller);
    request->charged_bytes = smaller;
}

/* Put REQUEST into the spool, so that it outlives the process. When other requests come before it,
 * its body is freed until its turn. */
static void keep(sp_sender *sender, sp_request *request)
{
    if (!sp_spool_put(sender->spool, request, sender->signal)) {
        int error = errno;
        if (sp_repeat_allows(&sender->unkept, sp_clock_monotonic_ns()))
            sp_log_warn("export", "keeping a request in %s: %s: it waits in memory",
                        sender->spool->folder,
                        error == EDQUOT ? "the spool is full" : strerror(error));
        return;
    }
    sp_count(&sender->counters->spooled, 1);
    sp_allowance_give(&sender->allowance, request->charged_bytes);
    request->charged_bytes = 0;
    if (sender->first)
        sp_buffer_deinit(&request->body);
}

void sp_sender_add(sp_sender *sender, sp_request *request)
{
    compress_body(sender, request);
    if (sender->spool)
        keep(sender, request);
    request->next = NULL;
    *sender->last = request;
    sender->last = &request->next;
}

void sp_sender_use_spool(sp_sender *sender, sp_spool *spool)
{
    sender->spool = spool;
    sender->first = sp_spool_list(spool, sender->signal);
    sender->last = &sender->first;
    uint64_t count = 0;
    for (; *sender->last; sender->last = &(*sender->last)->next)
        count++;
    sp_count(&sender->counters->spooled, count);
    sp_count(&sender->counters->taken_over, count);
    if (count)
        sp_log_info("export", "sending %s for %s that an ended process has left",
                    SP_COUNTED(count, "request"), sender->shown_url);
}

/* Remove the file of REQUEST, which is delivered or dropped. */
static void forget(sp_sender *sender, sp_request *request)
{
    sp_count(&sender->counters->spooled, UINT64_MAX); /* one less */
    if (!sp_spool_remove(sender->spool, request) &&
        sp_repeat_allows(&sender->unremoved, sp_clock_monotonic_ns()))
        sp_log_warn("export", "removing %s/%s: %s: the next start sends it once more",
                    sender->spool->folder, request->spooled, strerror(errno));
}

/* Remove the first request, which is delivered or dropped. */
static void remove_first(sp_sender *sender)
{
    sp_request *request = sender->first;
    sender->first = request->next;
    if (!sender->first)
        sender->last = &sender->first;
    sender->failed = 0;
    sp_allowance_give(&sender->allowance, request->charged_bytes);
    if (request->spooled[0])
        forget(sender, request);
    sp_request_free(request);
}

bool sp_sender_is_late(const sp_sender *sender, uint64_t deadline_ns)
{
    return sender->first && !sender->busy && sender->resume_ns > deadline_ns;
}

bool sp_sender_is_past(const sp_sender *sender, uint64_t sequence, uint64_t deadline_ns)
{
    const sp_request *request = sender->first;
    bool is_put_off = sender->postponed || sp_sender_is_late(sender, deadline_ns);
    while (is_put_off && request && request->spooled[0])
        request = request->next;
    return !request || request->sequence > sequence;
}

/* ---- Messages ---- */

/* Log TEXT about the first request and its destination, at LEVEL. KEPT_BACK: how many such messages
 * were left out before. */
static void say(sp_sender *sender, spanprof_log_level level, const char *text, uint64_t kept_back)
{
    char more[64] = "";
    if (kept_back)
        snprintf(more, sizeof more, " (and %llu more since this was last said)",
                 (unsigned long long)kept_back);
    sp_log(level, "export", "sending %s to %s: %s%s",
           SP_COUNTED(sender->first->items, item_names[sender->signal]), sender->shown_url, text,
           more);
}

/* A warning at most once a minute; other times a debug message. Returns whether it was a warning.
 */
static bool log_rarely(sp_sender *sender, sp_repeat *repeat, uint64_t now_ns, const char *text)
{
    uint64_t kept_back = repeat->kept_back;
    if (sp_repeat_allows(repeat, now_ns)) {
        repeat->kept_back = 0;
        say(sender, SPANPROF_LOG_WARN, text, kept_back);
        return true;
    }
    say(sender, SPANPROF_LOG_DEBUG, text, 0);
    return false;
}

/* ---- Ends of transfers ---- */

/* Log what the answer to a delivered request says. Returns how many items the receiver rejected. */
static uint64_t read_partial_success(sp_sender *sender, uint64_t now_ns)
{
    sp_answer answer = sp_outcome_answer(sender);
    uint64_t rejected;
    char words[SP_ANSWER_WORDS], text[SP_OUTCOME_TEXT];
    if (!sp_answer_partial(&answer, &sender->secrets, sender->signal, &rejected, words) &&
        !sender->said_odd_answer) {
        sender->said_odd_answer = true;
        say(sender, SPANPROF_LOG_WARN, "accepted, but with an answer that no OTLP receiver sends",
            0);
    }
    if (rejected == 0 && words[0] == 0)
        return 0;
    snprintf(text, sizeof text, "the receiver rejected %llu of the %s%s%s",
             (unsigned long long)rejected, sender->signal == SP_TRACES ? "spans" : "profiles",
             words[0] ? ": " : "", words);
    log_rarely(sender, &sender->partial, now_ns, text);
    return sp_min_u64(rejected, sender->first->items); /* the receiver may have sent any number */
}

static void delivered(sp_sender *sender, uint64_t now_ns)
{
    sp_export_counters *counters = sender->counters;
    const sp_request *request = sender->first;
    if (sender->failing) {
        say(sender, SPANPROF_LOG_WARN, "delivering again", 0);
        sender->failing = false;
        sender->unreachable.kept_back = 0;
        sender->unsaid_drops = 0;
    }
    uint64_t rejected = read_partial_success(sender, now_ns);
    sp_count(&counters->rejected, rejected);
    if (sender->signal == SP_TRACES)
        sp_count(&counters->spans, request->items - rejected);
    else if (rejected == 0) /* the number of samples in the accepted profiles is unknown */
        sp_count(&counters->samples, request->items);
    sp_count(&counters->requests, 1);
    sp_count(&counters->bytes, request->body.length);
    remove_first(sender);
}

static void refused(sp_sender *sender, const sp_outcome *out, uint64_t now_ns)
{
    char text[SP_OUTCOME_TEXT + 80];
    if (out->not_taken && sender->signal == SP_PROFILES) {
        snprintf(text, sizeof text,
                 "%s: the receiver does not take profiles; they are dropped and counted",
                 out->answered && out->code == 404 ? "HTTP 404" : "gRPC status 12, UNIMPLEMENTED");
        if (!sender->said_not_taken)
            say(sender, SPANPROF_LOG_WARN, text, 0);
        sender->said_not_taken = true;
    } else {
        snprintf(text, sizeof text, "%s; dropped and counted", out->text);
        log_rarely(sender, &sender->refused, now_ns, text);
    }
    sp_count(&sender->counters->dropped_refused, 1);
    remove_first(sender);
}

/* The first request stays in the spool, and is tried again later. */
static void postpone(sp_sender *sender, uint64_t now_ns)
{
    enum { FIRST_WAIT_S = 5, LONGEST_WAIT_S = 60, DOUBLINGS = 4 };
    uint32_t doublings = (uint32_t)sp_min_u64(sender->postpones++, DOUBLINGS), random;
    uint64_t wait_ns =
        sp_min_u64((uint64_t)FIRST_WAIT_S << doublings, LONGEST_WAIT_S) * SP_NS_PER_S;
    sp_random_id((uint8_t *)&random, sizeof random);
    wait_ns = wait_ns / 2 + (wait_ns / 2 >> 16) * (random >> 16);
    sender->resume_ns = sp_max_u64(now_ns + wait_ns, sender->asked_ns);
    sender->postponed = true;
    sender->failed = 0;
    sp_buffer_deinit(&sender->first->body);
    sender->first->framed = false;
}

static uint64_t wait_s(const sp_sender *sender, uint64_t now_ns)
{
    return (sender->resume_ns - now_ns + SP_NS_PER_S / 2) / SP_NS_PER_S;
}

void sp_sender_say_late(sp_sender *sender, uint64_t now_ns)
{
    if (sp_repeat_allows(&sender->late, now_ns))
        sp_log_warn("export",
                    "flushing: the next attempt to send to %s is due in %llu s, later than the "
                    "flush would wait: it does not",
                    sender->shown_url, (unsigned long long)wait_s(sender, now_ns));
}

/* Describe what follows from a failure, for the log. */
static void describe_next(const sp_sender *sender, uint64_t now_ns, bool again, char out[64])
{
    if (again)
        strcpy(out, "trying again");
    else if (!sender->first->spooled[0])
        strcpy(out, "given up; dropped and counted");
    else if (sender->stopping)
        strcpy(out, "kept in the spool");
    else
        snprintf(out, 64, "kept in the spool, tried again in %llu s",
                 (unsigned long long)wait_s(sender, now_ns));
}

/* Handle a failed attempt; AGAIN: there will be another one. It is logged at the first failure
 * already, because the program may have ended by the time the request is given up. */
static void unreachable(sp_sender *sender, const sp_outcome *out, uint64_t now_ns, bool again)
{
    char text[SP_OUTCOME_TEXT + 80], next[64];
    bool is_kept = !again && sender->first->spooled[0];
    if (is_kept)
        postpone(sender, now_ns);
    describe_next(sender, now_ns, again, next);
    snprintf(text, sizeof text, "%s; %s", out->text, next);
    bool is_said = false;
    if (again && out->answered)
        say(sender, SPANPROF_LOG_INFO, text, 0); /* the receiver asked for a later attempt */
    else
        is_said = log_rarely(sender, &sender->unreachable, now_ns, text);
    sender->failing |= is_said;
    if (again || is_kept)
        return;
    sender->unsaid_drops = is_said ? 0 : sender->unsaid_drops + 1;
    sp_count(&sender->counters->dropped_unreachable, 1);
    remove_first(sender);
}

/* Whether the first request gets another attempt; if so, resume_ns is its time. A wait that the
 * receiver asked for does not use up the export's time: the deadline moves by it. */
static bool plan_retry(sp_sender *sender, const sp_outcome *out, uint64_t now_ns)
{
    if (sender->stopping && out->absent)
        return false;
    uint32_t random;
    sp_random_id((uint8_t *)&random, sizeof random);
    uint64_t wait_ns = out->asked ? out->wait_ns : sp_retry_backoff_ns(++sender->failed, random);
    if (out->asked) {
        sender->failed++;
        sender->asked_ns = now_ns + wait_ns;
        sender->resume_ns = sender->asked_ns; /* applies to the next requests, too */
        sender->deadline_ns = sp_deadline_after(sender->deadline_ns, wait_ns);
    }
    if (sender->failed >= SP_RETRY_ATTEMPTS || now_ns + wait_ns >= sender->deadline_ns)
        return false;
    sender->resume_ns = now_ns + wait_ns;
    return true;
}

/* Note what the transfer said about the receiver. */
static void note_outcome(sp_sender *sender, const sp_outcome *out)
{
    sender->absent = out->absent;
    snprintf(sender->last_text, sizeof sender->last_text, "%s",
             out->kind == SP_DELIVERED ? "" : out->text);
    sender->last_answered = out->kind == SP_DELIVERED || out->kind == SP_REFUSED;
    if (!sender->last_answered)
        return;
    sender->postponed = false; /* the receiver is back: a flush waits for it */
    sender->postpones = 0;
}

static void handle_outcome(sp_sender *sender, const sp_outcome *out, uint64_t now_ns)
{
    switch (out->kind) {
    case SP_DELIVERED:
        delivered(sender, now_ns);
        break;
    case SP_REFUSED:
        refused(sender, out, now_ns);
        break;
    case SP_TRY_AGAIN:
        unreachable(sender, out, now_ns, plan_retry(sender, out, now_ns));
        break;
    case SP_UNREACHABLE:
        unreachable(sender, out, now_ns, false);
        break;
    }
}

void sp_sender_finish(sp_sender *sender, CURLcode code, uint64_t now_ns)
{
    sp_outcome out = sp_outcome_of(sender, code);
    curl_multi_remove_handle(sender->multi, sender->easy);
    sender->busy = false;
    note_outcome(sender, &out);
    if (sender->stopping && out.absent)
        sp_sender_abandon(sender);
    else
        handle_outcome(sender, &out, now_ns);
    if (sender->answer.capacity > ANSWER_KEPT_BYTES)
        sp_buffer_deinit(&sender->answer);
    if (sender->message.capacity > ANSWER_KEPT_BYTES)
        sp_buffer_deinit(&sender->message);
}

/* ---- Attempts ---- */

/* Drop the first request, because its file is gone or damaged. */
static void drop_lost(sp_sender *sender)
{
    if (sp_repeat_allows(&sender->lost, sp_clock_monotonic_ns()))
        sp_log_warn("export", "%s/%s is gone or not whole: dropped and counted",
                    sender->spool->folder, sender->first->spooled);
    sp_count(&sender->counters->dropped_spool, 1);
    remove_first(sender);
}

/* Read the first request's body when only its file has it. Requests whose files are lost are
 * dropped. SP_SPOOL_LOST: no request is left. */
static sp_spool_found read_first(sp_sender *sender)
{
    sp_spool_found found = SP_SPOOL_LOST;
    while (sender->first && found == SP_SPOOL_LOST) {
        sp_request *request = sender->first;
        found = request->spooled[0] && !request->body.data ? sp_spool_get(sender->spool, request)
                                                           : SP_SPOOL_WHOLE;
        if (found == SP_SPOOL_LOST)
            drop_lost(sender);
    }
    return found;
}

/* Bring the first request's body into the form in which it is sent. False when there is no request,
 * or memory is short. */
static bool make_ready(sp_sender *sender)
{
    if (read_first(sender) != SP_SPOOL_WHOLE)
        return false;
    sp_request *request = sender->first;
    if (!request->framed && sender->target->protocol == SP_PROTOCOL_GRPC)
        request->framed = sp_grpc_frame(&request->body, request->gzip);
    return request->framed || sender->target->protocol != SP_PROTOCOL_GRPC;
}

static void begin(sp_sender *sender, uint64_t now_ns)
{
    const sp_request *request = sender->first;
    uint64_t timeout_ns = sender->target->timeout_ms * SP_NS_PER_MS;
    if (sender->failed == 0)
        sender->deadline_ns = timeout_ns ? now_ns + timeout_ns : UINT64_MAX;
    uint64_t left_ms = 0; /* no limit */
    if (sender->deadline_ns != UINT64_MAX)
        left_ms = sender->deadline_ns > now_ns
                      ? (sender->deadline_ns - now_ns + SP_NS_PER_MS - 1) / SP_NS_PER_MS
                      : 1;
    curl_easy_setopt(sender->easy, CURLOPT_TIMEOUT_MS, (long)left_ms);
    curl_easy_setopt(sender->easy, CURLOPT_POSTFIELDS,
                     request->body.data ? (const char *)request->body.data : "");
    curl_easy_setopt(sender->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.length);
    curl_easy_setopt(sender->easy, CURLOPT_HTTPHEADER,
                     request->gzip ? &sender->gzip_header : sender->headers);
    sp_buffer_clear(&sender->answer);
    sender->answer_too_long = false;
    sender->error_text[0] = 0;
    sender->begun_ns = now_ns;
    sender->busy = curl_multi_add_handle(sender->multi, sender->easy) == CURLM_OK;
}

/* Remove the first request, but leave its file in the spool. */
static void leave_first(sp_sender *sender)
{
    sender->first->spooled[0] = 0;
    remove_first(sender);
}

/* The error of the last attempt; "": there was none, or the receiver took or refused a request. */
static const char *last_error(const sp_sender *sender)
{
    return sender->last_answered ? "" : sender->last_text;
}

/* Why requests are left at the stop: the request under way, or the wait for the next attempt, and
 * the error of the last attempt. "": there was no attempt. */
static void describe_left(const sp_sender *sender, uint64_t now_ns, char out[LEFT_TEXT])
{
    const char *error = last_error(sender);
    if (sender->busy)
        snprintf(out, LEFT_TEXT, ", because there was no answer in %.1f s%s%s",
                 (double)(now_ns - sender->begun_ns) / (double)SP_NS_PER_S,
                 error[0] ? ", and the attempt before ended with: " : "", error);
    else if (sender->resume_ns > now_ns)
        snprintf(out, LEFT_TEXT, ", because the next attempt is due in %llu s%s%s",
                 (unsigned long long)wait_s(sender, now_ns),
                 error[0] ? ", and the last one ended with: " : "", error);
    else
        snprintf(out, LEFT_TEXT, "%s%s", error[0] ? ": " : "", error);
}

/* Remove all requests. Returns how many of them were not in the spool; *KEPT: how many were. */
static uint64_t remove_all(sp_sender *sender, uint64_t *kept)
{
    uint64_t count = 0;
    if (sender->busy)
        curl_multi_remove_handle(sender->multi, sender->easy);
    sender->busy = false;
    while (sender->first) {
        bool is_kept = sender->first->spooled[0];
        (is_kept ? leave_first : remove_first)(sender);
        *kept += is_kept;
        count += !is_kept;
    }
    return count;
}

/* Warnings are rare, so the last one may be older than the last requests that were given up. */
static void say_unsaid_drops(sp_sender *sender)
{
    const char *error = last_error(sender);
    if (sender->unsaid_drops)
        sp_log_warn("export", "stopping: %s for %s dropped and counted since the last warning%s%s",
                    SP_COUNTED(sender->unsaid_drops, "request"), sender->shown_url,
                    error[0] ? ": " : "", error);
    sender->unsaid_drops = 0;
}

void sp_sender_abandon(sp_sender *sender)
{
    char why[LEFT_TEXT];
    uint64_t kept = 0;
    describe_left(sender, sp_clock_monotonic_ns(), why);
    uint64_t count = remove_all(sender, &kept);
    sp_count(&sender->counters->dropped_unreachable, count);
    if (count)
        sp_requests_say_abandoned(count, sender->shown_url, why);
    if (kept)
        sp_log_warn("export",
                    "stopping with %s for %s not delivered%s; kept in %s, sent by the next start",
                    SP_COUNTED(kept, "request"), sender->shown_url, why, sender->spool->folder);
    say_unsaid_drops(sender);
}

uint64_t sp_sender_step(sp_sender *sender, uint64_t now_ns)
{
    if (!sender->first || sender->busy)
        return UINT64_MAX;
    if (now_ns < sender->resume_ns) {
        if (!sender->stopping || sender->resume_ns < sender->stop_deadline_ns)
            return sender->resume_ns;
        sp_sender_abandon(sender); /* the next attempt is due too late */
        return UINT64_MAX;
    }
    if (make_ready(sender))
        begin(sender, now_ns);
    else if (!sender->first)
        return UINT64_MAX;
    return sender->busy ? UINT64_MAX : now_ns + SP_NS_PER_S; /* memory or descriptors are short */
}

void sp_sender_hurry(sp_sender *sender, uint64_t deadline_ns)
{
    if (sender->stopping)
        return;
    sender->stopping = true;
    sender->stop_deadline_ns = deadline_ns;
    if (sender->absent ||
        sender->postponed) /* one more attempt, at once unless the receiver asked to wait */
        sender->resume_ns = sender->asked_ns;
    sender->postponed = false;
}
