/* SPDX-License-Identifier: Apache-2.0 */
/* The spool: what one process puts there the next one finds, whole or counted as lost. Processes
 * are children of this one, because a process does not exclude itself from its own locks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "export/export_internal.h"
#include "remove_folder.h"
#include "unit/export/captured_log.h"

enum { HEAD_BYTES = 32 };

static char directory[64];

/* ---- What fails ---- */

static int until_failure = -1; /* of what takes memory; < 0: none fails */
static bool disk_is_full;

static bool fails(void)
{
    bool does = until_failure >= 0 && until_failure-- == 0;
    if (does)
        errno = ENOMEM;
    return does;
}

/* The linker sends the spool here (tests/CMakeLists.txt). */
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
char *__real_realpath(const char *path, char *out);
DIR *__real_opendir(const char *path);
int __real_scandir(const char *path, struct dirent ***entries, int (*filter)(const struct dirent *),
                   int (*compare)(const struct dirent **, const struct dirent **));
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
char *__wrap_realpath(const char *path, char *out);
DIR *__wrap_opendir(const char *path);
int __wrap_scandir(const char *path, struct dirent ***entries, int (*filter)(const struct dirent *),
                   int (*compare)(const struct dirent **, const struct dirent **));
int __wrap_asprintf(char **out, const char *format, ...);

void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return fails() ? NULL : __real_realloc(memory, bytes);
}

char *__wrap_realpath(const char *path, char *out)
{
    return fails() ? NULL : __real_realpath(path, out);
}

DIR *__wrap_opendir(const char *path)
{
    return fails() ? NULL : __real_opendir(path);
}

int __wrap_scandir(const char *path, struct dirent ***entries, int (*filter)(const struct dirent *),
                   int (*compare)(const struct dirent **, const struct dirent **))
{
    return fails() ? -1 : __real_scandir(path, entries, filter, compare);
}

int __wrap_asprintf(char **out, const char *format, ...)
{
    if (fails())
        return -1;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(out, format, arguments);
    va_end(arguments);
    return length;
}

/* In the place of the C library's. */
ssize_t writev(int fd, const struct iovec *ranges, int count)
{
    if (!disk_is_full)
        return syscall(SYS_writev, fd, ranges, count);
    struct stat status;
    fstat(fd, &status);
    errno = ENOSPC;
    return status.st_size ? -1 : syscall(SYS_write, fd, ranges[0].iov_base, ranges[0].iov_len / 2);
}

/* ---- Setting up ---- */

static int setup(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/spanprof-test-XXXXXX");
    assert_non_null(mkdtemp(directory));
    until_failure = -1;
    disk_is_full = false;
    capture_log();
    return 0;
}

/* Call CALL with each entry of FOLDER but . and .. */
static unsigned for_each(const char *folder, void (*call)(const char *path))
{
    unsigned count = 0;
    DIR *list = __real_opendir(folder);
    for (struct dirent *entry; list && (entry = readdir(list));) {
        char path[PATH_MAX];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        count++;
        if (call)
            call(path);
    }
    if (list)
        closedir(list);
    return count;
}

static void remove_one(const char *path)
{
    if (remove_folder(path) != 0)
        remove(path);
}

static int teardown(void **state)
{
    (void)state;
    until_failure = -1;
    chmod(directory, 0700);
    for_each(directory, remove_one);
    return rmdir(directory);
}

static sp_spool new_spool(void)
{
    return (sp_spool){.wanted = {true, true}};
}

static sp_spool open_spool(const char *service)
{
    sp_spool spool = new_spool();
    assert_true(sp_spool_open(&spool, directory, service, 0));
    return spool;
}

/* What is put by, and compared with, one call. */
static bool put(sp_spool *spool, sp_telemetry_signal signal, const char *text, sp_request *request)
{
    *request = (sp_request){.items = strlen(text) + 1, .gzip = signal == SP_PROFILES};
    request->body.maximum = 1 << 20;
    if (*text)
        assert_true(sp_buffer_add_string(&request->body, text));
    bool done = sp_spool_put(spool, request, signal);
    int error = errno;
    sp_buffer_deinit(&request->body);
    errno = error;
    return done;
}

static void must_put(sp_spool *spool, sp_telemetry_signal signal, const char *text)
{
    sp_request request;
    assert_true(put(spool, signal, text, &request));
}

static void free_list(sp_request *first)
{
    for (sp_request *next; first; first = next) {
        next = first->next;
        sp_request_free(first);
    }
}

static unsigned length_of(const sp_request *first)
{
    unsigned count = 0;
    for (; first; first = first->next)
        count++;
    return count;
}

/* SPOOL's requests of SIGNAL are the COUNT TEXTS; they are removed when REMOVE says so. */
static void assert_holds(sp_spool *spool, sp_telemetry_signal signal, const char *const *texts,
                         unsigned count, bool remove)
{
    sp_request *first = sp_spool_list(spool, signal), *request = first;
    assert_int_equal(length_of(first), count);
    for (unsigned i = 0; i < count; i++, request = request->next) {
        assert_null(request->body.data);
        assert_int_equal(sp_spool_get(spool, request), SP_SPOOL_WHOLE);
        assert_int_equal(request->body.length, strlen(texts[i]));
        if (*texts[i])
            assert_string_equal(request->body.data, texts[i]);
        assert_int_equal(request->items, strlen(texts[i]) + 1);
        assert_int_equal(request->gzip, signal == SP_PROFILES);
        if (remove)
            assert_true(sp_spool_remove(spool, request));
    }
    free_list(first);
}

/* ---- Other processes ---- */

typedef void (*child_code)(void);

/* Run CODE in a process that ends without closing anything, as one that is killed. */
static void in_other_process(child_code code)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        code();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void leave_two(void)
{
    sp_spool spool = new_spool();
    sp_request request;
    bool done = sp_spool_open(&spool, directory, "shop", 0) &&
                put(&spool, SP_TRACES, "first", &request) &&
                put(&spool, SP_TRACES, "second", &request);
    _exit(!done);
}

static void leave_json(void)
{
    sp_spool spool = new_spool();
    sp_request request;
    spool.formats[SP_TRACES] = SP_OTLP_JSON;
    _exit(!sp_spool_open(&spool, directory, "shop", 0) || !put(&spool, SP_TRACES, "{}", &request));
}

/* ---- Round trips ---- */

static void spool_has_what_was_put_in_order(void **state)
{
    (void)state;
    static const char *const texts[] = {"first", "", "third"}, *const other[] = {"profile"};
    sp_spool spool = open_spool("shop");
    for (int i = 0; i < 3; i++)
        must_put(&spool, SP_TRACES, texts[i]);
    must_put(&spool, SP_PROFILES, other[0]);
    uint64_t used = spool.used_bytes;
    assert_int_equal(used, 4 * HEAD_BYTES + 5 + 5 + 7);
    spool.used_bytes = 0; /* as for a process that has just taken them over */
    assert_holds(&spool, SP_TRACES, texts, 3, false);
    assert_holds(&spool, SP_PROFILES, other, 1, false);
    assert_int_equal(spool.used_bytes, used);
    spool.used_bytes = 0;
    assert_holds(&spool, SP_TRACES, texts, 3, true);
    assert_holds(&spool, SP_PROFILES, other, 1, true);
    assert_int_equal(spool.used_bytes, 0);
    sp_spool_close(&spool);
    assert_int_equal(for_each(directory, NULL), 0);
    assert_int_equal(log_length, 0);
}

static mode_t modes;

static void add_mode(const char *path)
{
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    modes |= status.st_mode;
}

static void spool_is_for_its_user_alone(void **state)
{
    (void)state;
    mode_t before = umask(0);
    char inner[80];
    snprintf(inner, sizeof inner, "%s/inner", directory);
    sp_spool spool = new_spool();
    assert_true(sp_spool_open(&spool, inner, "shop", 0));
    umask(before);
    must_put(&spool, SP_TRACES, "text");
    modes = 0;
    add_mode(inner);
    for_each(inner, add_mode);
    assert_int_equal(modes & 0777, 0700);
    modes = 0;
    assert_int_equal(for_each(spool.folder, add_mode), 2);
    assert_int_equal(modes & 0777, 0600);
    spool.used_bytes = 0;
    assert_holds(&spool, SP_TRACES, (const char *const[]){"text"}, 1, true);
    sp_spool_close(&spool);
    assert_int_equal(rmdir(inner), 0);
}

static void spool_relative_path_survives_a_chdir(void **state)
{
    (void)state;
    char before[PATH_MAX];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(directory), 0);
    sp_spool spool = new_spool();
    assert_true(sp_spool_open(&spool, "inner", "shop", 0));
    assert_int_equal(chdir("/"), 0);
    must_put(&spool, SP_TRACES, "text");
    spool.used_bytes = 0;
    assert_holds(&spool, SP_TRACES, (const char *const[]){"text"}, 1, true);
    sp_spool_close(&spool);
    char inner[80];
    snprintf(inner, sizeof inner, "%s/inner", directory);
    assert_int_equal(rmdir(inner), 0);
    assert_int_equal(chdir(before), 0);
}

static void spool_closed_twice_is_closed(void **state)
{
    (void)state;
    sp_spool spool = {0};
    sp_spool_close(&spool); /* descriptor 0 is not its lock */
    assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0 || errno == EBADF);
    spool = open_spool("shop");
    sp_spool_close(&spool);
    sp_spool_close(&spool);
    assert_null(spool.folder);
}

/* ---- After other processes ---- */

static void spool_next_process_has_the_requests_first(void **state)
{
    (void)state;
    static const char *const texts[] = {"first", "second", "third"};
    in_other_process(leave_two);
    sp_spool spool = open_spool("shop");
    assert_int_equal(for_each(directory, NULL), 1); /* its own folder */
    free_list(sp_spool_list(&spool, SP_TRACES));
    must_put(&spool, SP_TRACES, "third");
    spool.used_bytes = 0;
    assert_holds(&spool, SP_TRACES, texts, 3, true);
    sp_spool_close(&spool);
    assert_int_equal(for_each(directory, NULL), 0);
}

/* Also when the clock was set back since: a new request gets a higher number than what was found.
 */
static void spool_clock_set_back_new_requests_come_last(void **state)
{
    (void)state;
    static const char *const texts[] = {"old", "new"};
    sp_spool spool = open_spool("shop");
    spool.last_number = INT64_MAX - 10;
    must_put(&spool, SP_TRACES, "old");
    spool.last_number = 0;
    spool.used_bytes = 0;
    free_list(sp_spool_list(&spool, SP_TRACES));
    must_put(&spool, SP_TRACES, "new");
    spool.used_bytes = 0;
    assert_holds(&spool, SP_TRACES, texts, 2, true);
    sp_spool_close(&spool);
}

static int child_ready[2], child_may_end[2];

static void hold(void)
{
    char byte;
    sp_spool spool = new_spool();
    sp_request request;
    bool done = sp_spool_open(&spool, directory, "shop", 0) &&
                put(&spool, SP_TRACES, "first", &request) && write(child_ready[1], "", 1) == 1;
    _exit(!done || read(child_may_end[0], &byte, 1) != 1);
}

static void open_pipes(void)
{
    assert_int_equal(pipe2(child_ready, O_CLOEXEC), 0);
    assert_int_equal(pipe2(child_may_end, O_CLOEXEC), 0);
}

static void close_pipes(void)
{
    for (int i = 0; i < 2; i++) {
        close(child_ready[i]);
        close(child_may_end[i]);
    }
}

static void spool_of_a_process_that_lives_is_left_alone(void **state)
{
    (void)state;
    char byte;
    int status;
    open_pipes();
    pid_t pid = fork();
    if (pid == 0)
        hold();
    assert_int_equal(read(child_ready[0], &byte, 1), 1);
    sp_spool spool = open_spool("shop");
    assert_holds(&spool, SP_TRACES, NULL, 0, false);
    sp_spool_close(&spool);
    assert_int_equal(write(child_may_end[1], "", 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    spool = open_spool("shop");
    assert_holds(&spool, SP_TRACES, (const char *const[]){"first"}, 1, true);
    sp_spool_close(&spool);
    close_pipes();
    assert_int_equal(log_length, 0);
}

static void nothing(void)
{
}

static void fork_of_the_owner_keeps_its_spool(void **state)
{
    (void)state;
    sp_spool spool = open_spool("shop");
    must_put(&spool, SP_TRACES, "first");
    in_other_process(nothing); /* its copy of the lock's descriptor is closed */
    in_other_process(leave_two);
    spool.used_bytes = 0;
    assert_holds(&spool, SP_TRACES, (const char *const[]){"first"}, 1, true);
    sp_spool_close(&spool);
}

enum { STARTERS = 4, ROUNDS = 150 };

/* Open when the gate opens, say how many requests were found, and live until all have said so. */
static void start_at_once(int gate)
{
    char byte;
    sp_spool spool = new_spool();
    bool waited = read(gate, &byte, 1) == 0;
    unsigned char found = 255;
    if (waited && sp_spool_open(&spool, directory, "shop", 0)) {
        sp_request *first = sp_spool_list(&spool, SP_TRACES);
        found = (unsigned char)length_of(first);
        free_list(first);
    }
    bool said = write(child_ready[1], &found, 1) == 1;
    _exit(!said || read(child_may_end[0], &byte, 1) != 1);
}

static void race(void)
{
    int gate[2], status;
    unsigned sum = 0;
    assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
    for (int i = 0; i < STARTERS; i++) {
        if (fork() == 0) {
            close(gate[1]);
            start_at_once(gate[0]);
        }
    }
    close(gate[0]);
    close(gate[1]);
    for (int i = 0; i < STARTERS; i++) {
        unsigned char found;
        assert_int_equal(read(child_ready[0], &found, 1), 1);
        assert_int_not_equal(found, 255);
        sum += found;
    }
    for (int i = 0; i < STARTERS; i++)
        assert_int_equal(write(child_may_end[1], "", 1), 1);
    for (int i = 0; i < STARTERS; i++) {
        wait(&status);
        assert_int_equal(status, 0);
    }
    assert_int_equal(sum, 2);
}

static void processes_that_start_at_once_find_each_request_once(void **state)
{
    (void)state;
    in_other_process(leave_two);
    open_pipes();
    for (int i = 0; i < ROUNDS; i++)
        race();
    close_pipes();
    sp_spool spool = open_spool("shop");
    assert_holds(&spool, SP_TRACES, (const char *const[]){"first", "second"}, 2, true);
    sp_spool_close(&spool);
    assert_int_equal(for_each(directory, NULL), 0);
}

static void other_services_are_left_alone(void **state)
{
    (void)state;
    static const char *const others[] = {"sho", "shop2", "shop.", "sh/op", "", "Shop", "shop-"};
    in_other_process(leave_two);
    for (size_t i = 0; i < SP_ARRAY_LENGTH(others); i++) {
        sp_spool spool = open_spool(others[i]);
        assert_holds(&spool, SP_TRACES, NULL, 0, false);
        sp_spool_close(&spool);
    }
    sp_spool spool = open_spool("shop");
    assert_holds(&spool, SP_TRACES, (const char *const[]){"first", "second"}, 2, true);
    sp_spool_close(&spool);
}

static void services_of_long_names_are_told_apart(void **state)
{
    (void)state;
    char names[2][200];
    memset(names, 'x', sizeof names);
    names[0][199] = names[1][199] = 0;
    names[1][198] = 'y';
    sp_spool spools[2] = {open_spool(names[0]), open_spool(names[1])};
    const char *first = strrchr(spools[0].folder, '/'), *second = strrchr(spools[1].folder, '/');
    assert_true(strncmp(first, second, strcspn(first, ".") + 1) != 0);
    for (int i = 0; i < 2; i++)
        sp_spool_close(&spools[i]);
}

static void other_format_is_left_and_said(void **state)
{
    (void)state;
    in_other_process(leave_json);
    in_other_process(leave_two);
    for (int i = 0; i < 2; i++) {
        sp_spool spool = open_spool("shop");
        assert_int_equal(spool.foreign, 1);
        free_list(sp_spool_list(&spool, SP_TRACES));
        sp_spool_close(&spool);
    }
    assert_int_equal(log_count("1 request there in another format"), 2);
    assert_int_equal(log_length, 2);
    sp_spool spool = new_spool();
    spool.formats[SP_TRACES] = SP_OTLP_JSON;
    assert_true(sp_spool_open(&spool, directory, "shop", 0));
    assert_holds(&spool, SP_TRACES, (const char *const[]){"{}"}, 1, true);
    sp_spool_close(&spool);
}

static void signal_that_is_not_sent_is_left(void **state)
{
    (void)state;
    in_other_process(leave_two);
    sp_spool spool = {.wanted = {[SP_PROFILES] = true}};
    assert_true(sp_spool_open(&spool, directory, "shop", 0));
    assert_null(sp_spool_list(&spool, SP_TRACES));
    sp_spool_close(&spool);
    spool = open_spool("shop");
    assert_holds(&spool, SP_TRACES, (const char *const[]){"first", "second"}, 2, true);
    sp_spool_close(&spool);
}

/* ---- Files that are not what was put ---- */

static void write_file(const char *path, const void *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    fclose(file);
}

static char request_path[PATH_MAX];

static void note_request(const char *path)
{
    if (strstr(path, ".traces"))
        strcpy(request_path, path);
}

/* One request in SPOOL; its path is request_path. Returns its length, and its bytes in OUT. */
static size_t put_one(sp_spool *spool, char out[64])
{
    must_put(spool, SP_TRACES, "text");
    for_each(spool->folder, note_request);
    FILE *file = fopen(request_path, "rb");
    assert_non_null(file);
    size_t length = fread(out, 1, 64, file);
    fclose(file);
    assert_int_equal(length, HEAD_BYTES + 4);
    return length;
}

static void assert_lost(sp_spool *spool)
{
    sp_request *first = sp_spool_list(spool, SP_TRACES);
    assert_int_equal(length_of(first), 1);
    assert_int_equal(sp_spool_get(spool, first), SP_SPOOL_LOST);
    assert_null(first->body.data);
    free_list(first);
}

static void file_torn_anywhere_is_lost(void **state)
{
    (void)state;
    char bytes[64] = "";
    sp_spool spool = open_spool("shop");
    size_t length = put_one(&spool, bytes);
    for (size_t i = 0; i < length; i++) {
        write_file(request_path, bytes, i);
        assert_lost(&spool);
    }
    write_file(request_path, bytes, length + 1);
    assert_lost(&spool);
    write_file(request_path, bytes, length);
    assert_holds(&spool, SP_TRACES, (const char *const[]){"text"}, 1, true);
    sp_spool_close(&spool);
}

static void file_with_a_flipped_bit_is_lost(void **state)
{
    (void)state;
    char bytes[64];
    sp_spool spool = open_spool("shop");
    size_t length = put_one(&spool, bytes);
    for (size_t i = 0; i < length * 8; i++) {
        bytes[i / 8] ^= (char)(1 << i % 8);
        write_file(request_path, bytes, length);
        assert_lost(&spool);
        bytes[i / 8] ^= (char)(1 << i % 8);
    }
    sp_spool_close(&spool);
}

/* The folder of a process of the service that has ended, made if it is not there. */
static const char *ended_folder(void)
{
    static char folder[PATH_MAX];
    sp_spool spool = open_spool("shop");
    char *pid = strchr(strrchr(spool.folder, '/'), '.');
    snprintf(folder, sizeof folder, "%.*s.1.1", (int)(pid - spool.folder), spool.folder);
    sp_spool_close(&spool);
    assert_true(mkdir(folder, 0700) == 0 || errno == EEXIST);
    return folder;
}

static void plant(const char *name, const void *bytes, size_t length)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", ended_folder(), name);
    write_file(path, bytes, length);
}

/* A flipped bit in the format is no other format: the request is taken over, and found to be lost.
 */
static void file_with_a_flipped_format_is_lost(void **state)
{
    (void)state;
    char bytes[64];
    sp_spool spool = open_spool("shop");
    size_t length = put_one(&spool, bytes);
    unlink(request_path);
    spool.used_bytes = 0;
    sp_spool_close(&spool);
    bytes[13] ^= 1;
    plant("00000000000000000001.traces", bytes, length);
    spool = open_spool("shop");
    assert_int_equal(spool.foreign, 0);
    assert_lost(&spool);
    spool.used_bytes = 0;
    remove_folder(spool.folder);
    sp_spool_close(&spool);
}

static void file_empty_or_huge_is_lost(void **state)
{
    (void)state;
    char bytes[64];
    sp_spool spool = open_spool("shop");
    put_one(&spool, bytes);
    write_file(request_path, "", 0);
    assert_lost(&spool);
    uint64_t huge = 1ULL << 40; /* as a sparse file takes no room */
    memcpy(bytes + 24, &huge, sizeof huge);
    write_file(request_path, bytes, HEAD_BYTES);
    if (truncate(request_path, HEAD_BYTES + (off_t)huge) == 0)
        assert_lost(&spool);
    unlink(request_path);
    assert_int_equal(mkfifo(request_path, 0600), 0); /* whose opening would block */
    assert_lost(&spool);
    sp_spool_close(&spool);
}

static void foreign_names_are_left_alone(void **state)
{
    (void)state;
    static const char *const names[] = {"README",
                                        "1.traces",
                                        "00000000000000000001.logs",
                                        "00000000000000000001.traces.bak",
                                        "000000000000000000001.traces",
                                        "99999999999999999999.traces",
                                        "0000000000000000001x.traces"};
    char path[PATH_MAX];
    for (size_t i = 0; i < SP_ARRAY_LENGTH(names); i++)
        plant(names[i], "x", 1);
    snprintf(path, sizeof path, "%s/00000000000000000002.traces", ended_folder());
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(path, sizeof path, "%s/00000000000000000003.traces", ended_folder());
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/00000000000000000004.traces", ended_folder());
    assert_int_equal(symlink("README", path), 0);
    sp_spool spool = open_spool("shop");
    assert_holds(&spool, SP_TRACES, NULL, 0, false);
    sp_spool_close(&spool);
    assert_int_equal(for_each(directory, NULL), 1);
    snprintf(path, sizeof path, "%s", ended_folder());
    /* Opening it for this look has taken nothing either: all but the lock is there. */
    assert_int_equal(for_each(path, NULL), SP_ARRAY_LENGTH(names) + 3);
}

static void file_in_the_place_of_a_folder_is_passed_over(void **state)
{
    (void)state;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", ended_folder());
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(symlink("/tmp", path), 0);
    sp_spool spool = open_spool("shop");
    sp_spool_close(&spool);
    assert_int_equal(unlink(path), 0);
    write_file(path, "x", 1);
    spool = open_spool("shop");
    assert_holds(&spool, SP_TRACES, NULL, 0, false);
    sp_spool_close(&spool);
    assert_int_equal(for_each(directory, NULL), 1);
    assert_int_equal(log_length, 0);
}

static void requests_of_one_moment_are_all_kept(void **state)
{
    (void)state;
    char bytes[64];
    sp_spool spool = open_spool("shop");
    size_t length = put_one(&spool, bytes);
    char *name = strrchr(request_path, '/') + 1;
    plant(name, bytes, length);
    spool.used_bytes = 0;
    /* In another process, for this one would take its own folder, too. */
    sp_spool second = open_spool("shop");
    sp_spool_close(&spool);
    static const char *const texts[] = {"text", "text"};
    assert_holds(&second, SP_TRACES, texts, 2, true);
    sp_spool_close(&second);
}

/* ---- No room, no right, no memory ---- */

static void bound_reached_is_edquot_until_there_is_room(void **state)
{
    (void)state;
    sp_spool spool = new_spool();
    sp_request requests[3];
    assert_true(sp_spool_open(&spool, directory, "shop", 2 * (HEAD_BYTES + 4)));
    assert_true(put(&spool, SP_TRACES, "1234", &requests[0]));
    assert_false(put(&spool, SP_TRACES, "12345", &requests[1]));
    assert_int_equal(errno, EDQUOT);
    assert_int_equal(requests[1].spooled[0], 0);
    assert_true(put(&spool, SP_PROFILES, "1234", &requests[1]));
    assert_false(put(&spool, SP_TRACES, "", &requests[2]));
    assert_int_equal(errno, EDQUOT);
    assert_true(sp_spool_remove(&spool, &requests[0]));
    assert_true(put(&spool, SP_TRACES, "1234", &requests[2]));
    for (int i = 1; i < 3; i++)
        assert_true(sp_spool_remove(&spool, &requests[i]));
    sp_spool_close(&spool);
    assert_int_equal(for_each(directory, NULL), 0);
}

static void disk_full_nothing_half_is_kept(void **state)
{
    (void)state;
    sp_request request;
    sp_spool spool = open_spool("shop");
    disk_is_full = true;
    assert_false(put(&spool, SP_TRACES, "text", &request));
    assert_int_equal(errno, ENOSPC);
    disk_is_full = false;
    assert_int_equal(for_each(spool.folder, NULL), 1); /* the lock */
    assert_int_equal(spool.used_bytes, 0);
    must_put(&spool, SP_TRACES, "text");
    spool.used_bytes = 0;
    assert_holds(&spool, SP_TRACES, (const char *const[]){"text"}, 1, true);
    sp_spool_close(&spool);
}

static void assert_unusable(const char *path, const char *text)
{
    sp_spool spool = new_spool();
    capture_log();
    assert_false(sp_spool_open(&spool, path, "shop", 0));
    assert_null(spool.folder);
    assert_int_equal(log_length, 1);
    if (log_count(text) != 1)
        fail_msg("'%s' is not in '%s'", text, log_lines[0]);
    assert_int_equal(log_count("going on without a spool"), 1);
    sp_spool_close(&spool);
}

static void unusable_directory_is_said_once(void **state)
{
    (void)state;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/file", directory);
    write_file(path, "x", 1);
    assert_unusable(path, "Not a directory");
    snprintf(path, sizeof path, "%s/file/inner", directory);
    assert_unusable(path, "Not a directory");
    snprintf(path, sizeof path, "%s/missing/inner", directory);
    assert_unusable(path, "No such file or directory");
    assert_unusable("", "No such file or directory");
    assert_unusable("/proc", "going on"); /* whose message depends on the kernel */
    if (geteuid() == 0)
        return; /* root may write everywhere */
    assert_int_equal(chmod(directory, 0500), 0);
    assert_unusable(directory, "Permission denied");
}

static void folder_removed_nothing_is_kept_and_nothing_found(void **state)
{
    (void)state;
    sp_request request, other;
    sp_spool spool = open_spool("shop");
    assert_true(put(&spool, SP_TRACES, "text", &request));
    assert_int_equal(remove_folder(spool.folder), 0);
    assert_int_equal(sp_spool_get(&spool, &request), SP_SPOOL_LOST);
    assert_false(put(&spool, SP_TRACES, "text", &other));
    assert_int_equal(errno, ENOENT);
    assert_true(sp_spool_remove(&spool, &request));
    assert_int_equal(spool.used_bytes, 0);
    assert_null(sp_spool_list(&spool, SP_TRACES));
    sp_spool_close(&spool);
}

/* All that can be done with what leave_two has left. Returns whether all memory was had. */
static bool use_without_memory(int n)
{
    until_failure = n;
    sp_spool spool = new_spool();
    if (!sp_spool_open(&spool, directory, "shop", 0))
        return false;
    sp_request *first = sp_spool_list(&spool, SP_TRACES);
    for (sp_request *request = first; request; request = request->next) {
        sp_spool_found found = sp_spool_get(&spool, request);
        assert_true(found == SP_SPOOL_WHOLE || found == SP_SPOOL_LATER);
        assert_int_equal(found == SP_SPOOL_WHOLE, request->body.data != NULL);
    }
    free_list(first);
    bool had_all = until_failure >= 0;
    until_failure = -1;
    sp_spool_close(&spool);
    return had_all;
}

static void memory_short_nothing_is_lost(void **state)
{
    (void)state;
    static const char *const texts[] = {"first", "second"};
    int n = 0;
    in_other_process(leave_two);
    while (!use_without_memory(n)) {
        n++;
        assert_true(n < 100);
    }
    until_failure = -1;
    assert_true(n >= 6);
    sp_spool spool = open_spool("shop");
    assert_holds(&spool, SP_TRACES, texts, 2, true);
    sp_spool_close(&spool);
    assert_int_equal(for_each(directory, NULL), 0);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    alarm(300);
    const struct CMUnitTest tests[] = {
        CASE(spool_has_what_was_put_in_order),
        CASE(spool_is_for_its_user_alone),
        CASE(spool_relative_path_survives_a_chdir),
        CASE(spool_closed_twice_is_closed),
        CASE(spool_next_process_has_the_requests_first),
        CASE(spool_clock_set_back_new_requests_come_last),
        CASE(spool_of_a_process_that_lives_is_left_alone),
        CASE(fork_of_the_owner_keeps_its_spool),
        CASE(processes_that_start_at_once_find_each_request_once),
        CASE(other_services_are_left_alone),
        CASE(services_of_long_names_are_told_apart),
        CASE(other_format_is_left_and_said),
        CASE(signal_that_is_not_sent_is_left),
        CASE(file_torn_anywhere_is_lost),
        CASE(file_with_a_flipped_bit_is_lost),
        CASE(file_with_a_flipped_format_is_lost),
        CASE(file_empty_or_huge_is_lost),
        CASE(foreign_names_are_left_alone),
        CASE(file_in_the_place_of_a_folder_is_passed_over),
        CASE(requests_of_one_moment_are_all_kept),
        CASE(bound_reached_is_edquot_until_there_is_room),
        CASE(disk_full_nothing_half_is_kept),
        CASE(unusable_directory_is_said_once),
        CASE(folder_removed_nothing_is_kept_and_nothing_found),
        CASE(memory_short_nothing_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
