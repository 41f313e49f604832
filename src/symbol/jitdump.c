/* SPDX-License-Identifier: Apache-2.0 */
/* From the specification in the kernel's tree (tools/perf/Documentation/jitdump-specification.txt).
 * A compiler runs in our process and writes in its byte order; so a file of the other order was
 * written by something else, and is refused. */
#include "symbol/jitdump.h"

#include <string.h>

#include "core/compiler.h"
#include "core/word.h"

enum {
    MAGIC = 0x4a695444, /* "JiTD" */
    MAGIC_SWAPPED = 0x4454694a,
    VERSION = 1,
    HEADER_BYTES = 40,
    RECORD_BYTES = 16,
    LOAD_BYTES = RECORD_BYTES + 40,
    MOVE_BYTES = RECORD_BYTES + 48,
    LINES_BYTES = RECORD_BYTES + 16,
    LINE_BYTES = 16,
    NAME_SEARCHED = 64 * 1024, /* a name that is longer is ignored */
};

enum { CODE_LOAD, CODE_MOVE, CODE_DEBUG_INFO, CODE_CLOSE, CODE_UNWINDING_INFO };

static uint32_t read_u32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint64_t read_header(sp_jitdump *dump, const uint8_t *data, size_t length,
                            uint64_t available)
{
    if (length < HEADER_BYTES)
        return 0;
    uint32_t magic = read_u32(data), bytes = read_u32(data + 8);
    if (magic == MAGIC_SWAPPED)
        dump->problem = "written in another byte order";
    else if (magic != MAGIC || bytes < HEADER_BYTES)
        dump->problem = "not a jitdump file";
    else if (read_u32(data + 4) != VERSION)
        dump->problem = "of an unknown version of jitdump";
    if (dump->problem || bytes > available)
        return 0;
    dump->process = read_u32(data + 20);
    dump->begun = true;
    return bytes;
}

/* u32 pid, tid; u64 vma, code_addr, code_size, code_index; the name with its NUL; the code. */
static void read_load(sp_jitdump *dump, const uint8_t *record, size_t length)
{
    if (length < LOAD_BYTES)
        return;
    uint64_t start = sp_word_load(record + 32, 0), size = sp_word_load(record + 40, 0);
    const char *name = (const char *)record + LOAD_BYTES;
    size_t searched = length - LOAD_BYTES < NAME_SEARCHED ? length - LOAD_BYTES : NAME_SEARCHED;
    const char *end = memchr(name, 0, searched);
    uint32_t lines = dump->lines_of == start ? dump->pending_lines : 0;
    dump->pending_lines = 0;
    if (end)
        sp_code_table_add(&dump->table, start, size, name, (size_t)(end - name), lines);
}

/* u32 pid, tid; u64 vma, old_code_addr, new_code_addr, code_size, code_index. */
static void read_move(sp_jitdump *dump, const uint8_t *record, size_t length)
{
    if (length >= MOVE_BYTES)
        sp_code_table_move(&dump->table, sp_word_load(record + 32, 0), sp_word_load(record + 40, 0),
                           sp_word_load(record + 48, 0));
}

/* u64 code_addr, nr_entry; then for each u64 addr; u32 line, discriminator; the file's name with
 * its NUL, "\377" for the name before. The code itself is in the next CODE_LOAD record. */
static void read_lines(sp_jitdump *dump, const uint8_t *record, size_t length)
{
    if (length < LINES_BYTES)
        return;
    uint64_t code = sp_word_load(record + 16, 0), count = sp_word_load(record + 24, 0);
    const char *file = "";
    size_t at = LINES_BYTES;
    dump->lines_of = code;
    dump->pending_lines = 0;
    for (uint64_t i = 0; i < count && length - at > LINE_BYTES; i++) {
        const char *name = (const char *)record + at + LINE_BYTES;
        const char *end = memchr(name, 0, length - at - LINE_BYTES);
        uint64_t address = sp_word_load(record + at, 0);
        if (!end)
            return;
        if (name[0] != '\377' || name[1] != 0)
            file = name;
        if (address >= code && address - code <= UINT32_MAX) {
            if (!sp_code_table_add_line(&dump->table, (uint32_t)(address - code),
                                        read_u32(record + at + 8), file, strlen(file)))
                return;
            dump->pending_lines++;
        }
        at += LINE_BYTES + (size_t)(end - name) + 1;
    }
}

/* How many bytes of a record must be in the buffer; the code itself is not needed. */
static uint64_t needed_bytes(uint32_t id, uint64_t bytes)
{
    switch (id) {
    case CODE_LOAD:
        return sp_min_u64(bytes, LOAD_BYTES + NAME_SEARCHED);
    case CODE_MOVE:
        return sp_min_u64(bytes, MOVE_BYTES);
    case CODE_DEBUG_INFO:
        return bytes;
    default:
        return RECORD_BYTES;
    }
}

/* Read the record at DATA. Returns its length; 0 when the file or the buffer does not have all of
 * it yet, or with a problem. */
static uint64_t read_record(sp_jitdump *dump, const uint8_t *data, size_t length,
                            uint64_t available)
{
    if (length < RECORD_BYTES)
        return 0;
    uint32_t id = read_u32(data), bytes = read_u32(data + 4);
    if (bytes < RECORD_BYTES)
        dump->problem = "damaged: a record has no length";
    if (dump->problem || bytes > available)
        return 0;
    uint64_t needed = needed_bytes(id, bytes);
    if (needed > SP_JITDUMP_RECORD_MAX)
        return bytes;
    if (needed > length)
        return 0;
    if (id == CODE_LOAD)
        read_load(dump, data, (size_t)needed);
    else if (id == CODE_MOVE)
        read_move(dump, data, (size_t)needed);
    else if (id == CODE_DEBUG_INFO)
        read_lines(dump, data, (size_t)needed);
    return bytes;
}

uint64_t sp_jitdump_read(sp_jitdump *dump, const uint8_t *data, size_t length, uint64_t available)
{
    uint64_t at = 0, done;
    do {
        if (at > length || dump->problem)
            break;
        done = dump->begun ? read_record(dump, data + at, length - at, available - at)
                           : read_header(dump, data, length, available);
        at += done;
    } while (done);
    return at;
}

void sp_jitdump_deinit(sp_jitdump *dump)
{
    sp_code_table_deinit(&dump->table);
    *dump = (sp_jitdump){0};
}
