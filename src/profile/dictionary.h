/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a profile while they are built. Each entry is interned by its content, so equal
 * ones are one entry; entries are in the order of their first use. An entry is put in only when an
 * entry or a sample that is used refers to it, so that none is an orphan.
 *
 * Functions that add return the entry's index. When memory is short they return 0 and set `failed`,
 * which stays: callers check once, at sp_dictionary_finish. Collector thread only. */
#ifndef SP_PROFILE_DICTIONARY_H
#define SP_PROFILE_DICTIONARY_H

#include "core/buffer.h"
#include "core/intern.h"
#include "profile/profile_data.h"
#include "symbol/symbolizer.h"

/* In ELF virtual addresses. used: written into the mapping; else it stays zero. */
typedef struct sp_dictionary_range {
    uint64_t start, limit;
    bool used;
} sp_dictionary_range;

/* Zero-initialised, then sp_dictionary_init. */
typedef struct sp_dictionary {
    sp_intern strings, mappings, locations, functions, links, attributes, stacks;
    sp_intern lists; /* lists of attributes: arrays of uint32_t; number 0 is the empty one */
    sp_dictionary_range *ranges; /* of mappings, by index; range_capacity */
    size_t range_capacity;
    const sp_module *last_module; /* of the last location; most are in the same one */
    uint32_t last_mapping;
    const char *last_file; /* the same for files of functions */
    uint32_t last_file_strindex;
    uint32_t native; /* number of the list of attributes of code, plus one; 0: not made */
    sp_buffer scratch, key;
    uint32_t *list_offsets; /* after finish: of lists in data->indices; freed with data->memory */
    bool failed;
} sp_dictionary;

void sp_dictionary_init(sp_dictionary *dictionary);
void sp_dictionary_deinit(sp_dictionary *dictionary);

/* Strings are repaired to valid UTF-8, and cut to 16 KiB, so that a long one loses only its end. */
uint32_t sp_dictionary_string(sp_dictionary *dictionary, const char *text);
uint32_t sp_dictionary_string_attribute(sp_dictionary *dictionary, const char *key,
                                        const char *value);
uint32_t sp_dictionary_int_attribute(sp_dictionary *dictionary, const char *key, const char *unit,
                                     int64_t value);
/* UNATTRIBUTED_THREADS, whose names are valid UTF-8, as one value. */
uint32_t
sp_dictionary_unattributed_threads_attribute(sp_dictionary *dictionary, const char *key,
                                             const sp_profile_unattributed *unattributed_threads,
                                             uint32_t count);
uint32_t sp_dictionary_link(sp_dictionary *dictionary, const uint8_t trace_id[16],
                            const uint8_t span_id[8]);

/* The number of the list of these COUNT attributes; sp_dictionary_list gives its place after
 * finish. */
uint32_t sp_dictionary_attributes(sp_dictionary *dictionary, const uint32_t *attributes,
                                  uint32_t count);

/* The location of ADDRESS in MODULE (may be NULL), named by FRAMES, which are not empty. */
uint32_t sp_dictionary_location(sp_dictionary *dictionary, const sp_module *module,
                                uint64_t address, const sp_frame *frames, uint32_t count);
/* A location that is not code but a remark about the stack: a function called NAME. */
uint32_t sp_dictionary_marker(sp_dictionary *dictionary, const char *name);
/* LOCATIONS, leaf first. */
uint32_t sp_dictionary_stack(sp_dictionary *dictionary, const uint32_t *locations, uint32_t count);

/* Write the tables into DATA. False when memory is short now, or was before. */
bool sp_dictionary_finish(sp_dictionary *dictionary, sp_profile_data *data);
/* After finish: the place of list NUMBER in data->indices. */
sp_index_list sp_dictionary_list(const sp_dictionary *dictionary, uint32_t number);

#endif
