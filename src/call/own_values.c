/* SPDX-License-Identifier: Apache-2.0 */
#include <spanprof/value.h>

#include <errno.h>
#include <string.h>

#include "call/call.h"
#include "call/own_values.h"
#include "call/call_sampling.h"
#include "core/lock.h"
#include "core/at_fork.h"
#include "core/cancel.h"
#include "core/log.h"

enum { NAME_MAX_LENGTH = 63 };

/* Larger values and periods count as this one, so that products and sums of them do not
 * overflow. */
#define VALUE_MAX (UINT64_C(1) << 53)

/* Names never change once the type's number is below `count`. */
struct spanprof_value_type {
    _Atomic uint64_t period; /* between two samples, on average; 0: each call is sampled */
    char name[NAME_MAX_LENGTH + 1], unit[NAME_MAX_LENGTH + 1];
};

/* `lock` guards the members below it. */
static struct {
    sp_lock lock;
    uint32_t count;
    spanprof_value_type types[SP_VALUE_TYPES_MAX];
    sp_value_type shown[SP_VALUE_TYPES_MAX];
} values = {.lock = SP_LOCK_AT(SP_LOCK_VALUE_TYPES)};

const sp_value_type *sp_value_types(void)
{
    return values.shown;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool may_be_in_name(char c)
{
    return is_letter(c) || (c >= '0' && c <= '9') || (c && strchr("_./-", c));
}

/* Copy TEXT to OUT; false when it is not a valid name. */
static bool copy_name(char out[NAME_MAX_LENGTH + 1], const char *text)
{
    size_t length = text ? strlen(text) : 0;
    if (length == 0 || length > NAME_MAX_LENGTH || !is_letter(text[0]))
        return false;
    for (size_t i = 0; i <= length; i++) {
        if (i < length && !may_be_in_name(text[i]))
            return false;
        out[i] = (char)(text[i] == '-' ? '_' : text[i]);
    }
    return true;
}

static bool is_taken(const char *name)
{
    static const char *const taken[] = {"cpu",
                                        "wall",
                                        "offcpu",
                                        "samples",
                                        "alloc_space",
                                        "alloc_objects",
                                        "inuse_space",
                                        "inuse_objects",
                                        "contentions",
                                        "delay",
                                        "alloc",
                                        "heap",
                                        "lock",
                                        "condition",
                                        "condition_waits",
                                        "condition_delay",
                                        "semaphore",
                                        "semaphore_waits",
                                        "semaphore_delay"};
    size_t length = strlen(name), suffix = strlen("_innermost");
    for (size_t i = 0; i < SP_ARRAY_LENGTH(taken); i++)
        if (strcmp(name, taken[i]) == 0)
            return true;
    return length > suffix && strcmp(name + length - suffix, "_innermost") == 0;
}

static const spanprof_value_type *find_locked(const spanprof_value_type *wanted)
{
    for (uint32_t n = 0; n < values.count; n++)
        if (strcmp(values.types[n].name, wanted->name) == 0 &&
            strcmp(values.types[n].unit, wanted->unit) == 0)
            return &values.types[n];
    return NULL;
}

static const spanprof_value_type *make_locked(const spanprof_value_type *wanted)
{
    if (values.count == SP_VALUE_TYPES_MAX || !sp_calls_prepare())
        return NULL;
    spanprof_value_type *type = &values.types[values.count];
    memcpy(type->name, wanted->name, sizeof type->name);
    memcpy(type->unit, wanted->unit, sizeof type->unit);
    values.shown[values.count] = (sp_value_type){type->name, type->unit};
    values.count++;
    return type;
}

static const spanprof_value_type *get(const spanprof_value_type *wanted)
{
    sp_lock_take(&values.lock);
    const spanprof_value_type *type = find_locked(wanted);
    if (!type)
        type = make_locked(wanted);
    sp_lock_give(&values.lock);
    return type;
}

const spanprof_value_type *spanprof_value_type_get(const char *name, const char *unit)
{
    SP_UNCANCELLED;
    spanprof_value_type wanted;
    const spanprof_value_type *type = NULL;
    bool valid = copy_name(wanted.name, name) && copy_name(wanted.unit, unit ? unit : "count");
    if (!valid)
        sp_log_warn("value",
                    "%.80s in %.80s is no type of values: names have 1 to 63 letters, "
                    "digits, _ . / and begin with a letter",
                    name ? name : "(null)", unit ? unit : "count");
    else if (is_taken(wanted.name))
        sp_log_warn("value", "%s is a profile of spanprof's own: choose another name", wanted.name);
    else if (!(type = get(&wanted)))
        sp_log_warn("value",
                    "no room for values of type %s: there are %d types at most, or memory is short",
                    wanted.name, SP_VALUE_TYPES_MAX);
    return type;
}

void spanprof_value_type_sample(const spanprof_value_type *type, uint64_t period)
{
    if (type)
        sp_store_relaxed(&values.types[type - values.types].period,
                         period < VALUE_MAX ? period : VALUE_MAX);
}

/* The sum of a type's values until the thread's next sample, and the period for which it was
 * drawn. */
typedef struct value_countdown {
    uint64_t left, period;
} value_countdown;

static _Thread_local struct {
    uint64_t random; /* 0: not seeded */
    value_countdown types[SP_VALUE_TYPES_MAX];
} own;

/* What VALUE of type NUMBER stands for; a count of 0: it is not sampled. */
static sp_sampling_weight weigh(uint32_t number, uint64_t period, uint64_t value)
{
    value_countdown *countdown = &own.types[number];
    if (own.random == 0)
        own.random = sp_random_seed();
    if (countdown->period != period)
        *countdown = (value_countdown){sp_sampling_draw(&own.random, period), period};
    sp_sampling_weight weight = {0};
    sp_sampling_pass(&countdown->left, &own.random, period, value, &weight);
    return weight;
}

void spanprof_record(const spanprof_value_type *type, uint64_t value)
{
    if (!type || value == 0 || !sp_calls_are_taken())
        return;
    value = value < VALUE_MAX ? value : VALUE_MAX;
    int error = errno;
    uint32_t number = (uint32_t)(type - values.types);
    uint64_t period = sp_load_relaxed(&type->period);
    sp_sampling_weight weight =
        period ? weigh(number, period, value) : (sp_sampling_weight){value, 1};
    sp_call call = {.kind = SP_CALL_VALUES + number,
                    .value = weight.size,
                    .count = weight.count,
                    .return_address = __builtin_return_address(0)};
    if (weight.count)
        sp_call_take(&call);
    errno = error;
}

static void fork_prepare(void)
{
    sp_lock_take(&values.lock);
}

static void fork_done(void)
{
    sp_lock_give(&values.lock);
}

/* The child's thread must not continue the parent's random sequence. */
static void fork_child(void)
{
    own.random = 0;
    fork_done();
}

SP_AT_FORK(SP_LOCK_VALUE_TYPES, fork_prepare, fork_done, fork_child);
