/* SPDX-License-Identifier: Apache-2.0 */
/* A part of profile data: some of its samples, with a dictionary of what these use. A window that
 * is too large for one request is sent as parts; each is complete without the others. Any thread.
 */
#ifndef SP_PROFILE_PROFILE_PART_H
#define SP_PROFILE_PROFILE_PART_H

#include "profile/profile_data.h"

/* Samples are numbered through all profiles, in the order of the profiles. */
typedef struct sp_sample_range {
    uint32_t first, count;
} sp_sample_range;

/* How many samples all profiles of DATA have together. */
uint32_t sp_profile_sample_total(const sp_profile_data *data);
/* The largest number of samples of RANGE in one profile. */
uint32_t sp_profile_largest_share(const sp_profile_data *data, sp_sample_range range);

/* Make PART of the samples in RANGE. A profile without a sample in RANGE is left out. The part with
 * a profile's first sample has all its attributes and its id. A later part has a new id, and of the
 * attributes only texts, such as the engine: numbers and unattributed_threads count for the whole
 * window, and a reader that adds up all profiles must find them once. Texts and timestamps are
 * borrowed from WHOLE. Free PART by sp_profile_data_deinit, whatever is returned. False when memory
 * is short. */
bool sp_profile_part(sp_profile_data *part, const sp_profile_data *whole, sp_sample_range range);

/* 16 random bytes, not all zero: receivers recognize a repeated delivery by it. */
void sp_profile_id_make(uint8_t id[16]);

#endif
