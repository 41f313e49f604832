/* SPDX-License-Identifier: Apache-2.0 */
#include "export/post.h"

#include <stdlib.h>

#include "core/log.h"
#include "export/export_internal.h"
#include "export/transfers.h"

struct sp_post {
    const sp_export_config *config;
    CURLM *multi;
    sp_sender senders[2];
    sp_export_counters counters;
};

static bool init_senders(sp_post *post)
{
    for (int i = 0; i < 2; i++) {
        const sp_http_target *target = &post->config->http[i];
        if (target->enabled && !sp_sender_init(&post->senders[i], (sp_telemetry_signal)i, target,
                                               post->multi, SIZE_MAX, &post->counters))
            return false;
    }
    return true;
}

sp_post *sp_post_open(const sp_export_config *config)
{
    sp_post *post = sp_network_load() ? calloc(1, sizeof *post) : NULL;
    if (!post)
        return NULL;
    post->config = config;
    post->multi = curl_multi_init();
    if (post->multi && init_senders(post))
        return post;
    sp_post_close(post);
    return NULL;
}

void sp_post_close(sp_post *post)
{
    if (!post)
        return;
    for (int i = 0; i < 2; i++)
        if (post->senders[i].target)
            sp_sender_deinit(&post->senders[i]);
    if (post->multi)
        curl_multi_cleanup(post->multi);
    free(post);
}

/* Run transfers until SENDER's queue is empty. */
static void drive(sp_post *post, sp_sender *sender)
{
    while (sender->first) {
        uint64_t now_ns = sp_clock_monotonic_ns();
        uint64_t wake_ns = sp_sender_step(sender, now_ns);
        if (sp_transfers_run(post->multi) || !sender->first)
            continue;
        uint64_t ns = wake_ns > now_ns ? wake_ns - now_ns : 0;
        sp_transfers_wait(post->multi, sp_min_u64(ns, SP_NS_PER_S));
    }
}

bool sp_post_request(sp_post *post, sp_telemetry_signal signal, sp_buffer *body, uint64_t items)
{
    sp_sender *sender = &post->senders[signal];
    sp_request *request = sender->target ? calloc(1, sizeof *request) : NULL;
    sender->last_text[0] = 0;
    if (!request) {
        sp_buffer_deinit(body);
        return false;
    }
    uint64_t before = sp_load_relaxed(&post->counters.requests);
    request->body = *body;
    request->items = items;
    *body = (sp_buffer)SP_BUFFER_INIT(0);
    sp_sender_add(sender, request);
    drive(post, sender);
    return sp_load_relaxed(&post->counters.requests) != before;
}

const char *sp_post_failure(const sp_post *post, sp_telemetry_signal signal)
{
    const char *text = post->senders[signal].last_text;
    return text[0] ? text : "memory is short";
}

const sp_export_counters *sp_post_counters(const sp_post *post)
{
    return &post->counters;
}
