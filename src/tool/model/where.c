/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/where.h"

#include <stdio.h>
#include <string.h>

#include "tool/model/sum.h"

const char *const sp_where_names[SP_WHERE_COUNT] = {"cpu",       "runnable", "lock", "condition",
                                                    "semaphore", "join",     "disk", "network",
                                                    "sleep",     "other"};
/* Condition and semaphore have capitals, because cpu and sleep begin with the same letters. */
const char sp_where_letters[SP_WHERE_COUNT + 1] = "crlCSjdnso";

sp_where sp_where_of_word(const char *word)
{
    for (int i = SP_WHERE_COUNT - 1; i > SP_WHERE_CPU; i--)
        if (i != SP_WHERE_CONDITION && i != SP_WHERE_SEMAPHORE && i != SP_WHERE_JOIN &&
            strcmp(word, sp_where_names[i]) == 0)
            return (sp_where)i;
    return SP_WHERE_CPU;
}

uint64_t sp_where_sum(const uint64_t ns[SP_WHERE_COUNT])
{
    uint64_t sum = 0;
    for (int i = 0; i < SP_WHERE_COUNT; i++)
        sp_sum_add(&sum, ns[i]);
    return sum;
}

void sp_where_format(char out[SP_WHERE_LENGTH], const uint64_t ns[SP_WHERE_COUNT])
{
    double whole = (double)sp_where_sum(ns);
    size_t used = 0;
    *out = 0;
    for (int i = 0; i < SP_WHERE_COUNT; i++) {
        char percent[16] = "<1";
        if (ns[i] == 0)
            continue;
        if ((double)ns[i] / whole >= 0.005)
            snprintf(percent, sizeof percent, "%.0f", 100 * (double)ns[i] / whole);
        used += (size_t)snprintf(out + used, SP_WHERE_LENGTH - used, "%s%s %s %%", used ? ", " : "",
                                 sp_where_names[i], percent);
    }
}

json_t *sp_where_json(const uint64_t ns[SP_WHERE_COUNT])
{
    json_t *object = json_object();
    for (int i = 0; i < SP_WHERE_COUNT; i++)
        json_object_set_new(object, sp_where_names[i], json_integer((json_int_t)ns[i]));
    return object;
}
