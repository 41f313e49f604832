/* SPDX-License-Identifier: Apache-2.0 */
/* Where wall time goes: what a sample of a wall profile says in its attribute spanprof.wait, and
 * "cpu" where it says nothing (docs/formats/files.md). */
#ifndef SP_TOOL_MODEL_WHERE_H
#define SP_TOOL_MODEL_WHERE_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#define SP_WHERE_KEY            "spanprof.wait"
#define SP_WHERE_DESCRIPTOR_KEY "spanprof.wait.descriptor"

typedef enum sp_where {
    SP_WHERE_CPU = 0, /* never written as an attribute */
    SP_WHERE_RUNNABLE,
    SP_WHERE_LOCK,
    SP_WHERE_CONDITION, /* told by the stack of a wait for a lock; no word of the attribute */
    SP_WHERE_SEMAPHORE, /* the same */
    SP_WHERE_DISK,
    SP_WHERE_NETWORK,
    SP_WHERE_SLEEP,
    SP_WHERE_OTHER,
    SP_WHERE_COUNT,
} sp_where;

extern const char *const sp_where_names[SP_WHERE_COUNT];
/* One for each class, by which bars name it. */
extern const char sp_where_letters[SP_WHERE_COUNT + 1];

/* The class that WORD, a value of the attribute, means. SP_WHERE_CPU: it is none of the words. */
sp_where sp_where_of_word(const char *word);

uint64_t sp_where_sum(const uint64_t ns[SP_WHERE_COUNT]);

/* "cpu 12 %, lock 30 %" in OUT: the classes that have a share. */
#define SP_WHERE_LENGTH 200
void sp_where_format(char out[SP_WHERE_LENGTH], const uint64_t ns[SP_WHERE_COUNT]);

/* {"cpu": ns, …}, all classes. */
json_t *sp_where_json(const uint64_t ns[SP_WHERE_COUNT]);

#endif
