/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/attribute_filter.h"

#include <string.h>
#include <strings.h>

bool sp_attribute_list_takes_some(const char *list)
{
    return list && list[strspn(list, ", \t")] && strcasecmp(list, "none") != 0;
}

static bool names(const char *list, const char *key)
{
    size_t length = strlen(key);
    while (*(list += strspn(list, ", \t"))) {
        size_t entry = strcspn(list, ",");
        const char *next = list + entry;
        while (entry > 0 && (list[entry - 1] == ' ' || list[entry - 1] == '\t'))
            entry--;
        if (entry == length && memcmp(list, key, length) == 0)
            return true;
        list = next;
    }
    return false;
}

static bool takes(const char *list, const char *key)
{
    return sp_attribute_list_takes_some(list) && (strcasecmp(list, "all") == 0 || names(list, key));
}

/* Keys are never removed. */
static void check_new_keys(sp_attribute_filter *filter)
{
    for (; filter->checked < sp_sample_keys_count(); filter->checked++)
        filter->takes[filter->checked] = takes(filter->list, sp_sample_key(filter->checked));
}

uint32_t sp_attribute_filter_copy(sp_attribute_filter *filter, uint8_t *out, const uint8_t *data,
                                  uint32_t length)
{
    uint32_t used = 0;
    check_new_keys(filter);
    for (uint32_t at = 0; at + 2 <= length && at + 2 + data[at + 1] <= length;
         at += 2u + data[at + 1]) {
        if (!filter->takes[data[at]])
            continue;
        memcpy(out + used, data + at, 2u + data[at + 1]);
        used += 2u + data[at + 1];
    }
    return used;
}
