/* SPDX-License-Identifier: Apache-2.0 */
/* W3C baggage: the header, and the calls of include/spanprof/propagation.h that change and read it.
 *
 *     userId=alice, serverNode=DF%2028;ttl=10;internal
 *     key    value  key        value   properties
 *
 * Baggage is stored in the form of its header, without optional blanks. So injecting it is a copy,
 * and members that other processes have set stay unchanged. Keys are not decoded; a value is
 * decoded when it is read. A member that is not valid is left out; the others are kept. */
#include <stdlib.h>
#include <string.h>

#include <spanprof/propagation.h>
#include "context/thread.h"
#include "core/compiler.h"
#include "core/hex.h"
#include "core/utf8.h"
#include "trace/carrier.h"
#include "trace/propagators.h"

typedef struct range {
    const char *begin;
    size_t length;
} range;

/* A list member. `properties` starts after the first semicolon; it is empty when there is none. */
typedef struct member {
    range key, value, properties;
} member;

static range trim(range r)
{
    while (r.length > 0 && (*r.begin == ' ' || *r.begin == '\t'))
        r.begin++, r.length--;
    while (r.length > 0 && (r.begin[r.length - 1] == ' ' || r.begin[r.length - 1] == '\t'))
        r.length--;
    return r;
}

/* Split R at its first C: return the part before it, and set R to the part after it. Without a C,
 * return all of R. */
static range cut(range *r, char c)
{
    const char *at = r->length ? memchr(r->begin, c, r->length) : NULL;
    range before = {r->begin, at ? (size_t)(at - r->begin) : r->length};
    size_t step = before.length + (at != NULL);
    *r = (range){r->begin + step, r->length - step};
    return before;
}

/* --- which characters a header may contain ---------------------------------------------------- */

static bool is_token_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != 0 && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_value_char(char c)
{
    return c > ' ' && c <= '~' && c != '"' && c != ',' && c != ';' && c != '\\';
}

/* The SDK does not interpret properties, so it only checks their characters. */
static bool is_property_char(char c)
{
    return ((c >= ' ' && c <= '~') || c == '\t') && c != ',';
}

static bool all(range r, bool (*is_good)(char))
{
    for (size_t i = 0; i < r.length; i++)
        if (!is_good(r.begin[i]))
            return false;
    return true;
}

/* Parse TEXT, one member of a received header. False when it is not valid. */
static bool parse(range text, member *out)
{
    range pair = cut(&text, ';');
    bool has_value = pair.length && memchr(pair.begin, '=', pair.length);
    out->key = trim(cut(&pair, '='));
    out->value = trim(pair);
    out->properties = trim(text);
    return has_value && out->key.length > 0 && all(out->key, is_token_char) &&
           all(out->value, is_value_char) && all(out->properties, is_property_char);
}

/* The next member of LIST, which is in the stored form: valid, and without blanks. */
static member next_member(range *list)
{
    range properties = cut(list, ','), value = cut(&properties, ';');
    range key = cut(&value, '=');
    return (member){.key = key, .value = value, .properties = properties};
}

/* --- building --------------------------------------------------------------------------------- */

/* Add M when it is within the limits. False when it is not, or memory is short (then text.failed).
 */
static bool add(sp_baggage *baggage, const member *m)
{
    sp_buffer *text = &baggage->text;
    text->maximum = SP_BAGGAGE_BYTES;
    size_t bytes =
        m->key.length + 1 + m->value.length + (m->properties.length ? 1 + m->properties.length : 0);
    if (baggage->members == SP_BAGGAGE_MEMBERS ||
        bytes + (text->length != 0) > SP_BAGGAGE_BYTES - text->length)
        return false;
    baggage->members++;
    sp_propagation_add_member(text, m->key.begin, m->key.length);
    sp_buffer_add_char(text, '=');
    sp_buffer_add(text, m->value.begin, m->value.length);
    if (m->properties.length) {
        sp_buffer_add_char(text, ';');
        sp_buffer_add(text, m->properties.begin, m->properties.length);
    }
    return !text->failed;
}

void sp_baggage_read(sp_baggage *baggage, const char *text, size_t length)
{
    range rest = {text, length};
    member m;
    while (rest.length > 0)
        if (parse(cut(&rest, ','), &m))
            add(baggage, &m);
}

static bool is_equal(range a, range b)
{
    return a.length == b.length && memcmp(a.begin, b.begin, a.length) == 0;
}

/* Add all members of LIST except those with KEY. */
static void add_others(sp_baggage *baggage, range list, range key)
{
    while (list.length > 0) {
        member m = next_member(&list);
        if (!is_equal(m.key, key))
            add(baggage, &m);
    }
}

/* Encode TEXT as a value: write each character that is not allowed there, and the percent sign, as
 * %XX. */
static void encode(sp_buffer *out, const char *text)
{
    static const char digits[] = "0123456789ABCDEF";
    for (; *text; text++) {
        uint8_t byte = (uint8_t)*text;
        if (is_value_char(*text) && *text != '%')
            sp_buffer_add_char(out, *text);
        else
            sp_buffer_add(out, (char[]){'%', digits[byte >> 4], digits[byte & 15]}, 3);
    }
}

/* --- changing --------------------------------------------------------------------------------- */

static const spanprof_context *or_active(const spanprof_context *context)
{
    return context ? context : sp_context_current_borrow();
}

/* Set OUT to CONTEXT with BAGGAGE. The tracestate and the attributes stay those of OLD. */
static spanprof_status replace(spanprof_context *out, const spanprof_context *context,
                               const sp_carried *old, const sp_baggage *baggage)
{
    if (baggage->text.failed)
        return SPANPROF_ERROR_NO_MEMORY;
    sp_carried carried = *old;
    carried.baggage = baggage->text.length ? (const char *)baggage->text.data : "";
    carried.baggage_length = (uint32_t)baggage->text.length;
    return sp_propagation_carry(out, context, &carried);
}

/* Set OUT to CONTEXT with M added to the baggage of OLD, in place of members with the same key.
 * INVALID_ARGUMENT when the result is above the limits. */
static spanprof_status set(spanprof_context *out, const spanprof_context *context,
                           const sp_carried *old, const member *m)
{
    sp_baggage baggage = {0};
    add_others(&baggage, (range){old->baggage, old->baggage_length}, m->key);
    spanprof_status status = SPANPROF_ERROR_INVALID_ARGUMENT;
    if (add(&baggage, m) || baggage.text.failed)
        status = replace(out, context, old, &baggage);
    sp_buffer_deinit(&baggage.text);
    return status;
}

spanprof_status spanprof_baggage_set(spanprof_context *out, const spanprof_context *context,
                                     const char *key, const char *value, const char *metadata)
{
    if (!out)
        return SPANPROF_ERROR_INVALID_ARGUMENT;
    spanprof_context from = *or_active(context); /* OUT may be CONTEXT */
    *out = from;
    range properties = trim((range){metadata ? metadata : "", metadata ? strlen(metadata) : 0});
    member m = {.key = {key, key ? strlen(key) : 0}, .properties = properties};
    if (m.key.length == 0 || !all(m.key, is_token_char) || !all(properties, is_property_char))
        return SPANPROF_ERROR_INVALID_ARGUMENT;
    sp_buffer encoded = SP_BUFFER_INIT(SP_BAGGAGE_BYTES);
    encode(&encoded, value ? value : "");
    m.value = (range){encoded.data ? (const char *)encoded.data : "", encoded.length};
    /* The status if the encoding failed: VALUE is too long, or else memory was short. */
    spanprof_status status = encoded.length + 3 > SP_BAGGAGE_BYTES ? SPANPROF_ERROR_INVALID_ARGUMENT
                                                                   : SPANPROF_ERROR_NO_MEMORY;
    if (!encoded.failed) {
        const sp_carried *old = sp_carrier_pin(from.carrier);
        status = set(out, &from, old ? old : &sp_carried_nothing, &m);
        if (old)
            sp_carrier_unpin(from.carrier);
    }
    sp_buffer_deinit(&encoded);
    return status;
}

spanprof_status spanprof_baggage_remove(spanprof_context *out, const spanprof_context *context,
                                        const char *key)
{
    if (!out)
        return SPANPROF_ERROR_INVALID_ARGUMENT;
    spanprof_context from = *or_active(context);
    *out = from;
    const sp_carried *old = sp_carrier_pin(from.carrier);
    if (!old)
        return SPANPROF_OK;
    sp_baggage baggage = {0};
    if (key)
        add_others(&baggage, (range){old->baggage, old->baggage_length}, (range){key, strlen(key)});
    spanprof_status status = replace(out, &from, old, &baggage);
    sp_buffer_deinit(&baggage.text);
    sp_carrier_unpin(from.carrier);
    return status;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Decode VALUE into OUT and return the number of bytes. A percent sign without two hex digits is
 * copied as it is. */
static size_t decode(char *out, range value)
{
    size_t length = 0;
    for (size_t i = 0; i < value.length; i++) {
        uint8_t byte = (uint8_t)value.begin[i];
        if (byte == '%' && value.length - i >= 3 &&
            sp_hex_decode(&byte, value.begin + i + 1, 1, true))
            i += 2;
        out[length++] = byte ? (char)byte : '\xff'; /* not UTF-8: becomes U+FFFD */
    }
    return length;
}

/* Return VALUE decoded, as a string that the caller frees, and set *LENGTH. NULL when memory is
 * short. */
static char *decode_text(range value, size_t *length)
{
    /* The decoded bytes are stored after the room for the repaired text, which is at most three
     * times as long. */
    char *text = malloc(4 * value.length + 1);
    if (!text)
        return NULL;
    char *bytes = text + 3 * value.length + 1;
    size_t count = decode(bytes, value);
    *length = sp_utf8_repair(text, bytes, count);
    return text;
}

/* Copy the last member of LIST with KEY to *OUT. False when there is none. */
static bool find(range list, range key, member *out)
{
    bool found = false;
    while (list.length > 0) {
        member m = next_member(&list);
        if (!is_equal(m.key, key))
            continue;
        *out = m;
        found = true;
    }
    return found;
}

/* Decode VALUE into OUT, which has *SIZE bytes, and set *SIZE to the bytes that it needs with its
 * NUL. OUT may be NULL: then only the size is returned. */
static spanprof_status read_value(range value, char *out, size_t *size)
{
    size_t length;
    char *text = decode_text(value, &length);
    if (!text)
        return SPANPROF_ERROR_NO_MEMORY;
    bool fits = *size > length;
    if (out && fits)
        memcpy(out, text, length + 1);
    *size = length + 1;
    free(text);
    return out && !fits ? SPANPROF_ERROR_INVALID_ARGUMENT : SPANPROF_OK;
}

spanprof_status spanprof_baggage_get(const spanprof_context *context, const char *key, char *value,
                                     size_t *size)
{
    if (!key || !size)
        return SPANPROF_ERROR_INVALID_ARGUMENT;
    spanprof_carrier carrier = or_active(context)->carrier;
    const sp_carried *carried = sp_carrier_pin(carrier);
    member m;
    spanprof_status status = SPANPROF_ERROR_NOT_FOUND;
    if (carried) {
        if (find((range){carried->baggage, carried->baggage_length}, (range){key, strlen(key)}, &m))
            status = read_value(m.value, value, size);
        sp_carrier_unpin(carrier);
    }
    if (status == SPANPROF_ERROR_NOT_FOUND)
        *size = 0;
    return status;
}

/* Call VISIT with the decoded M. *STATUS is ERROR_NO_MEMORY when memory is short. Returns whether
 * to continue. */
static bool show(const member *m, spanprof_baggage_visitor visit, void *user,
                 spanprof_status *status)
{
    size_t length;
    char *key = strndup(m->key.begin, m->key.length);
    char *properties = strndup(m->properties.begin, m->properties.length);
    char *value = decode_text(m->value, &length);
    bool whole = key && properties && value;
    *status = whole ? SPANPROF_OK : SPANPROF_ERROR_NO_MEMORY;
    bool more = whole && visit(user, key, value, properties);
    free(key);
    free(properties);
    free(value);
    return more;
}

spanprof_status spanprof_baggage_each(const spanprof_context *context,
                                      spanprof_baggage_visitor visit, void *user)
{
    if (!visit)
        return SPANPROF_ERROR_INVALID_ARGUMENT;
    spanprof_carrier carrier = or_active(context)->carrier;
    const sp_carried *carried = sp_carrier_pin(carrier);
    if (!carried)
        return SPANPROF_OK;
    spanprof_status status = SPANPROF_OK;
    range rest = {carried->baggage, carried->baggage_length};
    bool more = true;
    while (more && rest.length > 0) {
        member m = next_member(&rest), later;
        if (!find(rest, m.key, &later))
            more = show(&m, visit, user, &status);
    }
    sp_carrier_unpin(carrier);
    return status;
}
