/* SPDX-License-Identifier: Apache-2.0 */
/* The process context (OTEP 4719), published by us and read by our reader outside: in forked
 * children, so that each has a process of its own, and a kernel that refuses what the test says
 * (seccomp). */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/compiler.h"
#include "export/process_context_publish.h"
#include "wire/process_context_message.h"
#include "outside/outside_internal.h"
#include "unit/export/captured_log.h"

static const char *const keys[] = {"http.route", "tenant.id"};

static sp_resource resource_of(const char *attributes)
{
    sp_resource resource;
    assert_true(sp_resource_init(&resource, "shop", attributes));
    return resource;
}

/* Reads our own process: only threads need ptrace. */
static sp_outside_process *open_self(void)
{
    sp_outside_process *process;
    assert_int_equal(sp_outside_open(getpid(), &process), SP_OUTSIDE_OK);
    return process;
}

static void assert_published(const char *key, const char *value)
{
    sp_outside_process *process = open_self();
    assert_int_not_equal(sp_outside_published_at_ns(process), 0);
    assert_string_equal(sp_outside_resource(process, key), value);
    sp_outside_close(process);
}

static void assert_not_published(void)
{
    sp_outside_process *process = open_self();
    assert_int_equal(sp_outside_published_at_ns(process), 0);
    sp_outside_close(process);
}

static void published_context_says_resource_and_keys(void **state)
{
    (void)state;
    sp_resource resource = resource_of("deployment.environment.name=test,answer=42");
    sp_process_context_publish(&resource, keys, 2);
    sp_outside_process *process = open_self();
    assert_string_equal(sp_outside_resource(process, "service.name"), "shop");
    assert_string_equal(sp_outside_resource(process, "service.instance.id"),
                        sp_resource_get(&resource, "service.instance.id"));
    assert_string_equal(sp_outside_resource(process, "answer"), "42");
    assert_null(sp_outside_resource(process, "no such key"));
    assert_string_equal(sp_outside_schema(process), "tlsdesc_v1_dev");
    assert_string_equal(sp_outside_key(process, 0), "http.route");
    assert_string_equal(sp_outside_key(process, 1), "tenant.id");
    assert_null(sp_outside_key(process, 2));
    sp_outside_close(process);
    sp_process_context_unpublish();
    assert_not_published();
    sp_resource_deinit(&resource);
}

static void a_key_that_is_added_appears_under_a_later_timestamp(void **state)
{
    (void)state;
    sp_resource resource = resource_of("");
    sp_process_context_publish(&resource, keys, 1);
    sp_outside_process *process = open_self();
    uint64_t first_ns = sp_outside_published_at_ns(process);
    assert_null(sp_outside_key(process, 1));
    sp_process_context_publish(&resource, keys, 2);
    assert_int_equal(sp_outside_refresh(process), SP_OUTSIDE_OK);
    assert_true(sp_outside_published_at_ns(process) > first_ns);
    assert_string_equal(sp_outside_key(process, 0), "http.route");
    assert_string_equal(sp_outside_key(process, 1), "tenant.id");
    sp_outside_close(process);
    sp_process_context_unpublish();
    sp_resource_deinit(&resource);
}

static void names_of_all_three_kinds_are_known(void **state)
{
    (void)state;
    assert_true(sp_process_context_is_name("[anon_shmem:OTEL_CTX]"));
    assert_true(sp_process_context_is_name("[anon:OTEL_CTX]"));
    assert_true(sp_process_context_is_name("/memfd:OTEL_CTX (deleted)"));
    assert_true(sp_process_context_is_name("/memfd:OTEL_CTX"));
    assert_false(sp_process_context_is_name("[anon:OTEL_CT]"));
    assert_false(sp_process_context_is_name("/tmp/OTEL_CTX"));
}

/* --- updates under readers -------------------------------------------------------------------- */

enum { TEXTS = 32, LONGEST = 4000 };

/* Each says twice the same, and no two are of one length. */
static sp_resource resource_of_text(int number)
{
    char text[LONGEST + 1], pair[2 * sizeof text + 32];
    size_t length = (size_t)(number + 1) * (LONGEST / TEXTS);
    memset(text, 'a' + number % 26, length);
    text[length] = 0;
    (void)snprintf(pair, sizeof pair, "first=%s,second=%s", text, text);
    return resource_of(pair);
}

/* As fast as it can, until nobody holds the other end of TOLD. */
static void publish_all_the_time(int told)
{
    sp_resource resources[TEXTS];
    struct pollfd end = {.fd = told, .events = POLLIN};
    for (int i = 0; i < TEXTS; i++)
        resources[i] = resource_of_text(i);
    for (unsigned round = 0; poll(&end, 1, 0) == 0; round++)
        sp_process_context_publish(&resources[round % TEXTS], keys, 2);
    for (int i = 0; i < TEXTS; i++)
        sp_resource_deinit(&resources[i]);
    sp_process_context_unpublish();
    _exit(0);
}

static void readers_never_see_half_of_an_update(void **state)
{
    (void)state;
    enum { READS = 2000, CHANGES = 500 };
    int tell[2];
    assert_int_equal(pipe(tell), 0);
    pid_t child = fork();
    if (child == 0) {
        close(tell[1]);
        publish_all_the_time(tell[0]);
    }
    close(tell[0]);
    sp_outside_process *process;
    unsigned reads = 0, changes = 0, tries = 0;
    uint64_t last_ns = 0;
    assert_int_equal(sp_outside_open(child, &process), SP_OUTSIDE_OK);
    while ((reads < READS || changes < CHANGES) && tries++ < 1000 * READS) {
        sp_outside_result result = sp_outside_read_process_context(process);
        if (result != SP_OUTSIDE_OK || !sp_outside_published_at_ns(process))
            continue; /* not yet; or it changed under each attempt */
        reads++;
        assert_string_equal(sp_outside_resource(process, "first"),
                            sp_outside_resource(process, "second"));
        assert_true(sp_outside_published_at_ns(process) >= last_ns);
        changes += sp_outside_published_at_ns(process) != last_ns;
        last_ns = sp_outside_published_at_ns(process);
    }
    sp_outside_close(process);
    close(tell[1]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    print_message("%u reads, %u of them found another context\n", reads, changes);
    assert_true(reads >= READS && changes >= CHANGES);
}

/* --- in a process of its own ------------------------------------------------------------------ */

/* What BODY asserts is said by its exit status; 77: it cannot be asked here. */
static void in_child(int (*body)(void))
{
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(body());
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int child_has_none_and_publishes_its_own(void)
{
    sp_outside_process *process = open_self();
    if (sp_outside_published_at_ns(process) != 0)
        return 1;
    sp_outside_close(process);
    sp_resource_after_fork();
    sp_resource resource = resource_of("who=child");
    sp_process_context_publish(&resource, NULL, 0);
    assert_published("who", "child");
    assert_published("service.instance.id", sp_resource_get(&resource, "service.instance.id"));
    sp_process_context_unpublish();
    sp_resource_deinit(&resource);
    return 0;
}

static void a_forked_child_has_no_context_and_publishes_its_own(void **state)
{
    (void)state;
    sp_resource resource = resource_of("who=parent");
    sp_process_context_publish(&resource, NULL, 0);
    sp_process_context_fork_prepare();
    pid_t child = fork();
    if (child == 0) {
        sp_process_context_fork_child();
        _exit(child_has_none_and_publishes_its_own());
    }
    sp_process_context_fork_parent();
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_published("who", "parent");
    assert_published("service.instance.id", sp_resource_get(&resource, "service.instance.id"));
    sp_process_context_unpublish();
    sp_resource_deinit(&resource);
}

/* --- kernels that refuse ---------------------------------------------------------------------- */

/* From now on system call NUMBER fails with ERROR where its argument ARGUMENT (-1: whatever it is)
 * is VALUE. False where nobody can say so. */
static bool refuse(int number, int error, int argument, uint32_t value)
{
    unsigned is_any = argument < 0;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offsetof(struct seccomp_data, args) +
                                                      8 * (is_any ? 0 : (unsigned)argument))),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, is_any ? 0 : 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = SP_ARRAY_LENGTH(filter), .filter = filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static bool find_name(const sp_mapping *mapping, void *user)
{
    if (!sp_process_context_is_name(mapping->path))
        return true;
    assert_false(sp_mapping_is_executable(mapping));
    (void)snprintf(user, 64, "%.63s", mapping->path);
    return false;
}

static int publish_and_name(const char *expected)
{
    char name[64] = "";
    sp_resource resource = resource_of("who=me");
    sp_process_context_publish(&resource, NULL, 0);
    assert_published("who", "me");
    assert_true(sp_mappings_of_process(getpid(), find_name, name));
    if (strcmp(name, expected) != 0) {
        print_message("the mapping is called %s, not %s\n", name, expected);
        return 1;
    }
    return 0;
}

static bool kernel_names_memory(void)
{
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool names = prctl(0x53564d41, 0, page, 4096, "probe") == 0;
    munmap(page, 4096);
    return names;
}

static int is_named_twice(void)
{
    return publish_and_name(kernel_names_memory() ? "[anon_shmem:OTEL_CTX]"
                                                  : "/memfd:OTEL_CTX (deleted)");
}

static int without_names(void)
{
    return refuse(SYS_prctl, EINVAL, 0, 0x53564d41) ? publish_and_name("/memfd:OTEL_CTX (deleted)")
                                                    : 77;
}

static int without_memory_files(void)
{
    if (!kernel_names_memory() || !refuse(SYS_memfd_create, ENOSYS, -1, 0))
        return 77;
    return publish_and_name("[anon:OTEL_CTX]");
}

/* MFD_NOEXEC_SEAL is younger than memory files: 1 | 2 | 8. */
static int without_the_newest_seal(void)
{
    return refuse(SYS_memfd_create, EINVAL, 1, 11) ? is_named_twice() : 77;
}

static int publish_fails_with_a_warning(void)
{
    capture_log();
    sp_resource resource = resource_of("");
    sp_process_context_publish(&resource, NULL, 0);
    assert_not_published();
    return log_count("process context: a mapping") == 1 && log_length == 1 ? 0 : 1;
}

static int without_any_name(void)
{
    return refuse(SYS_prctl, EINVAL, 0, 0x53564d41) && refuse(SYS_memfd_create, ENOSYS, -1, 0)
               ? publish_fails_with_a_warning()
               : 77;
}

static int with_mappings_that_children_inherit(void)
{
    return refuse(SYS_madvise, EINVAL, 2, MADV_DONTFORK) ? publish_fails_with_a_warning() : 77;
}

static void mapping_has_its_name_by_file_and_kernel(void **state)
{
    (void)state;
    in_child(is_named_twice);
}

static void mapping_has_its_name_by_file_where_the_kernel_cannot_name(void **state)
{
    (void)state;
    in_child(without_names);
}

static void mapping_has_its_name_by_the_kernel_where_there_are_no_memory_files(void **state)
{
    (void)state;
    in_child(without_memory_files);
}

static void old_kernels_make_memory_files_without_the_newest_seal(void **state)
{
    (void)state;
    in_child(without_the_newest_seal);
}

static void nothing_is_published_that_nobody_could_find(void **state)
{
    (void)state;
    in_child(without_any_name);
}

static void nothing_is_published_that_children_would_inherit(void **state)
{
    (void)state;
    in_child(with_mappings_that_children_inherit);
}

/* --- too much --------------------------------------------------------------------------------- */

static void a_resource_that_is_too_big_is_cut_and_says_so(void **state)
{
    (void)state;
    enum { VALUE = 30000 };
    char *text = malloc(4 * VALUE + 256), *at = text;
    assert_non_null(text);
    for (int i = 0; i < 4; i++)
        at += sprintf(at, "%sbig.%d=%0*d", i ? "," : "", i, VALUE, i);
    (void)sprintf(at, ",small=1");
    sp_resource resource = resource_of(text);
    capture_log();
    sp_process_context_publish(&resource, keys, 2);
    assert_int_equal(log_count(" left out: "), 1);
    sp_outside_process *process = open_self();
    assert_string_equal(sp_outside_resource(process, "service.name"), "shop");
    assert_non_null(sp_outside_resource(process, "service.instance.id"));
    assert_string_equal(sp_outside_resource(process, "small"), "1");
    assert_non_null(sp_outside_resource(process, "big.1"));
    assert_null(sp_outside_resource(process, "big.2"));
    assert_string_equal(sp_outside_key(process, 1), "tenant.id");
    sp_outside_close(process);
    sp_process_context_unpublish();
    sp_resource_deinit(&resource);
    free(text);
}

/* Whatever is left out, the payload has its bounds, and no index changes its meaning. */
static void payloads_never_exceed_what_readers_take(void **state)
{
    (void)state;
    static char names[SP_THREADLOCAL_KEYS + 10][400];
    const char *list[SP_THREADLOCAL_KEYS + 10];
    for (int length = 1; length < 400; length += 57) {
        for (size_t i = 0; i < SP_ARRAY_LENGTH(list); i++) {
            (void)snprintf(names[i], sizeof names[i], "%0*zu", length, i);
            list[i] = names[i];
        }
        for (int value = 60000; value < 66000; value += 500) {
            char *text = malloc((size_t)value + 16);
            (void)sprintf(text, "big=%0*d", value, 7);
            sp_resource resource = resource_of(text);
            sp_buffer payload = SP_BUFFER_INIT(1 << 20);
            uint32_t left_out;
            assert_true(sp_otlp_encode_process_context(&payload, &resource, list,
                                                       SP_ARRAY_LENGTH(list), &left_out));
            assert_in_range(payload.length, 1, SP_PROCESS_CONTEXT_BYTES);
            Sp__ProcessContext__ProcessContext *message =
                sp__process_context__process_context__unpack(NULL, payload.length, payload.data);
            assert_non_null(message);
            const Sp__Common__ArrayValue *map = message->attributes[1]->value->array_value;
            assert_in_range(map->n_values, 1, SP_THREADLOCAL_KEYS);
            for (size_t i = 0; i < map->n_values; i++)
                assert_string_equal(map->values[i]->string_value, list[i]);
            sp__process_context__process_context__free_unpacked(message, NULL);
            sp_buffer_deinit(&payload);
            sp_resource_deinit(&resource);
            free(text);
        }
    }
}

/* --- others ----------------------------------------------------------------------------------- */

/* Another SDK of this process, or a copy of this one, came first. */
/* Field 1 of the context is the resource, field 1 of that an attribute, field 2 of that its value.
 */
enum { LEVELS = 8000 };

/* A message of LEVELS arrays in arrays. Its bytes are written from the end: inside each tag and
 * length is what stands behind them. Returns where it begins. */
static uint8_t *nested_arrays(uint8_t *end)
{
    static const uint8_t tags[] = {(2 << 3) | 2, (1 << 3) | 2, (1 << 3) | 2};
    static const uint8_t in_value[] = {(1 << 3) | 2, (5 << 3) | 2}; /* `values`, `array_value` */
    uint8_t *at = end;
    for (int i = 0; i < 2 * LEVELS + 3; i++) {
        size_t length = (size_t)(end - at);
        *--at = (uint8_t)(length >> 14);
        *--at = (uint8_t)(length >> 7 | 128);
        *--at = (uint8_t)(length | 128);
        *--at = i < 2 * LEVELS ? in_value[i % 2] : tags[i - 2 * LEVELS];
    }
    return at;
}

/* What another process has published is not trusted. */
static void a_payload_that_is_nested_deeply_is_refused(void **state)
{
    (void)state;
    enum { ROOM = 8 * LEVELS + 64 };
    sp_resource resource = resource_of("");
    sp_process_context_publish(&resource, keys, 1);
    sp_outside_process *process = open_self();
    sp_process_context_header *header = (void *)(uintptr_t)process->header;
    sp_process_context_header kept = *header;
    uint8_t *room = malloc(ROOM), *payload = nested_arrays(room + ROOM);
    header->payload = (uint64_t)(uintptr_t)payload;
    header->payload_bytes = (uint32_t)(room + ROOM - payload);
    header->published_at_ns++;
    assert_in_range(header->payload_bytes, 1, SP_PROCESS_CONTEXT_BYTES);
    assert_int_equal(sp_outside_refresh(process), SP_OUTSIDE_FAILED);
    assert_non_null(strstr(sp_outside_problem(process), "is no message"));
    *header = kept;
    assert_int_equal(sp_outside_refresh(process), SP_OUTSIDE_OK);
    sp_outside_close(process);
    sp_process_context_unpublish();
    free(room);
    sp_resource_deinit(&resource);
}

static void what_another_sdk_published_stays(void **state)
{
    (void)state;
    int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fd, 4096), 0);
    void *theirs = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    sp_resource resource = resource_of("");
    capture_log();
    sp_process_context_publish(&resource, NULL, 0);
    assert_not_published(); /* theirs is not even whole */
    assert_int_equal(log_length, 0);
    munmap(theirs, 4096);
    close(fd);
    sp_process_context_publish(&resource, NULL, 0);
    assert_published("service.name", "shop");
    sp_process_context_unpublish();
    sp_resource_deinit(&resource);
}

static void an_unknown_process_is_told(void **state)
{
    (void)state;
    sp_outside_process *process;
    assert_int_equal(sp_outside_open(0x3fffffff, &process), SP_OUTSIDE_GONE);
    assert_non_null(strstr(sp_outside_problem(process), "1073741823"));
    sp_outside_close(process);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_context_says_resource_and_keys),
        cmocka_unit_test(a_key_that_is_added_appears_under_a_later_timestamp),
        cmocka_unit_test(names_of_all_three_kinds_are_known),
        cmocka_unit_test(readers_never_see_half_of_an_update),
        cmocka_unit_test(a_forked_child_has_no_context_and_publishes_its_own),
        cmocka_unit_test(mapping_has_its_name_by_file_and_kernel),
        cmocka_unit_test(mapping_has_its_name_by_file_where_the_kernel_cannot_name),
        cmocka_unit_test(mapping_has_its_name_by_the_kernel_where_there_are_no_memory_files),
        cmocka_unit_test(old_kernels_make_memory_files_without_the_newest_seal),
        cmocka_unit_test(nothing_is_published_that_nobody_could_find),
        cmocka_unit_test(nothing_is_published_that_children_would_inherit),
        cmocka_unit_test(a_resource_that_is_too_big_is_cut_and_says_so),
        cmocka_unit_test(payloads_never_exceed_what_readers_take),
        cmocka_unit_test(a_payload_that_is_nested_deeply_is_refused),
        cmocka_unit_test(what_another_sdk_published_stays),
        cmocka_unit_test(an_unknown_process_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
