/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "outside/memory.h"

static bool parse(const char *line, sp_outside_mapping *mapping)
{
    char rights[8];
    int name = 0;
    mapping->path[0] = 0;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64 " %n", &mapping->low,
               &mapping->high, rights, &mapping->offset, &mapping->major, &mapping->minor,
               &mapping->inode, &name) < 7)
        return false;
    mapping->is_executable = rights[2] == 'x';
    snprintf(mapping->path, sizeof mapping->path, "%s", line + name);
    mapping->path[strcspn(mapping->path, "\n")] = 0;
    return true;
}

bool sp_outside_mappings(pid_t pid, sp_outside_each_mapping *each, void *user)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "re");
    if (!maps)
        return false;
    sp_outside_mapping mapping;
    char *line = NULL;
    size_t capacity = 0;
    bool goes_on = true;
    while (goes_on && getline(&line, &capacity, maps) > 0)
        goes_on = !parse(line, &mapping) || each(&mapping, user);
    bool is_read = !ferror(maps); /* of a process that lets nobody look, opening still succeeds */
    free(line);
    (void)fclose(maps);
    return is_read;
}

bool sp_outside_copy(pid_t pid, void *out, uint64_t address, size_t bytes)
{
    struct iovec to = {.iov_base = out, .iov_len = bytes};
    struct iovec from = {.iov_base = (void *)(uintptr_t)address, .iov_len = bytes}; // NOLINT
    return process_vm_readv(pid, &to, 1, &from, 1, 0) == (ssize_t)bytes;
}
