/* SPDX-License-Identifier: Apache-2.0 */
/* Where .eh_frame ends, as linkers lay out a module. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "unwind/module_image.h"

enum { BIAS = 0x10000, SEGMENT = 0x1000, SEGMENT_BYTES = 0x4000, OTHER_SEGMENT = 0x8000 };

static const ElfW(Phdr) headers[] = {
    {.p_type = PT_LOAD, .p_flags = PF_R, .p_vaddr = SEGMENT, .p_filesz = SEGMENT_BYTES},
    {.p_type = PT_LOAD, .p_flags = PF_R, .p_vaddr = OTHER_SEGMENT, .p_filesz = 0x100},
};

static uint64_t length_of(uint64_t section, uint64_t header)
{
    struct dl_phdr_info info = {.dlpi_addr = BIAS, .dlpi_phdr = headers, .dlpi_phnum = 2};
    sp_cfi_section frames = {.address = BIAS + section, .header_address = BIAS + header};
    return sp_image_section_length(&info, &frames);
}

/* GNU ld and lld: .eh_frame_hdr, .eh_frame, end of the segment. */
static void header_before_ends_nothing(void **state)
{
    (void)state;
    assert_int_equal(length_of(SEGMENT + 0x2000, SEGMENT + 0x1800), SEGMENT_BYTES - 0x2000);
}

/* mold: .eh_frame, .eh_frame_hdr, .rodata, end of the segment. */
static void header_behind_ends_the_section(void **state)
{
    (void)state;
    assert_int_equal(length_of(SEGMENT + 0x200, SEGMENT + 0x700), 0x500);
}

static void header_in_another_segment_ends_nothing(void **state)
{
    (void)state;
    assert_int_equal(length_of(SEGMENT + 0x2000, OTHER_SEGMENT), SEGMENT_BYTES - 0x2000);
}

static void section_in_no_segment_has_no_length(void **state)
{
    (void)state;
    assert_int_equal(length_of(0x100, 0x200), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_before_ends_nothing),
        cmocka_unit_test(header_behind_ends_the_section),
        cmocka_unit_test(header_in_another_segment_ends_nothing),
        cmocka_unit_test(section_in_no_segment_has_no_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
