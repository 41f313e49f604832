/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes that a context gives to samples under it (include/spanprof/context.h,
 * docs/design/sample-attributes.md): the context's carrier has an entry for each, with key number,
 * length and bytes, in the order of key numbers. */
#ifndef SP_TRACE_SAMPLE_ATTRIBUTES_H
#define SP_TRACE_SAMPLE_ATTRIBUTES_H

#include <stdint.h>

enum { SP_SAMPLE_ATTRIBUTES_MAX = 8, SP_SAMPLE_VALUE_BYTES_MAX = 255 };

/* Since the process began. */
typedef struct sp_sample_attribute_counters {
    uint64_t cut;     /* values that were too long */
    uint64_t refused; /* attributes for which a context, or the table of keys, had no room, or
                         memory was short */
} sp_sample_attribute_counters;

void sp_sample_attribute_counters_get(sp_sample_attribute_counters *out);

#endif
