/* SPDX-License-Identifier: Apache-2.0 */
/* What is detected, from files below a root of the test's own. */
#include "unit/trace/support.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/detect.h"

#define ID      "4a5b8c1d9e0f2736455463728190abcdef0123456789abcdef0123456789abcd"
#define MACHINE "0123456789abcdef0123456789abcdef"

static char root[PATH_MAX];

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *place)
{
    (void)info, (void)type, (void)place;
    return remove(path);
}

static int remove_root(void **state)
{
    (void)state;
    return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int make_root(void **state)
{
    (void)state;
    const char *folder = getenv("TMPDIR");
    snprintf(root, sizeof root, "%s/spanprof-detect-XXXXXX", folder ? folder : "/tmp");
    return mkdtemp(root) ? 0 : -1;
}

#define rooted(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)

/* The path of NAME below the root, whose folders are there now. */
static const char *place(const char *name)
{
    static char path[PATH_MAX + 128];
    snprintf(path, sizeof path, "%s%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        assert_true(mkdir(path, 0777) == 0 || errno == EEXIST);
        *slash = '/';
    }
    return path;
}

static void write_bytes(const char *name, const void *bytes, size_t count)
{
    FILE *file = fopen(place(name), "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static void write_text(const char *name, const char *text)
{
    write_bytes(name, text, strlen(text));
}

/* A resource with what is detected now, and NAMED by the user. Valid until the next call. */
static sp_resource *detected(uint32_t named)
{
    static sp_resource resource;
    sp_resource_deinit(&resource);
    resource.attributes = sp_arena_array(&resource.memory, (size_t)named + SP_RESOURCE_ATTRIBUTES,
                                         sizeof *resource.attributes);
    assert_non_null(resource.attributes);
    for (uint32_t i = 0; i < named; i++) {
        char key[16];
        snprintf(key, sizeof key, "named.%u", i);
        assert_int_equal(sp_intern_put_string(&resource.keys, key), i);
        resource.attributes[resource.attribute_count++] = (spanprof_attribute){
            .key = sp_intern_key(&resource.keys, i), .value = {.string_value = "value"}};
    }
    sp_detect(&resource, root);
    assert_false(resource.memory.failed);
    return &resource;
}

static void expect(const char *key, const char *value)
{
    const char *got = sp_resource_get(detected(0), key);
    if (!got || !value ? got != value : strcmp(got, value) != 0)
        fail_msg("%s is %s, not %s", key, got ? got : "not there", value ? value : "not there");
}

static void nothing_is_read_where_nothing_is(void **state)
{
    (void)state;
    static const char *const absent[] = {"process.executable.path",
                                         "process.command",
                                         "process.owner",
                                         "process.creation.time",
                                         "container.id",
                                         "host.id",
                                         "os.name",
                                         "os.version"};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(absent); i++)
        expect(absent[i], NULL);
    expect("os.type", "linux");
    const sp_resource *resource = detected(0);
    assert_int_equal(resource->attribute_count, 4); /* those, host.name, host.arch, process.pid */
}

static void the_program_is_its_file_and_its_zeroth_argument(void **state)
{
    (void)state;
    assert_int_equal(symlink("/opt/shop/bin/server", place("/proc/self/exe")), 0);
    static const char line[] = "./server\0--password=secret\0";
    write_bytes("/proc/self/cmdline", line, sizeof line - 1);
    expect("process.executable.path", "/opt/shop/bin/server");
    expect("process.command", "./server");
    assert_int_equal(unlink(place("/proc/self/exe")), 0);
    assert_int_equal(symlink("/opt/new (deleted)", place("/proc/self/exe")), 0);
    expect("process.executable.path", "/opt/new");
    write_bytes("/proc/self/cmdline", "", 0); /* a thread of the kernel's */
    expect("process.command", NULL);
}

/* A receiver that makes labels of them would refuse everything for the sake of one. */
static void values_that_are_too_long_are_left_out(void **state)
{
    (void)state;
    char command[SP_RESOURCE_VALUE_BYTES + 2];
    memset(command, 'x', sizeof command - 1);
    command[sizeof command - 1] = 0;
    write_text("/proc/self/cmdline", command);
    expect("process.command", NULL);
    write_text("/proc/self/cmdline", command + 1);
    expect("process.command", command + 1);
}

static void the_owner_is_a_user_of_the_file(void **state)
{
    (void)state;
    char text[256];
    snprintf(text, sizeof text,
             "daemon:x:%u:1::/:/bin/false\nbroken line\n\nshop:x:%u:7:Shop,,,:/home/shop:/bin/sh\n"
             "other:x:%u:7::/:/bin/sh\n",
             geteuid() + 1, geteuid(), geteuid());
    write_text("/etc/passwd", text);
    expect("process.owner", "shop");
    snprintf(text, sizeof text, "other:x:%u:7::/:/bin/sh\n", geteuid() + 1);
    write_text("/etc/passwd", text);
    expect("process.owner", NULL);
}

static void the_creation_time_is_counted_from_the_boot(void **state)
{
    (void)state;
    static const uint64_t second = SP_NS_PER_S;
    static const char stat[] = "42 (a b) c) S 1 42 42 0 -1 4194560 100 0 0 0 1 2 3 4 20 0 1 0 "
                               "12345 1000 20 18446744073709551615\n";
    char text[SP_ISO_TIME_BYTES];
    /* Began 123.45 s after the boot, which was 1,000 s ago, at 1,767,225,600 (2026-01-01) + 1,000 -
     * 1,000. */
    assert_true(
        sp_detect_creation_time(text, stat, (1767225600 + 1000) * second, 1000 * second, 100));
    assert_string_equal(text, "2026-01-01T00:02:03.450Z");
    assert_true(sp_detect_creation_time(text, stat, 1767225600 * second, 124 * second, 100));
    assert_string_equal(text, "2025-12-31T23:59:59.450Z");
    assert_false(sp_detect_creation_time(text, stat, 1767225600 * second, 123 * second, 100));
    assert_false(sp_detect_creation_time(text, stat, 1 * second, 1000 * second, 100));
    assert_false(sp_detect_creation_time(text, stat, 1767225600 * second, 1000 * second, 0));
    static const char *const bad[] = {"", "42 (a", "42 (a) S 1 2 3",
                                      "42 (a) S 1 42 42 0 -1 4194560 100 0 0 0 1 2 3 4 20 0 1 0 x"};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(bad); i++)
        assert_false(
            sp_detect_creation_time(text, bad[i], 1767225600 * second, 1000 * second, 100));
}

static void the_host_is_known_by_its_machine_id(void **state)
{
    (void)state;
    write_text("/var/lib/dbus/machine-id", "ffffffffffffffffffffffffffffffff\n");
    expect("host.id", "ffffffffffffffffffffffffffffffff");
    write_text("/etc/machine-id", MACHINE "\n");
    expect("host.id", MACHINE);
    write_text("/etc/machine-id", MACHINE);
    expect("host.id", MACHINE);
    static const char *const bad[] = {"",
                                      "\n",
                                      "uninitialized\n",
                                      MACHINE "0\n",
                                      "0123456789abcdef\n",
                                      "0123456789abcdeg0123456789abcdef\n"};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(bad); i++) {
        write_text("/etc/machine-id", bad[i]);
        expect("host.id", "ffffffffffffffffffffffffffffffff");
    }
}

/* In a container the machine's id is its image's, which a thousand hosts may share. */
static void a_container_has_no_host_id(void **state)
{
    (void)state;
    static const struct {
        const char *file, *text, *id;
    } cases[] = {
        {"/proc/self/cgroup", "0::/system.slice/docker-" ID ".scope\n", ID},
        {"/proc/self/mountinfo", "9 8 8:1 /containers/" ID "/hostname /etc/hostname rw\n", ID},
        {"/proc/self/mountinfo", "9 8 8:1 /var/lib/kubelet/pods/6b2e/etc-hosts /etc/hosts rw\n",
         NULL},
        {"/.dockerenv", "", NULL},
        {"/run/.containerenv", "", NULL},
    };
    write_text("/etc/machine-id", MACHINE);
    for (size_t i = 0; i < SP_ARRAY_LENGTH(cases); i++) {
        write_text("/proc/self/cgroup", "0::/\n");
        write_text("/proc/self/mountinfo", "30 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
        expect("host.id", MACHINE);
        write_text(cases[i].file, cases[i].text);
        expect("container.id", cases[i].id);
        expect("host.id", NULL);
        assert_int_equal(unlink(place(cases[i].file)), 0);
    }
}

static void the_cgroup_is_believed_before_the_mounts(void **state)
{
    (void)state;
    write_text("/proc/self/mountinfo",
               "9 8 8:1 /containers/" MACHINE MACHINE "/hostname /etc/hostname rw\n");
    expect("container.id", MACHINE MACHINE);
    write_text("/proc/self/cgroup", "0::/kubepods.slice/cri-containerd-" ID ".scope\n");
    expect("container.id", ID);
}

static void a_table_of_many_mounts_is_read_to_its_end(void **state)
{
    (void)state;
    enum { MOUNTS = 5000 };
    char *text = malloc(MOUNTS * 64 + 256), *end = text;
    assert_non_null(text);
    for (int i = 0; i < MOUNTS; i++)
        end += sprintf(end, "%d 1 8:1 /volumes/%d /mnt/%d rw - ext4 /dev/sda1 rw\n", i, i, i);
    sprintf(end, "9 8 8:1 /containers/" ID "/hostname /etc/hostname rw\n");
    write_text("/proc/self/mountinfo", text);
    free(text);
    expect("container.id", ID);
}

static void the_system_is_that_of_os_release(void **state)
{
    (void)state;
    write_text("/usr/lib/os-release", "NAME=Fedora\\ Linux\nVERSION_ID=44");
    expect("os.name", "Fedora Linux");
    expect("os.version", "44");
    write_text("/etc/os-release",
               "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian \\\"GNU\\\"/Linux\"\n"
               "VERSION_ID='12'\nVERSION=\"12 (bookworm)\"\n#NAME=no\n");
    expect("os.name", "Debian \"GNU\"/Linux");
    expect("os.version", "12");
    write_text("/etc/os-release", "NAME=\"Arch Linux\"\nVERSION_ID=\n"); /* it has no versions */
    expect("os.name", "Arch Linux");
    expect("os.version", NULL);
}

/* What is detected last is left out when the user named so much that a label for each would be too
 * many. */
static void what_is_detected_leaves_room_for_what_is_named(void **state)
{
    (void)state;
    write_text("/etc/machine-id", MACHINE);
    assert_int_equal(detected(0)->attribute_count, 5);
    assert_int_equal(detected(SP_RESOURCE_ATTRIBUTES - 5)->attribute_count, SP_RESOURCE_ATTRIBUTES);
    const sp_resource *resource = detected(SP_RESOURCE_ATTRIBUTES - 2);
    assert_int_equal(resource->attribute_count, SP_RESOURCE_ATTRIBUTES);
    assert_non_null(sp_resource_get(resource, "host.name"));
    assert_null(sp_resource_get(resource, "host.id"));
    assert_int_equal(detected(100)->attribute_count, 100);
    sp_resource_deinit(detected(0));
}

/* What this program prints as its path when COMMAND starts it. */
static const char *printed_by(const char *command)
{
    static char line[PATH_MAX];
    FILE *out = popen(command, "r");
    assert_non_null(out);
    assert_non_null(fgets(line, sizeof line, out));
    assert_int_equal(pclose(out), 0);
    line[strcspn(line, "\n")] = 0;
    return line;
}

static void a_program_started_through_the_loader_is_its_own_file(void **state)
{
    (void)state;
    char own[PATH_MAX], command[PATH_MAX + 100];
    assert_non_null(realpath("/proc/self/exe", own));
    snprintf(command, sizeof command, "'%s' print", own);
    assert_string_equal(printed_by(command), own);
    snprintf(command, sizeof command, LOADER " '%s' print", own);
    assert_string_equal(printed_by(command), own);
}

static int print_executable(void)
{
    sp_resource resource;
    if (!sp_resource_init(&resource, "shop", ""))
        return 1;
    puts(sp_detect_executable(&resource, ""));
    sp_resource_deinit(&resource);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "print") == 0)
        return print_executable();
    const struct CMUnitTest tests[] = {
        rooted(nothing_is_read_where_nothing_is),
        rooted(the_program_is_its_file_and_its_zeroth_argument),
        cmocka_unit_test(a_program_started_through_the_loader_is_its_own_file),
        rooted(values_that_are_too_long_are_left_out),
        rooted(the_owner_is_a_user_of_the_file),
        cmocka_unit_test(the_creation_time_is_counted_from_the_boot),
        rooted(the_host_is_known_by_its_machine_id),
        rooted(a_container_has_no_host_id),
        rooted(the_cgroup_is_believed_before_the_mounts),
        rooted(a_table_of_many_mounts_is_read_to_its_end),
        rooted(the_system_is_that_of_os_release),
        rooted(what_is_detected_leaves_room_for_what_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
