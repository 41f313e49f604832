/* SPDX-License-Identifier: Apache-2.0 */
#include <spanprof/status.h>

const char *spanprof_version(void)
{
    return SPANPROF_VERSION;
}

const char *spanprof_status_name(spanprof_status status)
{
    switch (status) {
#define NAME(name, code, text)                                                                     \
    case SPANPROF_##name:                                                                          \
        return #name;
        SPANPROF_STATUS_MAP(NAME)
#undef NAME
    }
    return "UNKNOWN";
}

const char *spanprof_status_text(spanprof_status status)
{
    switch (status) {
#define TEXT(name, code, text)                                                                     \
    case SPANPROF_##name:                                                                          \
        return text;
        SPANPROF_STATUS_MAP(TEXT)
#undef TEXT
    }
    return "not a status of spanprof";
}
