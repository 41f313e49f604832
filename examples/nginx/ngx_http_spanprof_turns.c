/* SPDX-License-Identifier: Apache-2.0 */
/* A bracket makes the context of a request active while a function of nginx runs. There are three
 * kinds, from the outermost to the innermost:
 *
 * 1. An event. nginx's loop gets events from the kernel through a function pointer,
 *    ngx_event_actions.process_events, which we replace. Our function lets nginx post the events
 *    instead of handling them (as nginx itself does for accept_mutex), and then handles them in
 *    nginx's own order: new connections, timers, the rest. So only take_turn calls handlers.
 * 2. A phase. The phase engine is an array of functions, and each is called through ours. There a
 *    request is seen first, and there several streams of HTTP/2 in one event are distinguished.
 * 3. The output of a request, which passes through its filters. This bracket is for events without
 *    a request: one event reports all reads of threads (`aio threads`), for any requests.
 *
 * The request of an event is found by an address: the event's data is the request, or a connection
 * of the request, or another connection (to an upstream) whose data is the request. A table has
 * these addresses as long as the request lives. Only addresses in the table, and addresses in
 * nginx's own array of connections, are dereferenced. An event whose address is not in the table
 * has no span. */
#include "ngx_http_spanprof_turns.h"

struct ngx_http_spanprof_key_s {
    const void *address;
    ngx_http_spanprof_request_t *request;
    ngx_http_spanprof_key_t *next;      /* in the same bucket */
    ngx_http_spanprof_key_t *next_same; /* the next key of the same request */
};

/* The request that nginx works for now. Brackets are nested, and are on the stack. */
typedef struct ngx_http_spanprof_bracket_s {
    ngx_http_spanprof_request_t *request; /* NULL: none, or the request has ended */
    spanprof_scope scope;
    ngx_flag_t attached;
    struct ngx_http_spanprof_bracket_s *outer;
} ngx_http_spanprof_bracket_t;

static ngx_http_spanprof_key_t **buckets;
static ngx_uint_t bucket_mask;
static ngx_http_spanprof_bracket_t *innermost;
static void *turn_data; /* the data of the event that is handled now */
static ngx_http_spanprof_begin_pt begin_request;
static ngx_int_t (*wait_for_events)(ngx_cycle_t *cycle, ngx_msec_t timer, ngx_uint_t flags);
static ngx_http_output_header_filter_pt next_header_filter;
static ngx_http_output_body_filter_pt next_body_filter;

static ngx_http_spanprof_key_t **bucket_of(const void *address)
{
    return &buckets[(((uintptr_t)address >> 4) * 0x9E3779B97F4A7C15u >> 32) & bucket_mask];
}

static ngx_http_spanprof_request_t *find(const void *address)
{
    ngx_http_spanprof_key_t *key;

    for (key = *bucket_of(address); key != NULL && key->address != address; key = key->next)
        continue;
    return key == NULL ? NULL : key->request;
}

static ngx_int_t add_key(ngx_pool_t *pool, const void *address,
                         ngx_http_spanprof_request_t *request)
{
    ngx_http_spanprof_key_t *key = ngx_palloc(pool, sizeof(*key)), **bucket = bucket_of(address);

    if (key == NULL)
        return NGX_ERROR;
    *key = (ngx_http_spanprof_key_t){address, request, *bucket, request->keys};
    *bucket = key;
    request->keys = key;
    return NGX_OK;
}

ngx_http_spanprof_request_t *ngx_http_spanprof_turns_find(ngx_http_request_t *r)
{
    return buckets == NULL ? NULL : find(r->main);
}

ngx_int_t ngx_http_spanprof_turns_add(ngx_http_request_t *r, ngx_http_spanprof_request_t *request)
{
    request->main = r;
    request->keys = NULL;
    if (add_key(r->pool, r, request) == NGX_OK &&
        add_key(r->pool, r->connection, request) == NGX_OK)
        return NGX_OK;
    ngx_http_spanprof_turns_remove(request);
    return NGX_ERROR;
}

void ngx_http_spanprof_turns_remove(ngx_http_spanprof_request_t *request)
{
    ngx_http_spanprof_key_t *key, **link;
    ngx_http_spanprof_bracket_t *bracket;

    for (key = request->keys; key != NULL; key = key->next_same) {
        for (link = bucket_of(key->address); *link != key; link = &(*link)->next)
            continue;
        *link = key->next;
    }
    for (bracket = innermost; bracket != NULL; bracket = bracket->outer) {
        if (bracket->request == request)
            bracket->request = NULL;
    }
}

/* Make REQUEST's context active in BRACKET from now on; NULL: no context. */
static void work_for(ngx_http_spanprof_bracket_t *bracket, ngx_http_spanprof_request_t *request)
{
    bracket->request = request;
    bracket->scope = spanprof_context_attach(request == NULL ? NULL : &request->context);
    bracket->attached = 1;
}

static void open_bracket(ngx_http_spanprof_bracket_t *bracket)
{
    *bracket = (ngx_http_spanprof_bracket_t){.outer = innermost};
    innermost = bracket;
}

static void close_bracket(ngx_http_spanprof_bracket_t *bracket)
{
    innermost = bracket->outer;
    if (bracket->attached)
        spanprof_scope_detach(&bracket->scope);
}

/* --- events ----------------------------------------------------------------------------------- */

static ngx_http_spanprof_request_t *request_of_event(const ngx_event_t *ev)
{
    ngx_http_spanprof_request_t *request = find(ev->data);
    const ngx_connection_t *c = ev->data;

    if (request == NULL && c >= ngx_cycle->connections &&
        c < ngx_cycle->connections + ngx_cycle->connection_n)
        request = find(c->data);
    return request;
}

static void take_turn(ngx_event_t *ev)
{
    ngx_http_spanprof_request_t *request = request_of_event(ev);
    ngx_http_spanprof_bracket_t bracket;

    open_bracket(&bracket);
    if (request != NULL)
        work_for(&bracket, request);
    turn_data = ev->data;
    ev->handler(ev);
    turn_data = NULL;
    close_bracket(&bracket);
}

static void take_turns(ngx_queue_t *posted)
{
    while (!ngx_queue_empty(posted)) {
        ngx_event_t *ev = ngx_queue_data(ngx_queue_head(posted), ngx_event_t, queue);

        ngx_delete_posted_event(ev);
        take_turn(ev);
    }
}

static void take_timers(void)
{
    ngx_rbtree_t *timers = &ngx_event_timer_rbtree;

    while (timers->root != timers->sentinel) {
        ngx_rbtree_node_t *first = ngx_rbtree_min(timers->root, timers->sentinel);
        ngx_event_t *ev = ngx_rbtree_data(first, ngx_event_t, timer);

        if ((ngx_msec_int_t)(first->key - ngx_current_msec) > 0)
            return;
        ngx_event_del_timer(ev);
        ev->timedout = 1;
        take_turn(ev);
    }
}

/* After this call nginx's own loops find no events. nginx also unlocks the accept mutex again,
 * which does nothing. */
static ngx_int_t process_events(ngx_cycle_t *cycle, ngx_msec_t timer, ngx_uint_t flags)
{
    ngx_int_t rc = wait_for_events(cycle, timer, flags | NGX_POST_EVENTS);

    take_turns(&ngx_posted_accept_events);
    if (ngx_accept_mutex_held)
        ngx_shmtx_unlock(&ngx_accept_mutex);
    take_timers();
    take_turns(&ngx_posted_events);
    return rc;
}

ngx_int_t ngx_http_spanprof_turns_watch_events(ngx_cycle_t *cycle, ngx_http_spanprof_begin_pt begin)
{
    ngx_uint_t count = 64;

    while (count < 2 * cycle->connection_n)
        count *= 2;
    buckets = ngx_pcalloc(cycle->pool, count * sizeof(*buckets));
    if (buckets == NULL)
        return NGX_ERROR;
    bucket_mask = count - 1;
    begin_request = begin;
    wait_for_events = ngx_event_actions.process_events;
    ngx_event_actions.process_events = process_events;
    return NGX_OK;
}

/* --- phases and filters ----------------------------------------------------------------------- */

/* Opens BRACKET for REQUEST (NULL: for none), unless the active context is already the right one.
 * Returns whether it opened BRACKET, which then has to be closed. */
static ngx_flag_t enter(ngx_http_spanprof_bracket_t *bracket, ngx_http_spanprof_request_t *request)
{
    if (request == NULL && (innermost == NULL || !innermost->attached))
        return 0;
    if (request != NULL && innermost != NULL && innermost->request == request)
        return 0;
    open_bracket(bracket);
    work_for(bracket, request);
    return 1;
}

/* What was added for R. If R is seen for the first time, it is added. */
static ngx_http_spanprof_request_t *request_of(ngx_http_request_t *r)
{
    ngx_http_spanprof_request_t *request = find(r);

    if (request != NULL)
        return request;
    if (r == r->main)
        return begin_request(r);
    request = find(r->main);
    if (request != NULL)
        add_key(r->pool, r, request); /* else the turns of this subrequest have no span */
    return request;
}

/* Called in place of each function of the phase engine. R may be freed when that function
 * returns. */
static ngx_int_t check_phase(ngx_http_request_t *r, ngx_http_phase_handler_t *ph)
{
    ngx_http_core_main_conf_t *core = ngx_http_get_module_main_conf(r, ngx_http_core_module);
    ngx_http_spanprof_main_conf_t *conf =
        ngx_http_get_module_main_conf(r, ngx_http_spanprof_module);
    ngx_http_phase_handler_pt checker = conf->checkers[ph - core->phase_engine.handlers];
    ngx_http_spanprof_request_t *request;
    ngx_http_spanprof_bracket_t bracket;
    ngx_flag_t entered;
    ngx_int_t rc;

    if (buckets == NULL) /* no worker: the SDK does not run */
        return checker(r, ph);
    if (innermost != NULL && innermost->request != NULL && innermost->request->main == r)
        return checker(r, ph); /* fast: most calls return here */
    request = request_of(r);
    if (request != NULL && innermost != NULL && !innermost->attached && turn_data == r->connection)
        work_for(innermost,
                 request); /* the connection's event brought R: R has the rest of the turn */
    entered = enter(&bracket, request);
    rc = checker(r, ph);
    if (entered)
        close_bracket(&bracket);
    return rc;
}

ngx_int_t ngx_http_spanprof_turns_watch_phases(ngx_cycle_t *cycle)
{
    ngx_http_core_main_conf_t *core =
        ngx_http_cycle_get_module_main_conf(cycle, ngx_http_core_module);
    ngx_http_spanprof_main_conf_t *conf =
        ngx_http_cycle_get_module_main_conf(cycle, ngx_http_spanprof_module);
    ngx_http_phase_handler_t *handlers = core->phase_engine.handlers;
    ngx_uint_t i, count;

    for (count = 0; handlers[count].checker != NULL; count++)
        continue;
    conf->checkers = ngx_palloc(cycle->pool, count * sizeof(*conf->checkers));
    if (conf->checkers == NULL)
        return NGX_ERROR;
    for (i = 0; i < count; i++) {
        conf->checkers[i] = handlers[i].checker;
        handlers[i].checker = check_phase;
    }
    return NGX_OK;
}

static ngx_int_t filter_header(ngx_http_request_t *r)
{
    ngx_http_spanprof_bracket_t bracket;
    ngx_flag_t entered = enter(&bracket, ngx_http_spanprof_turns_find(r));
    ngx_int_t rc = next_header_filter(r);

    if (entered)
        close_bracket(&bracket);
    return rc;
}

static ngx_int_t filter_body(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_http_spanprof_bracket_t bracket;
    ngx_flag_t entered = enter(&bracket, ngx_http_spanprof_turns_find(r));
    ngx_int_t rc = next_body_filter(r, in);

    if (entered)
        close_bracket(&bracket);
    return rc;
}

void ngx_http_spanprof_turns_watch_filters(void)
{
    next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = filter_header;
    next_body_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = filter_body;
}
