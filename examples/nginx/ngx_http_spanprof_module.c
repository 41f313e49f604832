/* SPDX-License-Identifier: Apache-2.0 */
/* A server span for each request of nginx, and samples of the worker's CPU time that are linked to
 * the span. docs/tracers/nginx.md is the manual of this module.
 *
 *     spanprof on | off;          in http and server; default: off
 *     spanprof_span_name TEXT;    in http, server and location; TEXT may have variables;
 *                                 default: the method and the location
 *
 *     $spanprof_traceparent, $spanprof_tracestate    for proxy_set_header: makes the upstream's
 *                                                    spans children of this span
 *     $spanprof_trace_id, $spanprof_span_id          for logs
 *
 * Each worker runs its own SDK; the master runs none. The module passes the variables SPANPROF_…
 * and OTEL_… of the master's environment to the workers; they need no `env` directive.
 *
 * Attributes: OpenTelemetry semantic conventions, http/http-spans, "HTTP Server". */
#include "ngx_http_spanprof_turns.h"
#include "ngx_http_spanprof_url.h"

typedef struct {
    ngx_flag_t enabled;
} ngx_http_spanprof_srv_conf_t;

typedef struct {
    ngx_http_complex_value_t *span_name;
} ngx_http_spanprof_loc_conf_t;

static spanprof_tracer *tracer;

static spanprof_attribute text(const char *key, const ngx_str_t *value)
{
    return (spanprof_attribute){.key = key,
                                .type = SPANPROF_ATTRIBUTE_SIZED_STRING,
                                .count = (uint32_t)value->len,
                                .value.string_value = (const char *)value->data};
}

static void set_text(spanprof_span span, const char *key, const ngx_str_t *value)
{
    spanprof_attribute attribute = text(key, value);

    if (value->len > 0)
        spanprof_span_set_attribute(span, &attribute);
}

/* --- a request begins ------------------------------------------------------------------------- */

/* A spanprof_header_getter that reads the request's headers. */
static bool get_header(void *user, const char *name, uint32_t index, spanprof_header_value *value)
{
    ngx_http_request_t *r = user;
    ngx_list_part_t *part;
    size_t length = strlen(name);

    for (part = &r->headers_in.headers.part; part != NULL; part = part->next) {
        ngx_table_elt_t *headers = part->elts;

        for (ngx_uint_t i = 0; i < part->nelts; i++) {
            if (headers[i].key.len != length ||
                ngx_strncasecmp(headers[i].key.data, (u_char *)name, length) != 0 || index-- > 0)
                continue;
            *value =
                (spanprof_header_value){(const char *)headers[i].value.data, headers[i].value.len};
            return true;
        }
    }
    return false;
}

/* The method, if it is one that the conventions list. Others must not be part of a name, because
 * there could be any number of them. */
static ngx_str_t known_method(ngx_http_request_t *r)
{
    static const ngx_uint_t known = NGX_HTTP_GET | NGX_HTTP_HEAD | NGX_HTTP_POST | NGX_HTTP_PUT |
                                    NGX_HTTP_DELETE | NGX_HTTP_OPTIONS | NGX_HTTP_PATCH |
                                    NGX_HTTP_TRACE;

    return r->method & known ? r->method_name : (ngx_str_t)ngx_string("_OTHER");
}

/* Start the span with the attributes that are known now, because the sampler may use them. */
static spanprof_span start_span(ngx_http_request_t *r)
{
    ngx_str_t method = known_method(r), path = ngx_http_spanprof_path(r);
    ngx_str_t scheme = ngx_http_spanprof_scheme(r);
    spanprof_attribute attributes[] = {text("http.request.method", &method),
                                       text("url.path", &path), text("url.scheme", &scheme)};
    spanprof_context parent;
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;

    spanprof_propagation_extract(&parent, get_header, r);
    options.kind = SPANPROF_SPAN_KIND_SERVER;
    options.parent = &parent;
    options.attributes = attributes;
    options.attribute_count = sizeof(attributes) / sizeof(attributes[0]);
    return spanprof_span_start(tracer, "HTTP", &options); /* log_request sets the name */
}

/* Called when the request's pool is freed, which is the end of the request. */
static void end_request(void *data)
{
    ngx_http_spanprof_request_t *request = data;

    ngx_http_spanprof_turns_remove(request);
    spanprof_span_end(request->span);
}

/* An ngx_http_spanprof_begin_pt. */
static ngx_http_spanprof_request_t *begin_request(ngx_http_request_t *r)
{
    ngx_http_spanprof_srv_conf_t *conf = ngx_http_get_module_srv_conf(r, ngx_http_spanprof_module);
    ngx_http_spanprof_request_t *request;
    ngx_pool_cleanup_t *cleanup;

    if (!conf->enabled)
        return NULL;
    cleanup = ngx_pool_cleanup_add(r->pool, sizeof(*request));
    if (cleanup == NULL)
        return NULL;
    request = cleanup->data;
    if (ngx_http_spanprof_turns_add(r, request) != NGX_OK)
        return NULL;
    request->span = start_span(r);
    request->context = spanprof_span_context(request->span);
    cleanup->handler = end_request;
    return request;
}

/* --- a request ends --------------------------------------------------------------------------- */

/* The location that answered, as the configuration names it. Empty without a location, and for
 * named locations. */
static ngx_str_t route_of(ngx_http_request_t *r)
{
    ngx_http_core_loc_conf_t *location = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    return location->named || location->noname ? (ngx_str_t)ngx_null_string : location->name;
}

static void name_span(ngx_http_request_t *r, spanprof_span span, const ngx_str_t *route)
{
    ngx_http_spanprof_loc_conf_t *conf = ngx_http_get_module_loc_conf(r, ngx_http_spanprof_module);
    ngx_str_t method = known_method(r), given = ngx_null_string;
    u_char name[256];

    if (conf->span_name != NULL && ngx_http_complex_value(r, conf->span_name, &given) == NGX_OK &&
        given.len > 0)
        ngx_snprintf(name, sizeof(name), "%V%Z", &given);
    else if (r->method_name.data != method.data)
        ngx_snprintf(name, sizeof(name), "HTTP %V%Z", route); /* as in the conventions */
    else if (route->len > 0)
        ngx_snprintf(name, sizeof(name), "%V %V%Z", &method, route);
    else
        ngx_snprintf(name, sizeof(name), "%V%Z", &method);
    name[sizeof(name) - 1] = '\0';
    spanprof_span_update_name(span, (char *)name);
}

static void set_status(spanprof_span span, ngx_uint_t status)
{
    char number[NGX_INT_T_LEN + 1];

    if (status == 0) /* the client closed the connection before there was an answer */
        return;
    spanprof_span_set_int(span, "http.response.status_code", (int64_t)status);
    if (status < 500)
        return;
    *ngx_sprintf((u_char *)number, "%ui", status) = '\0';
    spanprof_span_set_string(span, "error.type", number);
    spanprof_span_set_status(span, SPANPROF_SPAN_STATUS_ERROR, NULL);
}

/* Set the server and its port, as the request names them. */
static void set_server(ngx_http_request_t *r, spanprof_span span)
{
    ngx_int_t port = ngx_http_spanprof_port(r);

    set_text(span, "server.address", &r->headers_in.server);
    if (r->headers_in.server.len > 0 && port > 0)
        spanprof_span_set_int(span, "server.port", port);
}

static const char *protocol_version(const ngx_http_request_t *r)
{
    switch (r->http_version) {
    case NGX_HTTP_VERSION_9:
        return "0.9";
    case NGX_HTTP_VERSION_10:
        return "1.0";
    case NGX_HTTP_VERSION_11:
        return "1.1";
    default:
        return "2";
    }
}

/* A handler of the log phase: set what is known at the end of the request. The request still has
 * its pool. */
static ngx_int_t log_request(ngx_http_request_t *r)
{
    ngx_http_spanprof_request_t *request = ngx_http_spanprof_turns_find(r);
    ngx_str_t route, query;
    spanprof_span span;

    if (request == NULL || r != r->main || !spanprof_span_is_recording(request->span))
        return NGX_OK;
    span = request->span;
    route = route_of(r);
    query = ngx_http_spanprof_query(r);
    name_span(r, span, &route);
    set_text(span, "http.route", &route);
    set_text(span, "url.query", &query);
    set_server(r, span);
    set_text(span, "client.address", &r->connection->addr_text);
    spanprof_span_set_string(span, "network.protocol.version", protocol_version(r));
    if (r->method_name.data != known_method(r).data)
        set_text(span, "http.request.method_original", &r->method_name);
    set_status(span, r->err_status ? r->err_status : r->headers_out.status);
    return NGX_OK;
}

/* --- variables -------------------------------------------------------------------------------- */

enum { TRACEPARENT, TRACESTATE, TRACE_ID, SPAN_ID };

typedef struct {
    ngx_pool_t *pool;
    ngx_str_t tracestate;
} ngx_http_spanprof_setter_t;

/* A spanprof_header_setter that keeps the tracestate. */
static void keep_tracestate(void *user, const char *name, const char *value)
{
    ngx_http_spanprof_setter_t *setter = user;
    ngx_str_t borrowed = {strlen(value), (u_char *)value};

    if (strcmp(name, "tracestate") != 0)
        return;
    setter->tracestate.data = ngx_pstrdup(setter->pool, &borrowed);
    setter->tracestate.len = setter->tracestate.data == NULL ? 0 : borrowed.len;
}

static ngx_str_t variable_text(ngx_http_request_t *r, const spanprof_context *context,
                               uintptr_t which)
{
    ngx_http_spanprof_setter_t setter = {.pool = r->pool};
    ngx_str_t value = ngx_null_string;
    char traceparent[56];

    if (which == TRACESTATE) {
        spanprof_propagation_inject(context, keep_tracestate, &setter);
        return setter.tracestate;
    }
    if (spanprof_context_inject(context, traceparent) == 0)
        return value;
    value = (ngx_str_t){55, (u_char *)traceparent}; /* 00-TRACE_ID-SPAN_ID-01 */
    if (which == TRACE_ID)
        value = (ngx_str_t){32, value.data + 3};
    if (which == SPAN_ID)
        value = (ngx_str_t){16, value.data + 36};
    value.data = ngx_pstrdup(r->pool, &value);
    return value.data == NULL ? (ngx_str_t)ngx_null_string : value;
}

/* Without a span the variable is "not found", and proxy_set_header sends no header. */
static ngx_int_t get_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t which)
{
    ngx_http_spanprof_request_t *request = ngx_http_spanprof_turns_find(r);
    ngx_str_t value = ngx_null_string;

    if (request != NULL)
        value = variable_text(r, &request->context, which);
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = value.len == 0;
    v->len = (unsigned)value.len;
    v->data = value.data;
    return NGX_OK;
}

static ngx_int_t add_variables(ngx_conf_t *cf)
{
    static const struct {
        ngx_str_t name;
        uintptr_t which;
    } variables[] = {
        {ngx_string("spanprof_traceparent"), TRACEPARENT},
        {ngx_string("spanprof_tracestate"), TRACESTATE},
        {ngx_string("spanprof_trace_id"), TRACE_ID},
        {ngx_string("spanprof_span_id"), SPAN_ID},
    };

    for (ngx_uint_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        ngx_str_t name = variables[i].name;
        ngx_http_variable_t *variable = ngx_http_add_variable(cf, &name, 0);

        if (variable == NULL)
            return NGX_ERROR;
        variable->get_handler = get_variable;
        variable->data = variables[i].which;
    }
    return NGX_OK;
}

/* --- configuration ---------------------------------------------------------------------------- */

static void *create_main_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_spanprof_main_conf_t));
}

static void *create_srv_conf(ngx_conf_t *cf)
{
    ngx_http_spanprof_srv_conf_t *conf = ngx_pcalloc(cf->pool, sizeof(*conf));

    if (conf != NULL)
        conf->enabled = NGX_CONF_UNSET;
    return conf;
}

static char *merge_srv_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_spanprof_main_conf_t *main_conf =
        ngx_http_conf_get_module_main_conf(cf, ngx_http_spanprof_module);
    ngx_http_spanprof_srv_conf_t *conf = child, *outer = parent;

    ngx_conf_merge_value(conf->enabled, outer->enabled, 0);
    main_conf->enabled |= conf->enabled;
    return NGX_CONF_OK;
}

static void *create_loc_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_spanprof_loc_conf_t));
}

static char *merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_spanprof_loc_conf_t *conf = child, *outer = parent;

    if (conf->span_name == NULL)
        conf->span_name = outer->span_name;
    return NGX_CONF_OK;
}

static ngx_command_t commands[] = {
    {ngx_string("spanprof"), NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_CONF_FLAG,
     ngx_conf_set_flag_slot, NGX_HTTP_SRV_CONF_OFFSET,
     offsetof(ngx_http_spanprof_srv_conf_t, enabled), NULL},
    {ngx_string("spanprof_span_name"),
     NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF | NGX_CONF_TAKE1,
     ngx_http_set_complex_value_slot, NGX_HTTP_LOC_CONF_OFFSET,
     offsetof(ngx_http_spanprof_loc_conf_t, span_name), NULL},
    ngx_null_command,
};

static ngx_int_t postconfiguration(ngx_conf_t *cf)
{
    ngx_http_core_main_conf_t *core = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    ngx_http_handler_pt *handler = ngx_array_push(&core->phases[NGX_HTTP_LOG_PHASE].handlers);

    if (handler == NULL)
        return NGX_ERROR;
    *handler = log_request;
    ngx_http_spanprof_turns_watch_filters();
    return NGX_OK;
}

static ngx_http_module_t context = {
    .preconfiguration = add_variables,
    .postconfiguration = postconfiguration,
    .create_main_conf = create_main_conf,
    .create_srv_conf = create_srv_conf,
    .merge_srv_conf = merge_srv_conf,
    .create_loc_conf = create_loc_conf,
    .merge_loc_conf = merge_loc_conf,
};

/* --- processes -------------------------------------------------------------------------------- */

/* NULL when the configuration has no http {}. */
static ngx_http_spanprof_main_conf_t *main_conf_of(ngx_cycle_t *cycle)
{
    return ngx_http_cycle_get_module_main_conf(cycle, ngx_http_spanprof_module);
}

static ngx_flag_t declared(const ngx_array_t *env, const char *name, size_t length)
{
    ngx_str_t *names = env->elts;

    for (ngx_uint_t i = 0; i < env->nelts; i++) {
        if (names[i].len == length && ngx_strncmp(names[i].data, name, length) == 0)
            return 1;
    }
    return 0;
}

/* nginx gives workers, and a new binary, an empty environment. Pass our variables on, as if each
 * had an `env` directive. */
static ngx_int_t pass_environment(ngx_cycle_t *cycle)
{
    ngx_core_conf_t *core = (ngx_core_conf_t *)ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    for (char **variable = environ; *variable != NULL; variable++) {
        size_t length = strcspn(*variable, "=");
        ngx_str_t *name;

        if (strncmp(*variable, "SPANPROF_", 9) != 0 && strncmp(*variable, "OTEL_", 5) != 0)
            continue;
        if (declared(&core->env, *variable, length))
            continue;
        name = ngx_array_push(&core->env);
        if (name == NULL)
            return NGX_ERROR;
        *name = (ngx_str_t){length, (u_char *)*variable}; /* '=' and the value follow the name */
    }
    return NGX_OK;
}

static ngx_int_t init_module(ngx_cycle_t *cycle)
{
    ngx_http_spanprof_main_conf_t *conf = main_conf_of(cycle);

    if (conf == NULL || !conf->enabled)
        return NGX_OK;
    if (pass_environment(cycle) != NGX_OK)
        return NGX_ERROR;
    if (!ngx_test_config)
        spanprof_prepare(); /* for all workers, because they are forked from this process */
    return ngx_http_spanprof_turns_watch_phases(cycle);
}

/* Start the SDK. Each worker writes its own files, PREFIX.PID.*. PREFIX.1 to PREFIX.3 are earlier
 * runs, so PIDs up to 3 get PREFIX.pidPID.*. */
static spanprof_status start_sdk(spanprof_error *error)
{
    const char *prefix = getenv("SPANPROF_FILE");
    char file[NGX_MAX_PATH];
    spanprof_options options = SPANPROF_OPTIONS_INIT;

    snprintf(file, sizeof(file), "%s.%s%ld", prefix == NULL ? "spanprof" : prefix,
             ngx_pid <= 3 ? "pid" : "", (long)ngx_pid);
    options.file = file;
    return spanprof_start(&options, error);
}

/* Whether this process is a worker, or the only process of `master_process off`. The processes that
 * manage caches serve no requests. */
static ngx_flag_t serves_requests(ngx_cycle_t *cycle)
{
    ngx_http_spanprof_main_conf_t *conf = main_conf_of(cycle);

    return conf != NULL && conf->enabled &&
           (ngx_process == NGX_PROCESS_WORKER || ngx_process == NGX_PROCESS_SINGLE);
}

/* If the SDK does not start, nginx serves requests as it would without this module. */
static ngx_int_t init_process(ngx_cycle_t *cycle)
{
    spanprof_error error = {0};

    if (!serves_requests(cycle))
        return NGX_OK;
    if (start_sdk(&error) != SPANPROF_OK) {
        ngx_log_error(NGX_LOG_ERR, cycle->log, error.system_errno, "spanprof does not run: %s",
                      error.message);
        return NGX_OK;
    }
    tracer = spanprof_tracer_get("nginx", NGINX_VERSION);
    return ngx_http_spanprof_turns_watch_events(cycle, begin_request);
}

/* A worker that ends, after a reload or a stop, sends what it has recorded. */
static void exit_process(ngx_cycle_t *cycle)
{
    if (serves_requests(cycle))
        spanprof_stop(5000000000u);
}

ngx_module_t ngx_http_spanprof_module = {
    NGX_MODULE_V1,
    &context,
    commands,
    NGX_HTTP_MODULE,
    NULL, /* init master */
    init_module,
    init_process,
    NULL, /* init thread */
    NULL, /* exit thread */
    exit_process,
    NULL, /* exit master */
    NGX_MODULE_V1_PADDING,
};
