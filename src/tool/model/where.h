/* SPDX-License-Identifier: Apache-2.0 */
/* The classes of wall time: what a thread did or waited for. A sample of a wall profile has its
 * class in the attribute spanprof.wait, and without this attribute it is "cpu"
 * (docs/formats/files.md). */
#ifndef SP_TOOL_MODEL_WHERE_H
#define SP_TOOL_MODEL_WHERE_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#define SP_WHERE_KEY            "spanprof.wait"
#define SP_WHERE_DESCRIPTOR_KEY "spanprof.wait.descriptor"

typedef enum sp_where {
    SP_WHERE_CPU = 0, /* samples of this class have no attribute */
    SP_WHERE_RUNNABLE,
    SP_WHERE_LOCK,
    SP_WHERE_CONDITION, /* found from the stack of a wait for a lock; not a word of the attribute */
    SP_WHERE_SEMAPHORE, /* as SP_WHERE_CONDITION */
    SP_WHERE_JOIN,      /* as SP_WHERE_CONDITION */
    SP_WHERE_DISK,
    SP_WHERE_NETWORK,
    SP_WHERE_SLEEP,
    SP_WHERE_OTHER,
    SP_WHERE_COUNT,
} sp_where;

extern const char *const sp_where_names[SP_WHERE_COUNT];
/* A letter for each class, for bars. */
extern const char sp_where_letters[SP_WHERE_COUNT + 1];

/* The class of WORD, a value of the attribute. SP_WHERE_CPU: WORD is unknown. */
sp_where sp_where_of_word(const char *word);

uint64_t sp_where_sum(const uint64_t ns[SP_WHERE_COUNT]);

/* Write "cpu 12 %, lock 30 %" to OUT: the classes that have a value, with their shares. */
#define SP_WHERE_LENGTH 200
void sp_where_format(char out[SP_WHERE_LENGTH], const uint64_t ns[SP_WHERE_COUNT]);

/* {"cpu": ns, …}, with all classes. */
json_t *sp_where_json(const uint64_t ns[SP_WHERE_COUNT]);

#endif
