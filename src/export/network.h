/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl, loaded when something is to be sent and not before. It brings forty libraries with it
 * (TLS, Kerberos, LDAP, …), which cost a process 9 MB of file pages, 1.3 MB of relocated ones, and
 * 1.7 MB of unwind tables of ours. A process that writes files, or samples only for itself, has
 * none of that.
 *
 * With this header instead of <curl/curl.h> the calls below use a table of pointers that
 * sp_network_load fills, so they look the same. A call before sp_network_load returned true calls a
 * null pointer. */
#ifndef SP_EXPORT_NETWORK_H
#define SP_EXPORT_NETWORK_H

#define CURL_DISABLE_TYPECHECK /* its macros would call the functions themselves */
#include <curl/curl.h>
#include <stdbool.h>

#define SP_NETWORK_FUNCTIONS(F)                                                                    \
    F(easy_cleanup)                                                                                \
    F(easy_getinfo)                                                                                \
    F(easy_header)                                                                                 \
    F(easy_init)                                                                                   \
    F(easy_setopt)                                                                                 \
    F(easy_strerror)                                                                               \
    F(free)                                                                                        \
    F(getdate)                                                                                     \
    F(global_init)                                                                                 \
    F(multi_add_handle)                                                                            \
    F(multi_cleanup)                                                                               \
    F(multi_info_read)                                                                             \
    F(multi_init)                                                                                  \
    F(multi_perform)                                                                               \
    F(multi_poll)                                                                                  \
    F(multi_remove_handle)                                                                         \
    F(slist_append)                                                                                \
    F(slist_free_all)                                                                              \
    F(url)                                                                                         \
    F(url_cleanup)                                                                                 \
    F(url_get)                                                                                     \
    F(url_set)                                                                                     \
    F(version_info)

#undef curl_easy_setopt
#undef curl_easy_getinfo

typedef struct sp_network {
#define SP_NETWORK_POINTER(name) __typeof__(curl_##name) *name;
    SP_NETWORK_FUNCTIONS(SP_NETWORK_POINTER)
#undef SP_NETWORK_POINTER
} sp_network;

extern sp_network sp_network_table;

/* Load libcurl and set it up, once. Returns whether it is there, also when called again. Any
 * thread. It is never unloaded: TLS libraries register handlers for the process's exit. */
bool sp_network_load(void);
/* Whether that has succeeded. */
bool sp_network_is_loaded(void);

#define curl_easy_cleanup        sp_network_table.easy_cleanup
#define curl_easy_getinfo        sp_network_table.easy_getinfo
#define curl_easy_header         sp_network_table.easy_header
#define curl_easy_init           sp_network_table.easy_init
#define curl_easy_setopt         sp_network_table.easy_setopt
#define curl_easy_strerror       sp_network_table.easy_strerror
#define curl_free                sp_network_table.free
#define curl_getdate             sp_network_table.getdate
#define curl_global_init         sp_network_table.global_init
#define curl_multi_add_handle    sp_network_table.multi_add_handle
#define curl_multi_cleanup       sp_network_table.multi_cleanup
#define curl_multi_info_read     sp_network_table.multi_info_read
#define curl_multi_init          sp_network_table.multi_init
#define curl_multi_perform       sp_network_table.multi_perform
#define curl_multi_poll          sp_network_table.multi_poll
#define curl_multi_remove_handle sp_network_table.multi_remove_handle
#define curl_slist_append        sp_network_table.slist_append
#define curl_slist_free_all      sp_network_table.slist_free_all
#define curl_url                 sp_network_table.url
#define curl_url_cleanup         sp_network_table.url_cleanup
#define curl_url_get             sp_network_table.url_get
#define curl_url_set             sp_network_table.url_set
#define curl_version_info        sp_network_table.version_info

#endif
