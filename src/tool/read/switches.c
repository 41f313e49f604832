/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/read/switches.h"

#include <stdlib.h>
#include <string.h>

#include "context/switch_format.h"
#include "core/compiler.h"
#include "core/reach.h"

enum { SLOTS_MAX = 1 << 16, NO_CONTEXT = -1 };

/* What is known of a slot from its records so far. base and known may be NO_CONTEXT. */
typedef struct slot_state {
    ptrdiff_t thread;        /* an index into threads; -1: no thread, or it has exited */
    uint64_t last_ns;        /* the time of the last record */
    uint64_t known_until_ns; /* all records up to this time were read, or lost */
    uint64_t start_ns;       /* of the open interval, as are state and context */
    bool is_listed;          /* in the COMPLETE block that is being read */
    sp_switch_state state;
    uint32_t context;
    int64_t base;                   /* the last context, whose trace a SPAN record continues */
    int64_t known[SP_SWITCH_KNOWN]; /* by the number in the file: an index into contexts */
} slot_state;

typedef struct reader {
    sp_switches *out;
    uint64_t told_lost; /* the sum of the LOST records */
    uint8_t record_words[SP_SWITCH_KINDS_MAX];
    uint32_t slot_end; /* the largest slot number so far, plus 1 */
    slot_state *slots[SLOTS_MAX];
} reader;

static const char no_memory[] = "not enough memory";
static const uint8_t known_words[SP_SWITCH_KINDS_MAX] = SP_SWITCH_RECORD_WORDS;

static uint64_t word_at(const uint8_t *data, size_t number)
{
    uint64_t word;
    memcpy(&word, data + number * sizeof word, sizeof word);
    return word;
}

/* --- threads ---------------------------------------------------------------------------------- */

enum { FIRST_CAPACITY = 16 }; /* of each array */

static sp_switch_thread *thread_of(reader *r, const slot_state *slot)
{
    return slot->thread < 0 ? NULL : &r->out->threads[slot->thread];
}

static bool add_interval(sp_switch_thread *thread, const sp_switch_interval *interval)
{
    sp_switch_interval *last =
        thread->interval_count ? &thread->intervals[thread->interval_count - 1] : NULL;
    if (last && last->state == interval->state && last->context == interval->context) {
        last->end_ns = interval->end_ns;
        return true;
    }
    if (!SP_REACH(thread->intervals, thread->interval_count, thread->interval_capacity,
                  FIRST_CAPACITY))
        return false;
    thread->intervals[thread->interval_count++] = *interval;
    return true;
}

/* End the open interval at END_NS, and begin one with STATE and CONTEXT. UNKNOWN: the state of the
 * interval that ends is not certain, so SP_SWITCH_STATE_UNKNOWN is stored for it. */
static bool turn(reader *r, slot_state *slot, uint64_t end_ns, bool unknown, sp_switch_state state,
                 uint32_t context)
{
    sp_switch_thread *thread = thread_of(r, slot);
    sp_switch_interval interval = {slot->start_ns, end_ns, slot->state, slot->context};
    if (unknown)
        interval.state = SP_SWITCH_STATE_UNKNOWN;
    if (interval.state != SP_SWITCH_STATE_CONTEXT)
        interval.context = 0;
    slot->start_ns = end_ns;
    slot->state = state;
    slot->context = context;
    return !thread || interval.end_ns <= interval.start_ns || add_interval(thread, &interval);
}

static void forget_all(slot_state *slot)
{
    slot->base = NO_CONTEXT;
    for (size_t i = 0; i < SP_SWITCH_KNOWN; i++)
        slot->known[i] = NO_CONTEXT;
}

static void set_name(sp_switch_thread *thread, const uint8_t *words)
{
    memcpy(thread->name, words, 16);
    thread->name[16] = 0;
}

/* All records of the thread in SLOT were read: end its last interval. */
static bool end_thread(reader *r, slot_state *slot)
{
    uint64_t until = slot->known_until_ns > slot->last_ns ? slot->known_until_ns : slot->last_ns;
    bool done = turn(r, slot, until, false, SP_SWITCH_STATE_UNKNOWN, 0);
    slot->thread = -1;
    return done;
}

static const char *begin_thread(reader *r, slot_state *slot, const uint8_t *record)
{
    sp_switches *out = r->out;
    uint64_t now_ns = word_at(record, 1);
    if (now_ns < slot->last_ns)
        return "a thread begins before the one before it has ended";
    if (!end_thread(r, slot))
        return no_memory;
    if (!SP_REACH(out->threads, out->thread_count, out->thread_capacity, FIRST_CAPACITY))
        return no_memory;
    slot->thread = (ptrdiff_t)out->thread_count++;
    out->threads[slot->thread] = (sp_switch_thread){
        .tid = (int64_t)(uint32_t)word_at(record, 2),
        .begin_ns = now_ns,
    };
    set_name(&out->threads[slot->thread], record + 24);
    slot->last_ns = slot->start_ns = slot->known_until_ns = now_ns;
    slot->state = SP_SWITCH_STATE_UNKNOWN;
    forget_all(slot);
    return NULL;
}

/* --- records ---------------------------------------------------------------------------------- */

/* Put the context of a SPAN or a CONTEXT record into contexts; *NUMBER is its index. Returns NULL,
 * or what is wrong. */
static const char *read_context(reader *r, const slot_state *slot, const uint8_t *record,
                                uint64_t header, uint32_t *number)
{
    sp_switch_context context = {0};
    if ((header & SP_SWITCH_KIND_MASK) == SP_SWITCH_SPAN) {
        if (slot->base == NO_CONTEXT)
            return "a span stands without the trace that it belongs to";
        context =
            *(const sp_switch_context *)sp_intern_key(&r->out->contexts, (uint32_t)slot->base);
        memcpy(context.span_id, record + 8, 8);
    } else {
        memcpy(context.trace_id, record + 8, 16);
        memcpy(context.span_id, record + 24, 8);
        memcpy(context.local_root_span_id, record + 32, 8);
    }
    context.trace_flags = header >> SP_SWITCH_TRACE_FLAGS_SHIFT & 0xff;
    context.remote = header >> SP_SWITCH_FLAGS_SHIFT & SP_SWITCH_FLAG_REMOTE;
    *number = sp_intern_put(&r->out->contexts, &context, sizeof context, NULL);
    return *number == SP_INTERN_FAILED ? no_memory : NULL;
}

static const char *read_switch(reader *r, slot_state *slot, const uint8_t *record, uint64_t header)
{
    uint32_t number = header >> SP_SWITCH_NUMBER_SHIFT & 0xff, context = 0;
    bool tainted = header >> SP_SWITCH_FLAGS_SHIFT & SP_SWITCH_FLAG_TAINTED;
    sp_switch_kind kind = (sp_switch_kind)(header & SP_SWITCH_KIND_MASK);
    sp_switch_state state = SP_SWITCH_STATE_CONTEXT;
    if (number >= SP_SWITCH_KNOWN)
        return "a context number is too large";
    if (kind == SP_SWITCH_UNKNOWN) {
        state = SP_SWITCH_STATE_UNKNOWN;
    } else if (kind == SP_SWITCH_TO && number == 0) {
        state = SP_SWITCH_STATE_NONE;
    } else if (kind == SP_SWITCH_TO) {
        if (slot->known[number] == NO_CONTEXT)
            return "a context number was never defined";
        context = (uint32_t)slot->known[number];
    } else {
        if (number == 0)
            return "number 0 is no context";
        const char *wrong = read_context(r, slot, record, header, &context);
        if (wrong)
            return wrong;
        slot->known[number] = context;
    }
    if (state == SP_SWITCH_STATE_CONTEXT)
        slot->base = context;
    r->out->switches++;
    return turn(r, slot, slot->last_ns, tainted, state, context) ? NULL : no_memory;
}

static const char *read_event(reader *r, slot_state *slot, const uint8_t *record, bool is_end)
{
    sp_switch_thread *thread = thread_of(r, slot);
    if (!SP_REACH(thread->events, thread->event_count, thread->event_capacity, FIRST_CAPACITY))
        return no_memory;
    sp_switch_event *event = &thread->events[thread->event_count++];
    *event = (sp_switch_event){.time_ns = slot->last_ns, .is_end = is_end};
    memcpy(event->trace_id, record + 8, 16);
    memcpy(event->span_id, record + 24, 8);
    if (!is_end) {
        memcpy(event->parent_span_id, record + 32, 8);
        memcpy(event->local_root_span_id, record + 40, 8);
    }
    r->out->events++;
    return NULL;
}

/* LOST is the total of a COMPLETE block, or the sum of the LOST records so far. Both count the same
 * losses, so the larger one is right. */
static void count_lost(reader *r, uint64_t lost)
{
    if (lost > r->out->lost)
        r->out->lost = lost;
}

static const char *read_lost(reader *r, slot_state *slot, const uint8_t *record)
{
    r->told_lost += word_at(record, 1);
    count_lost(r, r->told_lost);
    forget_all(slot);
    return turn(r, slot, slot->last_ns, false, SP_SWITCH_STATE_UNKNOWN, 0) ? NULL : no_memory;
}

static const char *read_exit(reader *r, slot_state *slot, const uint8_t *record, uint64_t header)
{
    sp_switch_thread *thread = thread_of(r, slot);
    bool tainted = header >> SP_SWITCH_FLAGS_SHIFT & SP_SWITCH_FLAG_TAINTED;
    set_name(thread, record + 8);
    thread->has_exited = true;
    bool done = turn(r, slot, slot->last_ns, tainted, SP_SWITCH_STATE_UNKNOWN, 0);
    slot->thread = -1;
    return done ? NULL : no_memory;
}

static const char *advance(slot_state *slot, const uint8_t *record, uint64_t header)
{
    uint64_t delta = header >> SP_SWITCH_DELTA_SHIFT;
    uint64_t now_ns = slot->last_ns + delta;
    if ((header & SP_SWITCH_KIND_MASK) == SP_SWITCH_TIME)
        now_ns = word_at(record, 1);
    if (now_ns < slot->last_ns)
        return "time goes backwards";
    slot->last_ns = now_ns;
    return NULL;
}

/* Read RECORD, which is whole. Of a kind that this version does not know, only the time is used. */
static const char *read_record(reader *r, slot_state *slot, const uint8_t *record)
{
    uint64_t header = word_at(record, 0);
    sp_switch_kind kind = (sp_switch_kind)(header & SP_SWITCH_KIND_MASK);
    if (kind == SP_SWITCH_BEGIN)
        return begin_thread(r, slot, record);
    const char *wrong = advance(slot, record, header);
    if (wrong)
        return wrong;
    if (kind == SP_SWITCH_LOST)
        return read_lost(r, slot, record); /* needs no BEGIN before it */
    if (kind == SP_SWITCH_TIME || kind >= SP_SWITCH_KINDS_END)
        return NULL;
    if (slot->thread < 0)
        return "a record stands without the thread that it belongs to";
    switch (kind) {
    case SP_SWITCH_EXIT:
        return read_exit(r, slot, record, header);
    case SP_SWITCH_SPAN_START:
        return read_event(r, slot, record, false);
    case SP_SWITCH_SPAN_END:
        return read_event(r, slot, record, true);
    default:
        return read_switch(r, slot, record, header);
    }
}

static slot_state *slot_at(reader *r, uint32_t number)
{
    slot_state **slot = &r->slots[number];
    r->slot_end = number < r->slot_end ? r->slot_end : number + 1;
    if (!*slot && (*slot = calloc(1, sizeof **slot))) {
        (*slot)->thread = -1;
        forget_all(*slot);
    }
    return *slot;
}

static const char *read_records(reader *r, uint32_t number, const uint8_t *data, size_t length)
{
    if (number >= SLOTS_MAX)
        return "a slot's number is too large";
    slot_state *slot = slot_at(r, number);
    if (!slot)
        return no_memory;
    for (size_t at = 0; at < length;) {
        size_t bytes = 8 * (size_t)r->record_words[word_at(data + at, 0) & SP_SWITCH_KIND_MASK];
        if (bytes == 0)
            return "a record is of no kind that the header lists";
        if (bytes > length - at)
            return "a record is longer than its block";
        const char *wrong = read_record(r, slot, data + at);
        if (wrong)
            return wrong;
        at += bytes;
    }
    return NULL;
}

/* --- blocks ----------------------------------------------------------------------------------- */

static const char *read_complete(reader *r, const uint8_t *data, size_t length)
{
    sp_switch_complete complete;
    if (length < sizeof complete)
        return "a block is too short for what it is";
    memcpy(&complete, data, sizeof complete);
    if (complete.slot_count > (length - sizeof complete) / 4 || complete.slot_count > SLOTS_MAX)
        return "a block lists more slots than it has";
    r->out->last_epoch_offset_ns = (int64_t)(complete.realtime_ns - complete.monotonic_ns);
    for (uint32_t i = 0; i < complete.slot_count; i++) {
        uint32_t number;
        memcpy(&number, data + sizeof complete + 4 * (size_t)i, sizeof number);
        if (number < r->slot_end && r->slots[number])
            r->slots[number]->is_listed = true;
    }
    for (uint32_t i = 0; i < r->slot_end; i++) {
        slot_state *slot = r->slots[i];
        if (slot && !slot->is_listed && complete.monotonic_ns > slot->known_until_ns)
            slot->known_until_ns = complete.monotonic_ns;
        if (slot)
            slot->is_listed = false;
    }
    count_lost(r, complete.lost);
    return NULL;
}

/* Read all blocks. Blocks of types that this version does not know are skipped. */
static const char *read_blocks(reader *r, const uint8_t *data, size_t length)
{
    sp_switches *out = r->out;
    while (out->read_bytes < length) {
        sp_switch_block block;
        size_t left = length - out->read_bytes;
        out->is_cut = left < sizeof block;
        if (out->is_cut)
            return NULL;
        memcpy(&block, data + out->read_bytes, sizeof block);
        out->is_cut = block.bytes > left - sizeof block;
        if (out->is_cut)
            return NULL;
        if (block.bytes % 8)
            return "a block's length is no multiple of 8";
        const uint8_t *content = data + out->read_bytes + sizeof block;
        const char *wrong = NULL;
        if (block.type == SP_SWITCH_BLOCK_RECORDS)
            wrong = read_records(r, block.slot, content, block.bytes);
        else if (block.type == SP_SWITCH_BLOCK_COMPLETE)
            wrong = read_complete(r, content, block.bytes);
        if (wrong)
            return wrong;
        out->read_bytes += sizeof block + block.bytes;
        out->blocks++;
    }
    return NULL;
}

bool sp_switches_recognize(const uint8_t *data, size_t length)
{
    return length >= strlen(SP_SWITCH_MAGIC) &&
           memcmp(data, SP_SWITCH_MAGIC, strlen(SP_SWITCH_MAGIC)) == 0;
}

static const char *read_header(reader *r, const uint8_t *data, size_t length)
{
    sp_switch_file_header header;
    if (!sp_switches_recognize(data, length))
        return "this is no file of the time recorder";
    if (length < sizeof header)
        return "the header is cut";
    memcpy(&header, data, sizeof header);
    if (header.version != SP_SWITCH_VERSION)
        return "the version is not known here";
    if (header.header_bytes < sizeof header || header.header_bytes > length ||
        header.known_count > SP_SWITCH_KNOWN)
        return "the header is damaged";
    for (size_t kind = 0; kind < SP_SWITCH_KINDS_END; kind++)
        if (header.record_words[kind] < known_words[kind])
            return "the header says that a record is shorter than it can be";
    memcpy(r->record_words, header.record_words, sizeof r->record_words);
    r->out->pid = header.pid;
    r->out->clock_id = header.clock_id;
    r->out->epoch_offset_ns = (int64_t)(header.realtime_ns - header.monotonic_ns);
    r->out->last_epoch_offset_ns = r->out->epoch_offset_ns;
    r->out->read_bytes = header.header_bytes;
    return NULL;
}

static int compare_threads(const void *left, const void *right)
{
    const sp_switch_thread *a = left, *b = right;
    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    return (a->begin_ns > b->begin_ns) - (a->begin_ns < b->begin_ns);
}

const char *sp_switches_read(sp_switches *out, const uint8_t *data, size_t length)
{
    *out = (sp_switches){0};
    reader *r = calloc(1, sizeof *r);
    if (!r)
        return no_memory;
    r->out = out;
    const char *wrong = read_header(r, data, length);
    if (!wrong)
        wrong = read_blocks(r, data, length);
    for (size_t i = 0; i < r->slot_end; i++) {
        if (r->slots[i] && r->slots[i]->thread >= 0 && !end_thread(r, r->slots[i]) && !wrong)
            wrong = no_memory;
        free(r->slots[i]);
    }
    free(r);
    if (out->thread_count)
        qsort(out->threads, out->thread_count, sizeof *out->threads, compare_threads);
    return wrong;
}

void sp_switches_deinit(sp_switches *switches)
{
    for (size_t i = 0; i < switches->thread_count; i++) {
        free(switches->threads[i].intervals);
        free(switches->threads[i].events);
    }
    free(switches->threads);
    sp_intern_deinit(&switches->contexts);
    *switches = (sp_switches){0};
}

/* --- looking up ------------------------------------------------------------------------------- */

/* The last thread with the id TID that began at TIME_NS or before. */
static const sp_switch_thread *find_thread(const sp_switches *switches, int64_t tid,
                                           uint64_t time_ns)
{
    size_t low = 0, high = switches->thread_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const sp_switch_thread *thread = &switches->threads[middle];
        if (thread->tid < tid || (thread->tid == tid && thread->begin_ns <= time_ns))
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && switches->threads[low - 1].tid == tid ? &switches->threads[low - 1] : NULL;
}

sp_switch_state sp_switches_find(const sp_switches *switches, int64_t tid, uint64_t time_ns,
                                 const sp_switch_context **context)
{
    const sp_switch_thread *thread = find_thread(switches, tid, time_ns);
    size_t low = 0, high = thread ? thread->interval_count : 0;
    *context = NULL;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (thread->intervals[middle].end_ns <= time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    if (!thread || low == thread->interval_count || thread->intervals[low].start_ns > time_ns)
        return SP_SWITCH_STATE_UNKNOWN;
    if (thread->intervals[low].state == SP_SWITCH_STATE_CONTEXT)
        *context = sp_intern_key(&switches->contexts, thread->intervals[low].context);
    return thread->intervals[low].state;
}
