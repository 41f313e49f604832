/* SPDX-License-Identifier: Apache-2.0 */
/* Which file a module is said to come from: relative paths and chdir, the loader as the program,
 * odd names, files that are replaced. */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/mapped_file.h"
#include "unwind/frame_section.h"
#include "unwind/generation_sig.h"

static sp_modules *modules;
static char folder[PATH_MAX], own_path[PATH_MAX];

static const sp_module *module_of(const void *address)
{
    _Atomic(const sp_generation *) hazard = NULL;
    const sp_generation *generation = sp_generation_enter(modules, &hazard);
    const sp_module *module = sp_generation_find(generation, (uint64_t)(uintptr_t)address);
    sp_generation_leave(&hazard);
    return module;
}

static const void *own_address(void)
{
    return (const void *)(uintptr_t)own_address;
}

static void copy_file(const char *from, const char *to)
{
    static char block[65536];
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    assert_true(in >= 0 && out >= 0);
    for (ssize_t count; (count = read(in, block, sizeof block)) > 0;)
        assert_int_equal(write(out, block, (size_t)count), count);
    close(in);
    close(out);
}

/* The folder becomes the working folder, with PLUGIN in it as NAME. */
static void enter_folder_with(const char *plugin, const char *name)
{
    assert_int_equal(chdir(folder), 0);
    copy_file(plugin, name);
}

static void *open_plugin(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW);
    if (!handle)
        print_error("%s\n", dlerror());
    assert_non_null(handle);
    return handle;
}

/* The module of HANDLE after a look at the loader. */
static const sp_module *discover(void *handle)
{
    sp_modules_refresh(modules);
    const sp_module *module = module_of(dlsym(handle, "plugin_function"));
    assert_non_null(module);
    return module;
}

static void close_plugin(void *handle)
{
    dlclose(handle);
    sp_modules_refresh(modules);
    sp_modules_reclaim(modules, UINT32_MAX);
}

static void assert_in_folder(const char *path, const char *name)
{
    char expected[PATH_MAX + 300];
    snprintf(expected, sizeof expected, "%s/%s", folder, name);
    assert_string_equal(path, expected);
}

static void library_of_a_relative_path_is_found_after_chdir(void **state)
{
    (void)state;
    static const char *const plugins[] = {PLUGIN_PLAIN, PLUGIN_NO_ID};
    for (int i = 0; i < 2; i++) {
        enter_folder_with(plugins[i], "librelative.so");
        void *handle = open_plugin("./librelative.so");
        assert_int_equal(chdir("/"), 0); /* before the collector has seen the library */
        const sp_module *module = discover(handle);
        assert_in_folder(module->path, "librelative.so");
        assert_int_equal(module->origin.state, i ? SP_ORIGIN_SEEN : SP_ORIGIN_NOT_CHECKED);
        assert_ptr_equal(discover(handle), module);
        close_plugin(handle);
    }
}

static void odd_names_are_those_of_the_file(void **state)
{
    (void)state;
    static const char *const names[] = {"lib with blanks.so", "libx.so (deleted)", "new\nline.so",
                                        "\xff\xfe.so", "back\\012slash.so"};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(names); i++) {
        char relative[300];
        snprintf(relative, sizeof relative, "./%s", names[i]);
        enter_folder_with(PLUGIN_NO_ID, names[i]);
        void *handle = open_plugin(relative);
        const sp_module *module = discover(handle);
        assert_in_folder(module->path, names[i]);
        assert_int_equal(module->origin.state, SP_ORIGIN_SEEN);
        close_plugin(handle);
    }
}

/* The new file takes the path by a rename, as package managers and linkers do it. */
static void library_replaced_before_discovery_is_known_to_be_gone(void **state)
{
    (void)state;
    static const char *const paths[] = {"./libreplaced.so", NULL};
    char absolute[PATH_MAX + 300];
    for (int i = 0; i < 2; i++) {
        enter_folder_with(PLUGIN_NO_ID, "libreplaced.so");
        copy_file(PLUGIN_NO_ID, "libnew.so");
        snprintf(absolute, sizeof absolute, "%s/libreplaced.so", folder);
        void *handle = open_plugin(paths[i] ? paths[i] : absolute);
        assert_int_equal(rename("libnew.so", "libreplaced.so"), 0);
        const sp_module *module = discover(handle);
        assert_in_folder(module->path, "libreplaced.so");
        assert_int_equal(module->origin.state, SP_ORIGIN_REPLACED);
        close_plugin(handle);
    }
}

/* A link that leads elsewhere after the library was loaded. */
static void library_by_a_link_has_its_file(void **state)
{
    (void)state;
    char link[PATH_MAX + 300];
    snprintf(link, sizeof link, "%s/link.so", folder);
    enter_folder_with(PLUGIN_NO_ID, "libtarget.so");
    assert_int_equal(symlink("libtarget.so", "link.so"), 0);
    void *handle = open_plugin(link);
    assert_string_equal(discover(handle)->path, link);
    close_plugin(handle);
    handle = open_plugin(link);
    assert_int_equal(unlink("link.so"), 0);
    assert_int_equal(symlink(PLUGIN_PLAIN, "link.so"), 0);
    assert_in_folder(discover(handle)->path, "libtarget.so");
    close_plugin(handle);
    assert_int_equal(unlink("link.so"), 0);
}

/* Without /proc: a relative path is looked for from where the program is, and has to lead to the
 * very file. */
static void without_a_map_a_path_has_to_lead_to_the_file(void **state)
{
    (void)state;
    sp_mapped_file_set_map("/nonexistent");
    enter_folder_with(PLUGIN_NO_ID, "libnomap.so");
    void *handle = open_plugin("./libnomap.so");
    assert_in_folder(discover(handle)->path, "libnomap.so");
    close_plugin(handle);
    handle = open_plugin("./libnomap.so");
    copy_file(PLUGIN_PLAIN, "libother.so");
    assert_int_equal(rename("libother.so", "libnomap.so"), 0);
    assert_string_equal(discover(handle)->path, "./libnomap.so");
    close_plugin(handle);
    sp_mapped_file_set_map("/proc/self/maps");
}

/* A library whose frame information only its section headers lead to. */
static void library_without_index_has_a_table_while_its_file_is_there(void **state)
{
    (void)state;
    enter_folder_with(PLUGIN_NO_INDEX, "libnoindex.so");
    void *handle = open_plugin("./libnoindex.so");
    const sp_module *module = discover(handle);
    assert_int_equal(module->frame_header, 0);
    assert_non_null(module->table);
    assert_true(module->table->function_count >= 1);
    close_plugin(handle);
    handle = open_plugin("./libnoindex.so");
    copy_file(PLUGIN_PLAIN, "libother.so");
    assert_int_equal(rename("libother.so", "libnoindex.so"), 0);
    assert_null(discover(handle)->table);
    close_plugin(handle);
    enter_folder_with(PLUGIN_NO_INDEX, "libnoindex.so");
    handle = open_plugin("./libnoindex.so");
    assert_int_equal(unlink("libnoindex.so"), 0);
    assert_null(discover(handle)->table);
    close_plugin(handle);
}

/* The headers say that it is the file, but its frame information is not what memory has. */
static void frame_information_that_memory_lacks_is_not_used(void **state)
{
    (void)state;
    sp_frame_section section;
    enter_folder_with(PLUGIN_NO_INDEX, "libchanged.so");
    void *handle = open_plugin("./libchanged.so");
    copy_file(PLUGIN_NO_INDEX, "libother.so");
    int fd = open("libother.so", O_RDWR);
    assert_true(sp_frame_section_find(fd, &section));
    assert_int_equal(pwrite(fd, "\xff", 1, (off_t)(section.offset + section.length / 2)), 1);
    close(fd);
    assert_int_equal(rename("libother.so", "libchanged.so"), 0);
    assert_null(discover(handle)->table);
    close_plugin(handle);
}

/* In a child, because nothing leads back. */
static void look_from_a_chroot(void)
{
    enter_folder_with(PLUGIN_NO_ID, "libroot.so");
    void *handle = open_plugin("./libroot.so");
    if (chroot(folder) != 0)
        _exit(77);
    const sp_module *module = discover(handle);
    _exit(strcmp(module->path, "/libroot.so") != 0 || module->origin.state != SP_ORIGIN_SEEN);
}

static void library_has_the_path_that_it_has_in_a_chroot(void **state)
{
    (void)state;
    int status = -1;
    pid_t child = fork();
    if (child == 0)
        look_from_a_chroot();
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip(); /* only root may */
    assert_int_equal(status, 0);
}

static void map_that_makes_no_sense_is_passed_over(void **state)
{
    (void)state;
    static const char text[] = "\n-\nzzz\n10-20 r-xp 0 00:00 0 /below\n"
                               "1000-2000 r-xp 0 00:00 0\n1000-2000 r--p 0 00:00 0 [heap]\n"
                               "1000-3000 r-xp 00001000 08:01 77 /no such/file (deleted)\n";
    sp_mapped_file found;
    assert_int_equal(chdir(folder), 0);
    FILE *file = fopen("map", "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    sp_mapped_file_set_map("map");
    assert_true(sp_mapped_file_find(0x1000, 0x2000, &found));
    assert_string_equal(found.path, "/no such/file");
    assert_true(found.is_deleted);
    assert_int_equal(found.inode, 77);
    assert_false(sp_mapped_file_find(0x3000, 0x4000, &found));
    sp_mapped_file_set_map("/proc/self/maps");
}

/* --- the program itself ----------------------------------------------------------------------- */

/* As the kernel's map has it, and where there is no map, as AT_EXECFN does. */
static int print_own_path(bool has_map)
{
    if (!has_map)
        sp_mapped_file_set_map("/nonexistent");
    modules = sp_modules_create();
    if (chdir("/") != 0 || !modules || !module_of(own_address()))
        return 1;
    printf("%s\n", module_of(own_address())->path);
    sp_modules_destroy(modules);
    return 0;
}

static const char *loader_path(void)
{
    const ElfW(Phdr) *headers = (const void *)getauxval(AT_PHDR);
    uint64_t bias = 0;
    for (unsigned long i = 0; i < getauxval(AT_PHNUM); i++) {
        if (headers[i].p_type == PT_PHDR)
            bias = (uint64_t)(uintptr_t)headers - headers[i].p_vaddr;
        if (headers[i].p_type == PT_INTERP)
            return (const char *)(uintptr_t)(bias + headers[i].p_vaddr); // NOLINT
    }
    return NULL;
}

/* What COMMAND, a run of a copy of this program that prints its own path, prints. */
static const char *output_of(const char *command)
{
    static char line[PATH_MAX];
    FILE *out = popen(command, "r");
    assert_non_null(out);
    char *read = fgets(line, sizeof line, out);
    assert_int_equal(pclose(out), 0);
    assert_non_null(read);
    line[strcspn(line, "\n")] = 0;
    return line;
}

#ifndef EMULATED
#define EMULATED 0 /* the shell cannot start the programs of another machine */
#endif

static void program_has_its_own_path(const char *starter)
{
    if (EMULATED || !starter)
        skip();
    static const char *const modes[] = {"print", "print-without-map"};
    char command[3 * PATH_MAX];
    enter_folder_with(own_path, "a program");
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        snprintf(command, sizeof command, "%s './a program' %s", starter, modes[i]);
        assert_in_folder(output_of(command), "a program");
        snprintf(command, sizeof command, "%s '%s/a program' %s", starter, folder, modes[i]);
        assert_in_folder(output_of(command), "a program");
    }
}

static void program_started_in_the_usual_way_has_its_own_path(void **state)
{
    (void)state;
    program_has_its_own_path("exec");
}

static void program_started_through_the_loader_has_its_own_path(void **state)
{
    (void)state;
    program_has_its_own_path(loader_path());
}

static int set_up(void **state)
{
    (void)state;
    char template[] = "/tmp/spanprof module file XXXXXX";
    if (!mkdtemp(template) || !realpath(template, folder) || !realpath("/proc/self/exe", own_path))
        return -1;
    modules = sp_modules_create();
    return modules ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    char command[PATH_MAX + 20];
    sp_modules_destroy(modules);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return print_own_path(strcmp(argv[1], "print") == 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(library_of_a_relative_path_is_found_after_chdir),
        cmocka_unit_test(odd_names_are_those_of_the_file),
        cmocka_unit_test(library_replaced_before_discovery_is_known_to_be_gone),
        cmocka_unit_test(library_by_a_link_has_its_file),
        cmocka_unit_test(without_a_map_a_path_has_to_lead_to_the_file),
        cmocka_unit_test(library_without_index_has_a_table_while_its_file_is_there),
        cmocka_unit_test(frame_information_that_memory_lacks_is_not_used),
        cmocka_unit_test(library_has_the_path_that_it_has_in_a_chroot),
        cmocka_unit_test(map_that_makes_no_sense_is_passed_over),
        cmocka_unit_test(program_started_in_the_usual_way_has_its_own_path),
        cmocka_unit_test(program_started_through_the_loader_has_its_own_path),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
