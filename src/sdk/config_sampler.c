/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the sampler that options and environment name (OpenTelemetry specification,
 * configuration/sdk-environment-variables.md, "General SDK Configuration"). */
#include <locale.h>
#include <stdlib.h>

#include "core/env.h"
#include "core/log.h"
#include "sdk/config.h"

enum { LEAVES = 3, WORDS = 2 * LEAVES };

/* The second half are the parent-based ones: entry n + LEAVES has the sampler of entry n for root
 * spans. */
static const char *const words[WORDS] = {"always_on",
                                         "always_off",
                                         "traceidratio",
                                         "parentbased_always_on",
                                         "parentbased_always_off",
                                         "parentbased_traceidratio"};
static const spanprof_sampler_kind kinds[LEAVES] = {
    SPANPROF_SAMPLER_ALWAYS_ON, SPANPROF_SAMPLER_ALWAYS_OFF, SPANPROF_SAMPLER_TRACE_ID_RATIO};

/* A decimal number from 0 to 1, whatever the locale's decimal point is. */
static bool parse_ratio(const char *text, double *out)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain)
        return false;
    char *end;
    *out = strtod_l(text, &end, plain);
    freelocale(plain);
    return end != text && *end == 0 && *out >= 0 && *out <= 1; /* which is false for NaN */
}

static double read_ratio(const char *text)
{
    double ratio;
    if (!text)
        return 1;
    if (parse_ratio(text, &ratio))
        return ratio;
    sp_log_warn("config", "OTEL_TRACES_SAMPLER_ARG=%s is not a ratio from 0 to 1: using 1", text);
    return 1;
}

void sp_config_sampler(sp_config *config, const spanprof_options *options)
{
    static const spanprof_sampler zero = SPANPROF_SAMPLER_INIT;
    spanprof_sampler *leaf = &config->samplers[0], *parent_based = &config->samplers[1];
    if (options->sampler) {
        config->tracer.sampler = options->sampler;
        return;
    }
    const char *name =
        options->traces_sampler ? options->traces_sampler : sp_env("OTEL_TRACES_SAMPLER");
    const char *argument = options->traces_sampler_arg ? options->traces_sampler_arg
                                                       : sp_env("OTEL_TRACES_SAMPLER_ARG");
    int word = sp_parse_word("OTEL_TRACES_SAMPLER", name, words, WORDS, LEAVES);
    *leaf = *parent_based = zero;
    leaf->kind = kinds[word % LEAVES];
    parent_based->root = leaf;
    if (leaf->kind == SPANPROF_SAMPLER_TRACE_ID_RATIO)
        leaf->ratio = read_ratio(argument);
    else if (argument)
        sp_log_warn("config", "OTEL_TRACES_SAMPLER_ARG=%s is ignored: %s takes none", argument,
                    words[word]);
    config->tracer.sampler = word < LEAVES ? leaf : parent_based;
}
