/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the right files for names. A path alone is not enough, because packages are upgraded while
 * programs run. A file counts as the loaded one only when it has the build id of the loaded image;
 * else its names would look right and be wrong. The same is required of a debug file. A module
 * without a build id needs the file that was at its path when the module was discovered, and a
 * debug file with the checksum that .gnu_debuglink gives.
 *
 * Files are mapped, not read: libdw accesses only the pages that it needs. Compressed debug
 * sections are the exception, because libdw inflates each one whole. When they are larger than
 * SP_ELF_LARGEST_INFLATED, only the symbol table is used. */
#include "symbol/elf_object.h"

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
#include <unistd.h>
#include <zlib.h>

#include "core/hex.h"
#include "core/log.h"
#include "core/regular_file.h"
#include "symbol/elf_file.h"

static const char *debug_directory = "/usr/lib/debug";

enum { CHECKSUM_PIECE_BYTES = 1024 * 1024 }; /* about a millisecond */

/* The module whose files are searched, and the level of warnings: a warning that was given once is
 * given as a debug message when the files are opened again. */
typedef struct search {
    const sp_module *module;
    spanprof_log_level level;
    bool *warned; /* set when a warning is given */
    const sp_meanwhile *meanwhile;
} search;

static spanprof_log_level level_of_warning(const search *s)
{
    *s->warned = true;
    return s->level;
}

void sp_elf_object_set_debug_directory(const char *directory)
{
    debug_directory = directory;
}

/* Whether ELF carries MODULE's build id. A module without a build id matches every file. */
static bool has_build_id_of(Elf *elf, const sp_module *module)
{
    return !module->build_id_length ||
           sp_elf_has_build_id(elf, module->build_id, module->build_id_length);
}

/* Whether FILE is the one that MODULE was loaded from, as far as that can be decided. */
static bool is_loaded_file(const sp_elf_file *file, const sp_module *module)
{
    const sp_module_origin *origin = &module->origin;
    if (module->build_id_length || origin->state == SP_ORIGIN_NOT_CHECKED)
        return has_build_id_of(file->elf, module);
    return file->mark.device == origin->device && file->mark.inode == origin->inode;
}

/* Whether PATH is the main executable's path according to the kernel (which adds " (deleted)"). For
 * modules without build id. */
static bool is_main_executable(const char *path)
{
    char target[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", target, sizeof target - 1);
    size_t count = strlen(path);
    return count == 0 ||
           (length >= (ssize_t)count && memcmp(target, path, count) == 0 &&
            (target[length] = 0, target[count] == 0 || strcmp(target + count, " (deleted)") == 0));
}

/* The running program's own file, when MODULE is the main executable: it can be opened even after
 * it was removed or replaced. */
static sp_elf_file open_running_executable(const sp_module *module)
{
    if (!module->build_id_length && !is_main_executable(module->path))
        return SP_ELF_FILE_NONE;
    sp_elf_file file = sp_elf_file_open("/proc/self/exe");
    if (file.elf && !is_loaded_file(&file, module))
        sp_elf_file_close(&file);
    return file;
}

static void warn_unusable(const search *s, const sp_elf_file *file)
{
    const char *reason = file->problem;
    if (file->elf && !s->module->build_id_length)
        reason = "it is another file than the one in memory (replaced since it was loaded?)";
    else if (file->elf)
        reason = "its build id is not that of the library in memory (replaced since it was "
                 "loaded?)";
    else if (!reason)
        reason = strerror(file->error);
    sp_log(level_of_warning(s), "symbols", "reading %s: %s: its frames get no names",
           s->module->path, reason);
}

static sp_elf_file open_loaded(const search *s)
{
    const sp_module *module = s->module;
    sp_elf_file file =
        module->path[0] ? sp_elf_file_open(module->path) : (sp_elf_file){.error = ENOENT};
    if (file.elf && is_loaded_file(&file, module))
        return file;
    sp_elf_file running = open_running_executable(module);
    if (!running.elf)
        warn_unusable(s, &file);
    sp_elf_file_close(&file);
    return running;
}

/* The vdso is a whole ELF image in memory, with section headers, and in no file. Another process
 * has it at another address; it is the same image if it has the same build id. */
static Elf *open_vdso(const sp_module *module)
{
    unsigned long base = getauxval(AT_SYSINFO_EHDR);
    bool is_own = base >= module->start && base < module->end;
    if (!base || (!is_own && !module->build_id_length))
        return NULL;
    const ElfW(Ehdr) *header = (const void *)base; /* a pointer that the kernel gives as a number */
    size_t size = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
    if (size > 16 * 4096u)
        return NULL;
    Elf *elf = elf_memory((char *)base, size);
    if (elf && !is_own && !has_build_id_of(elf, module)) {
        elf_end(elf);
        return NULL;
    }
    return elf;
}

static bool has_section(Elf *elf, const char *name)
{
    GElf_Shdr header;
    return sp_elf_find_section(elf, name, &header) && header.sh_type != SHT_NOBITS;
}

static bool has_dwarf(Elf *elf)
{
    return has_section(elf, ".debug_info") || has_section(elf, ".zdebug_info");
}

/* Open the debug information of FILE, with the part that it shares with other files, unless there
 * is none or too much. */
static void open_dwarf(sp_elf_object *object, const sp_elf_file *file, const search *s)
{
    char problem[PATH_MAX + 128];
    const char *path = s->module->path;
    if (!file->elf || !has_dwarf(file->elf))
        return;
    if (sp_elf_inflated_bytes(file->elf) > SP_ELF_LARGEST_INFLATED) {
        sp_log_info("symbols",
                    "%s: more than %d MiB of compressed debug information: using the symbol table",
                    path, (int)(SP_ELF_LARGEST_INFLATED >> 20));
        return;
    }
    object->dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
    if (!object->dwarf) {
        (void)snprintf(problem, sizeof problem, "%s", dwarf_errmsg(-1));
    } else if (!sp_dwarf_alt_open(&object->alt, object->dwarf, file->mark.path, debug_directory,
                                  problem, sizeof problem)) {
        dwarf_end(object->dwarf);
        object->dwarf = NULL;
    }
    if (!object->dwarf)
        sp_log(level_of_warning(s), "symbols",
               "reading the debug information of %s: %s: using the symbol table", path, problem);
}

/* Read a piece of MARK's file from offset AT on. The file is opened for each piece, because a
 * descriptor must not stay open for long (elf_file.h). Returns the number of bytes, 0 at the end;
 * -1: it cannot be read, or was replaced or written to. */
static ssize_t read_piece(const sp_file_mark *mark, off_t at, uint8_t piece[CHECKSUM_PIECE_BYTES])
{
    int fd = mark->path ? sp_regular_file_open(mark->path, O_RDONLY, NULL) : -1;
    ssize_t length = -1;
    sp_file_mark now;
    if (fd < 0)
        return -1;
    sp_file_mark_init(&now, mark->path, fd);
    if (sp_file_mark_is_equal(mark, &now))
        length = pread(fd, piece, CHECKSUM_PIECE_BYTES, at);
    close(fd);
    sp_file_mark_deinit(&now);
    return length;
}

/* Whether MARK's file has the CRC-32 of .gnu_debuglink, which is the same as gzip's. Debug files
 * may have gigabytes, so sp_meanwhile_do is called after each piece. The file is read, not mapped:
 * if a mapped file shrank, SIGBUS would end the process. */
static bool has_checksum(const search *s, const sp_file_mark *mark, uint32_t expected)
{
    uint8_t *piece = malloc(CHECKSUM_PIECE_BYTES);
    uLong sum = crc32(0, NULL, 0);
    ssize_t length = piece ? 1 : -1;
    for (off_t at = 0; length > 0; at += length) {
        length = read_piece(mark, at, piece);
        if (length > 0)
            sum = crc32(sum, piece, (uInt)length);
        sp_meanwhile_do(s->meanwhile);
    }
    free(piece);
    return length == 0 && sum == expected;
}

/* Open the debug file at PATH. A damaged file gets a warning. The caller compares the build id, and
 * silently ignores a file of another build. */
static sp_elf_file open_debug(const search *s, const char *path)
{
    sp_elf_file file = sp_elf_file_open(path);
    if (file.problem)
        sp_log(level_of_warning(s), "symbols", "reading %s: %s: not used", path, file.problem);
    return file;
}

static sp_elf_file open_debug_by_build_id(const search *s)
{
    const sp_module *module = s->module;
    char hex[2 * SP_BUILD_ID_MAX + 1];
    char path[PATH_MAX];
    if (module->build_id_length < 2 || module->build_id_length > SP_BUILD_ID_MAX)
        return SP_ELF_FILE_NONE;
    sp_hex_encode(hex, module->build_id, module->build_id_length);
    (void)snprintf(path, sizeof path, "%s/.build-id/%.2s/%s.debug", debug_directory, hex, hex + 2);
    sp_elf_file file = open_debug(s, path);
    if (file.elf && !has_build_id_of(file.elf, module))
        sp_elf_file_close(&file);
    return file;
}

/* Search the places where debuggers expect the file that .gnu_debuglink names: .debug/ beside the
 * module, the module's directory below the debug directory, and that directory itself. */
static sp_elf_file open_debug_by_link(const search *s, Elf *loaded)
{
    const sp_module *module = s->module;
    GElf_Word crc;
    const char *name = dwelf_elf_gnu_debuglink(loaded, &crc);
    const char *slash = strrchr(module->path, '/');
    sp_elf_file file = SP_ELF_FILE_NONE;
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
        file = open_debug(s, path);
        if (file.elf && !(module->build_id_length ? has_build_id_of(file.elf, module)
                                                  : has_checksum(s, &file.mark, crc)))
            sp_elf_file_close(&file);
    }
    return file;
}

/* Open the symbols that a distribution leaves in a stripped file, when neither file has a .symtab.
 */
static void open_debugdata(sp_elf_object *object, const search *s)
{
    GElf_Shdr header;
    Elf *loaded = object->loaded;
    Elf_Scn *section = loaded ? sp_elf_find_section(loaded, ".gnu_debugdata", &header) : NULL;
    if (!section || has_section(loaded, ".symtab") ||
        (object->debug && has_section(object->debug, ".symtab")))
        return;
    Elf_Data *data = header.sh_type == SHT_NOBITS ? NULL : elf_rawdata(section, NULL);
    const char *problem = data && data->d_buf
                              ? sp_elf_debugdata_open(&object->debugdata, data->d_buf, data->d_size)
                              : "its .gnu_debugdata is damaged";
    if (problem)
        sp_log(level_of_warning(s), "symbols", "reading %s: %s: not used", s->module->path,
               problem);
}

/* Open the separate debug file. FETCHED: the path of one that a server gave; NULL: none. */
static sp_elf_file open_separate(const search *s, Elf *loaded, const char *fetched)
{
    sp_elf_file debug = open_debug_by_build_id(s);
    if (!debug.elf && loaded)
        debug = open_debug_by_link(s, loaded);
    if (!debug.elf && fetched)
        debug = open_debug(s, fetched);
    if (debug.elf && fetched && !has_build_id_of(debug.elf, s->module))
        sp_elf_file_close(&debug);
    return debug;
}

void sp_elf_object_open(sp_elf_object *object, const sp_module *module, const char *fetched,
                        bool *warned, const sp_meanwhile *meanwhile)
{
    search s = {.module = module,
                .level = *warned ? SPANPROF_LOG_DEBUG : SPANPROF_LOG_WARN,
                .warned = warned,
                .meanwhile = meanwhile};
    *object = (sp_elf_object){0};
    elf_version(EV_CURRENT);
    if (strcmp(module->path, "[vdso]") == 0) {
        object->loaded = open_vdso(module);
        return;
    }
    sp_elf_file loaded = open_loaded(&s), debug = SP_ELF_FILE_NONE;
    open_dwarf(object, &loaded, &s);
    if (!object->dwarf) {
        debug = open_separate(&s, loaded.elf, fetched);
        open_dwarf(object, &debug, &s);
    }
    object->loaded = sp_elf_file_take(&loaded, &object->loaded_mark);
    object->debug = sp_elf_file_take(&debug, &object->debug_mark);
    open_debugdata(object, &s);
}

void sp_elf_object_close(sp_elf_object *object)
{
    dwarf_end(object->dwarf);
    sp_dwarf_alt_close(&object->alt);
    sp_elf_debugdata_close(&object->debugdata);
    elf_end(object->debug);
    elf_end(object->loaded);
    sp_file_mark_deinit(&object->loaded_mark);
    sp_file_mark_deinit(&object->debug_mark);
    *object = (sp_elf_object){0};
}

bool sp_elf_object_is_written(const sp_elf_object *object)
{
    return sp_file_mark_is_written(&object->loaded_mark) ||
           sp_file_mark_is_written(&object->debug_mark) ||
           sp_file_mark_is_written(&object->alt.mark);
}
