/* SPDX-License-Identifier: Apache-2.0 */
/* What an ended process has left in the spool: whatever the bytes are, the start takes the file
 * over or leaves it, and what is read is whole. The first byte of the input chooses the file's name
 * and the format that is sent, the rest is the file. */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export/export_internal.h"
#include "remove_folder.h"

static char directory[64], folder[PATH_MAX];

static void remove_all(void)
{
    remove_folder(folder);
    rmdir(directory);
}

static sp_spool open_spool(uint8_t choice)
{
    sp_spool spool = {.wanted = {true, true}};
    spool.formats[0] = spool.formats[1] = (sp_otlp_format)(choice & 1);
    FUZZ_CHECK(sp_spool_open(&spool, directory, "fuzz", 0));
    return spool;
}

/* The folder of an ended process, which the directory has while no spool is open. */
static void set_up(void)
{
    strcpy(directory, "/tmp/spanprof-fuzz-XXXXXX");
    FUZZ_CHECK(mkdtemp(directory) != NULL);
    sp_spool spool = open_spool(0);
    const char *pid = strchr(strrchr(spool.folder, '/'), '.');
    snprintf(folder, sizeof folder, "%.*s.1.1", (int)(pid - spool.folder), spool.folder);
    sp_spool_close(&spool);
    atexit(remove_all);
}

static void write_file(const char *name, const uint8_t *data, size_t length)
{
    char path[PATH_MAX + 64];
    FUZZ_CHECK(mkdir(folder, 0700) == 0 || errno == EEXIST);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    FUZZ_CHECK(file && (length == 0 || fwrite(data, 1, length, file) == length));
    fclose(file);
}

static void check(sp_spool *spool, sp_telemetry_signal signal, size_t length)
{
    sp_request *first = sp_spool_list(spool, signal);
    for (sp_request *next, *request = first; request; request = next) {
        next = request->next;
        FUZZ_CHECK(request->spooled_bytes == length);
        sp_spool_found found = sp_spool_get(spool, request);
        FUZZ_CHECK(found == SP_SPOOL_WHOLE || found == SP_SPOOL_LOST);
        FUZZ_CHECK(found == SP_SPOOL_WHOLE ? request->body.length + 32 == length
                                           : request->body.data == NULL);
        FUZZ_CHECK(sp_spool_remove(spool, request));
        sp_request_free(request);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    static const char *const names[] = {"00000000000000000001.traces",
                                        "09223372036854775807.profiles",
                                        "18446744073709551615.traces", "new"};
    if (length == 0)
        return 0;
    if (!directory[0])
        set_up();
    write_file(names[data[0] >> 1 & 3], data + 1, length - 1);
    sp_spool spool = open_spool(data[0]);
    check(&spool, SP_TRACES, length - 1);
    check(&spool, SP_PROFILES, length - 1);
    FUZZ_CHECK(spool.used_bytes == 0);
    sp_spool_close(&spool);
    remove_folder(folder); /* where the file was left */
    return 0;
}
