/* SPDX-License-Identifier: Apache-2.0 */
/* A file whose section headers are asked for .eh_frame. What is found has a sensible size, and a
 * second look finds the same. */
#include "fuzz/fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include "unwind/frame_section.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    int fd = memfd_create("input", MFD_CLOEXEC);
    FUZZ_CHECK(fd >= 0 && write(fd, data, length) == (ssize_t)length);
    sp_frame_section first = {0}, second = {0};
    if (sp_frame_section_find(fd, &first)) {
        FUZZ_CHECK(first.length > 0 && first.length <= SP_FRAME_SECTION_MAX);
        FUZZ_CHECK(sp_frame_section_find(fd, &second));
        FUZZ_CHECK(memcmp(&first, &second, sizeof first) == 0);
    }
    close(fd);
    return 0;
}
