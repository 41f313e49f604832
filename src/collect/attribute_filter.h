/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the attributes of contexts that samples are exported with (SPANPROF_SAMPLE_ATTRIBUTES).
 * Collector thread only, unless a function says otherwise. */
#ifndef SP_COLLECT_ATTRIBUTE_FILTER_H
#define SP_COLLECT_ATTRIBUTE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "context/sample_keys.h"

typedef struct sp_attribute_filter {
    char *list;       /* of keys, separated by commas, or "all"; NULL: none */
    uint32_t checked; /* so many keys; those from this number on are new */
    bool takes[SP_SAMPLE_KEYS_MAX];
} sp_attribute_filter;

/* Whether LIST takes any attribute at all. Any thread. */
bool sp_attribute_list_takes_some(const char *list);

/* Copy those entries of the LENGTH bytes at DATA (context/thread.h) that FILTER takes to OUT, which
 * has room for all, in their order. Returns their length. An entry that is cut ends the data. */
uint32_t sp_attribute_filter_copy(sp_attribute_filter *filter, uint8_t *out, const uint8_t *data,
                                  uint32_t length);

#endif
