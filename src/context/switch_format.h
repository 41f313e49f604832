/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of the time recorder's file, and of what lies in its rings: docs/formats/switches.md.
 * Everything is little-endian, as all supported architectures are. */
#ifndef SP_CONTEXT_SWITCH_FORMAT_H
#define SP_CONTEXT_SWITCH_FORMAT_H

#include <stdint.h>

/* --- the file: a header, then blocks ---------------------------------------------------------- */

#define SP_SWITCH_MAGIC "SPSWITCH" /* without its NUL */

enum { SP_SWITCH_VERSION = 1, SP_SWITCH_KINDS_MAX = 16 };

typedef struct sp_switch_file_header {
    uint8_t magic[8];
    uint32_t version;
    uint32_t header_bytes; /* of this struct; the blocks begin after it */
    uint64_t pid;
    uint32_t clock_id;                         /* of all times: CLOCK_MONOTONIC */
    uint32_t known_count;                      /* context numbers are below this */
    uint64_t monotonic_ns, realtime_ns;        /* of one moment */
    uint8_t record_words[SP_SWITCH_KINDS_MAX]; /* by kind, including the header; 0: there is no such
                                                  record */
} sp_switch_file_header;

_Static_assert(sizeof(sp_switch_file_header) == 64, "the layout of the file");

typedef enum sp_switch_block_type {
    SP_SWITCH_BLOCK_RECORDS = 1, /* records of one slot, in order */
    /* sp_switch_complete, then as many uint32_t slots, padded to 8 bytes. */
    SP_SWITCH_BLOCK_COMPLETE = 2,
} sp_switch_block_type;

typedef struct sp_switch_block {
    uint32_t type;
    uint32_t bytes; /* that follow this struct, a multiple of 8 */
    uint32_t slot;  /* RECORDS: of the thread. Else 0 */
    uint32_t reserved;
} sp_switch_block;

/* Everything that happened up to monotonic_ns is before this block, or was lost. This does not hold
 * for the slots that are listed after this struct: for them, the previous such block still counts.
 */
typedef struct sp_switch_complete {
    uint64_t monotonic_ns, realtime_ns; /* of one moment */
    uint64_t lost;                      /* records, so far */
    uint32_t slot_count;
    uint32_t reserved;
} sp_switch_complete;

/* --- records: words of 64 bits ---------------------------------------------------------------- */

/* The first word: kind, context number, flags, trace flags, and the nanoseconds since the previous
 * record. */
enum {
    SP_SWITCH_NUMBER_SHIFT = 4,
    SP_SWITCH_FLAGS_SHIFT = 12,
    SP_SWITCH_TRACE_FLAGS_SHIFT = 20,
    SP_SWITCH_DELTA_SHIFT = 28,
    SP_SWITCH_DELTA_BITS = 64 - SP_SWITCH_DELTA_SHIFT,
    SP_SWITCH_KIND_MASK = 15,
};

enum {
    SP_SWITCH_FLAG_REMOTE = 1,  /* of the context */
    SP_SWITCH_FLAG_TAINTED = 2, /* it is not known what was active since the previous switch */
};

/* Each thread assigns numbers to contexts. 0 is "no span"; any other number means the context that
 * was last defined for it. */
enum { SP_SWITCH_KNOWN = 128 };

typedef enum sp_switch_kind {
    /* time, tid | slot generation << 32, name: another thread's records begin. */
    SP_SWITCH_BEGIN = 1,
    SP_SWITCH_TO = 2, /* the context with this number is active */
    /* span id: the number is a span of the same trace and local root as the last context. */
    SP_SWITCH_SPAN = 3,
    SP_SWITCH_CONTEXT = 4, /* trace id, span id, local root: the number is this context */
    SP_SWITCH_UNKNOWN = 5, /* it is not known what is active */
    SP_SWITCH_TIME = 6,    /* time: before a record whose difference does not fit */
    SP_SWITCH_LOST = 7, /* count: this many records are missing, from this moment on; no number is
                           defined any more */
    SP_SWITCH_EXIT = 8, /* name: the thread ends */
    /* trace id, span id, parent's span id, local root: reported by another tracer. */
    SP_SWITCH_SPAN_START = 9,
    SP_SWITCH_SPAN_END = 10, /* trace id, span id */
    SP_SWITCH_KINDS_END
} sp_switch_kind;

/* The words of a record, by kind. */
#define SP_SWITCH_RECORD_WORDS                                                                     \
    {                                                                                              \
        0, 5, 1, 2, 5, 1, 2, 2, 3, 6, 4                                                            \
    }

enum { SP_SWITCH_WORDS_MAX = 6 };

#endif
