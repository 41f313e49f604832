/* SPDX-License-Identifier: Apache-2.0 */
/* What the end of a transfer means for its request: the table in docs/design/export.md. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/utf8.h"
#include "export/export_internal.h"

enum { LOCATION_SHOWN = 200 };

static void SP_PRINTF(2, 3) describe(sp_outcome *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out->text, sizeof out->text, format, arguments);
    va_end(arguments);
}

/* TEXT is of libcurl, which may quote the receiver, so secrets are masked. */
static void describe_unmasked(const sp_sender *sender, sp_outcome *out, const char *text)
{
    sp_secrets_mask(&sender->secrets, out->text, sizeof out->text, text, strlen(text));
}

sp_answer sp_outcome_answer(sp_sender *sender)
{
    sp_answer answer = {.body = sender->answer.data, .length = sender->answer.length};
    char *type = NULL;
    curl_easy_getinfo(sender->easy, CURLINFO_CONTENT_TYPE, &type);
    answer.content_type = type;
    /* A gRPC answer holds a protobuf message. Another answer is plain HTTP, as a proxy may send it.
     */
    if (sender->target->protocol == SP_PROTOCOL_GRPC && sp_grpc_is_answer(sender->easy))
        answer.content_type =
            sp_grpc_unframe(&answer, &sender->message) ? "application/x-protobuf" : NULL;
    return answer;
}

/* Add which authorities were trusted, after a failure in the receiver's certificate. */
static void add_trusted(const sp_sender *sender, CURLcode code, sp_outcome *out)
{
    const char *trusted = sender->target->ca_file;
    size_t length = strlen(out->text);
    /* The certificate may be trusted, and have another host's name. */
    bool is_untrusted =
        code == CURLE_PEER_FAILED_VERIFICATION && !strstr(out->text, "subject name");
    if (!is_untrusted && code != CURLE_SSL_CACERT_BADFILE)
        return;
#if LIBCURL_VERSION_NUM >= 0x075400
    if (!trusted)
        curl_easy_getinfo(sender->easy, CURLINFO_CAINFO, (char **)(uintptr_t)&trusted);
#endif
    snprintf(out->text + length, sizeof out->text - length,
             " (trusted: the authorities of %s; OTEL_EXPORTER_OTLP_CERTIFICATE names a file of "
             "others)",
             trusted ? trusted : "the system");
}

/* Add where credentials are set, after an answer that asks for some or for others. */
static void add_credentials(sp_outcome *out)
{
    size_t length = strlen(out->text);
    snprintf(out->text + length, sizeof out->text - length,
             " (credentials are a header: OTEL_EXPORTER_OTLP_HEADERS=Authorization=…)");
}

/* The transfer failed before there was a usable answer. */
static void judge_failure(sp_sender *sender, CURLcode code, sp_outcome *out)
{
    long system_error = 0;
    curl_easy_getinfo(sender->easy, CURLINFO_OS_ERRNO, &system_error);
    out->absent = code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY ||
                  code == CURLE_COULDNT_CONNECT || code == CURLE_OPERATION_TIMEDOUT;
    out->kind = sp_retry_curl(code) ? SP_TRY_AGAIN : SP_UNREACHABLE;
    if (code == CURLE_COULDNT_CONNECT && system_error)
        describe(out, "%s", strerror((int)system_error));
    else
        describe_unmasked(sender, out,
                          sender->error_text[0] ? sender->error_text : curl_easy_strerror(code));
    add_trusted(sender, code, out);
    size_t length = strlen(out->text);
    snprintf(
        out->text + length, sizeof out->text - length, "%s",
        sp_endpoint_port_advice(sender->target->url, sender->target->protocol == SP_PROTOCOL_GRPC));
}

static void judge_redirect(sp_sender *sender, sp_outcome *out)
{
    char *location = NULL, masked[4 * LOCATION_SHOWN];
    curl_easy_getinfo(sender->easy, CURLINFO_REDIRECT_URL, &location);
    if (location)
        sp_secrets_mask(&sender->secrets, masked, sizeof masked, location, strlen(location));
    char *shown = location ? sp_endpoint_shown(masked) : NULL;
    if (shown)
        sp_utf8_show(masked, LOCATION_SHOWN, shown, strlen(shown));
    describe(out,
             "HTTP %ld: it redirects to %s, which is not followed: set the endpoint to the final "
             "address",
             out->code, shown ? masked : "nowhere");
    free(shown);
}

static void judge_error(sp_sender *sender, sp_outcome *out)
{
    sp_answer answer = sp_outcome_answer(sender);
    char words[SP_ANSWER_WORDS];
    sp_answer_words(words, &answer, &sender->secrets);
    describe(out, "HTTP %ld%s%s", out->code, words[0] ? ": " : "", words);
    if (out->code == 401)
        add_credentials(out);
    out->not_taken = out->code == 404;
    struct curl_header *header;
    if (sp_retry_http(out->code)) {
        out->kind = SP_TRY_AGAIN;
        out->asked = curl_easy_header(sender->easy, "Retry-After", 0, CURLH_HEADER, -1, &header) ==
                         CURLHE_OK &&
                     sp_retry_after_ns(header->value, sp_clock_realtime_ns(), &out->wait_ns);
    } else if (out->code >= 300 && out->code < 400) {
        judge_redirect(sender, out);
    }
}

/* Judge a gRPC call by its status. False when there is none, or when it is OK although the transfer
 * failed. */
static bool judge_call(sp_sender *sender, CURLcode code, sp_outcome *out)
{
    sp_grpc_status status;
    char words[SP_ANSWER_WORDS];
    if (sender->target->protocol != SP_PROTOCOL_GRPC || !sp_grpc_status_of(sender->easy, &status) ||
        (status.code == 0 && code != CURLE_OK))
        return false;
    sp_answer_grpc_words(words, status.message, &sender->secrets);
    describe(out, "gRPC status %u, %s%s%s", status.code, sp_grpc_status_name(status.code),
             words[0] ? ": " : "", words);
    if (status.code == SP_GRPC_UNAUTHENTICATED)
        add_credentials(out);
    out->not_taken = status.code == SP_GRPC_UNIMPLEMENTED;
    out->asked = status.wait_ns > 0;
    out->wait_ns = status.wait_ns;
    if (status.code == 0)
        out->kind = SP_DELIVERED;
    else if (sp_retry_grpc(status.code, status.has_retry_info))
        out->kind = SP_TRY_AGAIN;
    return true;
}

/* The receiver began to answer, and may or may not have taken the request. A receiver that is about
 * to close its connection says so (GOAWAY) and ends the calls that are under way. libcurl 7.88 ends
 * such a transfer without an error, before the rest of the answer arrives. */
static void judge_broken_call(sp_outcome *out)
{
    out->kind = SP_TRY_AGAIN;
    describe(out, "HTTP %ld without a gRPC status: the connection ended in the answer", out->code);
}

/* Judge an answer with a 2xx code, which libcurl regards as whole. */
static void judge_success(sp_sender *sender, sp_outcome *out)
{
    if (!out->answered)
        describe(out, "HTTP %ld, which is no answer", out->code);
    else if (sender->target->protocol == SP_PROTOCOL_GRPC && sp_grpc_broke_off(sender->easy))
        judge_broken_call(out);
    else if (sender->target->protocol == SP_PROTOCOL_GRPC)
        describe(out, "HTTP %ld without a gRPC status: no gRPC receiver is there", out->code);
    else
        out->kind = SP_DELIVERED;
}

sp_outcome sp_outcome_of(sp_sender *sender, CURLcode code)
{
    sp_outcome out = {.kind = SP_REFUSED};
    curl_easy_getinfo(sender->easy, CURLINFO_RESPONSE_CODE, &out.code);
    out.answered = out.code >= 200;
    if (sender->answer_too_long)
        describe(&out, "HTTP %ld with an answer of more than %d bytes", out.code,
                 SP_ANSWER_MAX_BYTES);
    else if (out.code >= 300)
        judge_error(sender, &out); /* also when its body broke off, because the code decides */
    else if (judge_call(sender, code, &out))
        return out;
    else if (code != CURLE_OK)
        judge_failure(sender, code, &out);
    else
        judge_success(sender, &out);
    return out;
}
