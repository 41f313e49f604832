/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of PostgreSQL's statements, with children for planner and executor, and samples of the
 * backend's CPU time that are linked to the spans. docs/tracers/postgresql.md is the manual of this
 * extension.
 *
 *     shared_preload_libraries = 'spanprof_postgres'    or session_preload_libraries, or LOAD
 *     spanprof.track = top | all | none    which statements have a span: those of the client
 *                                          (top), or also those in functions (all, the default)
 *     spanprof.phases = on | off           whether `plan` and `execute` have their own spans;
 *                                          default: on
 *     spanprof.query_text = on | off       whether spans have the statement's text; default: off,
 *                                          because the text includes literals
 *     spanprof.traceparent = '00-…'        the parent of statements of this session that have no
 *                                          comment with a traceparent
 *
 * A context is active only inside the calls of PostgreSQL's hooks. Every hook detaches what it
 * attached, both when it returns and, on an error, before it throws the error again. After an error
 * PostgreSQL frees the executor state of the statement, and then the statement's spans end. So no
 * statement gets samples of what runs after it.
 *
 * Each backend runs its own SDK, from its first statement to its exit; the postmaster runs none.
 *
 * Attributes: OpenTelemetry semantic conventions, database/postgresql. */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "commands/dbcommands.h"
#include "common/hashfn.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "optimizer/planner.h"
#include "storage/ipc.h"
#include "tcop/cmdtag.h"
#include "tcop/utility.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#include <spanprof/spanprof.h>

PG_MODULE_MAGIC;

void _PG_init(void);

enum { TRACK_NONE, TRACK_TOP, TRACK_ALL };

/* The spans of a statement. */
typedef struct spans {
    spanprof_span statement;
    spanprof_span execute; /* zero without phases */
} spans;

/* A statement that is being executed. It is in the memory of the executor state, and is removed
 * when that memory is freed. */
typedef struct execution {
    spans spans;
    QueryDesc *query;
    MemoryContextCallback forget;
    struct execution *next;
} execution;

/* A statement that was planned. It will be executed soon, or never. */
typedef struct planned {
    spanprof_span statement;
    int level;
    int location;
    CmdType command;
    uint64 source;       /* the hash of the text that `location` refers to */
    TimestampTz message; /* when the client's message came that caused the planning */
    bool passed;         /* since then, execution of a statement of this level has begun */
} planned;

/* More planned statements in one text are rare. Each further one has two spans of its own: one for
 * planning and one for execution. */
#define MAX_WAITING 16

static int track = TRACK_ALL;
static bool phases = true;
static bool query_text;
static char *traceparent;
static char *parallel_parent; /* the leader's context, which its workers get as a setting */

static spanprof_tracer *tracer;
static int level; /* of nesting; 0: a statement of the client */
static execution *executions;
static planned waiting[MAX_WAITING]; /* in the order in which they were planned */
static int waiting_count;

static planner_hook_type next_planner;
static ExecutorStart_hook_type next_start;
static ExecutorRun_hook_type next_run;
static ExecutorFinish_hook_type next_finish;
static ExecutorEnd_hook_type next_end;
static ProcessUtility_hook_type next_utility;
static emit_log_hook_type next_log;

/* --- the SDK of this backend ------------------------------------------------------------------ */

static void stop_sdk(int code, Datum argument)
{
    spanprof_stop(2000000000u);
}

/* Start the SDK. Each backend writes its own files, PREFIX.PID.*. PREFIX.1 to PREFIX.3 are earlier
 * runs, so PIDs up to 3 get PREFIX.pidPID.*. */
static bool start_sdk(void)
{
    const char *prefix = getenv("SPANPROF_FILE");
    char file[MAXPGPATH];
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    spanprof_error error = {0};

    snprintf(file, sizeof(file), "%s.%s%d", prefix == NULL ? "spanprof" : prefix,
             MyProcPid <= 3 ? "pid" : "", MyProcPid);
    options.file = file;
    if (spanprof_start(&options, &error) != SPANPROF_OK) {
        ereport(LOG, errmsg("spanprof does not run: %s", error.message));
        return false;
    }
    tracer = spanprof_tracer_get("postgresql", PG_VERSION);
    on_proc_exit(stop_sdk, (Datum)0);
    return true;
}

/* Whether a statement that runs now gets spans. The first such statement starts the SDK. */
static bool tracks(void)
{
    static enum { NOT_YET, RUNS, FAILED } sdk;

    if (track == TRACK_NONE || (track == TRACK_TOP && level > 0))
        return false;
    if (IsParallelWorker() && parallel_parent[0] == '\0')
        return false; /* the leader's statement has no span */
    if (sdk == NOT_YET)
        sdk = start_sdk() ? RUNS : FAILED;
    return sdk == RUNS;
}

/* --- the parent ------------------------------------------------------------------------------- */

/* A piece of SQL. */
typedef struct piece {
    const char *start, *end;
} piece;

static piece trimmed(piece text)
{
    while (text.start < text.end && strchr(" \t\r\n;", *text.start) != NULL)
        text.start++;
    while (text.start < text.end && strchr(" \t\r\n;", text.end[-1]) != NULL)
        text.end--;
    return text;
}

/* The statement at LOCATION in SOURCE: LENGTH bytes, or with 0 the rest of SOURCE. Empty when there
 * is no source (extensions plan and execute statements without one), and when SOURCE ends before
 * LOCATION, because an extension may have cut it. */
static piece statement_text(const char *source, int location, int length)
{
    size_t skipped = location > 0 ? (size_t)location : 0;
    piece text = {source, source};

    if (source == NULL || strnlen(source, skipped) < skipped)
        return text;
    text.start += skipped;
    text.end = text.start + (length > 0 ? strnlen(text.start, (size_t)length) : strlen(text.start));
    return trimmed(text);
}

/* The comment at the end of TEXT, or if there is none, the comment at its beginning. At these
 * places a comment cannot be part of a string. */
static piece comment_of(piece text)
{
    piece none = {NULL, NULL};
    const char *p;

    if (text.end - text.start < 4)
        return none;
    if (text.end[-2] == '*' && text.end[-1] == '/') {
        for (p = text.end - 4; p >= text.start; p--) {
            if (p[0] == '/' && p[1] == '*')
                return (piece){p + 2, text.end - 2};
        }
    }
    if (text.start[0] == '/' && text.start[1] == '*') {
        for (p = text.start + 2; p + 1 < text.end; p++) {
            if (p[0] == '*' && p[1] == '/')
                return (piece){text.start + 2, p};
        }
    }
    return none;
}

/* Copy the value of KEY='VALUE' in COMMENT, as sqlcommenter writes it, to VALUE. Returns false when
 * there is none or it needs more than SIZE bytes. */
static bool comment_value(piece comment, const char *key, char *value, size_t size)
{
    size_t length = strlen(key);
    const char *p, *end;

    for (p = comment.start; p != NULL && p + length + 2 < comment.end; p++) {
        if (strncmp(p, key, length) != 0 || p[length] != '=' || p[length + 1] != '\'')
            continue;
        if (p > comment.start && strchr(", \t\r\n", p[-1]) == NULL)
            continue;
        p += length + 2;
        end = memchr(p, '\'', (size_t)(comment.end - p));
        if (end == NULL || (size_t)(end - p) >= size)
            return false;
        memcpy(value, p, (size_t)(end - p));
        value[end - p] = '\0';
        return true;
    }
    return false;
}

/* The parent of a statement. A client's statement has the parent that its comment names, or else
 * the setting, or else none. A nested statement has the active span as its parent. */
static spanprof_context parent_of(piece text)
{
    spanprof_context parent = {0};
    char found[56];

    if (level > 0)
        return spanprof_context_current();
    if (IsParallelWorker())
        spanprof_context_extract(&parent, parallel_parent, NULL);
    else if (comment_value(comment_of(text), "traceparent", found, sizeof(found)))
        spanprof_context_extract(&parent, found, NULL);
    else if (traceparent != NULL && traceparent[0] != '\0')
        spanprof_context_extract(&parent, traceparent, NULL);
    return parent;
}

/* --- spans ------------------------------------------------------------------------------------ */

static const char *operation_name(CmdType command)
{
    switch (command) {
    case CMD_SELECT:
        return "SELECT";
    case CMD_INSERT:
        return "INSERT";
    case CMD_UPDATE:
        return "UPDATE";
    case CMD_DELETE:
        return "DELETE";
    case CMD_MERGE:
        return "MERGE";
    default:
        return "OTHER";
    }
}

/* The name of this backend's database, which never changes. NULL until it could be looked up. */
static const char *database_name(void)
{
    static char *kept;
    char *name;

    if (kept == NULL && IsTransactionState() && (name = get_database_name(MyDatabaseId)) != NULL)
        kept = MemoryContextStrdup(TopMemoryContext, name);
    return kept;
}

static spanprof_span start_statement(const char *operation, piece text)
{
    const char *database = database_name();
    spanprof_attribute attributes[] = {
        {.key = "db.system.name", .value.string_value = "postgresql"},
        {.key = "db.operation.name", .value.string_value = operation},
        {.key = database == NULL ? NULL : "db.namespace", .value.string_value = database},
        {.key = query_text && text.start < text.end ? "db.query.text" : NULL,
         .type = SPANPROF_ATTRIBUTE_SIZED_STRING,
         .count = (uint32_t)(text.end - text.start),
         .value.string_value = text.start},
    };
    spanprof_context parent = parent_of(text);
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    char name[2 * NAMEDATALEN];

    snprintf(name, sizeof(name), "%s%s%s", IsParallelWorker() ? "parallel worker" : operation,
             database == NULL ? "" : " ", database == NULL ? "" : database);
    options.parent = &parent;
    options.kind =
        level > 0 || IsParallelWorker() ? SPANPROF_SPAN_KIND_INTERNAL : SPANPROF_SPAN_KIND_SERVER;
    options.attributes = attributes;
    options.attribute_count = lengthof(attributes);
    return spanprof_span_start(tracer, name, &options);
}

/* Start the span of a phase of STATEMENT. Returns the zero handle without phases, and when
 * STATEMENT is not recorded. */
static spanprof_span start_phase(spanprof_span statement, const char *name)
{
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    spanprof_context parent;

    if (!phases || !spanprof_span_is_recording(statement))
        return (spanprof_span){0};
    parent = spanprof_span_context(statement);
    options.parent = &parent;
    return spanprof_span_start(tracer, name, &options);
}

static spanprof_scope attach(spanprof_span statement, spanprof_span phase)
{
    return spanprof_span_attach(phase.slot != 0 ? phase : statement);
}

static void end(spanprof_span span)
{
    if (span.slot != 0)
        spanprof_span_end(span);
}

static void set_error_code(spanprof_span span, int code)
{
    const char *state = unpack_sql_state(code);

    spanprof_span_set_string(span, "db.response.status_code", state);
    spanprof_span_set_string(span, "error.type", state);
    spanprof_span_set_status(span, SPANPROF_SPAN_STATUS_ERROR, NULL);
}

/* Called in a PG_CATCH: SPAN has failed with the current error. */
static void set_error(spanprof_span span)
{
    set_error_code(span, geterrcode());
}

/* --- planned, and not yet executed ------------------------------------------------------------ */

/* The hash of the text SOURCE; 0 without a source. */
static uint64 source_hash(const char *source)
{
    if (source == NULL)
        return 0;
    return hash_bytes_extended((const unsigned char *)source, (int)strlen(source), 0);
}

static spanprof_span remove_waiting(int i)
{
    spanprof_span statement = waiting[i].statement;

    waiting_count--;
    memmove(&waiting[i], &waiting[i + 1], (size_t)(waiting_count - i) * sizeof(waiting[0]));
    return statement;
}

/* Remove the planned statements of LOWEST and deeper levels, which will not be executed any more,
 * and end their spans. */
static void drop_waiting(int lowest)
{
    for (int i = waiting_count - 1; i >= 0; i--) {
        if (waiting[i].level >= lowest)
            spanprof_span_end(remove_waiting(i));
    }
}

/* A statement of this level and of the text SOURCE is about to be planned. Statements of this level
 * that were planned together with it (actions of one rule, statements of one function) will still
 * be executed. Remove all others. */
static void begin_planning(uint64 source)
{
    TimestampTz message = GetCurrentStatementStartTimestamp();

    drop_waiting(level + 1);
    for (int i = 0; i < waiting_count; i++) {
        const planned *other = &waiting[i];

        if (other->level == level &&
            (other->passed || other->source != source || other->message != message)) {
            drop_waiting(level);
            return;
        }
    }
}

static void add_waiting(spanprof_span statement, const Query *parse, uint64 source)
{
    if (waiting_count == MAX_WAITING) {
        spanprof_span_end(statement);
        return;
    }
    waiting[waiting_count++] = (planned){.statement = statement,
                                         .level = level,
                                         .location = parse->stmt_location,
                                         .command = parse->commandType,
                                         .source = source,
                                         .message = GetCurrentStatementStartTimestamp()};
}

/* The span of QUERY, if QUERY was planned before; else a new span. Statements that are planned
 * together are executed in the same order. So of several actions of a rule, which have the same
 * location, the first one is taken. (Plans are copied, so their addresses cannot be compared.) */
static spanprof_span take_waiting(const QueryDesc *query)
{
    const PlannedStmt *plan = query->plannedstmt;
    uint64 source = waiting_count > 0 ? source_hash(query->sourceText) : 0;
    int found = -1;

    drop_waiting(level + 1);
    for (int i = 0; i < waiting_count; i++) {
        planned *other = &waiting[i];

        if (other->level != level)
            continue;
        other->passed = true;
        if (found < 0 && other->location == plan->stmt_location &&
            other->command == query->operation && other->source == source)
            found = i;
    }
    if (found >= 0)
        return remove_waiting(found);
    return start_statement(operation_name(query->operation),
                           statement_text(query->sourceText, plan->stmt_location, plan->stmt_len));
}

static PlannedStmt *plan_statement(Query *parse, const char *source, int options,
                                   ParamListInfo parameters)
{
    return next_planner ? next_planner(parse, source, options, parameters)
                        : standard_planner(parse, source, options, parameters);
}

static PlannedStmt *hook_planner(Query *parse, const char *source, int options,
                                 ParamListInfo parameters)
{
    spanprof_span statement, phase;
    spanprof_scope scope;
    PlannedStmt *plan;
    uint64 hash;

    if (!tracks())
        return plan_statement(parse, source, options, parameters);
    hash = source_hash(source);
    begin_planning(hash);
    statement = start_statement(operation_name(parse->commandType),
                                statement_text(source, parse->stmt_location, parse->stmt_len));
    phase = start_phase(statement, "plan");
    scope = attach(statement, phase);
    level++;
    PG_TRY();
    {
        plan = plan_statement(parse, source, options, parameters);
    }
    PG_CATCH();
    {
        level--;
        spanprof_scope_detach(&scope);
        set_error(statement);
        end(phase);
        end(statement);
        drop_waiting(level);
        PG_RE_THROW();
    }
    PG_END_TRY();
    level--;
    spanprof_scope_detach(&scope);
    end(phase);
    drop_waiting(level + 1); /* statements of functions that the planner called */
    add_waiting(statement, parse, hash);
    return plan;
}

/* After the end of a transaction no planned statement will be executed. */
static void end_transaction(XactEvent event, void *argument)
{
    if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT)
        drop_waiting(0);
}

/* --- executed --------------------------------------------------------------------------------- */

static execution *find_execution(const QueryDesc *query)
{
    execution *e;

    for (e = executions; e != NULL && e->query != query; e = e->next)
        continue;
    return e;
}

/* Called when the executor's state is freed: by ExecutorEnd, or after an error. */
static void forget_execution(void *argument)
{
    execution *gone = argument, **link;

    for (link = &executions; *link != gone; link = &(*link)->next)
        continue;
    *link = gone->next;
    end(gone->spans.execute);
    end(gone->spans.statement);
}

static void remember_execution(QueryDesc *query, spans spans)
{
    execution *e = MemoryContextAlloc(query->estate->es_query_cxt, sizeof(*e));

    *e = (execution){.spans = spans, .query = query, .next = executions};
    e->forget.func = forget_execution;
    e->forget.arg = e;
    executions = e;
    MemoryContextRegisterResetCallback(query->estate->es_query_cxt, &e->forget);
}

/* A fatal error ends the backend without a PG_CATCH, but it is logged before. */
static void hook_log(ErrorData *error)
{
    const execution *e;

    if (error->elevel == FATAL) {
        for (e = executions; e != NULL; e = e->next)
            set_error_code(e->spans.statement, error->sqlerrcode);
    }
    if (next_log)
        next_log(error);
}

static void start_executor(QueryDesc *query, int flags)
{
    if (next_start)
        next_start(query, flags);
    else
        standard_ExecutorStart(query, flags);
}

static void hook_start(QueryDesc *query, int flags)
{
    spanprof_scope scope;
    spans spans;

    if (!tracks()) {
        start_executor(query, flags);
        return;
    }
    spans.statement = take_waiting(query);
    spans.execute = start_phase(spans.statement, "execute");
    scope = attach(spans.statement, spans.execute);
    level++;
    PG_TRY();
    {
        start_executor(query, flags);
        remember_execution(query, spans);
    }
    PG_CATCH();
    {
        level--;
        spanprof_scope_detach(&scope);
        set_error(spans.statement);
        end(spans.execute);
        end(spans.statement);
        PG_RE_THROW();
    }
    PG_END_TRY();
    level--;
    spanprof_scope_detach(&scope);
}

/* A step of the executor, with its arguments. */
typedef struct step {
    enum { RUN, FINISH, END } what;
    ScanDirection direction;
    uint64 count;
    bool execute_once;
} step;

static void take_step(QueryDesc *query, const step *step)
{
    switch (step->what) {
    case RUN:
        if (next_run)
            next_run(query, step->direction, step->count, step->execute_once);
        else
            standard_ExecutorRun(query, step->direction, step->count, step->execute_once);
        break;
    case FINISH:
        if (next_finish)
            next_finish(query);
        else
            standard_ExecutorFinish(query);
        break;
    case END:
        if (next_end)
            next_end(query);
        else
            standard_ExecutorEnd(query);
        break;
    }
}

/* Take a step of E with E's span active. END frees E. */
static void take_traced_step(execution *e, const step *step)
{
    QueryDesc *query = e->query;
    spanprof_span statement = e->spans.statement;
    spanprof_scope scope = attach(statement, e->spans.execute);

    level++;
    PG_TRY();
    {
        take_step(query, step);
    }
    PG_CATCH();
    {
        level--;
        spanprof_scope_detach(&scope);
        set_error(statement);
        PG_RE_THROW();
    }
    PG_END_TRY();
    level--;
    spanprof_scope_detach(&scope);
}

static void trace_step(QueryDesc *query, const step *step)
{
    execution *e = find_execution(query);

    if (e == NULL)
        take_step(query, step);
    else
        take_traced_step(e, step);
}

/* The context for the parallel workers of QUERY. E is the execution of QUERY, or NULL: QUERY is a
 * statement in a function and has no span, so its workers get the active context. Not valid when
 * QUERY has no workers, or when nothing is active. */
static spanprof_context context_of_workers(const QueryDesc *query, const execution *e)
{
    if (!query->plannedstmt->parallelModeNeeded || IsInParallelMode())
        return (spanprof_context){0};
    if (e == NULL)
        return spanprof_context_current();
    return spanprof_span_context(e->spans.execute.slot != 0 ? e->spans.execute
                                                            : e->spans.statement);
}

/* Take a step with TEXT, the leader's context, as a setting, because parallel workers get the
 * leader's settings when they start. After an error PostgreSQL restores the setting. */
static void run_with_workers(QueryDesc *query, const char *text, const step *step)
{
    int nest_level = NewGUCNestLevel();

    set_config_option("spanprof.parallel_parent", text, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
                      true, 0, false);
    trace_step(query, step);
    AtEOXact_GUC(true, nest_level);
}

static void hook_run(QueryDesc *query, ScanDirection direction, uint64 count, bool execute_once)
{
    step step = {RUN, direction, count, execute_once};
    spanprof_context context = context_of_workers(query, find_execution(query));
    char text[56];

    if (spanprof_context_inject(&context, text) != 0)
        run_with_workers(query, text, &step);
    else
        trace_step(query, &step);
}

static void hook_finish(QueryDesc *query)
{
    trace_step(query, &(step){.what = FINISH});
}

static void hook_end(QueryDesc *query)
{
    execution *e = find_execution(query);

    if (e != NULL && query->operation == CMD_SELECT)
        spanprof_span_set_int(e->spans.statement, "db.response.returned_rows",
                              (int64)query->estate->es_processed);
    trace_step(query, &(step){.what = END});
}

/* --- utility statements ----------------------------------------------------------------------- */

static void run_utility(PlannedStmt *plan, const char *source, bool read_only,
                        ProcessUtilityContext context, ParamListInfo parameters,
                        QueryEnvironment *environment, DestReceiver *destination,
                        QueryCompletion *completion)
{
    if (next_utility)
        next_utility(plan, source, read_only, context, parameters, environment, destination,
                     completion);
    else
        standard_ProcessUtility(plan, source, read_only, context, parameters, environment,
                                destination, completion);
}

static void hook_utility(PlannedStmt *plan, const char *source, bool read_only,
                         ProcessUtilityContext context, ParamListInfo parameters,
                         QueryEnvironment *environment, DestReceiver *destination,
                         QueryCompletion *completion)
{
    spanprof_span statement;
    spanprof_scope scope;

    if (!tracks()) {
        run_utility(plan, source, read_only, context, parameters, environment, destination,
                    completion);
        return;
    }
    statement = start_statement(CreateCommandName(plan->utilityStmt),
                                statement_text(source, plan->stmt_location, plan->stmt_len));
    scope = spanprof_span_attach(statement);
    level++;
    PG_TRY();
    {
        run_utility(plan, source, read_only, context, parameters, environment, destination,
                    completion);
    }
    PG_CATCH();
    {
        level--;
        spanprof_scope_detach(&scope);
        set_error(statement);
        end(statement);
        PG_RE_THROW();
    }
    PG_END_TRY();
    level--;
    spanprof_scope_detach(&scope);
    end(statement);
}

/* --- settings and hooks ----------------------------------------------------------------------- */

static void define_settings(void)
{
    static const struct config_enum_entry tracks[] = {
        {"none", TRACK_NONE, false}, {"top", TRACK_TOP, false}, {"all", TRACK_ALL, false}, {NULL}};

    DefineCustomEnumVariable("spanprof.track", "Which statements have a span.", NULL, &track,
                             TRACK_ALL, tracks, PGC_SUSET, 0, NULL, NULL, NULL);
    DefineCustomBoolVariable("spanprof.phases", "Planner and executor have spans of their own.",
                             NULL, &phases, true, PGC_SUSET, 0, NULL, NULL, NULL);
    DefineCustomBoolVariable("spanprof.query_text", "Spans have the text of their statement.",
                             "It has the literals in it.", &query_text, false, PGC_SUSET, 0, NULL,
                             NULL, NULL);
    DefineCustomStringVariable("spanprof.traceparent", "W3C traceparent of the session's parent.",
                               "A comment in the statement comes first.", &traceparent, "",
                               PGC_USERSET, 0, NULL, NULL, NULL);
    DefineCustomStringVariable(
        "spanprof.parallel_parent", "W3C traceparent of a parallel worker's parent.", NULL,
        &parallel_parent, "", PGC_USERSET,
        GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE, NULL, NULL, NULL);
    MarkGUCPrefixReserved("spanprof");
}

void _PG_init(void)
{
    define_settings();
    next_planner = planner_hook;
    planner_hook = hook_planner;
    next_start = ExecutorStart_hook;
    ExecutorStart_hook = hook_start;
    next_run = ExecutorRun_hook;
    ExecutorRun_hook = hook_run;
    next_finish = ExecutorFinish_hook;
    ExecutorFinish_hook = hook_finish;
    next_end = ExecutorEnd_hook;
    ExecutorEnd_hook = hook_end;
    next_utility = ProcessUtility_hook;
    ProcessUtility_hook = hook_utility;
    next_log = emit_log_hook;
    emit_log_hook = hook_log;
    RegisterXactCallback(end_transaction, NULL);
    if (process_shared_preload_libraries_in_progress)
        spanprof_prepare(); /* for all backends, because they are forked from this process */
}
