/* SPDX-License-Identifier: Apache-2.0 */
/* How AddressSanitizer runs in a fuzz target; the environment's ASAN_OPTIONS come on top. */

const char *__asan_default_options(void);

/* Freed memory is kept aside, so that its use is noticed: 256 MiB of it unless this says otherwise,
 * which no cache of a processor holds. What a target frees belongs to one input, and the blocks of
 * many inputs fit into 2 MiB. */
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=2";
}
