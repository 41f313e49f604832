/* SPDX-License-Identifier: Apache-2.0 */
/* OTEL_EXPORTER_OTLP_HEADERS on the first line; behind it an answer in which their values are
 * masked. No list may make a header that ends early, begins another one, or is one of the
 * exporter's own. */
#include "fuzz/fuzz.h"

#include <strings.h>

#include "core/log.h"
#include "export/export_internal.h"

static void check_header(const char *line)
{
    size_t name = strcspn(line, ":;");
    FUZZ_CHECK(name > 0 && name < strlen(line));
    FUZZ_CHECK(line[name] == ':' ? line[name + 1] == ' ' && line[name + 2] : !line[name + 1]);
    for (const char *c = line; *c; c++)
        FUZZ_CHECK(((unsigned char)*c >= ' ' || *c == '\t') && *c != 0x7f);
    for (size_t i = 0; i < name; i++)
        FUZZ_CHECK(line[i] != ' ' && line[i] != '\t');
    FUZZ_CHECK(name != 12 || strncasecmp(line, "Content-Type", name) != 0);
    FUZZ_CHECK(name != 14 || strncasecmp(line, "Content-Length", name) != 0);
    FUZZ_CHECK(name != 17 || strncasecmp(line, "Transfer-Encoding", name) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    sp_log_configure(SPANPROF_LOG_OFF, NULL, NULL);
    char *text = fuzz_string(data, length);
    char *end = strchr(text, '\n');
    char *answer = strdup(end ? end + 1 : "");
    if (end)
        *end = 0;
    struct curl_slist *list = NULL;
    FUZZ_CHECK(answer && sp_headers_parse(&list, text, "fuzz"));
    for (struct curl_slist *header = list; header; header = header->next)
        check_header(header->data);
    size_t before = strlen(answer);
    char *masked = malloc(before + 4);
    sp_secrets secrets = {0};
    FUZZ_CHECK(masked && sp_secrets_init(&secrets, list, text)); /* TEXT also as a URL */
    FUZZ_CHECK(sp_secrets_mask(&secrets, masked, before + 4, answer, before) <= before);
    sp_secrets_deinit(&secrets);
    free(masked);
    curl_slist_free_all(list);
    free(answer);
    free(text);
    return 0;
}
