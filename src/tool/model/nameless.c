/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/nameless.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/reach.h"
#include "tool/model/sum.h"

/* The number of samples without a name in each module. */
typedef struct module_counts {
    sp_intern modules;
    uint64_t *counts; /* by number of module */
    size_t capacity;
} module_counts;

/* The length of MODULE in NAME, if NAME is "MODULE+0xADDRESS"; else 0. Modules in brackets are not
 * files, and do not count. */
static size_t module_length(const char *name)
{
    const char *plus = strrchr(name, '+');
    if (!plus || plus == name || *name == '[' || strncmp(plus, "+0x", 3) != 0)
        return 0;
    size_t digits = strspn(plus + 3, "0123456789abcdef");
    return digits && !plus[3 + digits] ? (size_t)(plus - name) : 0;
}

/* The innermost function of STACK. */
static const char *leaf_of(const sp_model *model, uint32_t stack)
{
    const sp_intern_entry *entry = &model->stacks.entries[stack];
    const uint32_t *frames = entry->key;
    return entry->length ? sp_model_text(model, frames[0]) : "";
}

static bool count_sample(module_counts *counts, const char *module, size_t length, uint64_t count)
{
    char name[SP_NAMELESS_MODULE];
    bool is_new = false;
    snprintf(name, sizeof name, "%.*s", (int)length, module);
    uint32_t number = sp_intern_put(&counts->modules, name, strlen(name) + 1, &is_new);
    if (number == SP_INTERN_FAILED || !SP_REACH(counts->counts, number, counts->capacity, 16))
        return false;
    if (is_new)
        counts->counts[number] = 0;
    sp_sum_add(&counts->counts[number], count);
    return true;
}

static void find_most(sp_nameless *out, const module_counts *counts)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < counts->modules.count; i++) {
        if (counts->counts[i] <= most)
            continue;
        most = counts->counts[i];
        snprintf(out->module, sizeof out->module, "%s",
                 (const char *)sp_intern_key(&counts->modules, i));
    }
}

bool sp_model_find_nameless(sp_nameless *out, const sp_model *model, uint32_t type)
{
    module_counts counts = {0};
    bool done = true;
    *out = (sp_nameless){0};
    for (uint32_t i = 0; done && i < model->sample_index.count; i++) {
        const sp_model_sample *sample = &model->samples[i];
        if (sample->type != type)
            continue;
        const char *leaf = leaf_of(model, sample->stack);
        size_t length = module_length(leaf);
        sp_sum_add(&out->all, sample->count);
        if (length) {
            sp_sum_add(&out->nameless, sample->count);
            done = count_sample(&counts, leaf, length, sample->count);
        }
    }
    find_most(out, &counts);
    sp_intern_deinit(&counts.modules);
    free(counts.counts);
    return done;
}
