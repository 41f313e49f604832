/* SPDX-License-Identifier: Apache-2.0 */
/* A turn is the time in which nginx works for one request. One thread of nginx serves many
 * requests, each for some microseconds at a time. This file makes a request's context active
 * exactly in the request's turns; docs/tracers/nginx.md says how, and what is not covered.
 *
 * Threads: the worker's only thread.  Memory: what has to live as long as a request is allocated
 * from the request's pool. */
#ifndef NGX_HTTP_SPANPROF_TURNS_H
#define NGX_HTTP_SPANPROF_TURNS_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <spanprof/spanprof.h>

/* An address by which a request is found: of the request, of a subrequest, or of its connection. */
typedef struct ngx_http_spanprof_key_s ngx_http_spanprof_key_t;

/* A main request that has a span. */
typedef struct {
    ngx_http_request_t *main;
    spanprof_span span;
    spanprof_context context;
    ngx_http_spanprof_key_t *keys;
} ngx_http_spanprof_request_t;

/* The module's configuration of http {}. */
typedef struct {
    ngx_flag_t enabled;                  /* at least one server has a span for each request */
    ngx_http_phase_handler_pt *checkers; /* the phase engine's functions that ours replace */
} ngx_http_spanprof_main_conf_t;

extern ngx_module_t ngx_http_spanprof_module;

/* Called for a main request R that was not seen before: start its span. NULL: R gets no span. */
typedef ngx_http_spanprof_request_t *(*ngx_http_spanprof_begin_pt)(ngx_http_request_t *r);

/* Install our filters, so that the output of requests passes through them before all filters of
 * modules that were loaded earlier. Call it while a configuration is read. */
void ngx_http_spanprof_turns_watch_filters(void);

/* Install our phase functions in the configuration of CYCLE. Call it after the configuration was
 * read. */
ngx_int_t ngx_http_spanprof_turns_watch_phases(ngx_cycle_t *cycle);

/* Install our event function in a worker: from now on every event passes through it. BEGIN is
 * called at the first phase of each request. */
ngx_int_t ngx_http_spanprof_turns_watch_events(ngx_cycle_t *cycle,
                                               ngx_http_spanprof_begin_pt begin);

/* What was added for R's main request; NULL when that request has no span. */
ngx_http_spanprof_request_t *ngx_http_spanprof_turns_find(ngx_http_request_t *r);

/* From now on events of the main request R, and of its connection, are turns of REQUEST. Returns
 * NGX_ERROR when memory is short. */
ngx_int_t ngx_http_spanprof_turns_add(ngx_http_request_t *r, ngx_http_spanprof_request_t *request);

/* Forget REQUEST, whose memory will be freed. Its context stays active until the end of this turn,
 * because nginx still cleans up after the request. */
void ngx_http_spanprof_turns_remove(ngx_http_spanprof_request_t *request);

#endif
