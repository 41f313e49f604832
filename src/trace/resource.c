/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/resource.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/env.h"
#include "core/hex.h"
#include "core/log.h"
#include "core/utf8.h"
#include "trace/detect.h"
#include "trace/random_id.h"

/* --- a resource under construction ------------------------------------------------------------ */

static spanprof_attribute *find(const sp_resource *resource, const char *key)
{
    uint32_t number = sp_intern_find(&resource->keys, key, strlen(key));
    return number == SP_INTERN_FAILED ? NULL : &resource->attributes[number];
}

/* The attribute with KEY, new or to be overwritten. Without memory for the key, returns the unused
 * place after the last one, and marks the resource as failed. */
static spanprof_attribute *put(sp_resource *resource, const char *key)
{
    uint32_t number = sp_intern_put_string(&resource->keys, key);
    if (number == SP_INTERN_FAILED) {
        resource->memory.failed = true;
        return &resource->attributes[resource->attribute_count];
    }
    resource->attribute_count = resource->keys.count;
    resource->attributes[number].key = sp_intern_key(&resource->keys, number);
    return &resource->attributes[number];
}

static void put_string(sp_resource *resource, const char *key, const char *value)
{
    spanprof_attribute *attribute = put(resource, key);
    size_t length = strlen(value);
    char *copy = sp_arena_alloc(&resource->memory, 3 * length + 1);
    if (copy)
        sp_utf8_repair(copy, value, length);
    attribute->type = SPANPROF_ATTRIBUTE_STRING;
    attribute->value.string_value = copy ? copy : ""; /* memory.failed is set then */
}

static bool is_wanted(const sp_resource *resource, const char *key)
{
    return resource->attribute_count < SP_RESOURCE_ATTRIBUTES && !find(resource, key);
}

void sp_resource_offer(sp_resource *resource, const char *key, const char *value)
{
    if (value && *value && strlen(value) <= SP_RESOURCE_VALUE_BYTES && is_wanted(resource, key))
        put_string(resource, key, value);
}

void sp_resource_offer_int(sp_resource *resource, const char *key, int64_t value)
{
    if (!is_wanted(resource, key))
        return;
    spanprof_attribute *attribute = put(resource, key);
    attribute->type = SPANPROF_ATTRIBUTE_INT;
    attribute->value.int_value = value;
}

/* --- attributes that the user names ----------------------------------------------------------- */

/* Decode the text from BEGIN to END in place, without surrounding blanks, and end it with a NUL.
 * Returns the problem, or NULL. */
static const char *decode(char *begin, char *end, char **out)
{
    while (begin < end && (*begin == ' ' || *begin == '\t'))
        begin++;
    while (end > begin && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    char *to = begin;
    for (const char *from = begin; from < end; from++) {
        uint8_t byte = (uint8_t)*from;
        if (byte == '%') {
            if (end - from < 3 || !sp_hex_decode(&byte, from + 1, 1, true) || byte == 0)
                return "a percent sign without two hex digits other than 00 behind it";
            from += 2;
        }
        *to++ = (char)byte;
    }
    *out = begin;
    if (!sp_utf8_valid(begin, (size_t)(to - begin)))
        return "bytes that are not UTF-8";
    *to = 0;
    return NULL;
}

static bool is_blank(const char *begin, const char *end)
{
    return strspn(begin, " \t") >= (size_t)(end - begin);
}

/* Decode one member, "key=value". END points to the comma or the NUL after it. Returns the problem,
 * or NULL. */
static const char *decode_member(char *member, char *end, spanprof_attribute *out)
{
    char *key, *value, *equals = memchr(member, '=', (size_t)(end - member));
    if (!equals)
        return "no equals sign";
    if (memchr(equals + 1, '=', (size_t)(end - equals - 1)))
        return "a second equals sign, which is written %3D in a value";
    const char *problem = decode(member, equals, &key);
    if (!problem && !*key)
        problem = "an empty key";
    if (!problem)
        problem = decode(equals + 1, end, &value);
    if (!problem)
        *out = (spanprof_attribute){
            .key = key, .type = SPANPROF_ATTRIBUTE_STRING, .value = {.string_value = value}};
    return problem;
}

/* Decode all members of TEXT, which is overwritten, into OUT. Returns the problem of the first bad
 * member, whose number is *NUMBER, or NULL. */
static const char *decode_members(char *text, spanprof_attribute *out, uint32_t *count,
                                  uint32_t *number)
{
    *count = 0;
    *number = 0;
    for (char *member = text, *end; member; member = end) {
        char *comma = strchr(member, ',');
        end = comma ? comma + 1 : NULL;
        char *stop = comma ? comma : member + strlen(member);
        ++*number;
        if (is_blank(member, stop))
            continue; /* an empty member is allowed */
        const char *problem = decode_member(member, stop, &out[*count]);
        if (problem)
            return problem;
        ++*count;
    }
    return NULL;
}

static size_t count_members(const char *text)
{
    size_t count = 1;
    for (; *text; text++)
        count += *text == ',';
    return count;
}

/* The attributes in TEXT, as an array in the resource's memory. Any error discards all
 * (OpenTelemetry, resource/sdk.md). */
static spanprof_attribute *parse(sp_resource *resource, const char *source, const char *text,
                                 uint32_t *count)
{
    *count = 0;
    spanprof_attribute *out = sp_arena_array(&resource->memory, count_members(text), sizeof *out);
    char *copy = sp_arena_strdup(&resource->memory, text);
    if (!out || !copy)
        return NULL;
    uint32_t number;
    const char *problem = decode_members(copy, out, count, &number);
    if (problem) {
        sp_log_warn(
            "resource",
            "%s is ignored: its member %u has %s; write key=value,key=value, percent-encoded",
            source, number, problem);
        *count = 0;
    }
    return out;
}

/* --- attributes of the SDK itself ------------------------------------------------------------- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static void put_executable(sp_resource *resource)
{
    const char *path = sp_detect_executable(resource, "");
    if (!find(resource, "process.executable.name"))
        put_string(resource, "process.executable.name",
                   path ? base_name(path) : program_invocation_short_name);
}

/* Setup only, so no lock guards it. */
static char instance_id[37]; /* of this process; "" before it is needed */

/* A random UUID: version 4, variant 1 (RFC 9562). */
static void make_instance_id(void)
{
    uint8_t id[16];
    char hex[33];
    sp_random_id(id, sizeof id);
    id[6] = (uint8_t)((id[6] & 0x0f) | 0x40);
    id[8] = (uint8_t)((id[8] & 0x3f) | 0x80);
    sp_hex_encode(hex, id, sizeof id);
    snprintf(instance_id, sizeof instance_id, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12,
             hex + 16, hex + 20);
}

static void put_instance_id(sp_resource *resource)
{
    if (!instance_id[0])
        make_instance_id();
    if (!find(resource, "service.instance.id"))
        put_string(resource, "service.instance.id", instance_id);
}

void sp_resource_after_fork(void)
{
    instance_id[0] = 0;
}

/* An empty NAME is ignored. */
static void put_service_name(sp_resource *resource, const char *name)
{
    if (name && *name)
        put_string(resource, "service.name", name);
}

/* If no source has set service.name, derive it from the name of the program. */
static void put_unknown_service(sp_resource *resource)
{
    if (find(resource, "service.name"))
        return;
    const char *name = sp_arena_printf(&resource->memory, "unknown_service:%s",
                                       sp_resource_get(resource, "process.executable.name"));
    put_string(resource, "service.name", name ? name : "unknown_service");
}

static void put_sdk(sp_resource *resource)
{
    put_string(resource, "telemetry.sdk.name", "spanprof");
    put_string(resource, "telemetry.sdk.language", "c");
    put_string(resource, "telemetry.sdk.version", SPANPROF_VERSION);
}

/* --- putting it together ---------------------------------------------------------------------- */

/* The attributes of one source. */
typedef struct named {
    const spanprof_attribute *list;
    uint32_t count;
} named;

static named read_named(sp_resource *resource, const char *source, const char *text)
{
    named result;
    result.list = parse(resource, source, text ? text : "", &result.count);
    return result;
}

/* Put the attributes of FROM. Each replaces an earlier attribute with its key. */
static void put_named(sp_resource *resource, const named *from)
{
    for (uint32_t i = 0; i < from->count; i++) {
        const char *key = from->list[i].key, *value = from->list[i].value.string_value;
        if (strcmp(key, "service.name") == 0)
            put_service_name(resource, value);
        else
            put_string(resource, key, value);
    }
}

bool sp_resource_init(sp_resource *resource, const char *service_name, const char *attributes)
{
    memset(resource, 0, sizeof *resource);
    named outside =
        read_named(resource, "OTEL_RESOURCE_ATTRIBUTES", sp_env("OTEL_RESOURCE_ATTRIBUTES"));
    named code = read_named(resource, "resource_attributes", attributes);
    resource->attributes = sp_arena_array(
        &resource->memory, (size_t)outside.count + code.count + SP_RESOURCE_ATTRIBUTES,
        sizeof *resource->attributes);
    if (resource->memory.failed) {
        sp_resource_deinit(resource);
        return false;
    }
    put_named(resource, &outside);
    put_service_name(resource, sp_env("OTEL_SERVICE_NAME"));
    put_named(resource, &code);
    put_service_name(resource, service_name);
    put_executable(resource);
    put_unknown_service(resource);
    put_sdk(resource); /* last of the named attributes: the user cannot override it */
    put_instance_id(resource);
    sp_detect(resource, "");
    bool complete = !resource->memory.failed;
    if (!complete)
        sp_resource_deinit(resource);
    return complete;
}

void sp_resource_deinit(sp_resource *resource)
{
    sp_arena_deinit(&resource->memory);
    sp_intern_deinit(&resource->keys);
    resource->attributes = NULL;
    resource->attribute_count = 0;
}

const char *sp_resource_get(const sp_resource *resource, const char *key)
{
    const spanprof_attribute *attribute = find(resource, key);
    return attribute && attribute->type == SPANPROF_ATTRIBUTE_STRING ? attribute->value.string_value
                                                                     : NULL;
}
