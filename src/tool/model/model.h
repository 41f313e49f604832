/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of all input files together: spans as a forest, and samples whose stacks are names
 * of functions. Commands that answer questions use the model; `check` and `convert` use the
 * messages themselves.
 *
 * A string is a number of `strings`, whose texts are valid UTF-8. A stack is a number of `stacks`,
 * whose keys are arrays of uint32_t string numbers, leaf first. A link is a number of `links`;
 * number 0 means no span. */
#ifndef SP_TOOL_MODEL_MODEL_H
#define SP_TOOL_MODEL_MODEL_H

#include "core/arena.h"
#include "core/intern.h"
#include "proto/profiles.pb-c.h"
#include "proto/trace.pb-c.h"
#include "tool/model/key_sums.h"
#include "tool/model/names.h"
#include "tool/model/sample_index.h"
#include "tool/model/where.h"
#include "tool/read/input.h"

#define SP_MODEL_NONE UINT32_MAX

/* The key of `links` and of `span_index`. */
typedef struct sp_model_link {
    uint8_t trace_id[16];
    uint8_t span_id[8];
} sp_model_link;

/* parent, first_child and next_sibling are numbers of spans, or SP_MODEL_NONE. Children are in the
 * order of their starts. There are no cycles: if a file has a cycle of parents, one of its spans
 * loses its parent. */
typedef struct sp_model_span {
    sp_model_link id;
    uint8_t parent_span_id[8];
    const char *name; /* valid UTF-8 */
    const char *service;
    uint64_t start_ns, end_ns; /* start <= end */
    uint32_t parent, first_child, next_sibling, local_root;
    bool parent_is_remote;
    const Sp__Trace__Span *message;
    const Sp__Resource__Resource *resource;        /* NULL: unknown */
    const Sp__Common__InstrumentationScope *scope; /* NULL: unknown */
    /* Values of the model's time type (see sp_model_time_type): of samples that are linked to this
     * span, and the same with all descendants. */
    uint64_t own_value, own_count, total_value, total_count;
    /* After sp_model_find_overruns. */
    uint32_t threads; /* threads that samples of the span and its descendants name; 0: unknown */
    bool overruns;    /* the span has more CPU time than these threads can use while it lasts */
    /* After sp_model_find_hidden. */
    bool is_inner;     /* the span is not a local root */
    bool has_inner;    /* a child is not a local root */
    uint64_t inner_ns; /* the sum of the durations of these children */
    /* After sp_model_find_unsampled. */
    bool is_own_unsampled; /* its process was not sampled while it lasted */
    bool is_unsampled;     /* the same for the span and all descendants */
    /* Values of the wall type (see sp_model_wall_type) by class, with all descendants. If several
     * threads work for a span at once, their sum is larger than the duration of the span. */
    uint64_t wall_ns[SP_WHERE_COUNT];
    /* Values of allocated bytes (see sp_model_alloc_type), with all descendants. */
    uint64_t alloc_value, alloc_count;
    double alloc_variance; /* of alloc_value, as far as the sampling makes it */
    /* After sp_model_find_queued (queued.h): the time in which no thread carried the span; 0: none,
     * or it may be chance. */
    uint64_t queued_ns;
    uint64_t sampled_ns; /* how much of the duration is in the wall profiles of its process */
    uint64_t missing_ns; /* wall time in its trace of spans that the files do not have */
} sp_model_span;

/* A kind of measurement. OTLP files have counts as values of CPU time; in the model the values are
 * nanoseconds, and the type is "cpu". */
typedef struct sp_model_type {
    const char *name;
    const char *unit;
    uint64_t profiles;
    uint64_t samples;        /* sum of counts */
    int64_t period;          /* of the first profile */
    const char *period_unit; /* "": no period, or the period is the value of one event */
    bool is_wall;            /* wall time in nanoseconds: its samples have classes */
    /* some sample says that it waited; if false, SP_WHERE_CPU may be waiting, too */
    bool has_waiting_samples;
    bool is_snapshot; /* what was allocated at a moment: the last profile of each process counts */
    bool has_ages;    /* some sample says how old its blocks are */
    /* After sp_model_count_draws, of allocations and waits for locks. */
    bool has_draws; /* the files show how many blocks or waits were sampled */
    double
        draw_period; /* the least value that a sample stands for, in the type's unit; 0: unknown */
    bool is_contention; /* waits for locks: samples may name the holder */
    bool is_wait;       /* waits for locks, conditions or semaphores: samples may name the lock */
    bool has_locks;     /* some sample names the lock that it waited for */
    /* After sp_model_find_hidden. */
    bool hides_inner; /* the samples of spans below a local root are linked to the local root */
    bool is_unlinked; /* hardly a sample is linked to a span */
    /* After sp_model_find_unsampled. */
    bool is_from_outside; /* `run --attach` took some of the samples */
} sp_model_type;

/* What has ended since a live block was allocated: nothing, the span that it was allocated for, or
 * also the local root of this span. */
typedef enum sp_outlived {
    SP_OUTLIVED_NONE = 0,
    SP_OUTLIVED_SPAN,
    SP_OUTLIVED_REQUEST,
} sp_outlived;

#define SP_LINK_SCOPE_KEY    "spanprof.link_scope"
#define SP_LIVE_AGE_KEY      "spanprof.live.age"
#define SP_LIVE_OUTLIVED_KEY "spanprof.live.outlived"
#define SP_HOLDER_TRACE_KEY  "spanprof.holder.trace_id"
#define SP_HOLDER_SPAN_KEY   "spanprof.holder.span_id"
#define SP_HOLDER_STACK_KEY  "spanprof.holder.stack"
#define SP_LOCK_NAME_KEY     "spanprof.lock.name"
#define SP_LOCK_ADDRESS_KEY  "spanprof.lock.address"
#define SP_LOCK_NS_KEY       "spanprof.lock_ns"

/* The key of `locks`: two strings. A name alone does not identify a lock, because a program may
 * have several static locks of one name. */
typedef struct sp_model_lock {
    uint32_t name, address; /* SP_MODEL_NONE: unknown */
} sp_model_lock;

typedef struct sp_model_profile {
    uint32_t type;
    const char *service, *instance; /* of `strings`: equal texts are one pointer; "": unknown */
    const sp_document *document;
    const Sp__Resource__Resource *resource; /* NULL: unknown */
    const Sp__Profiles__Profile *message;
    const Sp__Profiles__ProfilesDictionary *dictionary;
    /* For each sample of the message, the number of the model's sample. NULL: no sample counts,
     * because the profile is an old snapshot. */
    uint32_t *sample_numbers;
} sp_model_profile;

/* Which earlier snapshot the last one is compared with. */
typedef struct sp_since {
    bool is_asked;
    bool is_first; /* the first snapshot of each process */
    /* else the last snapshot that is at least this long before the end of the last profile */
    uint64_t before_ns;
} sp_since;

/* Where the functions of one name are. The file and the module are strings; 0 means unknown. */
typedef struct sp_model_place {
    uint32_t file, module;
    uint32_t first_line, last_line; /* the lines that samples are in; 0: unknown */
} sp_model_place;

/* What a function is called in each style, as strings; 0: not noted. */
typedef struct sp_model_names {
    uint32_t as[SP_NAMES_STYLES];
} sp_model_names;

typedef struct sp_model_options {
    bool by_thread, by_span; /* stacks get the thread or the span as their outermost frame */
    bool renames;            /* functions are named in `style` (names.h), else as recorded */
    bool all_styles;         /* names in all styles are noted: see sp_model_names_of */
    sp_demangle_style style;
} sp_model_options;

/* How uncertain wall time is (queued.h). */
typedef struct sp_model_queues {
    bool is_known;              /* false: the files cannot show time in a queue */
    uint64_t tick_ns, visit_ns; /* the time that a CPU sample, or a visit, may stand for */
    /* wall time of all spans together: that was lost, and that belongs to spans which the files do
     * not have */
    double lost_ns, missing_ns;
    uint64_t threads; /* that carried spans; UINT64_MAX: unknown */
} sp_model_queues;

/* The frame of samples without a stack. With this frame, shares have the same whole in all forms of
 * output. */
#define SP_MODEL_NO_STACK "[no stack]"

typedef struct sp_model {
    const sp_input *input; /* all input of the model */
    /* the model that this one is a part of (model_parts.c); NULL: this is not a part */
    const struct sp_model *whole;
    bool is_silent; /* mistakes in profiles are not reported */
    sp_arena memory;
    sp_intern strings, stacks, links, locks;

    sp_model_place *places; /* by string: see sp_model_place_of */
    size_t place_capacity;
    sp_model_names *other_names; /* by string: see sp_model_names_of */
    size_t other_name_capacity;

    sp_intern span_index; /* keys are sp_model_link; number n is spans[n] */
    sp_model_span *spans;
    size_t span_capacity;
    /* span ids without trace ids; made when the first link without a trace id is seen */
    sp_intern own_ids;
    /* by number in own_ids: the span; SP_MODEL_NONE: several spans have this id */
    uint32_t *own_id_spans;
    uint32_t *span_order;   /* parents before children, span_index.count long */
    sp_model_queues queues; /* after sp_model_find_queued */
    uint32_t *link_spans;   /* by number of link: its span; made when the model has all links */

    sp_sample_index sample_index;
    sp_model_sample *samples;
    size_t sample_capacity;
    /* by sample: the probability that a block like those of the sample is sampled; 0: samples of
     * its type are taken at random moments. NULL: all are 0. After sp_model_count_draws. */
    float *chances;

    sp_model_type *types;
    size_t type_count, type_capacity;
    sp_model_profile *profiles;
    size_t profile_count, profile_capacity;

    sp_intern processes; /* key: PID, service and instance, with a NUL after each */
    /* by process: the end of its last profile of any type; 0: it has none */
    uint64_t *snapshot_times;
    size_t snapshot_capacity;

    sp_model_options options;
    sp_names names;       /* used when the options ask for names */
    uint32_t root_frames; /* how many outermost frames are threads or spans; they end a stack */

    sp_since since;
    uint64_t *base_times; /* by process: the end of its earlier snapshot; 0: it has none */
    size_t base_capacity;
    /* values of samples of earlier snapshots; keys are type, stack and link */
    sp_key_sums base;
} sp_model;

/* Build MODEL from all of INPUT, which must outlive it. Returns SP_TOOL_DONE, or SP_TOOL_WRONG
 * after a message about what is wrong in which file. Free MODEL by sp_model_deinit in any case. */
int sp_model_build(sp_model *model, const sp_input *input);
/* As sp_model_build, but from snapshots the values of an earlier snapshot are subtracted; SINCE
 * says which. Returns SP_TOOL_NO, after a message, when there is no such snapshot. */
int sp_model_build_since(sp_model *model, const sp_input *input, const sp_since *since);
/* As sp_model_build_since, with OPTIONS. If stacks get frames of both threads and spans, the frame
 * of the span is the outermost one. */
int sp_model_build_as(sp_model *model, const sp_input *input, const sp_since *since,
                      const sp_model_options *options);
/* Returns the number of a stack that is STACK with NAME added as its outermost frame, or
 * SP_INTERN_FAILED. In roots.c. */
uint32_t sp_model_add_root(sp_model *model, uint32_t stack, const char *name);
/* Add the frames of spans to the stacks of all samples. Call it when the model has all samples. In
 * roots.c. */
int sp_model_add_span_roots(sp_model *model);
/* Parse TEXT, such as "first", "30s", "5m" or "2h". Returns SP_TOOL_WRONG, after a message, when
 * TEXT is none of these. */
int sp_since_parse(const char *text, sp_since *out);
void sp_model_deinit(sp_model *model);

/* Steps of building a model. Add all spans and all samples. If there are many samples, this uses
 * all cores (model_parts.c); the result is the same. */
int sp_model_add_all(sp_model *model);
/* As sp_model_add_all, in COUNT parts by up to THREADS threads. */
int sp_model_add_in_parts(sp_model *model, size_t threads, size_t count);
/* Add all spans, or all samples, by the calling thread. SHOWS_PROGRESS: it is the main thread. In
 * model.c. */
int sp_model_add_all_traces(sp_model *model, bool shows_progress);
int sp_model_add_all_profiles(sp_model *model);
/* Add one document. In model_spans.c and model_profiles.c. */
int sp_model_add_traces(sp_model *model, const sp_document *document);
int sp_model_add_profiles(sp_model *model, const sp_document *document);
/* Add SAMPLE to MODEL. If a sample with the same key is there, add the value and count to it.
 * *NUMBER: the number of the sample. Returns false when memory is short. */
bool sp_model_add_sample(sp_model *model, const sp_model_sample *sample, uint32_t *number);
/* Find the type with the name and unit of LIKE, or add it with the period of LIKE. *OUT: its
 * number. Returns false when memory is short. */
bool sp_model_find_type(sp_model *model, const sp_model_type *like, uint32_t *out);
/* The number of LINK, or SP_INTERN_FAILED when memory is short. A link without a trace id gets the
 * trace id of the span that has its span id (sp_model_complete_link). So all spans must be in the
 * model; this does not apply to a part of a model. */
uint32_t sp_model_put_link(sp_model *model, const sp_model_link *link);
/* The end of PROFILE's window, when a snapshot is taken. A sum that overflows becomes the latest
 * time. */
static inline uint64_t sp_profile_end_ns(const Sp__Profiles__Profile *profile)
{
    uint64_t end = profile->time_unix_nano + profile->duration_nano;
    return end < profile->time_unix_nano ? UINT64_MAX : end;
}
/* Note the end of the last profile of each process, of any type. Call it before profiles are
 * added. */
int sp_model_note_snapshots(sp_model *model, const sp_document *document);
/* Whether PROFILE is a snapshot, and the process of RESOURCE has a later profile of any type. */
bool sp_model_is_old_snapshot(const sp_model *model, const Sp__Profiles__Profile *profile,
                              const Sp__Resource__Resource *resource,
                              const Sp__Profiles__ProfilesDictionary *dictionary);
/* Note the time of the earlier snapshot of each process. Call it after sp_model_note_snapshots for
 * all documents. */
int sp_model_note_bases(sp_model *model, const sp_document *document);
/* Whether PROFILE, an old snapshot of the process of RESOURCE, is the earlier snapshot to compare
 * with. */
bool sp_model_is_base(const sp_model *model, const Sp__Profiles__Profile *profile,
                      const Sp__Resource__Resource *resource,
                      const Sp__Profiles__ProfilesDictionary *dictionary);
/* Steps of comparing with the earlier snapshot, in grown.c. Those that return bool return false
 * when memory is short. */
bool sp_model_note_base(sp_model *model, uint32_t process, uint64_t time_ns);
bool sp_model_add_to_base(sp_model *model, const sp_model_sample *sample);
int sp_model_subtract_base(sp_model *model);
/* Write how long before the last snapshot the earlier one was taken, "20.0 s", or "20.0 s to 30.0
 * s" if it differs between processes. */
#define SP_SINCE_LENGTH 80
void sp_since_format(char out[SP_SINCE_LENGTH], const sp_model *model);
/* Whether the profiles of a type with this name are snapshots. */
bool sp_is_snapshot_name(const char *name);
/* What a wait that the attributes call a wait for a lock was for, as far as STACK shows it:
 * SP_WHERE_CONDITION, SP_WHERE_SEMAPHORE, SP_WHERE_JOIN, else SP_WHERE_LOCK. In lock_kind.c. */
sp_where sp_model_lock_kind(const sp_model *model, uint32_t stack);
/* Set the counts of samples of allocations, both of bytes and of objects, and of waits for locks,
 * both of time and of waits, to the number of samples that were taken, and make `chances`. Call it
 * when the model has all samples. In draws.c. */
int sp_model_count_draws(sp_model *model);
/* The probability that a block, or a wait for a lock, like those of the sample NUMBER is not
 * sampled; 1 if NUMBER is of another type. */
double sp_model_miss_chance(const sp_model *model, uint32_t number);
/* The variance of the value of the sample NUMBER, as far as the sampling makes it. It is w² × (1 -
 * p) for each event, which stands for the value w and is taken with the probability p
 * (docs/numbers.md). */
double sp_model_sampling_variance(const sp_model *model, uint32_t number);
/* The standard error that belongs to VARIANCE; like sums, it never exceeds INT64_MAX. */
uint64_t sp_model_error(double variance);
/* Make the forest of spans. Call it when the model has all spans and all links. */
int sp_model_link_spans(sp_model *model);
/* Compute the sums in the spans. Call it after sp_model_link_spans. */
int sp_model_count_spans(sp_model *model);
/* Fill the members of types and spans that say which values are unknown. Call it at the end.
 * Returns SP_TOOL_DONE, or SP_TOOL_WRONG when memory is short. In hidden.c. */
int sp_model_find_hidden(sp_model *model);
/* Find spans that lie wholly outside the time in which `run --attach` sampled their process. Call
 * it after sp_model_count_spans. Returns SP_TOOL_DONE, or SP_TOOL_WRONG when memory is short. In
 * unsampled.c. */
int sp_model_find_unsampled(sp_model *model);
/* Find spans that have more CPU time than is possible. Call it after the model is built. Returns
 * SP_TOOL_DONE, or SP_TOOL_WRONG when memory is short. */
int sp_model_find_overruns(sp_model *model);
/* The longest CPU time between two samples on one thread: the period of TYPE (may be NULL), or a
 * timer tick of the kernel if that is longer. */
uint64_t sp_model_tick_ns(const sp_model_type *type);

/* Put the thread of SAMPLE of PROFILE into *TID. Returns false when the sample names no thread. In
 * overruns.c. */
bool sp_model_find_thread(const sp_model_profile *profile, const Sp__Profiles__Sample *sample,
                          int64_t *tid);

/* Put TEXT into the model's strings, repaired if it is not UTF-8. Returns its number, or
 * SP_INTERN_FAILED when memory is short. */
uint32_t sp_model_string(sp_model *model, const char *text);
/* The text of STRING. */
const char *sp_model_text(const sp_model *model, uint32_t string);
/* The text of STRING; "" for SP_MODEL_NONE. */
const char *sp_model_text_or_none(const sp_model *model, uint32_t string);
/* The lock with the number LOCK; for SP_MODEL_NONE a lock without name and address. */
sp_model_lock sp_model_lock_of(const sp_model *model, uint32_t lock);

/* The number that the string STRING of FROM has in TO, or SP_INTERN_FAILED. */
uint32_t sp_model_same_string(const sp_model *to, const sp_model *from, uint32_t string);

/* Note that a frame with the name STRING is at LINE of FILE, in MODULE; "" and 0 mean unknown.
 * Returns false when memory is short. */
bool sp_model_note_place(sp_model *model, uint32_t string, const char *file, const char *module,
                         int64_t line);
sp_model_place sp_model_place_of(const sp_model *model, uint32_t string);
/* Note that the function with the name STRING is called TEXT in STYLE. Returns false when memory is
 * short. */
bool sp_model_note_name(sp_model *model, uint32_t string, sp_demangle_style style,
                        const char *text);
sp_model_names sp_model_names_of(const sp_model *model, uint32_t string);

/* The number of the span that LINK leads to, or SP_MODEL_NONE. */
uint32_t sp_model_span_of_link(const sp_model *model, const sp_model_link *link);
/* The same for the number of a link. This needs no search. Call it after sp_model_link_spans. */
static inline uint32_t sp_model_link_span(const sp_model *model, uint32_t link)
{
    return model->link_spans[link];
}
/* Give LINK, which has only a span id, the trace id of the span that has this id. If no span has
 * the id, or several have it, LINK is unchanged. The model must have all spans. Returns false when
 * memory is short. */
bool sp_model_complete_link(sp_model *model, sp_model_link *link);
/* Count the links, and those that lead to a span that the files have. */
void sp_model_count_links(const sp_model *model, uint32_t *links, uint32_t *with_span);
/* The service of the first span or profile that has one, else "". */
const char *sp_model_service(const sp_model *model);
/* Whether the files seem to be of two runs: there are spans and links, but no link leads to a
 * span. */
bool sp_model_is_of_two_runs(const sp_model *model);
/* Returns SP_TOOL_NO, after a message, when the files seem to be of two runs, else SP_TOOL_DONE. */
int sp_model_check_runs(const sp_model *model);
/* Write a note when samples belong to spans that the files do not have, such as a span that never
 * ended. */
void sp_model_note_unended(const sp_model *model);
/* The text of the attribute KEY of PROFILE; "": there is none. */
const char *sp_model_profile_text(const sp_model_profile *profile, const char *key);
/* The value of the attribute KEY of PROFILE; 0: there is none, or it is negative. */
uint64_t sp_model_profile_number(const sp_model_profile *profile, const char *key);
/* Whether PROFILE was taken by `run --attach`. */
bool sp_model_is_from_outside(const sp_model_profile *profile);
/* Write a note when the context of many samples was not certain. Returns whether a note was
 * written. */
bool sp_model_note_unknown(const sp_model *model);
/* Write a note when calls of the program that make no sense, which the SDK counted, gave samples
 * the wrong span or none. In misuse_note.c. */
void sp_model_note_misuse(const sp_model *model);
/* Write a note when two files have samples of one process and the same time. */
void sp_model_note_sampled_twice(const sp_model *model);

/* Whether SPAN is a local root: the top of the part of its trace that is in its own process, as far
 * as the files show. */
bool sp_model_is_local_root(const sp_model *model, uint32_t span);
/* The local root of SPAN. */
uint32_t sp_model_local_root(const sp_model *model, uint32_t span);

/* The type with the name NAME, which may also be "name/unit"; SP_MODEL_NONE: there is none. If
 * several types match, it is the one in nanoseconds, else the first. */
uint32_t sp_model_type_of_name(const sp_model *model, const char *name);
/* A type with the name of TYPE and another unit, or SP_MODEL_NONE. */
uint32_t sp_model_other_unit(const sp_model *model, uint32_t type);
/* The type of CPU time, or SP_MODEL_NONE: "cpu", or with INNERMOST "cpu_innermost", which is the
 * same time linked to innermost spans. If the files have only the other one, it is that. Never add
 * the values of both types: they count the same time. */
uint32_t sp_model_cpu_type(const sp_model *model, bool innermost);
/* The same for wall time, which also includes the CPU time. Only a type in nanoseconds is found. */
uint32_t sp_model_wall_type(const sp_model *model, bool innermost);
/* The same for allocated bytes: "alloc_space", or with INNERMOST "alloc_space_innermost". */
uint32_t sp_model_alloc_type(const sp_model *model, bool innermost);
/* The same for any two types with the names BY_ROOT and BY_INNERMOST. */
uint32_t sp_model_type_of_scope(const sp_model *model, const char *by_root,
                                const char *by_innermost, bool innermost);
/* The type that shows best how much time innermost spans took: CPU time, else wall time, else the
 * first type with samples. SP_MODEL_NONE: the model has no types. */
uint32_t sp_model_time_type(const sp_model *model);
/* The nanoseconds that a sample of TYPE stands for. 0: unknown, or the values are sums of measured
 * times. */
uint64_t sp_model_period_ns(const sp_model_type *type);
/* The standard error of WAITED_NS, a sum of visits that stand for PERIOD_NS each. The error of N
 * visits is the square root of N, in visits. For no visits it is one visit, because one may have
 * been missed. */
uint64_t sp_model_visits_error_ns(uint64_t period_ns, uint64_t waited_ns);
/* The type that a command uses when the user selects neither a type nor spans: "cpu", else "wall",
 * else the first type with samples. */
uint32_t sp_model_main_type(const sp_model *model);

/* The value of the attribute KEY of RESOURCE (may be NULL), or NULL. */
const Sp__Common__AnyValue *sp_resource_value(const Sp__Resource__Resource *resource,
                                              const Sp__Profiles__ProfilesDictionary *dictionary,
                                              const char *key);
/* The value of the string attribute KEY of RESOURCE (may be NULL), or "". DICTIONARY resolves
 * references to strings in profiles; NULL: there are no references. */
const char *sp_resource_text(const Sp__Resource__Resource *resource,
                             const Sp__Profiles__ProfilesDictionary *dictionary, const char *key);
/* The key of ATTRIBUTE, which belongs to a resource, a scope or a map. DICTIONARY is as for
 * sp_resource_text. */
const char *sp_attribute_key(const Sp__Common__KeyValue *attribute,
                             const Sp__Profiles__ProfilesDictionary *dictionary);
/* The text of VALUE (may be NULL) if it is a string, else "". DICTIONARY is as for
 * sp_resource_text. */
const char *sp_value_text(const Sp__Common__AnyValue *value,
                          const Sp__Profiles__ProfilesDictionary *dictionary);

#endif
