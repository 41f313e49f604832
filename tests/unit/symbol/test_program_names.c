/* SPDX-License-Identifier: Apache-2.0 */
/* The names of a program that is started in different ways and replaced while it runs, and of a
 * library that was loaded by a relative path: the right ones, or none. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbol/symbolizer.h"
#include "unit/symbol/test_files.h"
#include "unwind/generation_sig.h"

static const char right[] = "first_own_function second_own_function \n";
static const char none[] = "+0x";

static const char *const programs[] = {PROGRAM, PROGRAM_NO_ID};

/* What the program prints: a copy in a folder with a blank, started as FORMAT says. The program
 * "other" lies beside it. */
static const char *run(const char *program, const char *arguments)
{
    static char line[8192];
    char command[3 * PATH_MAX];
    test_run("rm -rf 'a folder'; mkdir 'a folder' && cp '%s' 'a folder/prog' && cp /bin/sh 'a "
             "folder/other'",
             program);
    snprintf(command, sizeof command, "cd '%s/a folder' && %s", test_folder, arguments);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    line[0] = 0;
    char *read = fgets(line, sizeof line, out);
    assert_int_equal(pclose(out), 0);
    assert_non_null(read);
    return line;
}

static void program_in_a_path_with_a_blank_has_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(programs); i++)
        assert_string_equal(run(programs[i], "./prog x"), right);
}

static void program_through_the_loader_has_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(programs); i++) {
        assert_string_equal(run(programs[i], LOADER " ./prog x"), right);
        assert_string_equal(run(programs[i], LOADER " \"$PWD/prog\" x"), right);
    }
}

/* The kernel still opens the old program. */
static void program_replaced_while_it_runs_keeps_its_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(programs); i++) {
        assert_string_equal(run(programs[i], "./prog \"$PWD/prog\" \"$PWD/other\" early"), right);
        assert_string_equal(run(programs[i], "./prog \"$PWD/prog\" \"$PWD/other\" late"), right);
    }
}

/* Through the loader, the old program can no longer be opened. */
static void program_replaced_under_the_loader_has_no_wrong_names(void **state)
{
    (void)state;
    static const char *const when[] = {"early", "late"};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(programs); i++)
        for (size_t j = 0; j < SP_ARRAY_LENGTH(when); j++) {
            char arguments[256];
            snprintf(arguments, sizeof arguments, LOADER " ./prog \"$PWD/prog\" \"$PWD/other\" %s",
                     when[j]);
            const char *names = run(programs[i], arguments);
            assert_int_equal(strncmp(names, "prog+0x", 7), 0);
            assert_non_null(strstr(strchr(names, ' '), none));
        }
}

/* --- a library -------------------------------------------------------------------------------- */

/* The name of ADDRESS, as one finds it that looks at the loader for the first time. */
static void expect_name(const void *address, const char *name)
{
    _Atomic(const sp_generation *) hazard = NULL;
    const sp_frame *frames;
    sp_modules *modules = sp_modules_create();
    const sp_generation *generation = sp_generation_enter(modules, &hazard);
    sp_symbolizer *symbolizer = sp_symbolizer_create();
    uint64_t at = (uint64_t)(uintptr_t)address;
    const sp_module *module = sp_generation_find(generation, at);
    assert_non_null(module);
    assert_int_equal(sp_symbolizer_frames(symbolizer, module, at - module->bias, &frames), 1);
    assert_string_equal(frames[0].name, name);
    sp_symbolizer_destroy(symbolizer);
    sp_generation_leave(&hazard);
    sp_modules_destroy(modules);
}

/* In the folder to which the program has moved lies another library of that name. */
static void library_of_a_relative_path_has_names_after_chdir(void **state)
{
    (void)state;
    static const char *const libraries[] = {LIBRARY, LIBRARY_NO_ID};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(libraries); i++) {
        test_run("rm -rf elsewhere && mkdir elsewhere && cp '%s' librelative.so && cp '%s' "
                 "elsewhere/librelative.so",
                 libraries[i], PROGRAM);
        assert_int_equal(chdir(test_folder), 0);
        void *library = dlopen("./librelative.so", RTLD_NOW);
        assert_non_null(library);
        assert_int_equal(chdir("elsewhere"), 0);
        expect_name(dlsym(library, "plugin_function"), "plugin_function");
        assert_int_equal(chdir("/"), 0);
        dlclose(library);
    }
}

static int set_up(void **state)
{
    (void)state;
    return test_files_begin() ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    test_files_end();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(program_in_a_path_with_a_blank_has_names),
        cmocka_unit_test(program_through_the_loader_has_names),
        cmocka_unit_test(program_replaced_while_it_runs_keeps_its_names),
        cmocka_unit_test(program_replaced_under_the_loader_has_no_wrong_names),
        cmocka_unit_test(library_of_a_relative_path_has_names_after_chdir),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
