/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/rule_pool.h"

#include <string.h>
#include <sys/mman.h>

#define RULES_BYTES ((size_t)SP_RULES_MAX * sizeof(sp_unwind_rule))
#define POOL_BYTES  (RULES_BYTES + (size_t)SP_RULES_MAX * sizeof(uint32_t))

/* Add the place KEPT to *PACKED at bit SHIFT. False when a packed rule cannot express it. */
static bool pack_saved(sp_saved kept, unsigned shift, uint32_t *packed)
{
    if (kept.kind == SP_SAVED_UNCHANGED)
        return true;
    if (kept.kind != SP_SAVED_AT_CFA || kept.offset >= 0 || kept.offset < -31 * 8 ||
        kept.offset % 8)
        return false;
    *packed |= (uint32_t)(-kept.offset / 8) << shift;
    return true;
}

uint32_t sp_pack_rule(const sp_unwind_rule *rule, uint32_t number)
{
    int64_t ra = (int64_t)rule->cfa_offset + rule->ra.offset;
    bool by_fp = rule->cfa_register == SP_DWARF_FP;
    uint32_t packed = SP_PACKED_FLAG | (by_fp ? SP_PACKED_BY_FP : 0);
    bool fits = rule->cfa_kind == SP_CFA_REGISTER && !rule->is_signal_frame &&
                (by_fp || rule->cfa_register == SP_DWARF_SP) && ra >= 0 && ra % 8 == 0 &&
                ra <= SP_PACKED_OFFSET && rule->ra.kind == SP_SAVED_AT_CFA &&
                pack_saved(rule->ra, SP_PACKED_RA, &packed) &&
                pack_saved(rule->fp, SP_PACKED_FP, &packed) &&
                pack_saved(rule->base, SP_PACKED_BASE, &packed);
    return fits ? packed | (uint32_t)ra : sp_packed_of_number(number);
}

bool sp_rule_pool_init(sp_rule_pool *pool)
{
    static const sp_unwind_rule none, unsupported = {.cfa_kind = SP_CFA_UNSUPPORTED};
    memset(pool, 0, sizeof *pool);
    void *rules = mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (rules == MAP_FAILED)
        return false;
    pool->rules = rules;
    pool->packed = (uint32_t *)(void *)((char *)rules + RULES_BYTES);
    if (sp_rule_pool_put(pool, &none) == SP_RULE_NONE &&
        sp_rule_pool_put(pool, &unsupported) == SP_RULE_UNSUPPORTED)
        return true;
    sp_rule_pool_deinit(pool);
    return false;
}

void sp_rule_pool_deinit(sp_rule_pool *pool)
{
    if (pool->rules)
        munmap(pool->rules, POOL_BYTES);
    sp_intern_deinit(&pool->numbers);
    memset(pool, 0, sizeof *pool);
}

uint32_t sp_rule_pool_put(sp_rule_pool *pool, const sp_unwind_rule *rule)
{
    uint32_t number = sp_intern_find(&pool->numbers, rule, sizeof *rule);
    if (number != SP_INTERN_FAILED)
        return number;
    if (pool->numbers.count == SP_RULES_MAX)
        return SP_RULE_UNSUPPORTED;
    number = sp_intern_put(&pool->numbers, rule, sizeof *rule, NULL);
    if (number != SP_INTERN_FAILED) {
        pool->rules[number] = *rule;
        pool->packed[number] = sp_pack_rule(rule, number);
    }
    return number;
}
