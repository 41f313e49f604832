/* SPDX-License-Identifier: Apache-2.0 */
/* Requests whose work is known by their path, /ANY/K/SLICES/US…: they do truth_work(K, US) in
 * SLICES slices, each in a turn of the event loop of its own, so that hundreds are at work at once.
 * How the next slice comes about changes from slice to slice: a timer or a posted event of the
 * request, or its connection's write event. Paths /n… do truth_nothing. It knows nothing of
 * spanprof.
 *
 *   truth_handler;      in location: answers with a few bytes when its slices are done; also for
 * subrequests, which do the main request's work truth_filter on;    does a slice of the main
 * request's work whenever a part of the answer passes
 *
 * And a timer of nobody's does truth_nothing. */
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "truth/truth_work.h"

typedef struct {
    ngx_flag_t filter;
} ngx_http_truth_loc_conf_t;

typedef struct {
    ngx_uint_t slices; /* that are left */
    ngx_event_t event;
} ngx_http_truth_ctx_t;

extern ngx_module_t ngx_http_truth_module;
static ngx_http_output_body_filter_pt next_body_filter;
static ngx_event_t nobodys;

/* The INDEXth number, from 0, in the path of R's main request. */
static ngx_uint_t number_in_path(ngx_http_request_t *r, ngx_uint_t index)
{
    u_char *p = r->main->unparsed_uri.data, *end = p + r->main->unparsed_uri.len;
    ngx_uint_t number = 0;

    for (p++; p < end && *p != '/'; p++)
        continue;
    for (; index > 0; index--) {
        for (p++; p < end && *p != '/'; p++)
            continue;
    }
    for (p++; p < end && *p >= '0' && *p <= '9'; p++)
        number = 10 * number + (*p - '0');
    return number;
}

static void work(ngx_http_request_t *r)
{
    uint64_t ns = 1000 * (uint64_t)number_in_path(r, 2);

    if (r->main->unparsed_uri.len > 2 && r->main->unparsed_uri.data[1] == 'n')
        truth_nothing(ns);
    else
        truth_work((unsigned)number_in_path(r, 0), ns);
}

static void answer(ngx_http_request_t *r)
{
    static u_char words[] = "the truth and nothing else\n";
    ngx_buf_t *buffer = ngx_calloc_buf(r->pool);
    ngx_chain_t chain = {buffer, NULL};
    ngx_int_t rc;

    if (buffer == NULL) {
        ngx_http_finalize_request(r, NGX_ERROR);
        return;
    }
    buffer->pos = words;
    buffer->last = words + sizeof(words) - 1;
    buffer->memory = 1;
    buffer->last_buf = r == r->main;
    buffer->last_in_chain = 1;
    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = sizeof(words) - 1;
    rc = ngx_http_send_header(r);
    if (rc != NGX_ERROR && rc <= NGX_OK && !r->header_only)
        rc = ngx_http_output_filter(r, &chain);
    ngx_http_finalize_request(r, rc);
}

static void slice(ngx_http_request_t *r)
{
    ngx_http_truth_ctx_t *ctx = ngx_http_get_module_ctx(r, ngx_http_truth_module);

    work(r);
    if (--ctx->slices == 0) {
        r->write_event_handler = ngx_http_request_empty_handler;
        answer(r);
        return;
    }
    switch (r == r->main ? ctx->slices % 4 : 0) {
    case 0:
        ngx_add_timer(&ctx->event, 1 + ctx->slices % 7);
        break;
    case 1:
        ngx_post_event(&ctx->event, &ngx_posted_next_events);
        break;
    case 2:
        ngx_post_event(r->connection->write, &ngx_posted_next_events);
        break;
    default:
        ngx_post_event(&ctx->event, &ngx_posted_events);
        break;
    }
}

static void next_slice(ngx_event_t *ev)
{
    ngx_http_request_t *r = ev->data;
    ngx_connection_t *c = r->connection;

    slice(r);
    ngx_http_run_posted_requests(c);
}

static void forget_event(void *data)
{
    ngx_http_truth_ctx_t *ctx = data;

    if (ctx->event.timer_set)
        ngx_del_timer(&ctx->event);
    if (ctx->event.posted) {
        ngx_delete_posted_event(&ctx->event);
    }
}

/* Called when the request's body is there. */
static void begin(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_truth_ctx_t));
    ngx_http_truth_ctx_t *ctx;

    if (cleanup == NULL) {
        ngx_http_finalize_request(r, NGX_ERROR);
        return;
    }
    ctx = cleanup->data;
    cleanup->handler = forget_event;
    *ctx = (ngx_http_truth_ctx_t){
        .slices = number_in_path(r, 1),
        .event = {.data = r, .handler = next_slice, .log = r->connection->log}};
    ngx_http_set_ctx(r, ctx, ngx_http_truth_module);
    r->write_event_handler = slice;
    slice(r);
}

static ngx_int_t handler(ngx_http_request_t *r)
{
    ngx_int_t rc = ngx_http_read_client_request_body(r, begin);

    return rc >= NGX_HTTP_SPECIAL_RESPONSE ? rc : NGX_DONE;
}

static ngx_int_t body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_http_truth_loc_conf_t *conf = ngx_http_get_module_loc_conf(r, ngx_http_truth_module);

    if (conf->filter && in != NULL)
        work(r);
    return next_body_filter(r, in);
}

static void work_for_nobody(ngx_event_t *ev)
{
    truth_nothing(30000);
    if (!ngx_exiting)
        ngx_add_timer(ev, 2);
}

static ngx_int_t init_process(ngx_cycle_t *cycle)
{
    static ngx_connection_t nothing;

    nothing.fd = -1;
    nobodys = (ngx_event_t){.data = &nothing, .handler = work_for_nobody, .log = cycle->log};
    nobodys.cancelable = 1;
    ngx_add_timer(&nobodys, 2);
    return NGX_OK;
}

static char *set_handler(ngx_conf_t *cf, ngx_command_t *command, void *conf)
{
    ngx_http_core_loc_conf_t *core = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    core->handler = handler;
    return NGX_CONF_OK;
}

static void *create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_truth_loc_conf_t *conf = ngx_pcalloc(cf->pool, sizeof(*conf));

    if (conf != NULL)
        conf->filter = NGX_CONF_UNSET;
    return conf;
}

static char *merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_truth_loc_conf_t *conf = child, *outer = parent;

    ngx_conf_merge_value(conf->filter, outer->filter, 0);
    return NGX_CONF_OK;
}

static ngx_int_t postconfiguration(ngx_conf_t *cf)
{
    next_body_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = body_filter;
    return NGX_OK;
}

static ngx_command_t commands[] = {
    {ngx_string("truth_handler"), NGX_HTTP_LOC_CONF | NGX_CONF_NOARGS, set_handler, 0, 0, NULL},
    {ngx_string("truth_filter"), NGX_HTTP_LOC_CONF | NGX_CONF_FLAG, ngx_conf_set_flag_slot,
     NGX_HTTP_LOC_CONF_OFFSET, offsetof(ngx_http_truth_loc_conf_t, filter), NULL},
    ngx_null_command,
};

static ngx_http_module_t context = {
    .postconfiguration = postconfiguration,
    .create_loc_conf = create_loc_conf,
    .merge_loc_conf = merge_loc_conf,
};

ngx_module_t ngx_http_truth_module = {
    NGX_MODULE_V1,
    &context,
    commands,
    NGX_HTTP_MODULE,
    NULL, /* init master */
    NULL, /* init module */
    init_process,
    NULL, /* init thread */
    NULL, /* exit thread */
    NULL, /* exit process */
    NULL, /* exit master */
    NGX_MODULE_V1_PADDING,
};
