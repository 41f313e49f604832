/* SPDX-License-Identifier: Apache-2.0 */
/* Makes export requests of a window's profiles: one where that fits, else several, each complete by
 * itself and below the bounds (docs/design/export.md). Any thread. */
#ifndef SP_COLLECT_REQUESTS_H
#define SP_COLLECT_REQUESTS_H

#include "profile/profile_part.h"
#include "wire/otlp.h"

/* What one request may be. A single sample that needs more bytes is sent alone, up to
 * SP_REQUEST_LIMIT_BYTES. */
typedef struct sp_request_bounds {
    size_t bytes;     /* encoded and not compressed: below this */
    uint32_t samples; /* of one profile; 0: any number */
} sp_request_bounds;

enum { SP_REQUEST_LIMIT_BYTES = 64 * 1024 * 1024 }; /* the limit of the OTLP specification */

/* Takes BODY, whose memory is the function's from now on: the request with the samples of RANGE. */
typedef void (*sp_request_take)(void *user, sp_buffer *body, sp_sample_range range);

/* Encode DATA, which has profiles, in FORMAT, and call TAKE for each request, in the order of the
 * samples. Returns how many samples are in none of them: memory was short, or one sample alone
 * exceeds SP_REQUEST_LIMIT_BYTES. */
uint32_t sp_requests_make(const sp_profile_data *data, sp_otlp_format format,
                          const sp_resource *resource, const sp_request_bounds *bounds,
                          sp_request_take take, void *user);

#endif
