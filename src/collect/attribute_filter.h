/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the attributes of contexts that samples are exported with (SPANPROF_SAMPLE_ATTRIBUTES).
 * Threads: the collector's, unless a function says otherwise. */
#ifndef SP_COLLECT_ATTRIBUTE_FILTER_H
#define SP_COLLECT_ATTRIBUTE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "context/sample_keys.h"

typedef struct sp_attribute_filter {
    char *list;       /* of keys, separated by commas, or "all"; NULL: none */
    uint32_t checked; /* how many keys `takes` has; keys with this number and above are new */
    bool takes[SP_SAMPLE_KEYS_MAX]; /* by number of key (sample_keys.h) */
} sp_attribute_filter;

/* Whether LIST takes any attribute at all. Any thread. */
bool sp_attribute_list_takes_some(const char *list);

/* Copy to OUT, in their order, the attributes whose keys FILTER takes. DATA has LENGTH bytes of
 * attributes (context/thread.h); an attribute that is cut ends them. OUT has room for LENGTH bytes.
 * Returns how many bytes were copied. */
uint32_t sp_attribute_filter_copy(sp_attribute_filter *filter, uint8_t *out, const uint8_t *data,
                                  uint32_t length);

#endif
