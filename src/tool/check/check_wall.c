/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for profiles of wall time. The specification does not define them; docs/formats/profiles.md
 * does, and docs/formats/files.md says how they are read. */
#include <inttypes.h>
#include <string.h>

#include "tool/check/check.h"
#include "tool/model/model.h"

static bool is_wall(const sp_tables *tables, const Sp__Profiles__ValueType *type)
{
    const char *name = type ? sp_tables_string(tables, type->type_strindex) : NULL;
    return name && (strcmp(name, "wall") == 0 || strcmp(name, "wall_innermost") == 0);
}

static void check_unit(sp_tables *tables, const Sp__Profiles__ValueType *type, const char *which,
                       const sp_place *place)
{
    const char *unit = is_wall(tables, type) ? sp_tables_string(tables, type->unit_strindex) : NULL;
    if (unit && strcmp(unit, "nanoseconds") != 0)
        sp_check_violation(tables->checker, "wall-unit", place,
                           "its %s is wall time in \"%.60s\"; nanoseconds are needed", which, unit);
}

void sp_check_wall_profile(sp_tables *tables, const Sp__Profiles__Profile *profile,
                           const sp_place *place)
{
    check_unit(tables, profile->sample_type, "sample type", place);
    check_unit(tables, profile->period_type, "period type", place);
    if (is_wall(tables, profile->sample_type) && profile->period <= 0)
        sp_check_violation(tables->checker, "wall-period", place,
                           "holds wall time with a period of %" PRId64
                           "; it has to be above 0, the time that a visit stands for",
                           profile->period);
}

void sp_check_wait(sp_tables *tables, const Sp__Profiles__KeyValueAndUnit *attribute,
                   const sp_place *place)
{
    const char *key = sp_tables_string(tables, attribute->key_strindex);
    const char *word = sp_value_text(attribute->value, tables->dictionary);
    if (key && strcmp(key, SP_WHERE_KEY) == 0 && sp_where_of_word(word) == SP_WHERE_CPU)
        sp_check_violation(tables->checker, "wait-word", place,
                           SP_WHERE_KEY " is \"%.60s\"; there are runnable, lock, disk, network, "
                                        "sleep, other, and none for CPU time",
                           word);
}
