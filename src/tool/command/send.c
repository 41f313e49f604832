/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/counted.h"
#include "core/log.h"
#include "export/export_internal.h"
#include "export/post.h"
#include "tool/command/commands.h"
#include "tool/model/lock_attributes.h"
#include "tool/model/root_links.h"
#include "tool/read/repeats.h"
#include "tool/text/messages.h"
#include "tool/text/output.h"
#include "wire/message_tree.h"

typedef struct send_options {
    const char *to, *headers, *protocol, *link_scope;
} send_options;

/* The state of sending. */
typedef struct sending {
    const sp_input *input;
    char *endpoint;        /* the base from --to; NULL: the environment has the endpoint */
    sp_endpoint_path path; /* the path of one signal that --to had */
    sp_export_config config;
    sp_post *post;
    size_t sent;
} sending;

static const char *const names[] = {[SP_SIGNAL_TRACES] = "spans", [SP_SIGNAL_PROFILES] = "samples"};

/* ---- counting ---- */

static uint64_t count_spans(const Sp__Trace__TracesData *data)
{
    uint64_t count = 0;
    for (size_t i = 0; i < data->n_resource_spans; i++)
        for (size_t j = 0; j < data->resource_spans[i]->n_scope_spans; j++)
            count += data->resource_spans[i]->scope_spans[j]->n_spans;
    return count;
}

static uint64_t count_scope(const Sp__Profiles__ScopeProfiles *scope)
{
    uint64_t count = 0;
    for (size_t i = 0; i < scope->n_profiles; i++)
        count += scope->profiles[i]->n_samples;
    return count;
}

static uint64_t count_samples(const Sp__Profiles__ProfilesData *data)
{
    uint64_t count = 0;
    for (size_t i = 0; i < data->n_resource_profiles; i++)
        for (size_t j = 0; j < data->resource_profiles[i]->n_scope_profiles; j++)
            count += count_scope(data->resource_profiles[i]->scope_profiles[j]);
    return count;
}

static uint64_t count_items(const sp_document *document)
{
    const void *message = document->message;
    return document->signal == SP_SIGNAL_TRACES ? count_spans(message) : count_samples(message);
}

/* ---- sending ---- */

/* Report that DOCUMENT was not delivered, why, and how many requests were: the user needs this to
 * continue. The warnings above may have only the first reason, as they are limited to one a minute.
 */
static int stop_at(const sending *to, const sp_document *document, sp_telemetry_signal signal)
{
    char name[SP_DOCUMENT_NAME_LENGTH];
    return sp_tool_no("send: %s was not delivered: %s. Delivered before it: %zu of %s",
                      sp_document_name(name, document), sp_post_failure(to->post, signal), to->sent,
                      SP_COUNTED(to->input->count, "request"));
}

static int send_document(sending *to, const sp_document *document)
{
    sp_telemetry_signal signal = document->signal == SP_SIGNAL_TRACES ? SP_TRACES : SP_PROFILES;
    sp_buffer body = SP_BUFFER_INIT(SP_OUTPUT_MAX_BYTES);
    const sp_http_target *target = &to->config.http[signal];
    if (!target->enabled)
        return sp_tool_wrong("send: there is no endpoint for %s: say --to http://HOST:4318",
                             names[document->signal]);
    if (!sp_otlp_append(&body, sp_http_target_format(target), document->message)) {
        sp_buffer_deinit(&body);
        return sp_tool_no_memory();
    }
    if (!sp_post_request(to->post, signal, &body, count_items(document)))
        return stop_at(to, document, signal);
    to->sent++;
    return SP_TOOL_DONE;
}

/* Send the documents of one signal. Traces are sent first, so that a backend can find the span of a
 * link. */
static int send_signal(sending *to, sp_signal signal)
{
    int status = SP_TOOL_DONE;
    for (size_t i = 0; i < to->input->count && status == SP_TOOL_DONE; i++)
        if (to->input->documents[i].signal == signal)
            status = send_document(to, &to->input->documents[i]);
    return status;
}

static int say_sent(const sending *to)
{
    const sp_export_counters *counters = sp_post_counters(to->post);
    sp_buffer out = SP_BUFFER_INIT(1 << 12);
    unsigned long long rejected = sp_load_relaxed(&counters->rejected);
    sp_buffer_printf(&out, "%s delivered: %s, %s, %s\n", SP_COUNTED(to->sent, "request"),
                     SP_COUNTED(sp_load_relaxed(&counters->spans), "span"),
                     SP_COUNTED(sp_load_relaxed(&counters->samples), "sample"),
                     SP_COUNTED(sp_load_relaxed(&counters->bytes), "byte"));
    int status = sp_output_write(&out, NULL);
    return status != SP_TOOL_DONE || rejected == 0
               ? status
               : sp_tool_no("send: the receiver did not take %llu of the spans or profiles: its "
                            "words stand above",
                            rejected);
}

static int send_all(sending *to)
{
    to->post = sp_post_open(&to->config);
    if (!to->post)
        return sp_tool_wrong("send: libcurl is not there, or memory is short");
    int status = send_signal(to, SP_SIGNAL_TRACES);
    if (status == SP_TOOL_DONE)
        status = send_signal(to, SP_SIGNAL_PROFILES);
    if (status == SP_TOOL_DONE)
        status = say_sent(to);
    sp_post_close(to->post);
    return status;
}

/* ---- link scope ---- */

static int say_unknown_links(const sp_input *input, size_t unknown)
{
    if (unknown && sp_input_count(input, SP_SIGNAL_TRACES) == 0)
        return sp_tool_wrong(
            "send: --link-scope root needs the spans that the samples link to, and "
            "the files have none: give the .traces file, too; nothing was sent");
    if (unknown)
        sp_tool_note("send: %s to spans that the files do not have: kept as they are",
                     SP_COUNTED(unknown, "link"));
    return SP_TOOL_DONE;
}

static int lead_to_roots(const sp_input *input)
{
    sp_model model = {0};
    size_t unknown = 0;
    int status = sp_model_build(&model, input);
    for (size_t i = 0; i < input->count && status == SP_TOOL_DONE; i++)
        if (input->documents[i].signal == SP_SIGNAL_PROFILES)
            unknown += sp_links_to_roots(&input->documents[i], &model);
    if (status == SP_TOOL_DONE)
        status = say_unknown_links(input, unknown);
    sp_model_deinit(&model);
    return status;
}

/* Without a header, such as the name of a tenant, the data would go to a wrong place. So nothing is
 * sent. No message shows an entry, because its value may be a secret. */
static int check_headers(const char *headers)
{
    unsigned position;
    const char *fault = headers ? sp_headers_fault(headers, &position) : NULL;
    if (!fault)
        return SP_TOOL_DONE;
    return sp_tool_wrong("send: --header: entry %u %s: say --header NAME=VALUE,NAME=VALUE…",
                         position, fault);
}

/* Check options whose value must be one of some words. This happens before the files are read,
 * because reading may take long. *TO_ROOTS: links have to be changed. */
static int check_words(const send_options *options, bool *to_roots)
{
    static const char *const scopes[] = {"root", "innermost", NULL};
    static const char *const protocols[] = {"http/protobuf", "grpc", "http/json", NULL};
    int status = SP_TOOL_DONE, word = 0;
    if (options->protocol)
        status = sp_option_word("send", "--protocol", options->protocol, protocols, &word);
    word = 1;
    if (status == SP_TOOL_DONE && options->link_scope)
        status = sp_option_word("send", "--link-scope", options->link_scope, scopes, &word);
    *to_roots = word == 0;
    return status == SP_TOOL_DONE ? check_headers(options->headers) : status;
}

/* ---- the call ---- */

/* Make a base with a scheme from the endpoint of --to. Free *OUT by free(). If the endpoint has the
 * path of one signal, the path is cut off, and *PATH says which one it was: the other signal has
 * its own path after the same base. */
static int read_endpoint(const char *to, char **out, sp_endpoint_path *path)
{
    const char *why;
    *out = NULL;
    *path = SP_ENDPOINT_OF_BOTH;
    if (!to)
        return SP_TOOL_DONE;
    sp_endpoint_kind kind = sp_endpoint_check(to, &why);
    char *shown = sp_endpoint_shown(to);
    int status = SP_TOOL_DONE;
    if (!shown || (kind != SP_ENDPOINT_BAD &&
                   asprintf(out, "%s%s", kind == SP_ENDPOINT_BARE ? "http://" : "", to) < 0))
        status = sp_tool_no_memory();
    else if (kind == SP_ENDPOINT_BAD)
        status = sp_tool_wrong("send: --to %s %s: say --to http://HOST:4318", shown, why);
    if (*out)
        *path = sp_endpoint_cut_path(*out);
    free(shown);
    return status;
}

/* If --to has the stable path of profiles, send profiles to this path. gRPC has no such paths.
 * Returns false when memory is short. */
static bool use_path(sending *to)
{
    sp_http_target *target = &to->config.http[SP_PROFILES];
    if (to->path != SP_ENDPOINT_OF_STABLE_PROFILES || target->protocol == SP_PROTOCOL_GRPC)
        return true;
    free(target->url);
    target->url = sp_endpoint_stable_profiles(to->endpoint);
    return target->url != NULL;
}

/* Configure sending by the environment variables of the SDK. Options take precedence. */
static int configure(sending *to, const send_options *options)
{
    int status = read_endpoint(options->to, &to->endpoint, &to->path);
    if (status != SP_TOOL_DONE)
        return status;
    const spanprof_options wanted = {.struct_size = sizeof wanted,
                                     .exporter = "otlp",
                                     .endpoint = to->endpoint,
                                     .headers = options->headers,
                                     .protocol = options->protocol};
    sp_log_configure(SPANPROF_LOG_WARN, NULL, NULL);
    if (!sp_export_config_init(&to->config, &wanted) || !use_path(to))
        return sp_tool_no_memory();
    if (!to->config.http[SP_TRACES].enabled && !to->config.http[SP_PROFILES].enabled)
        return sp_tool_wrong("send: there is nowhere to send to: say --to http://HOST:4318, or set "
                             "OTEL_EXPORTER_OTLP_ENDPOINT");
    return SP_TOOL_DONE;
}

static int answer(const sp_operands *files, const send_options *options)
{
    sp_input input;
    sending to = {.input = &input};
    bool to_roots = false;
    int status = check_words(options, &to_roots);
    if (status != SP_TOOL_DONE)
        return status;
    status = sp_input_read_once(&input, files);
    if (status == SP_TOOL_DONE && to_roots)
        status = lead_to_roots(&input);
    if (status == SP_TOOL_DONE && !sp_lock_attributes_remove(&input))
        status = SP_TOOL_WRONG;
    if (status == SP_TOOL_DONE)
        status = configure(&to, options);
    if (status == SP_TOOL_DONE)
        status = sp_input_status(&input, send_all(&to));
    sp_export_config_deinit(&to.config);
    free(to.endpoint);
    sp_input_deinit(&input);
    return status;
}

static int run(int argc, char **argv)
{
    send_options options = {0};
    sp_operands files;
    int status = sp_options_parse(&sp_command_send, argc, argv, &options, &files);
    if (status == SP_OPTIONS_GO_ON)
        status = answer(&files, &options);
    sp_operands_deinit(&files);
    return status;
}

#define AT(member) offsetof(send_options, member)
static const sp_option options[] = {
    {"--to", "URL", SP_OPTION_TEXT, AT(to),
     "the receiver, http://HOST:4318, also with the path of traces or profiles "
     "(OTEL_EXPORTER_OTLP_ENDPOINT, http://localhost:4318)"},
    {"--header", "NAME=VALUE,...", SP_OPTION_TEXT, AT(headers),
     "headers, percent-encoded (OTEL_EXPORTER_OTLP_HEADERS)"},
    {"--protocol", "NAME", SP_OPTION_TEXT, AT(protocol),
     "http/protobuf, grpc or http/json (OTEL_EXPORTER_OTLP_PROTOCOL, http/protobuf)"},
    {"--link-scope", "SCOPE", SP_OPTION_TEXT, AT(link_scope),
     "root: samples link to the local root of their span, which needs the .traces file; innermost: "
     "as the files have it (innermost)"},
};

const sp_command sp_command_send = {
    .name = "send",
    .arguments = "FILE… [--to URL] [options]",
    .summary = "Send files to an OTLP receiver: a Collector, Tempo, Pyroscope.",
    .details = "Each request of the files is one request to the receiver, traces first. All "
               "OTEL_EXPORTER_OTLP_… variables hold,\n"
               "with those for one signal. The first request that is not delivered ends the call "
               "with exit code 1.",
    .examples = "# a recording to a Collector\n"
                "spanprof send shop --to http://localhost:4318",
    .options = options,
    .option_count = SP_ARRAY_LENGTH(options),
    .run = run,
};
