/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/read/input.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "proto/profiles.pb-c.h"
#include "proto/trace.pb-c.h"

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return b && (!a || b < a) ? b : a;
}

static uint64_t first_span(const Sp__Trace__TracesData *data)
{
    uint64_t first = 0;
    for (size_t i = 0; i < data->n_resource_spans; i++)
        for (size_t k = 0; k < data->resource_spans[i]->n_scope_spans; k++) {
            const Sp__Trace__ScopeSpans *scope = data->resource_spans[i]->scope_spans[k];
            for (size_t n = 0; n < scope->n_spans; n++)
                first = earlier(first, scope->spans[n]->start_time_unix_nano);
        }
    return first;
}

static uint64_t first_profile(const Sp__Profiles__ProfilesData *data)
{
    uint64_t first = 0;
    for (size_t i = 0; i < data->n_resource_profiles; i++)
        for (size_t k = 0; k < data->resource_profiles[i]->n_scope_profiles; k++) {
            const Sp__Profiles__ScopeProfiles *scope =
                data->resource_profiles[i]->scope_profiles[k];
            for (size_t n = 0; n < scope->n_profiles; n++)
                first = earlier(first, scope->profiles[n]->time_unix_nano);
        }
    return first;
}

static uint64_t ns_of(struct statx_timestamp time)
{
    return (uint64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

uint64_t sp_input_made_ns(const char *path)
{
    struct statx status;
    if (statx(AT_FDCWD, path, 0, STATX_BTIME | STATX_MTIME | STATX_SIZE, &status) != 0)
        return 0;
    if (status.stx_size == 0)
        return ns_of(status.stx_mtime);
    return status.stx_mask & STATX_BTIME ? ns_of(status.stx_btime) : 0;
}

uint64_t sp_input_begin_ns(const sp_input *input, size_t first)
{
    uint64_t begin = 0;
    for (size_t i = first; i < input->count; i++) {
        const sp_document *document = &input->documents[i];
        if (document->number == 1)
            begin = earlier(begin, sp_input_made_ns(document->path));
        begin = earlier(begin,
                        document->signal == SP_SIGNAL_TRACES
                            ? first_span((const Sp__Trace__TracesData *)document->message)
                            : first_profile((const Sp__Profiles__ProfilesData *)document->message));
    }
    return begin;
}
