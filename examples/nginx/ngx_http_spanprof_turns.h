/* SPDX-License-Identifier: Apache-2.0 */
/* Whose turn is it? One thread of nginx serves many requests, each for some microseconds at a time.
 * Here is what makes a request's context active exactly while nginx works for it:
 * docs/tracers/nginx.md says how, and what is left out.
 *
 * Threads: the worker's own.  Memory: what has to live as long as a request comes from its pool. */
#ifndef NGX_HTTP_SPANPROF_TURNS_H
#define NGX_HTTP_SPANPROF_TURNS_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <spanprof/spanprof.h>

/* An address that stands for a request: itself, a subrequest of it, or its connection. */
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
    ngx_flag_t enabled;                  /* a server has a span for each request */
    ngx_http_phase_handler_pt *checkers; /* the functions of the phase engine, before ours */
} ngx_http_spanprof_main_conf_t;

extern ngx_module_t ngx_http_spanprof_module;

/* Gives the span of the main request R, which was not seen before; NULL: it gets none. */
typedef ngx_http_spanprof_request_t *(*ngx_http_spanprof_begin_pt)(ngx_http_request_t *r);

/* While a configuration is read: the output of its requests passes through here, before all filters
 * of modules that are loaded before. */
void ngx_http_spanprof_turns_watch_filters(void);

/* When the configuration of CYCLE has been read: the phases of its requests pass through here. */
ngx_int_t ngx_http_spanprof_turns_watch_phases(ngx_cycle_t *cycle);

/* In a worker: every event passes through here from now on. BEGIN is called at the first phase of
 * each request. */
ngx_int_t ngx_http_spanprof_turns_watch_events(ngx_cycle_t *cycle,
                                               ngx_http_spanprof_begin_pt begin);

/* What was added for R's main request; NULL when it has no span. */
ngx_http_spanprof_request_t *ngx_http_spanprof_turns_find(ngx_http_request_t *r);

/* Events of main request R, and of its connection, are turns of REQUEST. Returns NGX_ERROR when
 * there is no memory. */
ngx_int_t ngx_http_spanprof_turns_add(ngx_http_request_t *r, ngx_http_spanprof_request_t *request);

/* REQUEST ends, its memory goes. Its context stays active until this turn is over: what remains of
 * it is cleaning up. */
void ngx_http_spanprof_turns_remove(ngx_http_spanprof_request_t *request);

#endif
