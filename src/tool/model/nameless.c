/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/nameless.h"

#include <stdio.h>
#include <string.h>

#include "tool/model/key_sums.h"
#include "tool/model/sum.h"

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

static bool count_sample(sp_key_sums *modules, const char *module, size_t length, uint64_t count)
{
    char name[SP_NAMELESS_MODULE];
    snprintf(name, sizeof name, "%.*s", (int)length, module);
    return sp_key_sums_add(modules, name, strlen(name), count);
}

static void find_most(sp_nameless *out, const sp_key_sums *modules)
{
    uint32_t most = sp_key_sums_largest(modules);
    if (most != SP_INTERN_FAILED && modules->sums[most])
        snprintf(out->module, sizeof out->module, "%s",
                 (const char *)sp_intern_key(&modules->keys, most));
}

bool sp_model_find_nameless(sp_nameless *out, const sp_model *model, uint32_t type)
{
    sp_key_sums modules = {0}; /* the number of samples without a name in each */
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
            done = count_sample(&modules, leaf, length, sample->count);
        }
    }
    find_most(out, &modules);
    sp_key_sums_deinit(&modules);
    return done;
}
