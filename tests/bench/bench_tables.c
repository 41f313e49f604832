/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling unwind tables: time, bytes, and memory, for each file on the command line, or for those
 * of a list that are there (a large library first). Each file is measured in a process of its own,
 * on a copy of its frame information, as the snapshot of the loader's list makes one. Time is CPU
 * time of the compiling thread.
 *
 *   rows             of the table; rules: those that it added to the pool
 *   bytes a row      the whole table's, its index included
 *   first, median    of RUNS compilations; the first also takes fresh memory from the kernel
 *   section          the bytes that are compiled: .eh_frame, and what stands behind it in its
 * segment table            the whole table's bytes grows, peak      by how much the process's
 * resident memory grows: when the table is made (malloc keeps some of what was free meanwhile), and
 * at most while it is compiled; the copy of the section is there before libdw            elfutils
 * told to find the rule of every row, one after the other: dwarf_cfi_addrframe
 *
 *   bench_tables [FILE...] */
#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <elfutils/libdw.h>

#include "bench/figures.h"
#include "unwind/cfi.h"
#include "unwind/unwind_table.h"

enum { RUNS = 7, PAGE_BYTES = 4096 };

/* A file's frame information; data is a copy. Addresses are those in the file: its bias is 0. */
typedef struct object {
    sp_cfi_section section;
    uint8_t *copy;
} object;

static uint64_t thread_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * SP_NS_PER_S + (uint64_t)now.tv_nsec;
}

/* --- Reading a file --------------------------------------------------------------------------- */

/* Where ADDRESS is in the file, and how many bytes its segment still has; 0 bytes: in none. */
static uint64_t find_in_file(Elf *elf, uint64_t address, uint64_t *position)
{
    size_t count = 0;
    GElf_Phdr segment;
    elf_getphdrnum(elf, &count);
    for (size_t i = 0; i < count; i++)
        if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_LOAD &&
            address - segment.p_vaddr < segment.p_filesz) {
            *position = segment.p_offset + (address - segment.p_vaddr);
            return segment.p_filesz - (address - segment.p_vaddr);
        }
    return 0;
}

static void find_range(Elf *elf, sp_cfi_section *section)
{
    size_t count = 0;
    GElf_Phdr segment;
    elf_getphdrnum(elf, &count);
    section->module_start = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        if (!gelf_getphdr(elf, (int)i, &segment))
            continue;
        if (segment.p_type == PT_GNU_EH_FRAME)
            section->header_address = segment.p_vaddr;
        if (segment.p_type != PT_LOAD)
            continue;
        uint64_t start = segment.p_vaddr & ~(uint64_t)(PAGE_BYTES - 1);
        uint64_t end = segment.p_vaddr + segment.p_memsz;
        if (start < section->module_start)
            section->module_start = start;
        if (end > section->module_end)
            section->module_end = end;
    }
}

/* As the snapshot does: the header says where .eh_frame begins and how many functions it has, the
 * segment where it ends. */
static bool read_object(const char *path, object *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    Elf *elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL);
    size_t size;
    const uint8_t *file = elf ? (const uint8_t *)elf_rawfile(elf, &size) : NULL;
    sp_cfi_section *section = &out->section;
    *out = (object){.copy = NULL};
    if (file && elf_kind(elf) == ELF_K_ELF)
        find_range(elf, section);
    uint64_t at,
        length = section->header_address ? find_in_file(elf, section->header_address, &at) : 0;
    if (length) {
        sp_cfi_reader reader = {
            .data = file + at, .length = length, .address = section->header_address};
        sp_cfi_read_unsigned(&reader, 1);
        unsigned frame_encoding = (unsigned)sp_cfi_read_unsigned(&reader, 1);
        unsigned count_encoding = (unsigned)sp_cfi_read_unsigned(&reader, 1);
        sp_cfi_read_unsigned(&reader, 1);
        section->address = sp_cfi_read_pointer(&reader, frame_encoding, section->header_address);
        section->fde_limit = sp_cfi_read_pointer(&reader, count_encoding, section->header_address);
        section->length = find_in_file(elf, section->address, &at);
        out->copy = reader.failed || !section->length ? NULL : malloc(section->length);
        if (out->copy)
            memcpy(out->copy, file + at, section->length);
        section->data = out->copy;
    }
    elf_end(elf);
    if (fd >= 0)
        close(fd);
    return out->copy != NULL;
}

/* --- Memory ----------------------------------------------------------------------------------- */

static double resident_mb(const char *what)
{
    unsigned long kib = 0;
    char line[256];
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, what, strlen(what)) == 0)
            sscanf(line + strlen(what), ": %lu", &kib);
    if (file)
        fclose(file);
    return (double)kib * 1024 / 1e6;
}

/* From here on VmHWM is the most since now. */
static void forget_peak(void)
{
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "5", 1) != 1)
        printf("(the peak is that since the process began) ");
    if (fd >= 0)
        close(fd);
}

/* --- Measuring -------------------------------------------------------------------------------- */

/* How long libdw takes for the rules of all rows; 0: it cannot. */
static double libdw_ms(const char *path, const sp_cfi_section *section)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    Elf *elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL);
    Dwarf_CFI *cfi = elf ? dwarf_getcfi_elf(elf) : NULL;
    sp_cfi_function *functions;
    size_t count = sp_cfi_functions(section, &functions);
    uint64_t start = thread_cpu_ns(), rows = 0;
    for (size_t i = 0; cfi && i < count; i++) {
        Dwarf_Addr at = section->module_start + functions[i].begin, from, to = at;
        for (; at < section->module_start + functions[i].end; at = to, rows++) {
            Dwarf_Frame *frame = NULL;
            if (dwarf_cfi_addrframe(cfi, at, &frame) != 0)
                break;
            dwarf_frame_info(frame, &from, &to, NULL);
            free(frame);
            if (to <= at)
                break;
        }
    }
    double ms = rows ? (double)(thread_cpu_ns() - start) / 1e6 : 0;
    free(functions);
    elf_end(elf);
    if (fd >= 0)
        close(fd);
    return ms;
}

static sp_unwind_table *compile_timed(const sp_cfi_section *section, sp_rule_pool *pool, double *ms)
{
    uint64_t start = thread_cpu_ns();
    sp_unwind_table *table = sp_unwind_table_compile(section, pool);
    *ms = (double)(thread_cpu_ns() - start) / 1e6;
    return table;
}

static void measure(const char *path, double file_mb)
{
    object object;
    double ms[RUNS];
    if (!read_object(path, &object)) {
        printf("%s: no frame information\n", path);
        return;
    }
    sp_rule_pool pool;
    if (!sp_rule_pool_init(&pool)) {
        printf("%s: out of memory\n", path);
        return;
    }
    forget_peak();
    double before = resident_mb("VmRSS");
    sp_unwind_table *table = compile_timed(&object.section, &pool, &ms[0]);
    double peak = resident_mb("VmHWM") - before, grows = resident_mb("VmRSS") - before;
    if (!table) {
        printf("%s: no table\n", path);
        return;
    }
    double first = ms[0], table_mb = (double)table->bytes / 1e6;
    uint32_t rows = table->row_count, rules = pool.numbers.count;
    sp_unwind_table_destroy(table);
    for (int run = 0; run < RUNS; run++)
        sp_unwind_table_destroy(compile_timed(&object.section, &pool, &ms[run]));
    const char *name = strrchr(path, '/');
    printf("%-20s %6.1f %8u %6u %6.2f %8.1f %8.1f %8.1f %7.1f %7.1f %7.1f %7.0f\n",
           name ? name + 1 : path, file_mb, rows, rules, table_mb * 1e6 / rows, first,
           figures_quantile(ms, RUNS, 0.5), (double)object.section.length / 1e6, table_mb, grows,
           peak, libdw_ms(path, &object.section));
    free(object.copy);
}

static void measure_apart(const char *path)
{
    struct stat file;
    if (stat(path, &file) != 0)
        return;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        measure(path, (double)file.st_size / 1e6);
        exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0)
        printf("%s: not measured\n", path);
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {"/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1",
                                        "/usr/lib/x86_64-linux-gnu/libLLVM-15.so.1",
                                        "/usr/bin/node",
                                        "/usr/bin/python3.11",
                                        "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
                                        "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
                                        "/usr/lib/x86_64-linux-gnu/libc.so.6"};
    elf_version(EV_CURRENT);
    printf("%-20s %6s %8s %6s %6s %8s %8s %8s %7s %7s %7s %7s\n", "", "file", "rows", "rules",
           "bytes", "first", "median", "section", "table", "grows", "peak", "libdw");
    printf("%-20s %6s %8s %6s %6s %8s %8s %8s %7s %7s %7s %7s\n", "", "MB", "", "", "a row", "ms",
           "ms", "MB", "MB", "MB", "MB", "ms");
    for (int i = 1; i < argc; i++)
        measure_apart(argv[i]);
    for (size_t i = 0; argc == 1 && i < sizeof usual / sizeof usual[0]; i++)
        measure_apart(usual[i]);
    return 0;
}
