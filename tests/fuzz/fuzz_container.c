/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/self/cgroup and mountinfo, in which whoever starts a container writes names: an id looks
 * like one, and is in the text; in a pod the mounts yield none. And /proc/self/stat, in which a
 * process writes its name. */
#include "fuzz/fuzz.h"

#include "core/clock.h"
#include "trace/container.h"
#include "trace/detect.h"

static void check_id(const char *id, const char *text)
{
    size_t digits = strspn(id, "0123456789abcdef"), length = strlen(id);
    bool is_fargate = digits == 32 && id[32] == '-' && length > 33 &&
                      strspn(id + 33, "0123456789") == length - 33;
    FUZZ_CHECK(length <= SP_CONTAINER_ID_MAX);
    FUZZ_CHECK((digits == 64 && length == 64) || is_fargate);
    FUZZ_CHECK(strstr(text, id));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    char *text = fuzz_string(data, length);
    char id[SP_CONTAINER_ID_MAX + 1], began[SP_ISO_TIME_BYTES];
    if (sp_container_of_cgroup(id, text))
        check_id(id, text);
    if (sp_container_of_mountinfo(id, text)) {
        check_id(id, text);
        FUZZ_CHECK(strlen(id) == 64 && !sp_container_is_pod(text));
    }
    if (sp_detect_creation_time(began, text, 1767225600 * SP_NS_PER_S, 1000 * SP_NS_PER_S, 100))
        FUZZ_CHECK(strlen(began) == SP_ISO_TIME_BYTES - 1 && began[10] == 'T' && began[23] == 'Z');
    free(text);
    return 0;
}
