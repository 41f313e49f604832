/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/read/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "core/buffer.h"
#include "core/counted.h"
#include "core/run_files.h"
#include "proto/profiles.pb-c.h"
#include "proto/trace.pb-c.h"
#include "tool/read/other_processes.h"
#include "tool/read/switches.h"
#include "tool/text/messages.h"
#include "tool/text/progress.h"
#include "core/reach.h"

/* The limit of a file's size after unzipping: a few kilobytes of gzip can become any number of
 * bytes. */
#define MAX_FILE_BYTES ((size_t)2 << 30)

/* How many bytes one call reads. The buffer needs this much room also after the last byte, because
 * only a call that reads nothing shows that it was the last. */
enum { STEP_BYTES = 256 * 1024 };

const ProtobufCMessageDescriptor *sp_signal_descriptor(sp_signal signal)
{
    return signal == SP_SIGNAL_TRACES ? &sp__trace__traces_data__descriptor
                                      : &sp__profiles__profiles_data__descriptor;
}

size_t sp_input_count(const sp_input *input, sp_signal signal)
{
    size_t count = 0;
    for (size_t i = 0; i < input->count; i++)
        count += input->documents[i].signal == signal;
    return count;
}

const char *sp_document_name(char out[SP_DOCUMENT_NAME_LENGTH], const sp_document *document)
{
    if (document->alone)
        snprintf(out, SP_DOCUMENT_NAME_LENGTH, "%s", document->path);
    else
        snprintf(out, SP_DOCUMENT_NAME_LENGTH, "%.290s:%llu", document->path,
                 (unsigned long long)document->number);
    return out;
}

int sp_input_add(sp_input *input, const char *path, sp_signal signal, size_t bytes,
                 ProtobufCMessage *message)
{
    if (!SP_REACH(input->documents, input->count, input->capacity, 16))
        return sp_tool_no_memory();
    sp_document *last = input->count ? &input->documents[input->count - 1] : NULL;
    bool first = !last || last->path != path;
    if (!first)
        last->alone = false;
    input->documents[input->count++] = (sp_document){.path = path,
                                                     .number = first ? 1 : last->number + 1,
                                                     .alone = first,
                                                     .signal = signal,
                                                     .bytes = bytes,
                                                     .message = message};
    return SP_TOOL_DONE;
}

void sp_input_note_torn(sp_input *input, const char *path, const char *where, size_t length)
{
    input->is_torn = true;
    sp_tool_note("%s: %s is cut: the file ends at byte %zu, because the program was killed, still "
                 "runs, or the copy is not whole; what is before it was read",
                 path, where, length);
}

int sp_input_status(const sp_input *input, int status)
{
    return input->is_torn ? SP_TOOL_WRONG : status;
}

void sp_input_deinit(sp_input *input)
{
    free(input->documents);
    sp_arena_deinit(&input->memory);
    *input = (sp_input){0};
}

/* ---- bytes of a file ---- */

/* The size of the file FD; 0: not known. */
static uint64_t file_bytes(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) ? (uint64_t)status.st_size : 0;
}

/* Append the rest of FILE, unzipped, to OUT. BYTES, for the progress line: the size of the file
 * before unzipping; 0: not known. */
static int read_all(gzFile file, const char *path, uint64_t bytes, sp_buffer *out)
{
    for (;;) {
        uint8_t *end = sp_buffer_reserve(out, STEP_BYTES);
        if (out->length > MAX_FILE_BYTES)
            return sp_tool_wrong("%s: holds more than %zu MiB once unzipped; split it", path,
                                 MAX_FILE_BYTES >> 20);
        if (!end)
            return sp_tool_no_memory();
        int count = gzread(file, end, STEP_BYTES);
        if (count > 0)
            out->length += (size_t)count;
        sp_progress_step("reading", path, bytes ? (uint64_t)gzoffset(file) : out->length, bytes);
        int code = Z_OK;
        const char *reason = gzerror(file, &code);
        if (code == Z_BUF_ERROR)
            return sp_tool_wrong("%s: the gzip data is cut: it ends after %s of the unzipped "
                                 "content; copy or record the file again",
                                 path, SP_COUNTED(out->length, "byte"));
        if (code == Z_ERRNO)
            return sp_tool_wrong("%s: reading: %s", path, strerror(errno));
        if (code != Z_OK && code != Z_STREAM_END)
            return sp_tool_wrong("%s: the gzip data is damaged near unzipped byte %zu (%s); "
                                 "copy or record the file again",
                                 path, out->length, reason);
        if (count <= 0)
            return SP_TOOL_DONE;
    }
}

static int open_file(const char *path, int *fd)
{
    *fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (*fd < 0 && errno == ENOENT)
        return sp_tool_wrong("%s: there is no such file; name a file, or the PREFIX of "
                             "PREFIX.traces.jsonl and PREFIX.profiles.jsonl, which a program with "
                             "SPANPROF_EXPORTER=file SPANPROF_FILE=PREFIX writes once it calls "
                             "spanprof_start",
                             path);
    if (*fd < 0)
        return sp_tool_wrong("%s: cannot be opened: %s", path, strerror(errno));
    struct stat status;
    if (fstat(*fd, &status) == 0 && S_ISDIR(status.st_mode)) {
        close(*fd);
        return sp_tool_wrong("%s: is a directory; name the files in it", path);
    }
    return SP_TOOL_DONE;
}

static int load(const char *path, sp_buffer *out)
{
    int fd;
    int status = open_file(path, &fd);
    if (status != SP_TOOL_DONE)
        return status;
    uint64_t bytes = file_bytes(fd);
    gzFile file = gzdopen(fd, "rb");
    if (!file) {
        close(fd);
        return sp_tool_no_memory();
    }
    gzbuffer(file, 128 * 1024);
    /* The size of a file that is not zipped is known: reserve the memory in one step. */
    if (bytes <= MAX_FILE_BYTES && gzdirect(file))
        sp_buffer_reserve(out, bytes + STEP_BYTES);
    status = read_all(file, path, bytes, out);
    gzclose_r(file);
    return status;
}

/* ---- which format ---- */

/* Note that PATH, which was made at BEGIN_NS, is empty. PATH has to live as long as INPUT. */
static void add_empty(sp_input *input, const char *path, uint64_t begin_ns)
{
    if (input->empty_count++ == 0) {
        input->empty = path;
        input->empty_begin_ns = begin_ns;
    }
}

static void note_empty(sp_input *input, const char *path, bool may_be_empty)
{
    if (!may_be_empty)
        add_empty(input, path, sp_input_made_ns(path));
}

/* Write to OUT which files of other processes lie beside the first empty one. Returns OUT. */
static const char *beside_empty(char out[SP_OTHER_PROCESSES_TEXT], const sp_input *input,
                                const sp_operands *files)
{
    char others[SP_OTHER_PROCESSES_TEXT];
    *out = '\0';
    if (*sp_other_processes(others, input->empty, files, input->empty_begin_ns))
        snprintf(out, SP_OTHER_PROCESSES_TEXT, "; %.*s", SP_OTHER_PROCESSES_TEXT - 8, others);
    else if (*sp_other_processes(others, input->empty, files, 0))
        snprintf(out, SP_OTHER_PROCESSES_TEXT,
                 "; the processes of %.300s.PID.* ended before this run began", input->empty);
    return out;
}

/* One message for all empty files. */
static int tell_empty(const sp_input *input, const sp_operands *files)
{
    static const char reason[] = "its process recorded no span and no sample, as a parent that "
                                 "only forks; or it still runs, or within its first window it was "
                                 "killed, or ended by _exit without spanprof_stop";
    char more[64] = "", beside[SP_OTHER_PROCESSES_TEXT];
    if (input->empty_count > 1)
        snprintf(more, sizeof more, " (and %zu more)", input->empty_count - 1);
    beside_empty(beside, input, files);
    if (input->count == 0)
        return sp_tool_wrong("%s: is empty%s: %s%s", input->empty, more, reason, beside);
    sp_tool_note("%s: is empty%s: %s; the other files are read%s", input->empty, more, reason,
                 beside);
    return SP_TOOL_DONE;
}

/* MAY_BE_EMPTY: the file is one of several files of a run. A short run may leave one of them empty,
 * which is no mistake. */
static int read_file(sp_input *input, const char *path, bool may_be_empty)
{
    sp_buffer bytes = SP_BUFFER_INIT(MAX_FILE_BYTES + 2 * STEP_BYTES);
    int status = load(path, &bytes);
    if (status == SP_TOOL_DONE) {
        size_t start = sp_input_skip_space(bytes.data, bytes.length, 0);
        const char *own_path = sp_arena_strdup(&input->memory, path);
        if (!own_path)
            status = sp_tool_no_memory();
        else if (sp_switches_recognize(bytes.data, bytes.length))
            status = sp_tool_wrong("%s: has switches of threads, and no samples or spans; "
                                   "`spanprof stats` tells of it",
                                   path);
        else if (start == bytes.length) /* nothing, or nothing but space */
            note_empty(input, own_path, may_be_empty);
        else if (bytes.data[start] == '{')
            status = sp_input_read_json(input, own_path, bytes.data, bytes.length);
        else if (sp_input_is_collapsed(bytes.data, bytes.length))
            status = sp_input_read_collapsed(input, own_path, bytes.data, bytes.length);
        else
            status = sp_input_read_protobuf(input, own_path, bytes.data, bytes.length);
    }
    sp_buffer_deinit(&bytes);
    return status;
}

/* Whether the file FILE of PREFIX may have content. *PATH is its path, or NULL: memory is short. */
static bool has_content(sp_input *input, const char *prefix, const sp_run_file *file, char **path)
{
    char ending[SP_RUN_FILE_ENDING];
    struct stat status;
    *path = sp_arena_printf(&input->memory, "%s%s", prefix, sp_run_file_ending(ending, *file));
    return *path && stat(*path, &status) == 0 && (!S_ISREG(status.st_mode) || status.st_size > 0);
}

static int refuse_two_runs(const char *const paths[SP_RUN_FILE_FORMATS], const char *prefix)
{
    return sp_tool_wrong("%s: stands for two runs, %s and %s; name the files of one", prefix,
                         paths[0], paths[1]);
}

/* Refuse a PREFIX with content in files of both formats: these are the files of two runs. */
static int check_one_format(sp_input *input, const char *prefix, const sp_run_files *files)
{
    const char *first[SP_RUN_FILE_FORMATS] = {0};
    for (size_t i = 0; i < files->count; i++) {
        const sp_run_file *file = &files->items[i];
        char *path;
        bool found = has_content(input, prefix, file, &path);
        if (!path)
            return sp_tool_no_memory();
        if (found && !first[file->format])
            first[file->format] = path;
    }
    return first[0] && first[1] ? refuse_two_runs(first, prefix) : SP_TOOL_DONE;
}

static int read_files(sp_input *input, const char *prefix, const sp_run_files *files)
{
    int status = check_one_format(input, prefix, files);
    for (size_t i = 0; i < files->count && status == SP_TOOL_DONE; i++) {
        char ending[SP_RUN_FILE_ENDING];
        const char *path = sp_arena_printf(&input->memory, "%s%s", prefix,
                                           sp_run_file_ending(ending, files->items[i]));
        status = path ? read_file(input, path, true) : sp_tool_no_memory();
    }
    return status;
}

/* Name the files of other processes: without them the user would take the answer for that of the
 * whole server. */
static void tell_other_processes(const char *prefix, const sp_operands *files, uint64_t begin_ns)
{
    char others[SP_OTHER_PROCESSES_TEXT];
    if (*sp_other_processes(others, prefix, files, begin_ns))
        sp_tool_note("%s: %s", prefix, others);
}

/* Warn once that the files are of several runs: a pattern of the shell such as app*.jsonl also
 * matches the files of earlier runs. */
static void tell_earlier_runs(sp_input *input, const char *prefix, const sp_operands *files,
                              uint64_t begin_ns)
{
    char earlier[SP_OTHER_PROCESSES_TEXT];
    if (input->told_earlier || !*sp_earlier_processes(earlier, prefix, files, begin_ns))
        return;
    input->told_earlier = true;
    sp_tool_note("the answer mixes runs: %s ended before this run of %s began; leave these out, or "
                 "name %s alone to see which files are of its run",
                 earlier, prefix, prefix);
}

/* The same when PATH is a file of a run. The documents from PATH begin at index BEFORE. */
static void tell_earlier_files(sp_input *input, const char *path, const sp_operands *files,
                               size_t before)
{
    size_t length = sp_prefix_length(path);
    char *prefix = length ? sp_arena_printf(&input->memory, "%.*s", (int)length, path) : NULL;
    uint64_t begin_ns =
        input->count > before ? sp_input_begin_ns(input, before) : sp_input_made_ns(path);
    if (prefix)
        tell_earlier_runs(input, prefix, files, begin_ns);
}

/* When the last of FILES, which belong to PREFIX and are empty, was made. */
static uint64_t last_made_ns(sp_input *input, const char *prefix, const sp_run_files *files)
{
    uint64_t last = 0;
    for (size_t i = 0; i < files->count; i++) {
        char ending[SP_RUN_FILE_ENDING];
        const char *path = sp_arena_printf(&input->memory, "%s%s", prefix,
                                           sp_run_file_ending(ending, files->items[i]));
        uint64_t made = path ? sp_input_made_ns(path) : 0;
        last = made > last ? made : last;
    }
    return last;
}

/* PREFIX has the files OWN, and all of them are empty. */
static void tell_empty_run(sp_input *input, const char *prefix, const sp_run_files *own,
                           const sp_operands *files)
{
    uint64_t begin_ns = last_made_ns(input, prefix, own);
    add_empty(input, prefix, begin_ns);
    tell_earlier_runs(input, prefix, files, begin_ns);
}

static void tell_run(sp_input *input, const char *prefix, const sp_operands *files,
                     uint64_t begin_ns)
{
    tell_other_processes(prefix, files, begin_ns);
    tell_earlier_runs(input, prefix, files, begin_ns);
}

/* Read the files of PREFIX. *FOUND: there are any. */
static int read_run(sp_input *input, const sp_operands *files, const char *prefix, bool *found)
{
    sp_run_files own;
    size_t before = input->count;
    if (!sp_run_files_find(&own, prefix))
        return sp_tool_no_memory();
    *found = own.count > 0;
    int status = read_files(input, prefix, &own);
    if (status == SP_TOOL_DONE && *found && input->count == before)
        tell_empty_run(input, prefix, &own, files);
    else if (status == SP_TOOL_DONE && *found)
        tell_run(input, prefix, files, sp_input_begin_ns(input, before));
    sp_run_files_deinit(&own);
    return status;
}

/* Whether PATH does not exist, or is an executable file. */
static bool holds_no_requests(const char *path)
{
    struct stat status;
    return stat(path, &status) != 0 || (S_ISREG(status.st_mode) && (status.st_mode & 0111));
}

/* Whether PATH is an executable file that begins like ELF or like a script. No file of ours begins
 * like that. */
static bool is_program(const char *path)
{
    struct stat status;
    char head[4] = "";
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) || !(status.st_mode & 0111))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, head, sizeof head);
    if (fd >= 0)
        close(fd);
    return (length == 4 && memcmp(head, "\177ELF", 4) == 0) ||
           (length >= 2 && memcmp(head, "#!", 2) == 0);
}

/* Read PATH, which is not the prefix of any file. */
static int read_other(sp_input *input, const sp_operands *files, const char *path)
{
    char others[SP_OTHER_PROCESSES_TEXT];
    if (holds_no_requests(path) && *sp_other_processes(others, path, files, 0))
        return sp_tool_wrong("%s: this prefix has no files of its own; %s", path, others);
    if (is_program(path))
        return sp_tool_wrong("%s: is a program, and there are no files of this prefix; run the "
                             "program with SPANPROF_EXPORTER=file SPANPROF_FILE=%s to make them",
                             path, path);
    size_t before = input->count;
    int status = read_file(input, path, false);
    if (status == SP_TOOL_DONE)
        tell_earlier_files(input, path, files, before);
    return status;
}

int sp_input_read(sp_input *input, const sp_operands *files)
{
    *input = (sp_input){0};
    if (files->count == 0)
        return sp_tool_wrong("no file is named; name files with traces or profiles");
    for (size_t i = 0; i < files->count; i++) {
        bool found = false;
        int status = SP_TOOL_DONE;
        if (strcmp(files->items[i], "-") != 0)
            status = read_run(input, files, files->items[i], &found);
        if (status == SP_TOOL_DONE && !found)
            status = read_other(input, files, files->items[i]);
        if (status != SP_TOOL_DONE)
            return status;
    }
    sp_progress_end();
    return input->empty_count ? tell_empty(input, files) : SP_TOOL_DONE;
}
