/* SPDX-License-Identifier: Apache-2.0 */
/* Text that no message may show: the values of headers, user, password and query of the URL, user
 * and password of proxies. A receiver may send them back as they are or in another form: in base64
 * (which libcurl makes of user and password), percent-encoded, as a string of JSON or HTML, or with
 * their bytes taken for characters of Latin-1. So a text is compared with each secret byte by byte,
 * before anything is cut off it or replaced in it. */
#include <stdlib.h>
#include <string.h>

#include "core/base64.h"
#include "core/env.h"
#include "core/hex.h"
#include "export/export_internal.h"

enum {
    SHORTEST = 3,        /* shorter ones are no secrets, but parts of many words */
    BASE64_SHORTEST = 6, /* bytes; a shorter text decides too few base64 digits */
    PART_BYTES = 8,      /* so much of a secret is masked when a receiver has cut it */
    SECRET_MAX_BYTES = 65536
};

/* ---- The secrets ---- */

static bool add(sp_secrets *secrets, const char *text, size_t length)
{
    if (length < SHORTEST)
        return true;
    char **longer = realloc(secrets->texts, (secrets->count + 1) * sizeof *longer);
    if (!longer)
        return false;
    secrets->texts = longer;
    secrets->texts[secrets->count] = strndup(text, length);
    return secrets->texts[secrets->count] && ++secrets->count;
}

/* Add TEXT in base64 as it is after SHIFT other bytes: the digits that depend on TEXT alone, and
 * the same with one more digit, which ends TEXT when no byte follows. */
static bool add_base64_at(sp_secrets *secrets, const char *text, size_t length, size_t shift)
{
    static const char before[2];
    sp_buffer bytes = SP_BUFFER_INIT(SECRET_MAX_BYTES),
              digits = SP_BUFFER_INIT(2 * SECRET_MAX_BYTES);
    sp_buffer_add(&bytes, before, shift);
    sp_buffer_add(&bytes, text, length);
    sp_base64_add(&digits, bytes.data, bytes.length);
    size_t first = (shift * 8 + 5) / 6, bits = (shift + length) * 8;
    const char *own = (const char *)digits.data + first;
    bool done = !bytes.failed && !digits.failed && add(secrets, own, bits / 6 - first) &&
                add(secrets, own, (bits + 5) / 6 - first);
    sp_buffer_deinit(&bytes);
    sp_buffer_deinit(&digits);
    return done;
}

/* In base64 a text has three forms, which depend on the number of bytes before it. */
static bool add_in_all_forms(sp_secrets *secrets, const char *text, size_t length)
{
    bool done = add(secrets, text, length);
    for (size_t shift = 0; done && shift < 3 && length >= BASE64_SHORTEST; shift++)
        done = add_base64_at(secrets, text, length, shift);
    return done;
}

/* Add VALUE, and also what follows its first word alone: "Bearer abc" may come back as "abc". */
static bool add_value(sp_secrets *secrets, const char *value)
{
    const char *rest = strchr(value, ' ');
    return add_in_all_forms(secrets, value, strlen(value)) &&
           (!rest || add_in_all_forms(secrets, rest + 1, strlen(rest + 1)));
}

/* Add TEXT with its percent escapes decoded, as libcurl does. */
static bool add_decoded(sp_secrets *secrets, const char *text, size_t length)
{
    sp_buffer plain = SP_BUFFER_INIT(SECRET_MAX_BYTES);
    uint8_t byte;
    for (size_t i = 0; i < length; i++) {
        bool escaped =
            text[i] == '%' && length - i > 2 && sp_hex_decode(&byte, text + i + 1, 1, true);
        sp_buffer_add_char(&plain, escaped ? (char)byte : text[i]);
        i += escaped ? 2 : 0;
    }
    bool done = !plain.failed &&
                (!plain.length || add_in_all_forms(secrets, (char *)plain.data, plain.length));
    sp_buffer_deinit(&plain);
    return done;
}

/* Add the text before the host: "user:password" as a whole, and the password alone. A user without
 * a password is added, too, because it may be a token. */
static bool add_user(sp_secrets *secrets, const char *authority)
{
    const char *at = memrchr(authority, '@', strcspn(authority, "?"));
    if (!at)
        return true;
    const char *colon = memchr(authority, ':', (size_t)(at - authority));
    return add_decoded(secrets, authority, (size_t)(at - authority)) &&
           (!colon || (add(secrets, colon + 1, (size_t)(at - colon - 1)) &&
                       add_decoded(secrets, colon + 1, (size_t)(at - colon - 1))));
}

static bool add_query(sp_secrets *secrets, const char *url)
{
    const char *query = strchr(url, '?');
    bool done = !query || add(secrets, query + 1, strlen(query + 1));
    for (const char *item = query; done && item; item = strchr(item + 1, '&')) {
        size_t length = strcspn(item + 1, "&"), name = strcspn(item + 1, "=&");
        if (name < length && length - name > PART_BYTES) /* a shorter value is an ordinary word */
            done = add_decoded(secrets, item + 1 + name + 1, length - name - 1);
    }
    return done;
}

static bool add_user_of(sp_secrets *secrets, const char *url)
{
    const char *scheme = strstr(url, "://");
    return add_user(secrets, scheme ? scheme + 3 : url);
}

/* libcurl reads these variables, and sends user and password to the proxy. */
static bool add_proxies(sp_secrets *secrets)
{
    static const char *const names[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                        "ALL_PROXY"};
    bool done = true;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(names) && done; i++) {
        const char *url = sp_env(names[i]);
        done = !url || add_user_of(secrets, url);
    }
    return done;
}

bool sp_secrets_init(sp_secrets *secrets, const struct curl_slist *headers, const char *url)
{
    bool done = add_user_of(secrets, url) && add_query(secrets, url) && add_proxies(secrets);
    for (; done && headers; headers = headers->next) {
        const char *value = strstr(headers->data, ": ");
        done = !value || add_value(secrets, value + 2);
    }
    return done;
}

void sp_secrets_deinit(sp_secrets *secrets)
{
    for (size_t i = 0; i < secrets->count; i++)
        free(secrets->texts[i]);
    free(secrets->texts);
    *secrets = (sp_secrets){0};
}

/* ---- Finding them ---- */

static size_t begins_with(const char *text, size_t left, const char *beginning)
{
    size_t length = strlen(beginning);
    return left >= length && memcmp(text, beginning, length) == 0 ? length : 0;
}

/* How many bytes at TEXT are an escaped form of the ASCII character BYTE; 0: none. */
static size_t ascii_form(const char *text, size_t left, uint8_t byte)
{
    static const struct {
        char byte;
        const char *form;
    } forms[] = {{' ', "+"},      {'+', "-"},      {'/', "_"},       {'/', "\\/"},
                 {'"', "\\\""},   {'\\', "\\\\"},  {'&', "&amp;"},   {'<', "&lt;"},
                 {'>', "&gt;"},   {'"', "&quot;"}, {'\'', "&apos;"}, {'"', "&#34;"},
                 {'\'', "&#39;"}, {'\'', "&#x27;"}};
    size_t used = 0;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(forms) && !used; i++)
        if (forms[i].byte == (char)byte)
            used = begins_with(text, left, forms[i].form);
    return used;
}

/* The same for a byte that is not ASCII: the Latin-1 character in UTF-8, or the replacement that
 * receivers write for a byte that is not UTF-8. */
static size_t high_form(const char *text, size_t left, uint8_t byte)
{
    const char latin1[] = {(char)(0xc0 | byte >> 6), (char)(0x80 | (byte & 0x3f)), 0};
    size_t used = begins_with(text, left, latin1);
    used = used ? used : begins_with(text, left, "\xef\xbf\xbd");
    return used ? used : begins_with(text, left, "?");
}

static size_t escaped_form(const char *text, size_t left, uint8_t byte)
{
    uint8_t decoded;
    if (left >= 3 && *text == '%' && sp_hex_decode(&decoded, text + 1, 1, true) && decoded == byte)
        return 3;
    if (left >= 6 && begins_with(text, left, "\\u00") &&
        sp_hex_decode(&decoded, text + 4, 1, true) && decoded == byte)
        return 6;
    return byte < 0x80 ? ascii_form(text, left, byte) : high_form(text, left, byte);
}

/* How many bytes at TEXT are a form of BYTE; 0: none. RAW_FIRST: a text that can be read in two
 * ways is read as it is; else as an escape. */
static size_t form(const char *text, size_t left, uint8_t byte, bool raw_first)
{
    bool is_raw = (uint8_t)*text == byte;
    size_t escaped = is_raw && raw_first ? 0 : escaped_form(text, left, byte);
    return escaped ? escaped : is_raw;
}

/* Whether MATCHED bytes of SECRET are enough of it: all, or the beginning when a receiver has cut
 * it. AT_END: the text ends there. A first word, such as Bearer, is no secret. */
static bool is_enough(const char *secret, size_t matched, bool at_end)
{
    size_t word = strcspn(secret, " ");
    size_t open = secret[word] ? word + 1 : 0;
    bool is_long = strlen(secret) >= open + 2 * PART_BYTES;
    return !secret[matched] || (is_long && matched >= open + PART_BYTES) ||
           (at_end && matched >= open + SHORTEST);
}

/* How many bytes at TEXT are SECRET, or a part of it that must not be shown; 0: none. */
static size_t match(const char *text, size_t length, const char *secret, bool raw_first)
{
    size_t used = 0, matched = 0;
    while (secret[matched] && used < length) {
        size_t step = form(text + used, length - used, (uint8_t)secret[matched], raw_first);
        if (!step)
            break;
        matched++;
        used += step;
    }
    return is_enough(secret, matched, used == length) ? used : 0;
}

static size_t longest_match(const sp_secrets *secrets, const char *text, size_t length)
{
    size_t longest = 0;
    for (size_t i = 0; i < secrets->count; i++)
        for (int raw_first = 0; raw_first < 2; raw_first++)
            longest = sp_max_u64(longest, match(text, length, secrets->texts[i], raw_first != 0));
    return longest;
}

size_t sp_secrets_mask(const sp_secrets *secrets, char *out, size_t size, const char *text,
                       size_t length)
{
    size_t written = 0;
    for (size_t at = 0; at < length && written + sizeof "***" <= size;) {
        size_t secret = longest_match(secrets, text + at, length - at);
        if (secret)
            memcpy(out + written, "***", 3);
        else
            out[written] = text[at];
        written += secret ? 3 : 1;
        at += secret ? secret : 1;
    }
    out[written] = 0;
    return written;
}
