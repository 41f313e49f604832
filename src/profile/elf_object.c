/* SPDX-License-Identifier: Apache-2.0 */
/* Whose names are these? A path says little: packages are upgraded under running programs. A file counts as the one that was
 * loaded only when its build id is the one that the loaded image carries; else its names would be plausible and wrong. The same
 * holds for a debug file. Only where a module has no build id is its path believed, and a debug file by the checksum that
 * .gnu_debuglink gives.
 *
 * Files are mapped, not read: libdw touches the pages of what is asked for. Compressed debug sections are the exception, libdw
 * inflates each one whole; above LARGEST_INFLATED they are left alone and the symbol table has to do. */
#include "profile/elf_object.h"

#include <elf.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/hex.h"
#include "core/log.h"

enum { LARGEST_INFLATED = 100 * 1024 * 1024 };

static const char *debug_directory = "/usr/lib/debug";

void sp_elf_object_set_debug_directory(const char *directory)
{
    debug_directory = directory;
}

/* An open file; fd is -1 and elf NULL when it could not be opened. */
typedef struct open_file {
    int fd;
    Elf *elf;
    int error;           /* errno of open */
    const char *problem; /* libelf's, when it was opened but is no ELF file */
    sp_file_mark mark;
} open_file;

static void close_file(open_file *file)
{
    elf_end(file->elf);
    if (file->fd >= 0)
        close(file->fd);
    sp_file_mark_deinit(&file->mark);
    *file = (open_file){.fd = -1};
}

/* A regular file only: opening a FIFO would wait, and a device has effects. */
static int open_regular(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat status;
    if (fd < 0 || (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)))
        return fd;
    close(fd);
    errno = EINVAL;
    return -1;
}

/* Section headers are the last thing in most files, and libelf takes those that lie outside for none at all. */
static const char *problem_of(const open_file *file)
{
    GElf_Ehdr header;
    struct stat status;
    if (!file->elf || elf_kind(file->elf) != ELF_K_ELF || !gelf_getehdr(file->elf, &header))
        return "not an ELF file, or a damaged one";
    uint64_t sections = (uint64_t)header.e_shnum * header.e_shentsize;
    if (fstat(file->fd, &status) != 0 || header.e_shoff > (uint64_t)status.st_size ||
        sections > (uint64_t)status.st_size - header.e_shoff)
        return "its section headers lie outside the file (truncated?)";
    return NULL;
}

static open_file open_elf(const char *path)
{
    open_file file = {.fd = open_regular(path)};
    if (file.fd < 0) {
        file.error = errno;
        return file;
    }
    sp_file_mark_init(&file.mark, path, file.fd);
    file.elf = elf_begin(file.fd, ELF_C_READ_MMAP, NULL);
    const char *problem = problem_of(&file);
    if (problem)
        close_file(&file);
    file.problem = problem;
    return file;
}

/* Whether ELF carries MODULE's build id. A module without one matches everything. */
static bool has_build_id_of(Elf *elf, const sp_module *module)
{
    if (!module->build_id_length)
        return true;
    const void *id;
    ssize_t length = dwelf_elf_gnu_build_id(elf, &id);
    return length == (ssize_t)module->build_id_length &&
           memcmp(id, module->build_id, (size_t)length) == 0;
}

/* Whether PATH names the main executable, as the kernel knows it (which adds " (deleted)"), for modules without build id. */
static bool is_main_executable(const char *path)
{
    char target[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", target, sizeof target - 1);
    size_t count = strlen(path);
    return count == 0 ||
           (length >= (ssize_t)count && memcmp(target, path, count) == 0 &&
            (target[length] = 0, target[count] == 0 || strcmp(target + count, " (deleted)") == 0));
}

/* The running program's own file, when MODULE is the main executable: it can be opened even after it was removed or replaced. */
static open_file open_running_executable(const sp_module *module)
{
    if (!module->build_id_length && !is_main_executable(module->path))
        return (open_file){.fd = -1};
    open_file file = open_elf("/proc/self/exe");
    if (file.elf && !has_build_id_of(file.elf, module))
        close_file(&file);
    return file;
}

static void warn_unusable(const sp_module *module, const open_file *file)
{
    const char *consequence = "its frames get no names";
    if (file->elf)
        sp_log_warn("symbols",
                    "reading %s: its build id is not that of the library in memory (replaced since "
                    "it was loaded?): %s",
                    module->path, consequence);
    else if (file->problem)
        sp_log_warn("symbols", "reading %s: %s: %s", module->path, file->problem, consequence);
    else
        sp_log_warn("symbols", "reading %s: %s: %s", module->path, strerror(file->error),
                    consequence);
}

static open_file open_loaded(const sp_module *module)
{
    open_file file =
        module->path[0] ? open_elf(module->path) : (open_file){.fd = -1, .error = ENOENT};
    if (file.elf && has_build_id_of(file.elf, module))
        return file;
    open_file running = open_running_executable(module);
    if (!running.elf)
        warn_unusable(module, &file);
    close_file(&file);
    return running;
}

/* The vdso is an ELF image in memory, section headers and all; no file holds it. */
static Elf *open_vdso(const sp_module *module)
{
    unsigned long base = getauxval(AT_SYSINFO_EHDR);
    if (!base || base < module->start || base >= module->end)
        return NULL;
    const ElfW(Ehdr) *header = (const void *)base; /* a pointer that the kernel gives as a number */
    size_t size = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
    if (size > 16 * 4096u)
        return NULL;
    return elf_memory((char *)base, size);
}

static bool has_section(Elf *elf, const char *name)
{
    size_t names;
    if (elf_getshdrstrndx(elf, &names) != 0)
        return false;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        const char *found =
            gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (found && strcmp(found, name) == 0)
            return header.sh_type != SHT_NOBITS;
    }
    return false;
}

static bool has_dwarf(Elf *elf)
{
    return has_section(elf, ".debug_info") || has_section(elf, ".zdebug_info");
}

static uint64_t inflated_bytes(Elf *elf)
{
    uint64_t sum = 0;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        GElf_Chdr compression;
        if (gelf_getshdr(section, &header) && (header.sh_flags & SHF_COMPRESSED) &&
            gelf_getchdr(section, &compression))
            sum += sp_min_u64(compression.ch_size,
                              UINT32_MAX); /* a forged size must not wrap the sum */
    }
    return sum;
}

/* NULL when the file has none, or too much. Its debug file's directory, where shared parts (dwz) are, is noted now: later the
 * descriptor is closed. */
static Dwarf *open_dwarf(Elf *elf, const char *path)
{
    if (!has_dwarf(elf))
        return NULL;
    if (inflated_bytes(elf) > LARGEST_INFLATED) {
        sp_log_info(
            "symbols",
            "%s: more than %d MiB of compressed debug information: using the symbol table only",
            path, LARGEST_INFLATED >> 20);
        return NULL;
    }
    Dwarf *dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
    if (!dwarf)
        sp_log_warn("symbols",
                    "reading the debug information of %s: %s: using the symbol table only", path,
                    dwarf_errmsg(-1));
    return dwarf;
}

/* The checksum of .gnu_debuglink: CRC-32 as gzip has it, a bit at a time, for a file is read once and seldom. */
static uint32_t crc32_of(const uint8_t *data, size_t size)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static bool has_checksum(int fd, uint32_t expected)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || status.st_size <= 0)
        return false;
    size_t size = (size_t)status.st_size;
    void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return false;
    bool equal = crc32_of(data, size) == expected;
    munmap(data, size);
    return equal;
}

static open_file open_debug_by_build_id(const sp_module *module)
{
    char hex[2 * SP_BUILD_ID_MAX + 1];
    char path[PATH_MAX];
    if (module->build_id_length < 2 || module->build_id_length > SP_BUILD_ID_MAX)
        return (open_file){.fd = -1};
    sp_hex_encode(hex, module->build_id, module->build_id_length);
    (void)snprintf(path, sizeof path, "%s/.build-id/%.2s/%s.debug", debug_directory, hex, hex + 2);
    open_file file = open_elf(path);
    if (file.elf && !has_build_id_of(file.elf, module))
        close_file(&file);
    return file;
}

/* The places where a debugger looks for the file that .gnu_debuglink names, DIRECTORY being that of the module. */
static open_file open_debug_by_link(const sp_module *module, Elf *loaded)
{
    GElf_Word crc;
    const char *name = dwelf_elf_gnu_debuglink(loaded, &crc);
    const char *slash = strrchr(module->path, '/');
    open_file file = {.fd = -1};
    if (!name || !slash)
        return file;
    int length = (int)(slash - module->path);
    const char *const formats[] = {"%s%.*s/.debug/%s", "%s%.*s/%s", "%s%.*s/%s"};
    const char *const roots[] = {"", debug_directory, ""};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(formats) && !file.elf; i++) {
        char path[PATH_MAX];
        int needed = snprintf(path, sizeof path, formats[i], roots[i], length, module->path, name);
        if (needed >= (int)sizeof path || strcmp(path, module->path) == 0)
            continue;
        file = open_elf(path);
        if (file.elf && !(module->build_id_length ? has_build_id_of(file.elf, module)
                                                  : has_checksum(file.fd, crc)))
            close_file(&file);
    }
    return file;
}

/* Give up FILE's descriptor but not its mapping, so that a process does not lose a descriptor for each library. */
static Elf *keep_elf(open_file *file)
{
    if (file->elf)
        elf_cntl(file->elf, ELF_C_FDDONE);
    if (file->fd >= 0)
        close(file->fd);
    return file->elf;
}

void sp_elf_object_open(sp_elf_object *object, const sp_module *module)
{
    *object = (sp_elf_object){0};
    elf_version(EV_CURRENT);
    if (strcmp(module->path, "[vdso]") == 0) {
        object->loaded = open_vdso(module);
        return;
    }
    open_file loaded = open_loaded(module);
    open_file debug = {.fd = -1};
    if (loaded.elf)
        object->dwarf = open_dwarf(loaded.elf, module->path);
    if (!object->dwarf)
        debug = open_debug_by_build_id(module);
    if (!object->dwarf && !debug.elf && loaded.elf)
        debug = open_debug_by_link(module, loaded.elf);
    if (debug.elf)
        object->dwarf = open_dwarf(debug.elf, module->path);
    object->loaded = keep_elf(&loaded);
    object->debug = keep_elf(&debug);
    object->loaded_mark = loaded.mark;
    object->debug_mark = debug.mark;
}

void sp_elf_object_close(sp_elf_object *object)
{
    dwarf_end(object->dwarf);
    elf_end(object->debug);
    elf_end(object->loaded);
    sp_file_mark_deinit(&object->loaded_mark);
    sp_file_mark_deinit(&object->debug_mark);
    *object = (sp_elf_object){0};
}

bool sp_elf_object_is_written(const sp_elf_object *object)
{
    return sp_file_mark_is_written(&object->loaded_mark) ||
           sp_file_mark_is_written(&object->debug_mark);
}
