/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of an .eh_frame section. An entry begins with its length. The word after it is 0 in a
 * common entry (CIE); in the entry of a function (FDE) it is the distance back to the function's
 * common entry. A length of zero ends the section, except where a linker leaves one in the middle
 * (skip_terminators). */
#include "unwind/cfi.h"

#include <stdlib.h>
#include <string.h>

#include "core/reach.h"

typedef struct entry {
    size_t position; /* of the length */
    size_t id_position;
    size_t end;
    uint64_t id; /* 0: a common entry */
} entry;

typedef struct function_list {
    sp_cfi_function *functions;
    size_t count;
    size_t capacity;
} function_list;

static sp_cfi_reader reader_at(const sp_cfi_section *section, size_t position)
{
    return (sp_cfi_reader){.data = section->data,
                           .length = section->length,
                           .position = position,
                           .address = section->address};
}

/* Read the head of the entry at POSITION. False at the section's end, and where it is damaged: then
 * no later entry can be found. */
static bool read_entry(const sp_cfi_section *section, size_t position, entry *out)
{
    sp_cfi_reader reader = reader_at(section, position);
    uint64_t length = sp_cfi_read_unsigned(&reader, 4);
    if (length == UINT32_MAX)
        length = sp_cfi_read_unsigned(&reader, 8);
    if (reader.failed || length < 4 || length > reader.length - reader.position)
        return false;
    out->position = position;
    out->id_position = reader.position;
    out->end = reader.position + (size_t)length;
    out->id = sp_cfi_read_unsigned(&reader, 4);
    return true;
}

/* Read the augmentation data at READER. The letters of the augmentation string, at LETTERS in the
 * section, say what it contains, in this order. */
static void read_augmentation(sp_cfi_reader *reader, size_t letters, const sp_cfi_section *section,
                              sp_cfi_common *out)
{
    for (const uint8_t *letter = section->data + letters; *letter; letter++) {
        switch (*letter) {
        case 'z':
            break;
        case 'R':
            out->pointer_encoding = (uint8_t)sp_cfi_read_unsigned(reader, 1);
            break;
        case 'P': {
            unsigned encoding = (unsigned)sp_cfi_read_unsigned(reader, 1);
            sp_cfi_read_pointer(reader, encoding, section->header_address);
            break;
        }
        case 'L':
            sp_cfi_read_unsigned(reader, 1);
            break;
        case 'S':
            out->is_signal_frame = true;
            break;
        case 'B': /* aarch64: return addresses are signed with the other key */
        case 'G': /* aarch64: the frame's memory is tagged */
            break;
        default: /* the size of its data is unknown, so the rest cannot be read */
            reader->failed = true;
        }
    }
}

static bool skip_string(sp_cfi_reader *reader)
{
    while (!reader->failed)
        if (sp_cfi_read_unsigned(reader, 1) == 0)
            return !reader->failed;
    return false;
}

bool sp_cfi_read_common(const sp_cfi_section *section, size_t position, sp_cfi_common *out)
{
    entry head;
    if (!read_entry(section, position, &head) || head.id != 0)
        return false;
    *out = (sp_cfi_common){.pointer_encoding = SP_PE_ABSOLUTE};
    sp_cfi_reader reader = reader_at(section, head.id_position + 4);
    reader.length = head.end;
    uint64_t version = sp_cfi_read_unsigned(&reader, 1);
    size_t letters = reader.position;
    if ((version != 1 && version != 3 && version != 4) || !skip_string(&reader))
        return false;
    if (version == 4)
        sp_cfi_skip(&reader, 2); /* sizes of addresses and segment selectors */
    out->code_alignment = sp_cfi_read_uleb(&reader);
    out->data_alignment = sp_cfi_read_sleb(&reader);
    uint64_t return_column =
        version == 1 ? sp_cfi_read_unsigned(&reader, 1) : sp_cfi_read_uleb(&reader);
    size_t instructions = reader.position;
    if (section->data[letters] == 'z') {
        out->has_augmentation = true;
        uint64_t size = sp_cfi_read_uleb(&reader);
        sp_cfi_reader data = reader;
        sp_cfi_skip(&reader, size);
        instructions = reader.position;
        data.length = reader.position;
        read_augmentation(&data, letters, section, out);
        reader.failed |= data.failed;
    } else if (section->data[letters]) {
        return false; /* gcc 2's "eh", or something newer than this reader */
    }
    out->instructions = (uint32_t)instructions;
    out->instructions_end = (uint32_t)head.end;
    return !reader.failed && return_column == SP_DWARF_RA;
}

/* Read a function's range and program. False when the function is not in the module, or its entry
 * is damaged. */
static bool read_function(const sp_cfi_section *section, const entry *head,
                          const sp_cfi_common *common, sp_cfi_function *out)
{
    sp_cfi_reader reader = reader_at(section, head->id_position + 4);
    reader.length = head->end;
    if (common->pointer_encoding & SP_PE_INDIRECT)
        return false;
    uint64_t begin =
        sp_cfi_read_pointer(&reader, common->pointer_encoding, section->header_address);
    uint64_t size = sp_cfi_read_pointer(&reader, common->pointer_encoding & SP_PE_FORMAT, 0);
    if (common->has_augmentation)
        sp_cfi_skip(&reader, sp_cfi_read_uleb(&reader));
    if (reader.failed || size == 0 || begin < section->module_start ||
        begin >= section->module_end || size > section->module_end - begin)
        return false;
    uint64_t offset = begin - section->module_start;
    if (offset + size > UINT32_MAX)
        return false;
    out->begin = (uint32_t)offset;
    out->end = (uint32_t)(offset + size);
    out->instructions = (uint32_t)reader.position;
    out->instructions_end = (uint32_t)head->end;
    return true;
}

static bool add_function(function_list *list, const sp_cfi_function *function)
{
    if (!SP_REACH(list->functions, list->count, list->capacity, 256))
        return false;
    list->functions[list->count++] = *function;
    return true;
}

/* Some linkers leave a terminator in the middle. More entries may follow when the header promises
 * more functions, or when the section's length is known. */
static size_t skip_terminators(const sp_cfi_section *section, size_t position)
{
    static const uint8_t terminator[4];
    bool more = section->fde_limit || section->is_exact;
    while (more && section->length - position >= sizeof terminator &&
           memcmp(section->data + position, terminator, sizeof terminator) == 0)
        position += sizeof terminator;
    return position;
}

size_t sp_cfi_functions(const sp_cfi_section *section, sp_cfi_function **functions)
{
    function_list list = {0};
    sp_cfi_common common = {0};
    size_t common_position = SIZE_MAX;
    bool common_is_good = false;
    uint64_t left = section->fde_limit ? section->fde_limit : UINT64_MAX;
    entry head = {.end = 0};
    while (left && read_entry(section, skip_terminators(section, head.end), &head)) {
        if (head.id == 0)
            continue;
        left--;
        if (head.id > head.id_position)
            continue;
        size_t wanted = head.id_position - (size_t)head.id;
        if (wanted != common_position) {
            common_is_good = sp_cfi_read_common(section, wanted, &common);
            common_position = wanted;
        }
        sp_cfi_function function = {.common = (uint32_t)wanted};
        if (common_is_good && read_function(section, &head, &common, &function) &&
            !add_function(&list, &function))
            break;
    }
    *functions = list.functions;
    return list.count;
}
