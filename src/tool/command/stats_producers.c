/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/command/stats_producers.h"

#include "core/counted.h"
#include "tool/command/stats_wall.h"
#include "tool/text/escape.h"

/* More lines than this would distract from the rest of the answer. JSON has all producers. */
enum { MAX_LINES = 20 };

static json_t *new_producer(const sp_model_profile *profile)
{
    return json_pack("{s:s, s:s, s:i}", "service", profile->service, "instance", profile->instance,
                     "profiles", 0);
}

json_t *sp_producers_json(const sp_model *model)
{
    sp_intern seen = {0};
    json_t *list = json_array();
    for (size_t i = 0; list && i < model->profile_count; i++) {
        const sp_model_profile *profile = &model->profiles[i];
        const char *key[] = {profile->service, profile->instance};
        bool is_new = false;
        uint32_t number = sp_intern_put(&seen, key, sizeof key, &is_new);
        if (number == SP_INTERN_FAILED ||
            (is_new && json_array_append_new(list, new_producer(profile)) != 0)) {
            json_decref(list);
            list = NULL;
        } else {
            sp_stats_add(json_array_get(list, number), "profiles", 1);
        }
    }
    sp_intern_deinit(&seen);
    return list;
}

static void add_line(sp_buffer *out, const json_t *producer)
{
    const char *service = json_string_value(json_object_get(producer, "service"));
    const char *instance = json_string_value(json_object_get(producer, "instance"));
    json_int_t profiles = json_integer_value(json_object_get(producer, "profiles"));
    sp_buffer_add_string(out, "  ");
    sp_escape_terminal(out, *service ? service : "[no service.name]");
    if (*instance) {
        sp_buffer_add_string(out, ", instance ");
        sp_escape_terminal(out, instance);
    }
    sp_buffer_printf(out, ": %s\n", SP_COUNTED((uint64_t)profiles, "profile"));
}

void sp_producers_text(sp_buffer *out, const json_t *producers, sp_stats_explain *explain)
{
    size_t count = json_array_size(producers);
    if (count < 2)
        return;
    sp_buffer_printf(out, "%zu producers, whose numbers are added up below:\n", count);
    sp_stats_explain_line(explain, out, "producers", "");
    for (size_t i = 0; i < count && i < MAX_LINES; i++)
        add_line(out, json_array_get(producers, i));
    if (count > MAX_LINES)
        sp_buffer_printf(out, "  and %zu more\n", count - MAX_LINES);
}
