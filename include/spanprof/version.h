/* SPDX-License-Identifier: Apache-2.0 */
/* The version of this copy of the headers, and the macros for public declarations. */
#ifndef SPANPROF_VERSION_H
#define SPANPROF_VERSION_H

#define SPANPROF_VERSION_MAJOR 0
#define SPANPROF_VERSION_MINOR 1
#define SPANPROF_VERSION_PATCH 0
#define SPANPROF_VERSION       "0.1.0"

/* Everything public is C; a shared library exports exactly the functions that are marked
 * SPANPROF_API. */
#ifdef __cplusplus
#define SPANPROF_BEGIN_DECLS extern "C" {
#define SPANPROF_END_DECLS   }
#else
#define SPANPROF_BEGIN_DECLS
#define SPANPROF_END_DECLS
#endif

#if defined(__GNUC__)
#define SPANPROF_API __attribute__((visibility("default")))
#else
#define SPANPROF_API
#endif

SPANPROF_BEGIN_DECLS

/* The version of the library that is linked, "MAJOR.MINOR.PATCH"; static, never freed.
 * Threads: any.  Signals: safe.  Since 0.1. */
SPANPROF_API const char *spanprof_version(void);

SPANPROF_END_DECLS

#endif
