/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration values. Rules of the OpenTelemetry specification
 * (configuration/sdk-environment-variables.md): an empty value is unset; a value that cannot be
 * used is named in one warning, with what is used instead. A setuid program ignores the environment
 * (secure_getenv). Threads: setup only (the environment is read while the SDK starts). */
#ifndef SP_CORE_ENV_H
#define SP_CORE_ENV_H

#include <stdbool.h>
#include <stdint.h>

/* The value of NAME, or NULL when unset or empty. Borrowed from the environment. */
__attribute__((visibility("default"))) const char *sp_env(const char *name);
/* Copy the environment, so that sp_env later also finds values that the program has removed:
 * servers empty the environment of their forked workers. When memory is short, nothing is kept.
 * Called by libspanprof-run.so, once, before main; libspanprof.so exports these two functions for
 * it. */
__attribute__((visibility("default"))) void sp_env_keep(void);
/* A decimal number in [MINIMUM, MAXIMUM], else FALLBACK (with a warning when NAME was set). */
uint32_t sp_env_u32(const char *name, uint32_t minimum, uint32_t maximum, uint32_t fallback);
/* Only "true" (any case) is true; anything but true and false warns. */
bool sp_env_bool(const char *name);
/* The index of the value in WORDS (any case; COUNT of them), else FALLBACK (with a warning that
 * lists the words). */
int sp_env_word(const char *name, const char *const *words, int count, int fallback);
/* The same for TEXT, which warnings call NAME. TEXT NULL is unset. */
int sp_parse_word(const char *name, const char *text, const char *const *words, int count,
                  int fallback);
/* The same for a comma-separated list: bit i is set for word i. Unknown words warn and are left
 * out. FALLBACK when none is left. TEXT is the list, which warnings call NAME. */
uint32_t sp_parse_word_list(const char *name, const char *text, const char *const *words, int count,
                            uint32_t fallback);
/* Parse TEXT as a decimal number without sign. False for anything else, and when it does not
 * fit. */
bool sp_parse_u64(const char *text, uint64_t *out);

#endif
