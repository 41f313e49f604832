/* SPDX-License-Identifier: Apache-2.0 */
/* Where debug information may be, on libraries that are made here and never loaded: their build ids
 * are not compared, for a module made up here has none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/stat.h>

#include "symbol/elf_object.h"
#include "symbol/symbolizer.h"
#include "unit/symbol/test_files.h"
#include "unit/symbol/test_module.h"

/* Two libraries that have a header in common, so that dwz finds something to share. An inlined
 * function has no symbol: only debug information names it. */
static const char header[] =
    "struct some_long_name { int first_of_some_long_name; long second_of_some_long_name; };\n"
    "extern volatile int sink;\n"
    "static inline __attribute__((always_inline)) void inlined_function(struct some_long_name *s)\n"
    "{ sink += s->first_of_some_long_name; sink += (int)s->second_of_some_long_name; }\n"
    "static __attribute__((noinline)) void hidden_function(struct some_long_name *s)\n"
    "{ inlined_function(s); sink++; }\n";
static const char source[] =
    "#include \"shared.h\"\n"
    "volatile int sink;\n"
    "void exported_function(struct some_long_name *s) { hidden_function(s); sink--; }\n"
    "void other_function(int i) { sink = i; }\n";

static sp_symbolizer *symbolizer;

static int set_up(void **state)
{
    static char debug_directory[PATH_MAX];
    (void)state;
    test_forget_lines();
    snprintf(debug_directory, sizeof debug_directory, "%s/debug", test_folder);
    sp_elf_object_set_debug_directory(debug_directory);
    symbolizer = sp_symbolizer_create();
    return symbolizer ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    sp_symbolizer_destroy(symbolizer);
    return 0;
}

/* The libraries one.so and two.so from the source above; one.full is a second copy of one.so.
 * Those that were compiled with OPTIONS before are copied. */
static bool make_libraries(const char *options)
{
    test_write(test_path("shared.h"), header, sizeof header - 1);
    test_write(test_path("one.c"), source, sizeof source - 1);
    test_write(test_path("two.c"), source, sizeof source - 1);
    return test_run_command(
        "rm -rf debug *.so *.debug *.dwo; kept='kept %s'; "
        "if [ -d \"$kept\" ]; then cp \"$kept\"/* .; exit; fi; "
        "for n in one two; do cc -g -O1 %s -shared -fPIC -Wl,--build-id -o $n.so $n.c || exit 1; "
        "cp $n.so $n.full; done; mkdir \"$kept\" && cp *.so *.full \"$kept\"",
        options, options);
}

/* The address of FUNCTION in the library FILE, which has all symbols. */
static uint64_t address_of(const char *function, const char *file)
{
    char command[PATH_MAX + 128];
    unsigned long long address = 0;
    snprintf(command, sizeof command, "nm %s | sed -n 's/ [tT] %s$//p'", test_path(file), function);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_int_equal(fscanf(pipe, "%llx", &address), 1);
    pclose(pipe);
    return address;
}

static sp_module *module_at(const char *file)
{
    return test_module_make(test_path(file), 0, 1 << 20, 0);
}

/* The frames at the first of 16 bytes in FUNCTION of one.so at which there are two; those of its
 * begin when there are none. */
static uint32_t frames_in(const char *function, const sp_frame **frames)
{
    sp_module *module = module_at("one.so");
    uint64_t address = address_of(function, "one.full");
    uint32_t count = 0;
    for (uint64_t i = 0; i < 16 && count < 2; i++)
        count = sp_symbolizer_frames(symbolizer, module, address + i, frames);
    if (count < 2)
        count = sp_symbolizer_frames(symbolizer, module, address, frames);
    free(module);
    return count;
}

static void assert_inlined_is_named(void)
{
    const sp_frame *frames;
    assert_int_equal(frames_in("hidden_function", &frames), 2);
    assert_string_equal(frames[0].name, "inlined_function");
    assert_string_equal(frames[1].name, "hidden_function");
    assert_int_equal(frames[0].line, 4);
    assert_non_null(strstr(frames[0].file, "shared.h"));
    assert_int_equal(test_logged_count, 0);
}

#define MAKE(options)                                                                              \
    do {                                                                                           \
        if (!make_libraries(options))                                                              \
            skip();                                                                                \
    } while (0)

static void debug_information_in_the_file_itself_is_read(void **state)
{
    (void)state;
    MAKE("");
    assert_inlined_is_named();
}

/* By a symbolizer that has not seen the file before. */
static void assert_inlined_is_named_afresh(void)
{
    sp_symbolizer *kept = symbolizer;
    symbolizer = sp_symbolizer_create();
    assert_inlined_is_named();
    sp_symbolizer_destroy(symbolizer);
    symbolizer = kept;
}

static void assert_inlined_is_named_with(const char *options)
{
    MAKE(options);
    assert_inlined_is_named_afresh();
}

static void debug_information_compressed_by_zlib_is_read(void **state)
{
    (void)state;
    assert_inlined_is_named_with("-gz=zlib");
    test_run("readelf -t one.so | grep -q COMPRESSED");
    assert_inlined_is_named_with("-gz=zlib -gdwarf-4");
}

/* The older form has names of its own for the sections: .zdebug_info. */
static void debug_information_compressed_in_the_old_way_is_read(void **state)
{
    (void)state;
    MAKE("");
    test_run("objcopy --compress-debug-sections=zlib-gnu one.full one.so && readelf -S one.so | "
             "grep -qF .zdebug_info");
    assert_inlined_is_named();
}

static void debug_information_of_link_time_optimization_is_read(void **state)
{
    (void)state;
    assert_inlined_is_named_with("-flto");
    assert_inlined_is_named_with("-flto -gz=zlib");
}

/* ---- .gnu_debugdata ---- */

/* As distributions do it: what .dynsym has is left out. */
#define ADD_DEBUGDATA                                                                              \
    "objcopy --only-keep-debug one.full mini.debug && "                                            \
    "objcopy -S --remove-section .comment --keep-symbol=hidden_function mini.debug mini && "       \
    "xz -kf mini && strip -o one.so one.full && "

static void gnu_debugdata_names_what_dynsym_lacks(void **state)
{
    (void)state;
    MAKE("");
    test_run(ADD_DEBUGDATA "objcopy --add-section .gnu_debugdata=mini.xz one.so");
    const sp_frame *frames;
    assert_int_equal(frames_in("hidden_function", &frames), 1);
    assert_string_equal(frames[0].name, "hidden_function");
    assert_false(frames[0].unresolved);
    assert_int_equal(frames_in("exported_function", &frames), 1);
    assert_string_equal(frames[0].name, "exported_function"); /* of .dynsym */
    assert_int_equal(test_logged_count, 0);
}

static void gnu_debugdata_is_not_read_where_there_is_better(void **state)
{
    (void)state;
    MAKE("");
    test_run(ADD_DEBUGDATA "head -c 100 /dev/zero > mini.xz && "
                           "objcopy --add-section .gnu_debugdata=mini.xz one.full one.so");
    assert_inlined_is_named(); /* and no warning of what is damaged there */
}

static void gnu_debugdata_damaged_is_named_in_one_warning(void **state)
{
    static const char *const damages[][2] = {
        {"head -c 20 mini.xz > cut && mv cut mini.xz", "is damaged"},
        {"head -c 100 /dev/zero > mini.xz", "is damaged"},
        {"printf x > mini.xz", "is damaged"},
        {"printf x | xz -c > mini.xz", "holds no ELF image"},
        {"head -c 600 mini | xz -c > mini.xz", "holds no ELF image"},
        {"head -c 70000000 /dev/zero | xz -0 -c > mini.xz", "is larger than 64 MiB"},
    };
    (void)state;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(damages); i++) {
        MAKE("");
        test_forget_lines();
        test_run(ADD_DEBUGDATA "%s && objcopy --add-section .gnu_debugdata=mini.xz one.so",
                 damages[i][0]);
        const sp_frame *frames;
        sp_symbolizer *kept = symbolizer;
        symbolizer = sp_symbolizer_create();
        assert_int_equal(frames_in("hidden_function", &frames), 1);
        assert_true(frames[0].unresolved);
        frames_in("exported_function", &frames);
        assert_string_equal(frames[0].name, "exported_function");
        assert_int_equal(test_logged_count, 1);
        assert_true(test_was_logged("one.so: its .gnu_debugdata "));
        assert_true(test_was_logged(damages[i][1]));
        for (int round = 0; round < 7; round++)
            sp_symbolizer_rest(symbolizer);
        frames_in("other_function", &frames); /* opens it again */
        assert_int_equal(test_logged_count, 1);
        sp_symbolizer_destroy(symbolizer);
        symbolizer = kept;
    }
}

/* ---- dwz ---- */

static void dwz_in_one_file_is_read(void **state)
{
    (void)state;
    MAKE("-gdwarf-4");
    test_run("dwz one.so");
    assert_inlined_is_named();
}

/* The shared file is where the link says, absolute or relative to the file. */
static void dwz_shared_file_is_found_by_its_link(void **state)
{
    static const char *const places[] = {"-M $PWD/common.debug", "-M common.debug", "-r"};
    (void)state;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(places); i++) {
        MAKE("-gdwarf-4");
        test_run("dwz -m common.debug %s one.so two.so && readelf -S one.so | grep -q debugaltlink",
                 places[i]);
        assert_inlined_is_named_afresh();
    }
}

static void dwz_shared_file_is_found_in_the_debug_directory(void **state)
{
    static const char *const places[] = {
        "mkdir -p debug/.dwz && mv common.debug debug/.dwz/",
        "id=$(readelf -n common.debug | sed -n 's/.*Build ID: //p') && mkdir -p "
        "debug/.build-id/${id%${id#??}} && mv common.debug "
        "debug/.build-id/${id%${id#??}}/${id#??}.debug"};
    (void)state;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(places); i++) {
        MAKE("-gdwarf-4");
        test_run("dwz -m common.debug -M /nowhere/common.debug one.so two.so && %s", places[i]);
        assert_inlined_is_named_afresh();
    }
}

/* A file at that place with another build id would give wrong names. */
static void dwz_shared_file_of_other_build_is_not_used(void **state)
{
    (void)state;
    MAKE("-gdwarf-4");
    test_run("dwz -m common.debug -r one.so two.so && "
             "cc -g -shared -fPIC -Wl,--build-id -DOTHER -o common.debug two.c");
    const sp_frame *frames;
    assert_int_equal(frames_in("hidden_function", &frames), 1);
    assert_string_equal(frames[0].name, "hidden_function");
    assert_string_equal(frames[0].file, "");
    assert_int_equal(test_logged_count, 1);
    assert_true(test_was_logged("common.debug"));
}

static void dwz_shared_file_missing_leaves_symbols(void **state)
{
    (void)state;
    MAKE("-gdwarf-4");
    test_run("dwz -m common.debug -r one.so two.so && rm common.debug");
    const sp_frame *frames;
    uint32_t count = frames_in("hidden_function", &frames);
    assert_string_equal(frames[count - 1].name, "hidden_function");
}

/* ---- split DWARF ---- */

static void split_dwarf_is_found_beside_the_objects(void **state)
{
    static const char *const versions[] = {"-gsplit-dwarf -gdwarf-4", "-gsplit-dwarf -gdwarf-5"};
    (void)state;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(versions); i++) {
        MAKE(versions[i]);
        test_run("ls *.dwo > list");
        assert_inlined_is_named_afresh();
    }
}

static void split_dwarf_missing_leaves_symbols_and_lines(void **state)
{
    (void)state;
    MAKE("-gsplit-dwarf");
    test_run("rm *.dwo");
    const sp_frame *frames;
    assert_int_equal(frames_in("hidden_function", &frames), 1);
    assert_string_equal(frames[0].name, "hidden_function");
    assert_int_not_equal(frames[0].line, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        CASE(debug_information_in_the_file_itself_is_read),
        CASE(debug_information_compressed_by_zlib_is_read),
        CASE(debug_information_compressed_in_the_old_way_is_read),
        CASE(debug_information_of_link_time_optimization_is_read),
        CASE(gnu_debugdata_names_what_dynsym_lacks),
        CASE(gnu_debugdata_is_not_read_where_there_is_better),
        CASE(gnu_debugdata_damaged_is_named_in_one_warning),
        CASE(dwz_in_one_file_is_read),
        CASE(dwz_shared_file_is_found_by_its_link),
        CASE(dwz_shared_file_is_found_in_the_debug_directory),
        CASE(dwz_shared_file_of_other_build_is_not_used),
        CASE(dwz_shared_file_missing_leaves_symbols),
        CASE(split_dwarf_is_found_beside_the_objects),
        CASE(split_dwarf_missing_leaves_symbols_and_lines),
    };
    if (!test_files_begin())
        return 1;
    int failed = cmocka_run_group_tests_name("debug_files", tests, NULL, NULL);
    test_files_end();
    return failed;
}
