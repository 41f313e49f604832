/* SPDX-License-Identifier: Apache-2.0 */
/* An unwind rule in 30 bits. A cache by pc holds the rule itself, in one word with the bits that
 * identify the pc (generation_sig.h). So a walk waits for one load; with the number of a rule it
 * would wait for two loads, one after the other.
 *
 *     bit  0       1: packed, as follows. 0: bits 1 to 17 are the number of the rule + 1. An entry
 *                  of all zeros is neither.
 *     bit  1       the register: 0: stack pointer, 1: frame pointer
 *     bits 3..14   the return address is this many bytes above the register, a multiple of 8. One
 *                  mask extracts it, because the walk waits for this address.
 *     bits 15..19  the CFA is 8 times this above the return address, 1..31
 *     bits 20..24  the frame pointer is saved 8 times this below the CFA; 0: it is unchanged
 *     bits 25..29  the same for the base register
 *
 * 97 of 100 rules fit. Among the others are those of frames of 32 KiB and more, and of realigned
 * stacks. A rule that does not fit is stored as its number. The functions here ignore the bits
 * above 29. */
#ifndef SP_UNWIND_PACKED_RULE_H
#define SP_UNWIND_PACKED_RULE_H

#include <stdbool.h>

#include "core/compiler.h"
#include "unwind/unwind_rule.h"

#define SP_PACKED_BITS   30
#define SP_PACKED_FLAG   1u
#define SP_PACKED_BY_FP  2u
#define SP_PACKED_OFFSET (0xfffu << 3)
#define SP_PACKED_RA     15
#define SP_PACKED_FP     20
#define SP_PACKED_BASE   25

#define SP_PACKED_DEPTH_MAX (31 * 8) /* bytes below the CFA */

/* Where the return address is, from the register. */
SP_SIGSAFE static inline uint64_t sp_packed_ra_offset(uint32_t packed)
{
    return packed & SP_PACKED_OFFSET;
}

/* How many bytes below the CFA the register at bit SHIFT is saved; 0: it is not saved. */
SP_SIGSAFE static inline uint64_t sp_packed_depth(uint32_t packed, unsigned shift)
{
    return packed >> (shift - 3) & SP_PACKED_DEPTH_MAX;
}

SP_SIGSAFE static inline uint32_t sp_packed_of_number(uint32_t number)
{
    return (number + 1) << 1;
}

SP_SIGSAFE static inline uint32_t sp_packed_number(uint32_t packed)
{
    return (packed >> 1 & 0x1ffff) - 1;
}

SP_SIGSAFE static inline sp_saved sp_packed_saved(uint32_t packed, unsigned shift)
{
    uint64_t depth = sp_packed_depth(packed, shift);
    sp_saved saved = {.offset = -(int32_t)depth,
                      .kind = depth ? SP_SAVED_AT_CFA : SP_SAVED_UNCHANGED};
    return saved;
}

/* The rule that PACKED, whose flag is set, stands for. */
SP_SIGSAFE static inline void sp_packed_expand(uint32_t packed, sp_unwind_rule *rule)
{
    *rule = (sp_unwind_rule){
        .cfa_kind = SP_CFA_REGISTER,
        .cfa_register = packed & SP_PACKED_BY_FP ? SP_DWARF_FP : SP_DWARF_SP,
        .cfa_offset =
            (int32_t)(sp_packed_ra_offset(packed) + sp_packed_depth(packed, SP_PACKED_RA)),
        .ra = sp_packed_saved(packed, SP_PACKED_RA),
        .fp = sp_packed_saved(packed, SP_PACKED_FP),
        .base = sp_packed_saved(packed, SP_PACKED_BASE),
    };
}

/* Pack RULE if it fits, else its NUMBER in the pool. */
uint32_t sp_pack_rule(const sp_unwind_rule *rule, uint32_t number);

#endif
