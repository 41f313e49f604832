/* SPDX-License-Identifier: Apache-2.0 */
/* PREFIX.profiles.binpb, message by message: each is preceded by its length as a varint. After
 * cmocka.h. */
#ifndef TESTS_SIGNAL_PROFILES_FILE_H
#define TESTS_SIGNAL_PROFILES_FILE_H

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/profiles.pb-c.h"

typedef void profiles_function(const Sp__Profiles__ProfilesData *data, void *user);

static inline uint8_t *profiles_file_read(const char *path, size_t *length)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    assert_true(fd >= 0 && fstat(fd, &status) == 0);
    uint8_t *data = malloc((size_t)status.st_size);
    assert_non_null(data);
    assert_int_equal(read(fd, data, (size_t)status.st_size), status.st_size);
    close(fd);
    *length = (size_t)status.st_size;
    return data;
}

static inline size_t profiles_file_varint(const uint8_t **at)
{
    size_t value = 0;
    for (int shift = 0;; shift += 7) {
        uint8_t byte = *(*at)++;
        value |= (size_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
}

/* Calls TELL with each message of the file at PATH. */
static inline void profiles_file_each(const char *path, profiles_function *tell, void *user)
{
    size_t length;
    uint8_t *file = profiles_file_read(path, &length);
    for (const uint8_t *at = file; at < file + length;) {
        size_t size = profiles_file_varint(&at);
        Sp__Profiles__ProfilesData *data = sp__profiles__profiles_data__unpack(NULL, size, at);
        assert_non_null(data);
        tell(data, user);
        sp__profiles__profiles_data__free_unpacked(data, NULL);
        at += size;
    }
    free(file);
}

#endif
