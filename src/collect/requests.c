/* SPDX-License-Identifier: Apache-2.0 */
/* The size of a request is known only after encoding, because samples share names, links and stacks
 * irregularly. So the whole window is encoded first. When it exceeds a bound, its size gives the
 * number of parts to try, and a part that is still too large is divided again. Most windows fit,
 * and are encoded only once. */
#include "collect/requests.h"

#include <string.h>

typedef struct request_maker {
    const sp_profile_data *data;
    sp_otlp_format format;
    const sp_resource *resource;
    sp_request_bounds bounds;
    /* false: the resource alone takes most of the bound, so smaller parts would not help */
    bool splits_by_bytes;
    sp_request_take take;
    void *user;
    uint32_t dropped;
} request_maker;

/* The texts of the resource, which every request has. */
static size_t resource_bytes(const sp_resource *resource)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < resource->attribute_count; i++) {
        const spanprof_attribute *attribute = &resource->attributes[i];
        bytes += strlen(attribute->key);
        if (attribute->type == SPANPROF_ATTRIBUTE_STRING && attribute->value.string_value)
            bytes += strlen(attribute->value.string_value);
    }
    return bytes;
}

static bool encode_part(const request_maker *m, sp_sample_range range, sp_buffer *body)
{
    sp_profile_data part;
    bool done = sp_profile_part(&part, m->data, range) &&
                sp_otlp_encode_profiles(body, m->format, m->resource, &part);
    sp_arena_deinit(&part.memory);
    return done;
}

static bool encode(const request_maker *m, sp_sample_range range, sp_buffer *body)
{
    if (range.first == 0 && range.count == sp_profile_sample_total(m->data))
        return sp_otlp_encode_profiles(body, m->format, m->resource, m->data);
    return encode_part(m, range, body);
}

/* How many equal parts RANGE must have so that none exceeds the bound for samples; 1 when RANGE
 * fits. */
static uint32_t parts_by_samples(const request_maker *m, sp_sample_range range)
{
    uint32_t largest = sp_profile_largest_share(m->data, range), most = m->bounds.samples;
    return most && largest > most ? (largest - 1) / most + 1 : 1;
}

/* The same for the bound for bytes; BYTES is the length of RANGE's request. An eighth is added,
 * because parts do not share entries. There are 64 parts at most, because a part that is still too
 * large is divided again. */
static uint32_t parts_by_bytes(const request_maker *m, size_t bytes)
{
    if (!m->splits_by_bytes || bytes < m->bounds.bytes)
        return 1;
    size_t parts = (bytes + bytes / 8) / m->bounds.bytes + 1;
    return parts < 64 ? (uint32_t)parts : 64;
}

static void make_range(request_maker *m, sp_sample_range range);

static void divide(request_maker *m, sp_sample_range range, uint32_t parts)
{
    uint32_t end = range.first + range.count, first = range.first;
    for (; parts > 0; parts--) {
        uint32_t count = (end - first) / parts;
        if (count)
            make_range(m, (sp_sample_range){first, count});
        first += count;
    }
}

/* Make the requests for RANGE. When a request cannot be made, smaller ones are tried, because they
 * need less memory. */
static void make_range(request_maker *m, sp_sample_range range)
{
    sp_buffer body = SP_BUFFER_INIT(SP_REQUEST_LIMIT_BYTES);
    uint32_t parts = parts_by_samples(m, range);
    bool done = parts == 1 && encode(m, range, &body);
    if (parts == 1)
        parts = done ? parts_by_bytes(m, body.length) : 2;
    if (done && (parts == 1 || range.count == 1)) {
        m->take(m->user, &body, range);
        return;
    }
    sp_buffer_deinit(&body);
    if (range.count == 1)
        m->dropped++;
    else
        divide(m, range, parts);
}

uint32_t sp_requests_make(const sp_profile_data *data, sp_otlp_format format,
                          const sp_resource *resource, const sp_request_bounds *bounds,
                          sp_request_take take, void *user)
{
    request_maker m = {
        .data = data,
        .format = format,
        .resource = resource,
        .bounds = *bounds,
        .splits_by_bytes = resource_bytes(resource) <= bounds->bytes / 2,
        .take = take,
        .user = user,
    };
    make_range(&m, (sp_sample_range){0, sp_profile_sample_total(data)});
    return m.dropped;
}
