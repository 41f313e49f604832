/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of single receivers that the specification does not have. docs/formats/check.md says where
 * each rule comes from. */
#include <inttypes.h>
#include <string.h>

#include "core/counted.h"
#include "core/hex.h"
#include "tool/check/check.h"
#include "tool/model/model.h"

enum {
    PYROSCOPE_MAX_SAMPLES = 16000,
    PYROSCOPE_MAX_BYTES = 2 << 20,
    COLLECTOR_MAX_BYTES = 4 << 20, /* of a gRPC message; over HTTP 20 MiB */
};

static void check_size(sp_checker *checker, size_t maximum)
{
    size_t bytes = protobuf_c_message_get_packed_size(checker->document->message);
    sp_place place = sp_place_of("request");
    if (bytes > maximum)
        sp_check_violation(checker, "backend-size", &place, "takes %s; %zu are accepted",
                           SP_COUNTED(bytes, "byte"), maximum);
}

static void check_service(sp_checker *checker, const Sp__Resource__Resource *resource,
                          const Sp__Profiles__ProfilesDictionary *dictionary, const sp_place *place)
{
    if (!*sp_resource_text(resource, dictionary, "service.name"))
        sp_check_violation(checker, "backend-service", place,
                           "has no service.name, by which traces and profiles find each other");
}

/* Today's receivers do not resolve references in resources: they get empty keys and values. */
static void check_inline(sp_checker *checker, const Sp__Resource__Resource *resource,
                         const sp_place *place)
{
    for (size_t i = 0; resource && i < resource->n_attributes; i++) {
        const Sp__Common__KeyValue *attribute = resource->attributes[i];
        bool refers = attribute->key_strindex ||
                      (attribute->value && attribute->value->value_case ==
                                               SP__COMMON__ANY_VALUE__VALUE_STRING_VALUE_STRINDEX);
        if (refers)
            sp_check_violation(checker, "backend-strindex", place,
                               "attribute %zu refers to the string table; write it out", i);
    }
}

/* ---- Pyroscope ---- */

static void check_pyroscope_samples(sp_checker *checker, const Sp__Profiles__Profile *profile,
                                    const sp_place *place)
{
    for (size_t i = 0; i < profile->n_samples; i++) {
        const Sp__Profiles__Sample *sample = profile->samples[i];
        sp_place own = sp_place_of("%s.samples[%zu]", place->text, i);
        if (sample->n_values > 1)
            sp_check_violation(checker, "backend-values", &own, "has %zu values; one is accepted",
                               sample->n_values);
        if (sample->n_values == 1 && sample->values[0] <= 0)
            sp_check_violation(checker, "backend-zero", &own,
                               "has the value %" PRId64 ", with which it is dropped",
                               sample->values[0]);
    }
}

static const char *type_name(const Sp__Profiles__ProfilesDictionary *dictionary,
                             const Sp__Profiles__ValueType *type)
{
    bool there = type && dictionary && type->type_strindex > 0 &&
                 (size_t)type->type_strindex < dictionary->n_string_table;
    return there ? dictionary->string_table[type->type_strindex] : "";
}

static void check_pyroscope_profile(sp_checker *checker, const Sp__Profiles__Profile *profile,
                                    const Sp__Profiles__ProfilesDictionary *dictionary,
                                    const sp_place *place)
{
    const char *sample_type = type_name(dictionary, profile->sample_type);
    bool named = profile->period > 0 && *type_name(dictionary, profile->period_type);
    if (!named && strcmp(sample_type, "off_cpu") != 0)
        sp_check_violation(checker, "backend-period", place,
                           "has no period type or a period of 0; then it has no name");
    if (strchr(sample_type, '-'))
        sp_check_violation(checker, "backend-type", place, "the sample type %.60s has a hyphen",
                           sample_type);
    if (profile->n_samples > PYROSCOPE_MAX_SAMPLES)
        sp_check_violation(checker, "backend-samples", place, "has %zu samples; %d are accepted",
                           profile->n_samples, PYROSCOPE_MAX_SAMPLES);
    check_pyroscope_samples(checker, profile, place);
}

/* Grafana finds the profile of a span by the span's attribute pyroscope.profile.id, which has to be
 * the id of the span that samples are linked to. */
static void check_profile_id(sp_checker *checker,
                             const Sp__Profiles__ProfilesDictionary *dictionary)
{
    for (size_t i = 1; dictionary && i < dictionary->n_link_table; i++) {
        const Sp__Profiles__Link *link = dictionary->link_table[i];
        uint32_t number = sp_checker_find_span(checker, &link->trace_id, &link->span_id);
        if (number == SP_INTERN_FAILED)
            continue;
        const Sp__Trace__Span *span = checker->spans[number].message;
        Sp__Resource__Resource attributes = SP__RESOURCE__RESOURCE__INIT;
        attributes.attributes = span->attributes;
        attributes.n_attributes = span->n_attributes;
        char id[17];
        sp_hex_encode(id, span->span_id.data, 8);
        sp_place place = sp_place_of("link_table[%zu]", i);
        if (strcmp(sp_resource_text(&attributes, NULL, "pyroscope.profile.id"), id) != 0)
            sp_check_violation(checker, "backend-profile-id", &place,
                               "its span %s lacks the attribute pyroscope.profile.id with its id",
                               id);
    }
}

static void check_profiles(sp_checker *checker)
{
    const Sp__Profiles__ProfilesData *data =
        (const Sp__Profiles__ProfilesData *)checker->document->message;
    bool pyroscope = checker->backend == SP_BACKEND_PYROSCOPE;
    size_t samples = 0;
    for (size_t r = 0; r < data->n_resource_profiles; r++) {
        const Sp__Profiles__ResourceProfiles *resource = data->resource_profiles[r];
        sp_place place = sp_place_of("resource_profiles[%zu].resource", r);
        check_service(checker, resource->resource, data->dictionary, &place);
        check_inline(checker, resource->resource, &place);
        for (size_t s = 0; s < resource->n_scope_profiles; s++) {
            const Sp__Profiles__ScopeProfiles *scope = resource->scope_profiles[s];
            for (size_t i = 0; i < scope->n_profiles; i++) {
                place = sp_place_of("resource_profiles[%zu].scope_profiles[%zu].profiles[%zu]", r,
                                    s, i);
                samples += scope->profiles[i]->n_samples;
                if (pyroscope)
                    check_pyroscope_profile(checker, scope->profiles[i], data->dictionary, &place);
            }
        }
    }
    sp_place place = sp_place_of("request");
    if (samples == 0)
        sp_check_violation(checker, "backend-empty", &place,
                           "has no samples: it is accepted and thrown away");
    if (pyroscope)
        check_profile_id(checker, data->dictionary);
}

void sp_check_backend(sp_checker *checker)
{
    if (checker->backend == SP_BACKEND_NONE)
        return;
    if (checker->document->signal == SP_SIGNAL_PROFILES) {
        check_size(checker, checker->backend == SP_BACKEND_PYROSCOPE ? PYROSCOPE_MAX_BYTES
                                                                     : COLLECTOR_MAX_BYTES);
        check_profiles(checker);
    } else if (checker->backend == SP_BACKEND_COLLECTOR) {
        check_size(checker, COLLECTOR_MAX_BYTES);
    }
}
