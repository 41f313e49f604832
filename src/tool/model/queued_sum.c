/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether spans were in a queue: one span, or several together.
 *
 * A round of visits sees all threads at one moment. So the visits of spans that ran at the same
 * time are no independent draws: if all of them waited together, one round sees all or none. The
 * error of a sum counts with this worst case. A round adds at most `together` visits to the sum,
 * and the variance of the number of visits is then at most `together` times their number.
 *
 * The error of one span comes from the visits that were made. For several spans, it comes from the
 * visits that would be expected if there was no queue. These are more, and they decide how probable
 * it is that so few were made by chance. For one span the difference does not matter: each period
 * has one round, so chance misses no long wait. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/counted.h"
#include "tool/model/groups.h"
#include "tool/model/hidden.h"
#include "tool/model/queued.h"
#include "tool/model/sum.h"
#include "tool/text/output.h"

/* A difference of more than SURE_ERRORS standard errors is not chance. If threads wait for cores,
 * the shares of running and waiting threads are uncertain by up to one in UNCERTAIN_OF. */
enum { SURE_ERRORS = 3, UNCERTAIN_OF = 10 };

/* If the files have so many visits for each thread, no thread that carried spans often was missed
 * by chance. */
enum { VISITS_OF_A_THREAD = 10 };

/* Sums over spans. */
typedef struct sums {
    uint64_t spans;
    double wall, cpu, runnable;
    double duration, sampled, missing;
    double together; /* the average number of spans at once, at most the number of threads */
    double chances;  /* the sum of what is possible by chance for each span by itself */
} sums;

static void add_span(sums *sums, const sp_model_span *span)
{
    sums->spans++;
    sums->wall += (double)sp_where_sum(span->wall_ns);
    sums->cpu += (double)span->wall_ns[SP_WHERE_CPU];
    sums->runnable += (double)span->wall_ns[SP_WHERE_RUNNABLE];
    sums->duration += (double)(span->end_ns - span->start_ns);
    sums->sampled += (double)span->sampled_ns;
    sums->missing += (double)span->missing_ns;
}

/* Without classes of waits, all wall time counts as visits, because their error is larger. */
static double cpu_of(const sp_model_type *type, const sums *sums)
{
    return type->has_waiting_samples ? sums->cpu : 0;
}

/* The standard error of the wall time: from its visits, and from its ticks of CPU time. */
static double error_of(const sp_model_queues *queues, const sp_model_type *type, const sums *sums)
{
    double cpu = cpu_of(type, sums), visit = (double)queues->visit_ns * sums->together;
    double visits = visit * fmax(sums->wall - cpu, visit);
    return sqrt(visits + (double)queues->tick_ns * cpu);
}

/* How much more wall time than the sampled one is possible by chance. For several spans: the
 * largest M for which M - V is at most three roots of M, where V are the visits that were made. It
 * is never more than the spans have by themselves. */
static double chance_of(const sp_model_queues *queues, const sp_model_type *type, const sums *sums)
{
    if (sums->spans == 1)
        return SURE_ERRORS * error_of(queues, type, sums);
    double cpu = cpu_of(type, sums), visit = (double)queues->visit_ns * sums->together;
    double half = SURE_ERRORS * visit / 2;
    double chance =
        half + sqrt(visit * (sums->wall - cpu) + half * half + (double)queues->tick_ns * cpu);
    return fmin(SURE_ERRORS * chance, sums->chances);
}

/* The longest time that threads may have worked and waited for the spans. All lost time may belong
 * to spans of one kind. To a single span belongs little of it. */
static double most_of(const sp_model_queues *queues, const sp_model_type *type, const sums *sums)
{
    return sums->wall + sums->missing + chance_of(queues, type, sums) +
           (sums->cpu + sums->runnable) / UNCERTAIN_OF + (sums->spans > 1 ? queues->lost_ns : 0);
}

static uint64_t queued_ns(const sp_model_queues *queues, const sp_model_type *type,
                          const sums *sums)
{
    double queued = sums->sampled - sums->wall;
    if (!sums->spans || sums->sampled <= most_of(queues, type, sums))
        return 0;
    return queued < (double)INT64_MAX ? (uint64_t)queued : INT64_MAX;
}

static double chance_of_span(const sp_model_queues *queues, const sp_model_type *type,
                             const sp_model_span *span)
{
    sums one = {.together = 1};
    add_span(&one, span);
    return chance_of(queues, type, &one);
}

uint64_t sp_queued_of_span(const sp_model *model, const sp_model_type *type,
                           const sp_model_span *span)
{
    sums sums = {.together = 1};
    if (sp_hides_total(type, span))
        return 0;
    add_span(&sums, span);
    return queued_ns(&model->queues, type, &sums);
}

/* ---- threads ---- */

/* The texts are strings of the model: equal texts are one pointer. */
typedef struct carrier {
    const char *service, *instance;
    int64_t tid;
} carrier;

/* Add the threads of PROFILE's linked samples. Returns false when a sample names no thread, or
 * memory is short; then *FAILED is set. */
static bool add_carriers(sp_intern *carriers, const sp_model_profile *profile, bool *failed)
{
    const Sp__Profiles__Profile *message = profile->message;
    carrier key = {profile->service, profile->instance, 0};
    for (size_t i = 0; i < message->n_samples && !*failed; i++) {
        if (!message->samples[i]->link_index)
            continue;
        if (!sp_model_find_thread(profile, message->samples[i], &key.tid))
            return false;
        *failed = sp_intern_put(carriers, &key, sizeof key, NULL) == SP_INTERN_FAILED;
    }
    return !*failed;
}

bool sp_queued_count_threads(sp_model *model, uint32_t type, double linked_ns)
{
    sp_intern carriers = {0};
    bool failed = false, is_known = true;
    for (size_t i = 0; is_known && i < model->profile_count; i++)
        if (model->profiles[i].type == type)
            is_known = add_carriers(&carriers, &model->profiles[i], &failed);
    double visits = linked_ns / (double)model->queues.visit_ns;
    is_known = is_known && carriers.count && visits >= VISITS_OF_A_THREAD * (double)carriers.count;
    model->queues.threads = is_known ? carriers.count : UINT64_MAX;
    sp_intern_deinit(&carriers);
    return !failed;
}

/* ---- several spans ---- */

static int by_time(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* How many spans there are at once, in the average over the time of the spans. STARTS and ENDS have
 * COUNT times each, which this function sorts. */
static double find_together(uint64_t *starts, uint64_t *ends, size_t count)
{
    double time = 0, square = 0;
    size_t started = 0, ended = 0;
    uint64_t last = 0;
    qsort(starts, count, sizeof *starts, by_time);
    qsort(ends, count, sizeof *ends, by_time);
    while (ended < count) {
        bool starts_next = started < count && starts[started] <= ends[ended];
        uint64_t now = starts_next ? starts[started] : ends[ended];
        double open = (double)(started - ended), passed = open > 0 ? (double)(now - last) : 0;
        time += open * passed;
        square += open * open * passed;
        last = now;
        started += starts_next;
        ended += !starts_next;
    }
    return time > 0 ? square / time : 1;
}

/* Add the spans of LIST to SUMS, and put the times of those that are not nested into TIMES, the
 * ends after ROOM starts. Returns how many are not nested. *COUNT is the number of all that
 * count. */
static size_t add_spans(sums *sums, const sp_model *model, const sp_model_type *type,
                        const uint32_t *list, const bool *nested, uint64_t *times, uint64_t *count)
{
    size_t room = *count, outer = 0;
    *count = 0;
    for (size_t i = 0; i < room; i++) {
        const sp_model_span *span = &model->spans[list[i]];
        if (sp_hides_total(type, span))
            continue;
        ++*count;
        if (nested[list[i]])
            continue;
        add_span(sums, span);
        sums->chances += chance_of_span(&model->queues, type, span);
        times[outer] = span->start_ns;
        times[room + outer++] = span->end_ns;
    }
    return outer;
}

bool sp_queued_sum(sp_queued *out, const sp_model *model, const uint32_t *list, size_t count,
                   const bool *nested)
{
    *out = (sp_queued){.count = count};
    if (!model->queues.is_known)
        return true;
    const sp_model_type *type = &model->types[sp_model_wall_type(model, true)];
    uint64_t *times = malloc((2 * count + 1) * sizeof *times);
    sums sums = {0};
    if (!times)
        return false;
    size_t outer = add_spans(&sums, model, type, list, nested, times, &out->count);
    sums.together = fmin(find_together(times, times + count, outer), (double)model->queues.threads);
    sums.missing = fmin(sums.missing, model->queues.missing_ns);
    out->duration_ns = sums.duration < (double)INT64_MAX ? (uint64_t)sums.duration : INT64_MAX;
    out->queued_ns = queued_ns(&model->queues, type, &sums);
    out->error_ns = (uint64_t)error_of(&model->queues, type, &sums);
    free(times);
    return true;
}

bool sp_queued_sum_marked(sp_queued *out, const sp_model *model, const bool *marked)
{
    uint32_t spans = model->span_index.count, count = 0;
    uint32_t *list = malloc((spans + (size_t)1) * sizeof *list);
    uint32_t *group_of = malloc((spans + (size_t)1) * sizeof *group_of);
    bool *nested = calloc(spans + (size_t)1, sizeof *nested);
    bool done = list && group_of && nested;
    for (uint32_t i = 0; done && i < spans; i++) {
        group_of[i] = marked[i] ? 0 : SP_MODEL_NONE;
        if (marked[i])
            list[count++] = i;
    }
    done = done && sp_groups_find_nested(model, group_of, 1, nested) &&
           sp_queued_sum(out, model, list, count, nested);
    if (done && out->count < count)
        *out = (sp_queued){0};
    free(list);
    free(group_of);
    free(nested);
    return done;
}

sp_queued sp_queued_of(const sp_model_span *span)
{
    return (sp_queued){
        .count = 1, .duration_ns = span->end_ns - span->start_ns, .queued_ns = span->queued_ns};
}

const char *sp_queued_format(char out[SP_QUEUED_LENGTH], const sp_queued *queued)
{
    char time[SP_DURATION_LENGTH], error[SP_DURATION_LENGTH], duration[SP_DURATION_LENGTH];
    sp_format_duration(time, queued->queued_ns);
    sp_format_duration(error, queued->error_ns);
    sp_format_duration(duration, queued->duration_ns);
    if (queued->count == 1)
        snprintf(out, SP_QUEUED_LENGTH,
                 "about %s of its %s no thread carried this span: it was in a queue, its work ran "
                 "elsewhere without the context, or it ended long after its work",
                 time, duration);
    else
        snprintf(out, SP_QUEUED_LENGTH,
                 "about %s (± %s) of the %s of these %s no thread carried them: they were in a "
                 "queue, their work ran elsewhere without the context, or they ended long after it",
                 time, error, duration, SP_COUNTED(queued->count, "span"));
    return out;
}
