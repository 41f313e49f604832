/* SPDX-License-Identifier: Apache-2.0 */
/* OTEL_RESOURCE_ATTRIBUTES: the resource is whole and says who we are, whatever is in there. */
#include "fuzz/fuzz.h"

#include "core/log.h"
#include "core/utf8.h"
#include "trace/resource.h"

static void check_attribute(const sp_resource *resource, uint32_t index)
{
    const spanprof_attribute *attribute = &resource->attributes[index];
    FUZZ_CHECK(*attribute->key && sp_utf8_valid(attribute->key, strlen(attribute->key)));
    for (uint32_t i = 0; i < index; i++)
        FUZZ_CHECK(strcmp(resource->attributes[i].key, attribute->key) != 0);
    if (attribute->type == SPANPROF_ATTRIBUTE_STRING)
        FUZZ_CHECK(
            sp_utf8_valid(attribute->value.string_value, strlen(attribute->value.string_value)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    sp_log_configure(SPANPROF_LOG_OFF, NULL, NULL);
    char *text = fuzz_string(data, length);
    sp_resource resource;
    FUZZ_CHECK(sp_resource_init(&resource, NULL, text));
    for (uint32_t i = 0; i < resource.attribute_count; i++)
        check_attribute(&resource, i);
    const char *service = sp_resource_get(&resource, "service.name");
    const char *sdk = sp_resource_get(&resource, "telemetry.sdk.name");
    FUZZ_CHECK(service && *service);
    FUZZ_CHECK(sdk && strcmp(sdk, "spanprof") == 0);
    sp_resource_deinit(&resource);
    free(text);
    return 0;
}
