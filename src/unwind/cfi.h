/* SPDX-License-Identifier: Apache-2.0 */
/* Call frame information (DWARF 5 section 6.4, with the LSB's changes for .eh_frame): reads the
 * entries of a section, and runs the program of one function. Threads: one at a time. Signals: not
 * safe. */
#ifndef SP_UNWIND_CFI_H
#define SP_UNWIND_CFI_H

#include "unwind/cfi_reader.h"
#include "unwind/cfi_section.h"
#include "unwind/unwind_rule.h"

/* A function's entry (FDE). begin < end, offsets from the module's start. The other fields are
 * positions in the section. */
typedef struct sp_cfi_function {
    uint32_t begin;
    uint32_t end;
    uint32_t common;       /* the common information entry (CIE) that it refers to */
    uint32_t instructions; /* [instructions, instructions_end) is its program */
    uint32_t instructions_end;
} sp_cfi_function;

/* A common information entry (CIE): the parts that several functions share. */
typedef struct sp_cfi_common {
    uint64_t code_alignment;
    int64_t data_alignment;
    uint32_t
        instructions; /* [instructions, instructions_end): the program before each function's own */
    uint32_t instructions_end;
    uint8_t pointer_encoding;
    bool has_augmentation; /* functions carry augmentation data, with its length in front */
    bool is_signal_frame;
} sp_cfi_common;

/* Receives rows, with increasing offsets within one function. If `row` returns false, the function
 * is not continued. */
typedef struct sp_cfi_sink {
    bool (*row)(void *user, uint32_t offset, const sp_unwind_rule *rule);
    void *user;
} sp_cfi_sink;

/* Put all functions of SECTION, in the order of their entries, into *FUNCTIONS (malloc'd; the
 * caller frees it) and return their number. Entries that make no sense are left out. 0 and NULL
 * when there is none or memory is short. */
size_t sp_cfi_functions(const sp_cfi_section *section, sp_cfi_function **functions);

/* The common entry at POSITION; false when it cannot be understood. */
bool sp_cfi_read_common(const sp_cfi_section *section, size_t position, sp_cfi_common *out);

/* Run FUNCTION's program. SINK gets the first row at `begin` and then one for each place where the
 * rule may change, all below `end`. Returns false when the program makes no sense: the rows that
 * SINK got until then are valid, and no rule is known for later offsets. */
bool sp_cfi_run(const sp_cfi_section *section, const sp_cfi_common *common,
                const sp_cfi_function *function, const sp_cfi_sink *sink);

#endif
