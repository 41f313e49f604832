/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the builder share: the profiles of one window while they are made. builder.c
 * has the types of profiles, build_samples.c adds samples up, build_stacks.c and build_attributes.c
 * make what a sample refers to, build_numbers.c the attributes of the window itself. Collector
 * thread. */
#ifndef SP_PROFILE_BUILD_H
#define SP_PROFILE_BUILD_H

#include "profile/builder.h"
#include "profile/dictionary.h"
#include "profile/sample_order.h"

/* The samples of one profile while it is made. */
typedef struct sp_build_samples {
    sp_projected_sample *list; /* room for all samples of a profile */
    uint32_t *order;           /* numbers of `list`, in the order of the profile */
    /* By number of a sample of the window: the number of the profile's sample that it was added to,
     * plus one. */
    uint32_t *places;
    uint32_t count;
} sp_build_samples;

typedef struct sp_build {
    sp_profile_data *data;
    const sp_window *window;
    sp_symbolizer *symbolizer;
    const sp_build_options *options;
    sp_dictionary dictionary;
    /* By number in the window: the number in the dictionary, plus one; 0: not built yet. All
     * profiles share them. */
    uint32_t *locations, *stacks, *threads;
    uint32_t *links;         /* the same, of one profile, because their scopes differ */
    uint32_t *stack_scratch; /* room for the longest stack with its markers */
    sp_build_samples samples;
    bool by_count;             /* the value of a sample is its count, not its weight */
    spanprof_link_scope scope; /* of the profiles that are being made: not DEFAULT, not BOTH */
} sp_build;

static inline int64_t sp_saturating_sum(int64_t a, uint64_t b)
{
    int64_t sum;
    if (b > INT64_MAX || __builtin_add_overflow(a, (int64_t)b, &sum))
        return INT64_MAX;
    return sum;
}

/* build_stacks.c: the number in the dictionary of the window's stack NUMBER. */
uint32_t sp_build_stack(sp_build *b, uint32_t number);

/* build_attributes.c: the attributes of a sample, as the number of a list. */
uint32_t sp_build_attributes(sp_build *b, const sp_window_key *from);

/* build_samples.c: the samples of one profile. begin, project once or more, then write. */
void sp_build_begin_profile(sp_build *b);
void sp_build_project(sp_build *b, const sp_window_part *part, spanprof_link_scope scope);
void sp_build_write_samples(sp_build *b, sp_profile *profile);
/* Whether the time of every period of CPU time is known. */
bool sp_build_has_times(const sp_window *window);
/* How many periods lose their time. */
uint64_t sp_build_dropped_times(const sp_window *window);
/* Write a time for each period, in order. */
void sp_build_write_times(sp_build *b, sp_profile *profile);

/* build_numbers.c: the attributes of the window in a profile of each kind, as the number of a list.
 */
uint32_t sp_build_cpu_attributes(sp_build *b);
uint32_t sp_build_wall_attributes(sp_build *b);
uint32_t sp_build_call_attributes(sp_build *b, uint32_t kind);

#endif
