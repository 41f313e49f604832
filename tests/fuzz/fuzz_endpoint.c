/* SPDX-License-Identifier: Apache-2.0 */
/* URLs of receivers: what is made of one that is taken goes to the same host, and what is shown of
 * any has no secret. */
#include "fuzz/fuzz.h"

#include "export/export_internal.h"

/* PART of the URL as libcurl reads it, for curl_free(), or NULL. */
static char *part_of(const char *text, CURLUPart part)
{
    CURLU *url = curl_url();
    char *out = NULL;
    if (curl_url_set(url, CURLUPART_URL, text, 0) != CURLUE_OK ||
        curl_url_get(url, part, &out, 0) != CURLUE_OK)
        out = NULL;
    curl_url_cleanup(url);
    return out;
}

/* MADE (freed here) can be sent to, and leads where TEXT, a whole URL, leads. */
static void check_same_host(const char *text, char *made)
{
    static const CURLUPart parts[] = {CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT,
                                      CURLUPART_USER, CURLUPART_PASSWORD};
    const char *why;
    FUZZ_CHECK(made && sp_endpoint_check(made, &why) == SP_ENDPOINT_GOOD);
    for (size_t i = 0; i < SP_ARRAY_LENGTH(parts); i++) {
        char *wanted = part_of(text, parts[i]);
        char *got = part_of(made, parts[i]);
        FUZZ_CHECK(!wanted == !got && (!wanted || strcmp(wanted, got) == 0));
        curl_free(wanted);
        curl_free(got);
    }
    free(made);
}

static void check_shown(const char *text, bool good)
{
    char *shown = sp_endpoint_shown(text);
    FUZZ_CHECK(shown);
    for (const char *c = shown; *c; c++)
        FUZZ_CHECK((unsigned char)*c >= ' ' && *c != 0x7f);
    char *user = good ? part_of(text, CURLUPART_USER) : NULL;
    char *query = good ? part_of(text, CURLUPART_QUERY) : NULL;
    FUZZ_CHECK(!user || strstr(shown, "://***@"));
    FUZZ_CHECK(!query || strstr(shown, "?***") == shown + strlen(shown) - 4);
    curl_free(user);
    curl_free(query);
    free(shown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    FUZZ_CHECK(sp_network_load()); /* curl_url() below */
    char *text = fuzz_string(data, length);
    const char *why = NULL;
    sp_endpoint_kind kind = sp_endpoint_check(text, &why);
    FUZZ_CHECK(kind == SP_ENDPOINT_GOOD || (why && *why));
    if (kind != SP_ENDPOINT_BAD) {
        char *whole = NULL;
        FUZZ_CHECK(asprintf(&whole, "%s%s", kind == SP_ENDPOINT_BARE ? "http://" : "", text) >= 0);
        check_same_host(whole, sp_endpoint_from_base(text, "http://", SP_TRACES));
        check_same_host(whole, sp_endpoint_from_base(text, "http://", SP_PROFILES));
        check_same_host(whole, sp_endpoint_grpc(text, "http://", SP_TRACES));
        check_same_host(whole, sp_endpoint_verbatim(text, "http://"));
        char *base = strdup(text);
        sp_endpoint_cut_path(base);
        check_same_host(whole, sp_endpoint_verbatim(base, "http://"));
        check_same_host(whole, sp_endpoint_stable_profiles(base));
        free(base);
        free(whole);
    }
    check_shown(text, kind == SP_ENDPOINT_GOOD);
    free(text);
    return 0;
}
