/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/sample_attributes.h"

#include <stdbool.h>
#include <string.h>

#include <spanprof/context.h>
#include "context/sample_keys.h"
#include "context/thread.h"
#include "core/atomic.h"
#include "core/utf8.h"
#include "trace/carrier.h"
#include "trace/propagators.h"

static _Atomic uint64_t cut, refused;

/* Encoded entries under construction. */
typedef struct entry_list {
    uint8_t bytes[SP_ATTRIBUTE_BYTES_MAX];
    uint32_t length, count;
    bool is_full;
} entry_list;

void sp_sample_attribute_counters_get(sp_sample_attribute_counters *out)
{
    out->cut = sp_load_relaxed(&cut);
    out->refused = sp_load_relaxed(&refused);
}

static spanprof_status refuse(spanprof_status status)
{
    sp_count(&refused, 1);
    return status;
}

/* The source of attributes for switches (context/thread.h). WORD is a carrier. Returns the number
 * of bytes; the last word is filled up with zeros. */
static uint32_t copy_attribute_words(uint64_t word, uint32_t words[SP_ATTRIBUTE_WORDS])
{
    spanprof_carrier carrier;
    memcpy(&carrier, &word, sizeof carrier);
    const sp_carried *carried = sp_carrier_pin(carrier);
    uint32_t length = carried ? carried->attributes_length : 0;
    if (length) {
        words[(length - 1) / 4] = 0;
        memcpy(words, carried->attributes, length);
    }
    if (carried)
        sp_carrier_unpin(carrier);
    return length;
}

static void add(entry_list *list, uint32_t key, const uint8_t *value, size_t length)
{
    if (list->count == SP_SAMPLE_ATTRIBUTES_MAX || list->length + 2 + length > sizeof list->bytes) {
        list->is_full = true;
        return;
    }
    list->bytes[list->length++] = (uint8_t)key;
    list->bytes[list->length++] = (uint8_t)length;
    memcpy(list->bytes + list->length, value, length);
    list->length += (uint32_t)length;
    list->count++;
}

/* Copy the entries of OLD to LIST, and set KEY to VALUE, in the order of keys. VALUE NULL removes
 * KEY. */
static void merge(entry_list *list, const sp_carried *old, uint32_t key, const uint8_t *value,
                  size_t length)
{
    bool done = false;
    for (uint32_t at = 0; at < old->attributes_length; at += 2u + old->attributes[at + 1]) {
        const uint8_t *entry = old->attributes + at;
        if (!done && entry[0] >= key) {
            done = true;
            if (value)
                add(list, key, value, length);
        }
        if (entry[0] != key)
            add(list, entry[0], entry + 2, entry[1]);
    }
    if (!done && value)
        add(list, key, value, length);
}

/* Copy VALUE to OUT as valid UTF-8, cut after a whole character to SP_SAMPLE_VALUE_BYTES_MAX bytes.
 * Returns its length. */
static size_t take_value(char out[3 * (SP_SAMPLE_VALUE_BYTES_MAX + 4) + 1], const char *value)
{
    size_t given = strnlen(value, SP_SAMPLE_VALUE_BYTES_MAX + 4), length = 0;
    size_t repaired = sp_utf8_repair(out, value, given);
    while (length < repaired) {
        size_t bytes = sp_utf8_sequence(out + length, repaired - length);
        if (bytes == 0 || length + bytes > SP_SAMPLE_VALUE_BYTES_MAX)
            break;
        length += bytes;
    }
    if (length < repaired)
        sp_count(&cut, 1);
    return length;
}

/* Keys that the SDK itself sets on samples. */
static bool is_reserved(const char *key)
{
    return strcmp(key, "thread.id") == 0 || strcmp(key, "thread.name") == 0 ||
           strncmp(key, "spanprof.", strlen("spanprof.")) == 0;
}

static bool is_good_key(const char *key)
{
    size_t length = key ? strnlen(key, SP_SAMPLE_KEY_BYTES_MAX + 1) : 0;
    return length > 0 && length <= SP_SAMPLE_KEY_BYTES_MAX && sp_utf8_valid(key, length) &&
           !is_reserved(key);
}

static spanprof_status set(spanprof_context *context, const sp_carried *old, uint32_t key,
                           const char *value)
{
    char text[3 * (SP_SAMPLE_VALUE_BYTES_MAX + 4) + 1];
    size_t length = value ? take_value(text, value) : 0;
    entry_list list = {.length = 0};
    merge(&list, old, key, value ? (const uint8_t *)text : NULL, length);
    if (list.is_full)
        return refuse(SPANPROF_ERROR_INVALID_ARGUMENT);
    sp_carried carried = *old;
    carried.attributes = list.bytes;
    carried.attributes_length = list.length;
    spanprof_context from = *context;
    spanprof_status status = sp_propagation_carry(context, &from, &carried);
    return status == SPANPROF_OK ? status : refuse(status);
}

spanprof_status spanprof_context_set_attribute(spanprof_context *context, const char *key,
                                               const char *value)
{
    if (!context || !is_good_key(key))
        return SPANPROF_ERROR_INVALID_ARGUMENT;
    uint32_t number = sp_sample_key_put(key);
    if (number == SP_SAMPLE_KEYS_MAX)
        return refuse(SPANPROF_ERROR_NO_MEMORY);
    const spanprof_carrier carrier = context->carrier;
    const sp_carried *old = sp_carrier_pin(carrier);
    spanprof_status status = set(context, old ? old : &sp_carried_nothing, number, value);
    if (old)
        sp_carrier_unpin(carrier);
    if (status == SPANPROF_OK)
        sp_context_set_attribute_source(copy_attribute_words);
    return status;
}
