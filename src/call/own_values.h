/* SPDX-License-Identifier: Apache-2.0 */
/* The types of the application's own values (spanprof/value.h). */
#ifndef SP_CALL_OWN_VALUES_H
#define SP_CALL_OWN_VALUES_H

#include "context/ring_sig.h"

typedef struct sp_value_type {
    const char *name, *unit;
} sp_value_type;

/* All types, an array of SP_VALUE_TYPES_MAX, by number. The name of an unused one is NULL. Any
 * thread. */
const sp_value_type *sp_value_types(void);

#endif
