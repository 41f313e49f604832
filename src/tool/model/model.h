/* SPDX-License-Identifier: Apache-2.0 */
/* What all files of a call tell together: spans as a forest, and samples with their stacks as
 * names. Commands that answer questions work on it; check and convert look at the messages
 * themselves.
 *
 * Strings are numbers of `strings`; they are valid UTF-8. Stacks are numbers of `stacks`, whose
 * keys are arrays of uint32_t string numbers, leaf first. Links are numbers of `links`; number 0 is
 * no span. */
#ifndef SP_TOOL_MODEL_MODEL_H
#define SP_TOOL_MODEL_MODEL_H

#include "core/arena.h"
#include "core/intern.h"
#include "proto/profiles.pb-c.h"
#include "proto/trace.pb-c.h"
#include "tool/model/names.h"
#include "tool/model/sample_index.h"
#include "tool/model/where.h"
#include "tool/read/input.h"

#define SP_MODEL_NONE UINT32_MAX

/* Key of `links` and of `span_index`. */
typedef struct sp_model_link {
    uint8_t trace_id[16];
    uint8_t span_id[8];
} sp_model_link;

/* parent, first_child and next_sibling are numbers of spans, or SP_MODEL_NONE; children stand in
 * the order of their starts. There are no cycles: a file that has some loses a link of each. */
typedef struct sp_model_span {
    sp_model_link id;
    uint8_t parent_span_id[8];
    const char *name; /* valid UTF-8 */
    const char *service;
    uint64_t start_ns, end_ns; /* start <= end */
    uint32_t parent, first_child, next_sibling, local_root;
    bool parent_is_remote;
    const Sp__Trace__Span *message;
    const Sp__Resource__Resource *resource;        /* NULL: not told */
    const Sp__Common__InstrumentationScope *scope; /* NULL: not told */
    /* Of the model's time type (see sp_model_time_type): what links to this span, and with all
     * descendants. */
    uint64_t own_value, own_count, total_value, total_count;
    /* After sp_model_find_overruns. */
    uint32_t threads; /* that its samples and its descendants' name; 0: not told */
    bool overruns;    /* its CPU time is more than it lasted on so many threads */
    /* After sp_model_find_hidden (hidden.h). */
    bool is_inner;  /* it is no local root */
    bool has_inner; /* some child is no local root */
    /* Of the wall type (see sp_model_wall_type), with all descendants: by class. Several threads
     * that work for a span at once make more of it than the span took. */
    uint64_t wall_ns[SP_WHERE_COUNT];
    /* Of allocated bytes (see sp_model_alloc_type), with all descendants. */
    uint64_t alloc_value, alloc_count;
    /* After sp_model_find_queued (queued.h): in which no thread carried it; 0: not sure. */
    uint64_t queued_ns;
} sp_model_span;

/* A kind of measurement. OTLP has samples of CPU time as counts; in the model they are in
 * nanoseconds, and the type is "cpu". */
typedef struct sp_model_type {
    const char *name;
    const char *unit;
    uint64_t profiles;
    uint64_t samples;        /* sum of counts */
    int64_t period;          /* of the first profile */
    const char *period_unit; /* "": none, or the period is one event in the type's own unit */
    bool is_wall;            /* wall time in nanoseconds: its samples have classes */
    bool tells_where;        /* some sample says that it waited; else SP_WHERE_CPU says nothing */
    bool is_snapshot;        /* what was allocated at a moment: of each process the last profile */
    bool tells_age;          /* some sample says how old its blocks are */
    bool is_contention;      /* waits for locks: its samples may tell the holder */
    bool may_tell_lock;      /* these, and waits for conditions and semaphores */
    bool tells_lock;         /* some sample says which one it waited for */
    /* After sp_model_find_hidden (hidden.h). */
    bool hides_inner; /* samples are linked to local roots, never to a span below one */
    bool is_unlinked; /* hardly a sample is linked to a span */
} sp_model_type;

/* What has ended of the spans that a live block was allocated for. */
typedef enum sp_outlived {
    SP_OUTLIVED_NONE = 0,
    SP_OUTLIVED_SPAN,
    SP_OUTLIVED_REQUEST, /* the local root, too */
} sp_outlived;

#define SP_LIVE_AGE_KEY      "spanprof.live.age"
#define SP_LIVE_OUTLIVED_KEY "spanprof.live.outlived"
#define SP_HOLDER_TRACE_KEY  "spanprof.holder.trace_id"
#define SP_HOLDER_SPAN_KEY   "spanprof.holder.span_id"
#define SP_HOLDER_STACK_KEY  "spanprof.holder.stack"
#define SP_LOCK_NAME_KEY     "spanprof.lock.name"
#define SP_LOCK_ADDRESS_KEY  "spanprof.lock.address"

/* Key of `locks`: strings. A name alone is not a lock: programs have several static ones of one
 * name. */
typedef struct sp_model_lock {
    uint32_t name, address; /* SP_MODEL_NONE: not told */
} sp_model_lock;

typedef struct sp_model_profile {
    uint32_t type;
    const char *service, *instance; /* of `strings`: equal texts are one pointer; "": not told */
    const sp_document *document;
    const Sp__Resource__Resource *resource; /* NULL: not told */
    const Sp__Profiles__Profile *message;
    const Sp__Profiles__ProfilesDictionary *dictionary;
    /* By number of the message's sample: the number of the model's. NULL: none of them counts,
     * because the profile is an old snapshot. */
    uint32_t *sample_numbers;
} sp_model_profile;

/* The earlier snapshot that the last one is compared with. */
typedef struct sp_since {
    bool is_asked;
    bool is_first;      /* the first one of each process */
    uint64_t before_ns; /* else the last one that is so long before the process's last */
} sp_since;

/* Where the functions of one name are. Strings; 0, which is no file and no module: not told. */
typedef struct sp_model_place {
    uint32_t file, module;
    uint32_t first_line, last_line; /* of samples; 0: not told */
} sp_model_place;

/* What a function is called in each style, as strings; 0: in this one as in the others. */
typedef struct sp_model_names {
    uint32_t as[SP_NAMES_STYLES];
} sp_model_names;

typedef struct sp_model_options {
    bool by_thread, by_span; /* stacks get a frame below the root, so that they part into these */
    bool renames;            /* functions are called in this style (names.h), else as recorded */
    bool all_styles;         /* names in the other styles are learnt, too: sp_model_names_of */
    sp_demangle_style style;
} sp_model_options;

/* The frame of samples that have none, so that the shares of all forms have the same whole. */
#define SP_MODEL_NO_STACK "[no stack]"

typedef struct sp_model {
    const sp_input *input;        /* all that it is made of */
    const struct sp_model *whole; /* this is a part of it (model_parts.c); NULL: this is no part */
    bool is_silent;               /* mistakes in profiles are not reported */
    sp_arena memory;
    sp_intern strings, stacks, links, locks;

    sp_model_place *places; /* by string: see sp_model_place_of */
    size_t place_capacity;
    sp_model_names *other_names; /* by string: see sp_model_names_of */
    size_t other_name_capacity;

    sp_intern span_index; /* sp_model_link; number n is spans[n] */
    sp_model_span *spans;
    size_t span_capacity;
    sp_intern own_ids;      /* span ids without trace ids; made when a link has no trace id */
    uint32_t *own_id_spans; /* by number of own id: the span, or SP_MODEL_NONE: several */
    uint32_t *span_order;   /* parents before children, span_index.count long */
    uint32_t *link_spans;   /* by number of link; made once all links are there */

    sp_sample_index sample_index;
    sp_model_sample *samples;
    size_t sample_capacity;

    sp_model_type *types;
    size_t type_count, type_capacity;
    sp_model_profile *profiles;
    size_t profile_count, profile_capacity;

    sp_intern processes;      /* key: PID, service and instance, with a NUL after each */
    uint64_t *snapshot_times; /* of each process's last snapshot; 0: it has none */
    size_t snapshot_capacity;

    sp_model_options options;
    sp_names names;       /* when the options say so */
    uint32_t root_frames; /* how many each stack has: its last ones, as stacks are leaf first */

    sp_since since;
    uint64_t *base_times; /* of each process's earlier snapshot; 0: it has none */
    size_t base_capacity;
    sp_intern base_index; /* type, stack, link */
    uint64_t *base_values;
    size_t base_value_capacity;
} sp_model;

/* Everything in INPUT, which has to outlive the model. SP_TOOL_DONE, or SP_TOOL_WRONG having said
 * what is wrong in which file; MODEL is to be freed by sp_model_deinit in any case. */
int sp_model_build(sp_model *model, const sp_input *input);
/* The same; of snapshots with what was there SINCE then taken off. SP_TOOL_NO, having said so, when
 * there is no such snapshot. */
int sp_model_build_since(sp_model *model, const sp_input *input, const sp_since *since);
/* The same with OPTIONS. Of frames of threads and spans that of the span is the outermost one. */
int sp_model_build_as(sp_model *model, const sp_input *input, const sp_since *since,
                      const sp_model_options *options);
/* Parts of it, in roots.c. The number of STACK with the frame called NAME below its root, or
 * SP_INTERN_FAILED. */
uint32_t sp_model_add_root(sp_model *model, uint32_t stack, const char *name);
/* Once all samples are there. */
int sp_model_add_span_roots(sp_model *model);
/* "first", "30s", "5m", "2h". SP_TOOL_WRONG, having said so, when TEXT is none of these. */
int sp_since_parse(const char *text, sp_since *out);
void sp_model_deinit(sp_model *model);

/* Steps of the build. Add all spans, then all samples: on all cores where there are many samples
 * (model_parts.c), with the same result. */
int sp_model_add_all(sp_model *model);
/* The same in COUNT parts by up to THREADS threads. */
int sp_model_add_in_parts(sp_model *model, size_t threads, size_t count);
/* The same by the calling thread, in model.c. SHOWS_PROGRESS: it is the main thread. */
int sp_model_add_all_traces(sp_model *model, bool shows_progress);
int sp_model_add_all_profiles(sp_model *model);
/* One document, in model_spans.c and model_profiles.c. */
int sp_model_add_traces(sp_model *model, const sp_document *document);
int sp_model_add_profiles(sp_model *model, const sp_document *document);
/* Add SAMPLE, or add its value and count to the sample with the same key. *NUMBER: its number.
 * False when memory is short. */
bool sp_model_add_sample(sp_model *model, const sp_model_sample *sample, uint32_t *number);
/* The number of the type with the name and unit of LIKE in *OUT. A new type also has LIKE's period.
 * False when memory is short. */
bool sp_model_find_type(sp_model *model, const sp_model_type *like, uint32_t *out);
/* The number of LINK, or SP_INTERN_FAILED. All spans are there, unless this is a part of a model: a
 * link without a trace id gets that of the span of its id (sp_model_complete_link). */
uint32_t sp_model_put_link(sp_model *model, const sp_model_link *link);
/* Before the profiles are added: when each process's last snapshot was. */
int sp_model_note_snapshots(sp_model *model, const sp_document *document);
/* Whether PROFILE is a snapshot, and RESOURCE's process has a later one. */
bool sp_model_is_old_snapshot(const sp_model *model, const Sp__Profiles__Profile *profile,
                              const Sp__Resource__Resource *resource,
                              const Sp__Profiles__ProfilesDictionary *dictionary);
/* Once the last snapshots are known: when the earlier one of each process was. */
int sp_model_note_bases(sp_model *model, const sp_document *document);
/* Whether PROFILE, an old snapshot of RESOURCE's process, is the earlier one. */
bool sp_model_is_base(const sp_model *model, const Sp__Profiles__Profile *profile,
                      const Sp__Resource__Resource *resource,
                      const Sp__Profiles__ProfilesDictionary *dictionary);
/* Parts of these, in grown.c. False when memory is short. */
bool sp_model_note_base(sp_model *model, uint32_t process, uint64_t time_ns);
bool sp_model_add_to_base(sp_model *model, const sp_model_sample *sample);
int sp_model_subtract_base(sp_model *model);
/* Whether a type of this name is one of snapshots. */
bool sp_is_snapshot_name(const char *name);
/* What a wait for a lock was in truth, when its STACK says so: SP_WHERE_CONDITION,
 * SP_WHERE_SEMAPHORE, else SP_WHERE_LOCK. In lock_kind.c. */
sp_where sp_model_lock_kind(const sp_model *model, uint32_t stack);
/* Once all samples are there, in draws.c: how many samples of allocations were taken, as the counts
 * of those of bytes and of objects. */
int sp_model_count_draws(sp_model *model);
/* Once all spans are there: the forest. */
int sp_model_link_spans(sp_model *model);
/* Once all samples are there: the sums in the spans. */
int sp_model_count_spans(sp_model *model);
/* After the model is built: which spans have more CPU time than they can have. SP_TOOL_DONE, or
 * SP_TOOL_WRONG: memory is short. */
int sp_model_find_overruns(sp_model *model);
/* How far two samples of CPU time of TYPE (may be NULL) on one thread may be apart. */
uint64_t sp_model_tick_ns(const sp_model_type *type);

/* TEXT in the model's strings, repaired when it is not UTF-8; SP_INTERN_FAILED when memory is
 * short. */
uint32_t sp_model_string(sp_model *model, const char *text);
/* Its text. */
const char *sp_model_text(const sp_model *model, uint32_t string);
/* The same; "" for SP_MODEL_NONE. */
const char *sp_model_text_or_none(const sp_model *model, uint32_t string);
/* LOCK of the model's locks; for SP_MODEL_NONE one of which nothing is told. */
sp_model_lock sp_model_lock_of(const sp_model *model, uint32_t lock);

/* The number of FROM's string STRING in TO, or SP_INTERN_FAILED. */
uint32_t sp_model_same_string(const sp_model *to, const sp_model *from, uint32_t string);

/* A frame called STRING is at LINE of FILE, in MODULE; "" and 0: not told. False when memory is
 * short. */
bool sp_model_note_place(sp_model *model, uint32_t string, const char *file, const char *module,
                         int64_t line);
sp_model_place sp_model_place_of(const sp_model *model, uint32_t string);
/* A frame is called STRING here, and TEXT in STYLE. False when memory is short. */
bool sp_model_note_name(sp_model *model, uint32_t string, sp_demangle_style style,
                        const char *text);
sp_model_names sp_model_names_of(const sp_model *model, uint32_t string);

/* The number of the span, or SP_MODEL_NONE. */
uint32_t sp_model_span_of_link(const sp_model *model, const sp_model_link *link);
/* The same by the number of the link, once the model is built: without a search. */
static inline uint32_t sp_model_link_span(const sp_model *model, uint32_t link)
{
    return model->link_spans[link];
}
/* Give LINK, which has a span id only, the trace id of the span of that id. Nothing happens when
 * there is none or several. All spans are there. False when memory is short. */
bool sp_model_complete_link(sp_model *model, sp_model_link *link);
/* How many links there are, and how many lead to a span that the files have. */
void sp_model_count_links(const sp_model *model, uint32_t *links, uint32_t *with_span);
/* The service of the first span or profile that tells one, else "". */
const char *sp_model_service(const sp_model *model);
/* Files of two runs: there are spans and links, and not one link leads to a span. */
bool sp_model_is_of_two_runs(const sp_model *model);
/* SP_TOOL_NO having said that they are, else SP_TOOL_DONE. */
int sp_model_check_runs(const sp_model *model);
/* A remark when samples belong to spans that the files do not have, as one that never ended. */
void sp_model_note_unended(const sp_model *model);
/* What PROFILE says of itself by KEY; 0: nothing, or a number below zero. */
uint64_t sp_model_profile_number(const sp_model_profile *profile, const char *key);
/* Whether PROFILE was taken by `run --attach`. */
bool sp_model_is_from_outside(const sp_model_profile *profile);
/* A remark when the context of many samples was not certain. False: there is none. */
bool sp_model_note_unknown(const sp_model *model);
/* A remark when two files tell the same time of one process. */
void sp_model_note_sampled_twice(const sp_model *model);

/* Whether SPAN is the top of its trace's part that lies in its own process, as far as the files
 * know. */
bool sp_model_is_local_root(const sp_model *model, uint32_t span);
/* The top of SPAN's part of the trace that lies in its own process, as far as the files know. */
uint32_t sp_model_local_root(const sp_model *model, uint32_t span);
/* Whether every linked sample of TYPE is linked to a local root: then nothing is known of the spans
 * below. */
bool sp_model_links_only_roots(const sp_model *model, uint32_t type);

/* The type called NAME, which may be NAME/UNIT, or SP_MODEL_NONE. Without a unit, of several with
 * this name the one in nanoseconds, else the first. */
uint32_t sp_model_type_of_name(const sp_model *model, const char *name);
/* A type with the name of TYPE and another unit, or SP_MODEL_NONE. */
uint32_t sp_model_other_unit(const sp_model *model, uint32_t type);
/* The type of CPU time, or SP_MODEL_NONE: "cpu", or with INNERMOST "cpu_innermost", which is the
 * same time linked to inner spans; the other one where the files have only that. Never both: they
 * are not to be added up. */
uint32_t sp_model_cpu_type(const sp_model *model, bool innermost);
/* The same of wall time, which holds the CPU time once more. Only a type in nanoseconds is one. */
uint32_t sp_model_wall_type(const sp_model *model, bool innermost);
/* The same of bytes that were allocated: "alloc_space", or with INNERMOST "alloc_space_innermost".
 */
uint32_t sp_model_alloc_type(const sp_model *model, bool innermost);
/* The same of any two types. */
uint32_t sp_model_type_of_scope(const sp_model *model, const char *by_root,
                                const char *by_innermost, bool innermost);
/* The type that tells time by innermost span, as well as the files can: of CPU time, else of wall
 * time, else the first with samples. With no types: SP_MODEL_NONE. */
uint32_t sp_model_time_type(const sp_model *model);
/* Nanoseconds that a sample of TYPE stands for. 0: not told, or the values are sums of what was
 * seen. */
uint64_t sp_model_period_ns(const sp_model_type *type);
/* The standard error of WAITED_NS, a sum over visits that stand for PERIOD_NS each: of N visits it
 * is the square root of N. A sum of none may have missed one. */
uint64_t sp_model_visits_error_ns(uint64_t period_ns, uint64_t waited_ns);
/* What a command works on that is not asked for spans: "cpu", else "wall", else the first with
 * samples. */
uint32_t sp_model_main_type(const sp_model *model);

/* The value of the attribute KEY of RESOURCE (may be NULL), or NULL. */
const Sp__Common__AnyValue *sp_resource_value(const Sp__Resource__Resource *resource,
                                              const Sp__Profiles__ProfilesDictionary *dictionary,
                                              const char *key);
/* The value of the string attribute KEY of RESOURCE (may be NULL), or "". DICTIONARY resolves
 * references of the profiles signal; NULL: there are none. */
const char *sp_resource_text(const Sp__Resource__Resource *resource,
                             const Sp__Profiles__ProfilesDictionary *dictionary, const char *key);
/* The key of ATTRIBUTE, of a resource, a scope or a map, where DICTIONARY resolves it as above. */
const char *sp_attribute_key(const Sp__Common__KeyValue *attribute,
                             const Sp__Profiles__ProfilesDictionary *dictionary);
/* The text of VALUE (may be NULL) when it is a string, or "". */
const char *sp_value_text(const Sp__Common__AnyValue *value,
                          const Sp__Profiles__ProfilesDictionary *dictionary);

#endif
