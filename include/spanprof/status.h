/* SPDX-License-Identifier: Apache-2.0 */
/* The results of calls. 0 is success, every error is negative; nothing else reports success or
 * failure. Threads: any, for every function here. Signals: safe. Strings: static, never freed. */
#ifndef SPANPROF_STATUS_H
#define SPANPROF_STATUS_H

#include <stdint.h>
#include <spanprof/version.h>

/* The value of SPANPROF_…_INIT for a struct TYPE: struct_size is set, everything else is zero. In
 * C++ it is an expression, because there are no designated initializers before C++20. */
#ifdef __cplusplus
extern "C++" { /* also when this is included between extern "C" braces */
template <class Type> inline Type spanprof_init()
{
    Type zeros = Type();
    zeros.struct_size = static_cast<uint32_t>(sizeof(Type));
    return zeros;
}
}
#define SPANPROF_INIT(type) spanprof_init<type>()
#else
#define SPANPROF_INIT(type)                                                                        \
    {                                                                                              \
        .struct_size = sizeof(type)                                                                \
    }
#endif

SPANPROF_BEGIN_DECLS

/* XX(NAME, code, sentence). Codes are stable; new ones are appended. */
#define SPANPROF_STATUS_MAP(XX)                                                                    \
    XX(OK, 0, "done")                                                                              \
    XX(ERROR_INVALID_ARGUMENT, -1, "an argument is out of its range")                              \
    XX(ERROR_ALREADY_STARTED, -2, "spanprof runs already in this process")                         \
    XX(ERROR_NOT_STARTED, -3, "spanprof does not run in this process")                             \
    XX(ERROR_TIMEOUT, -4, "the time allowed has passed")                                           \
    XX(ERROR_NO_MEMORY, -5, "memory could not be allocated")                                       \
    XX(ERROR_SYSTEM, -6, "the operating system refused; system_errno tells why")                   \
    XX(ERROR_UNSUPPORTED, -7, "this build or this system cannot do that")                          \
    XX(ERROR_OTHER_THREAD, -8, "the scope belongs to another thread")                              \
    XX(ERROR_NOT_FOUND, -9, "it is not there")                                                     \
    XX(ERROR_FORMAT, -10, "the input does not have the format it should have")                     \
    XX(ERROR_EXPORT, -11, "something could not be delivered; the counters tell what")              \
    XX(ERROR_DISABLED, -12, "the SDK is disabled by OTEL_SDK_DISABLED")                            \
    XX(ERROR_IN_CALLBACK, -13, "a callback of a span processor must not call this")

typedef enum spanprof_status {
#define SPANPROF_STATUS_ENUMERATOR(name, code, text) SPANPROF_##name = (code),
    SPANPROF_STATUS_MAP(SPANPROF_STATUS_ENUMERATOR)
#undef SPANPROF_STATUS_ENUMERATOR
} spanprof_status;

/* Why a call failed, for calls that take one (NULL is always allowed). Filled on failure only. */
typedef struct spanprof_error {
    spanprof_status status;
    const char *message; /* a static sentence: what, where, what to do */
    int system_errno;    /* errno of the call that failed, or 0 */
    uint64_t position;   /* byte position in the input, where there is one, else 0 */
} spanprof_error;

/* The name of STATUS without prefix ("ERROR_TIMEOUT"); "UNKNOWN" for a number that is not a status.
 * Since 0.1. */
SPANPROF_API const char *spanprof_status_name(spanprof_status status);

/* The sentence for STATUS.  Since 0.1. */
SPANPROF_API const char *spanprof_status_text(spanprof_status status);

SPANPROF_END_DECLS

#endif
