/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/file_mark.h"

#include <stdlib.h>
#include <string.h>

static void fill(sp_file_mark *mark, const struct stat *status)
{
    mark->device = status->st_dev;
    mark->inode = status->st_ino;
    mark->size = status->st_size;
    mark->modified = status->st_mtim;
}

static bool is_same_file(const sp_file_mark *a, const sp_file_mark *b)
{
    return a->device == b->device && a->inode == b->inode;
}

static bool is_same_content(const sp_file_mark *a, const sp_file_mark *b)
{
    return a->size == b->size && a->modified.tv_sec == b->modified.tv_sec &&
           a->modified.tv_nsec == b->modified.tv_nsec;
}

void sp_file_mark_init(sp_file_mark *mark, const char *path, int fd)
{
    struct stat status;
    *mark = (sp_file_mark){0};
    if (fstat(fd, &status) != 0)
        return;
    mark->path = strdup(path);
    fill(mark, &status);
}

void sp_file_mark_deinit(sp_file_mark *mark)
{
    free(mark->path);
    *mark = (sp_file_mark){0};
}

bool sp_file_mark_is_written(const sp_file_mark *mark)
{
    struct stat status;
    sp_file_mark now = {0};
    if (!mark->path || stat(mark->path, &status) != 0)
        return false;
    fill(&now, &status);
    return is_same_file(mark, &now) && !is_same_content(mark, &now);
}

bool sp_file_mark_is_equal(const sp_file_mark *a, const sp_file_mark *b)
{
    return is_same_file(a, b) && is_same_content(a, b);
}
