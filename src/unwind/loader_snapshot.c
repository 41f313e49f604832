/* SPDX-License-Identifier: Apache-2.0 */
/* Copying happens in rounds: a round counts the room that it needs, copies what fits, and is
 * repeated with more room when something did not fit. The start takes two rounds, most later
 * changes take one. */
#include "unwind/loader_snapshot.h"

#include <elf.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "core/lock.h"
#include "unwind/frame_section.h"
#include "unwind/module_file.h"
#include "unwind/module_image.h"

#define ROUNDS_MAX 8

/* Held while the loader's lock is held; see sp_loader_fork_prepare. */
static sp_lock fork_guard = SP_LOCK_AT(SP_LOCK_LOADER);

typedef struct round {
    sp_loader_snapshot *snapshot;
    const sp_generation *known;
    sp_loader_counters before;
    uint64_t vdso;
    size_t image_capacity;
    size_t byte_capacity;
    size_t images_needed; /* counted even when there is no room */
    size_t bytes_needed;
    bool is_first_module;
} copy_round;

static void visit_loaded(int (*visit)(struct dl_phdr_info *, size_t, void *), void *user)
{
    sp_lock_take(&fork_guard);
    dl_iterate_phdr(visit, user);
    sp_lock_give(&fork_guard);
}

void sp_loader_fork_prepare(void)
{
    sp_lock_take(&fork_guard);
}

void sp_loader_fork_done(void)
{
    sp_lock_give(&fork_guard);
}

static int read_counters(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    *(sp_loader_counters *)user =
        (sp_loader_counters){.adds = info->dlpi_adds, .subs = info->dlpi_subs};
    return 1; /* each module reports the same counters */
}

sp_loader_counters sp_loader_counters_read(void)
{
    sp_loader_counters counters = {0};
    visit_loaded(read_counters, &counters);
    return counters;
}

/* Copy LENGTH bytes of DATA into the snapshot. NULL when they do not fit; sp_loader_snapshot_take
 * detects that by bytes_needed. */
static void *copy_bytes(copy_round *round, const void *data, uint64_t length)
{
    size_t at = round->bytes_needed;
    round->bytes_needed += length;
    if (round->bytes_needed > round->byte_capacity)
        return NULL;
    return memcpy(round->snapshot->bytes + at, data, length);
}

static void find_build_id(const struct dl_phdr_info *info, sp_module_image *image)
{
    for (size_t i = 0; i < info->dlpi_phnum && !image->build_id_length; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_NOTE)
            continue;
        uint64_t address = info->dlpi_addr + segment->p_vaddr;
        uint64_t length = sp_min_u64(segment->p_memsz, sp_image_readable_from(info, address));
        const uint8_t *notes = (const uint8_t *)(uintptr_t)address; // NOLINT
        sp_image_take_build_id(notes, length, segment->p_align, image);
        image->build_id_offset += segment->p_offset;
    }
}

static void copy_section(copy_round *round, const struct dl_phdr_info *info, uint64_t header,
                         sp_module_image *image)
{
    sp_cfi_section section;
    if (!sp_image_read_frame_header((const uint8_t *)(uintptr_t)header, // NOLINT
                                    sp_image_readable_from(info, header), header, &section))
        return;
    section.length = sp_image_section_length(info, &section);
    if (!section.length || section.length > SP_FRAME_SECTION_MAX)
        return;
    const void *data = (const void *)(uintptr_t)section.address; // NOLINT
    section.data = copy_bytes(round, data, section.length);
    section.module_start = image->start;
    section.module_end = image->end;
    if (section.data)
        image->section = section;
}

static void copy_frame_information(copy_round *round, const struct dl_phdr_info *info,
                                   sp_module_image *image)
{
    for (size_t i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
            copy_section(round, info, info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, image);
}

/* The first module is the program itself, whatever name the C library gives it. */
static const char *name_of(const copy_round *round, const struct dl_phdr_info *info,
                           const sp_module_image *image)
{
    if (round->vdso && image->start == round->vdso)
        return "[vdso]";
    return round->is_first_module || !info->dlpi_name ? "" : info->dlpi_name;
}

/* The known module that IMAGE is, unchanged, or NULL. A library without build id may have been
 * replaced by another one at the same addresses if any library was unloaded. */
static sp_module *find_known(const copy_round *round, const struct dl_phdr_info *info,
                             const sp_module_image *image, const char *name)
{
    for (uint32_t i = 0; round->known && i < round->known->module_count; i++) {
        sp_module *module = round->known->modules[i];
        if (module->start != image->start || module->end != image->end ||
            module->bias != image->bias || module->build_id_length != image->build_id_length)
            continue;
        bool may_differ = image->build_id_length == 0 && !round->is_first_module &&
                          info->dlpi_subs != round->before.subs;
        bool is_equal = memcmp(module->build_id, image->build_id, image->build_id_length) == 0 &&
                        strcmp(module->loader_name, name) == 0;
        return is_equal && !may_differ ? module : NULL;
    }
    return NULL;
}

static int copy_module(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    copy_round *round = user;
    sp_module_image image = {0};
    sp_image_find_range(info, &image);
    if (image.start < image.end) {
        find_build_id(info, &image);
        const char *name = name_of(round, info, &image);
        image.known = find_known(round, info, &image, name);
        if (!image.known) {
            image.loader_name = copy_bytes(round, name, strlen(name) + 1);
            image.headers_bytes = info->dlpi_phnum * sizeof *info->dlpi_phdr;
            image.headers = copy_bytes(round, info->dlpi_phdr, image.headers_bytes);
            copy_frame_information(round, info, &image);
        }
        if (round->images_needed < round->image_capacity)
            round->snapshot->images[round->images_needed] = image;
        round->images_needed++;
    }
    round->is_first_module = false;
    round->snapshot->counters =
        (sp_loader_counters){.adds = info->dlpi_adds, .subs = info->dlpi_subs};
    return 0;
}

/* Allocate the room that the previous round counted, and an eighth more. */
static bool make_room(copy_round *round)
{
    sp_loader_snapshot *snapshot = round->snapshot;
    sp_loader_snapshot_deinit(snapshot);
    round->image_capacity = round->images_needed + round->images_needed / 8 + 8;
    round->byte_capacity = round->bytes_needed + round->bytes_needed / 8 + 4096;
    snapshot->images = malloc(round->image_capacity * sizeof *snapshot->images);
    snapshot->bytes = malloc(round->byte_capacity);
    return snapshot->images && snapshot->bytes;
}

/* The arguments of sp_loader_copy, and whether it copied. */
typedef struct copy_request {
    const sp_module_image *image;
    uint64_t address, bytes;
    uint8_t *out;
    bool is_done;
} copy_request;

static int copy_requested(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    copy_request *request = user;
    sp_module_image found = {0};
    sp_image_find_range(info, &found);
    if (found.start != request->image->start || found.end != request->image->end)
        return 0;
    if (request->bytes <= sp_image_readable_from(info, request->address)) {
        const void *data = (const void *)(uintptr_t)request->address; // NOLINT
        memcpy(request->out, data, request->bytes);
        request->is_done = true;
    }
    return 1;
}

bool sp_loader_copy(const sp_module_image *image, uint64_t address, uint64_t bytes, uint8_t *out)
{
    copy_request request = {.image = image, .address = address, .bytes = bytes, .out = out};
    visit_loaded(copy_requested, &request);
    return request.is_done;
}

/* Complete the images from their files, after the loader's lock is released. */
static bool complete_images(sp_loader_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->image_count; i++) {
        sp_module_image *image = &snapshot->images[i];
        sp_module_file file;
        if (image->known)
            continue;
        sp_module_file_find(image, &file);
        image->origin = file.origin;
        image->path = strdup(file.path);
        if (!image->path)
            return false;
        if (!image->section.length && image->loader_name[0] != '[')
            sp_frame_section_add(image);
    }
    return true;
}

bool sp_loader_snapshot_take(sp_loader_snapshot *out, const sp_generation *known,
                             sp_loader_counters before)
{
    *out = (sp_loader_snapshot){0};
    copy_round round = {
        .snapshot = out, .known = known, .before = before, .vdso = getauxval(AT_SYSINFO_EHDR)};
    for (int i = 0; i < ROUNDS_MAX; i++) {
        if (!make_room(&round))
            break;
        round.images_needed = 0;
        round.bytes_needed = 0;
        round.is_first_module = true;
        visit_loaded(copy_module, &round);
        if (round.images_needed <= round.image_capacity &&
            round.bytes_needed <= round.byte_capacity) {
            out->image_count = round.images_needed;
            if (complete_images(out))
                return true;
            break;
        }
    }
    sp_loader_snapshot_deinit(out);
    return false;
}

void sp_loader_snapshot_deinit(sp_loader_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->image_count; i++) {
        free(snapshot->images[i].section_copy);
        free(snapshot->images[i].path);
    }
    free(snapshot->images);
    free(snapshot->bytes);
    *snapshot = (sp_loader_snapshot){0};
}
