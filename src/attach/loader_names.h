/* SPDX-License-Identifier: Apache-2.0 */
/* The names that the loader of another process has for its modules, such as "/lib/libz.so.1". The
 * map has the name of the file, "/usr/lib/libz.so.1.2.13". The SDK inside a process uses the
 * loader's names, and a module has to have one name. Threads: one at a time. Signals: not safe. */
#ifndef SP_ATTACH_LOADER_NAMES_H
#define SP_ATTACH_LOADER_NAMES_H

#include <link.h>
#include <sys/types.h>

#include "unwind/loader_snapshot.h"

/* If PROGRAM, a module of process PID, is its program: the address of the loader's list. Else 0. */
uint64_t sp_attach_loader_list(pid_t pid, const struct dl_phdr_info *program);

/* Change the paths of the modules in SNAPSHOT that are not known from before to the names in LIST,
 * where a name leads to the same file. ROOT is in front of each path; "" if the process has our
 * root. A list that cannot be read changes nothing. */
void sp_attach_loader_rename(pid_t pid, uint64_t list, const char *root,
                             sp_loader_snapshot *snapshot);

#endif
