/* SPDX-License-Identifier: Apache-2.0 */
/* Names of inlined C++ functions that have no linkage name: their scopes come from DWARF. The
 * libraries are compiled here and never loaded. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "symbol/symbolizer.h"
#include "unit/symbol/test_files.h"
#include "unit/symbol/test_module.h"

/* Cart::fill, Cart::pack and the functions enter_… contain inlined functions. */
static const char source[] =
    "#define IN __attribute__((always_inline))\n"
    "#define ENTER extern \"C\" __attribute__((noinline)) void\n"
    "volatile int sink;\n"
    "static inline IN void in_file(int n) { sink += n; }\n"
    "namespace shop {\n"
    "namespace { struct row { int key; IN void touch() const { sink += key; } }; }\n"
    "inline namespace v2 { static inline IN void newer(int n) { sink += n; } }\n"
    "class Cart { public: struct Part; void fill(int n); void pack(int n); int total; };\n"
    "namespace { class Box { public: struct Lid; }; struct Box::Lid { IN void lift(int n) { sink "
    "+= "
    "n; } }; }\n"
    "__attribute__((noinline)) void Cart::fill(int n) {\n"
    "  auto add = [&](int k) IN { sink += k + total; };\n"
    "  add(n);\n"
    "}\n"
    "__attribute__((noinline)) void Cart::pack(int n) {\n"
    "#line 101\n"
    "  auto one = [&](int k) IN { sink += k + total; };\n"
    "  auto two = [&](int k) IN { sink += k * total; auto in = [](auto v) IN { sink -= v; }; "
    "in(k); "
    "};\n"
    "  struct local { IN void go(int m) { sink += m; } } l;\n"
    "  struct { IN void operator()(int m) { sink -= m; } } no_lambda;\n"
    "  one(n); two(n); l.go(n); no_lambda(n);\n"
    "}\n"
    "template <class F> struct caller { F f; IN void call(int n) { f(n); sink += n; } };\n"
    "template <class F> inline IN void each(F f) { caller<F> c{f}; c.call(3); sink++; }\n"
    "extern \"C\" { inline IN void c_function(int n) { sink += n; } }\n"
    "}\n"
    "ENTER enter_file(int n) { in_file(n); }\n"
    "ENTER enter_row(int n) { shop::row r{n}; r.touch(); }\n"
    "ENTER enter_newer(int n) { shop::newer(n); }\n"
    "ENTER enter_lid(int n) { shop::Box::Lid l; l.lift(n); }\n"
    "ENTER enter_each(int n) { shop::each([](int k) IN { sink += k; }); }\n"
    "ENTER enter_c(int n) { shop::c_function(n); }\n";

#define FILL "_ZN4shop4Cart4fillEi"
#define PACK "_ZN4shop4Cart4packEi"

static sp_symbolizer *symbolizer;

static void start_symbolizer(sp_demangle_style style)
{
    sp_symbolizer_destroy(symbolizer);
    symbolizer = sp_symbolizer_create();
    assert_non_null(symbolizer);
    sp_symbolizer_configure(symbolizer, &(sp_symbolizer_options){.style = style});
}

static int set_up(void **state)
{
    (void)state;
    test_forget_lines();
    start_symbolizer(SP_DEMANGLE_SHORT);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sp_symbolizer_destroy(symbolizer);
    symbolizer = NULL;
    return 0;
}

/* Compile the source to shop.so. */
static bool compile(const char *compiler, const char *options)
{
    test_write(test_path("shop.cc"), source, sizeof source - 1);
    return test_run_command("rm -f *.so *.dwo; %s -std=c++17 -g -O1 %s -w -shared -fPIC "
                            "-Wl,--build-id -o shop.so shop.cc",
                            compiler, options);
}

static void range_of(const char *function, unsigned long long *start, unsigned long long *size)
{
    char command[PATH_MAX + 128];
    snprintf(command, sizeof command, "nm -S %s | sed -n 's/ [tT] %s$//p'", test_path("shop.so"),
             function);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_int_equal(fscanf(pipe, "%llx %llx", start, size), 2);
    pclose(pipe);
}

/* All names of frames in FUNCTION, each as " NAME;". */
static const char *names_in(const char *function)
{
    static char names[16384];
    unsigned long long start, size;
    sp_module *module = test_module_make(test_path("shop.so"), 0, 1 << 20, 0);
    range_of(function, &start, &size);
    strcpy(names, " ");
    for (uint64_t address = start; address < start + size; address++) {
        const sp_frame *frames;
        uint32_t count = sp_symbolizer_frames(symbolizer, module, address, &frames);
        for (uint32_t i = 0; i < count; i++) {
            char name[1024];
            snprintf(name, sizeof name, " %s;", frames[i].name);
            if (!strstr(names, name))
                strncat(names, name, sizeof names - strlen(names) - 1);
        }
    }
    free(module);
    return names;
}

/* FUNCTION contains code of NAME, and of no function that is called BARE. */
static void expect(const char *function, const char *name, const char *bare)
{
    char wanted[1024], unwanted[256];
    const char *names = names_in(function);
    snprintf(wanted, sizeof wanted, " %s;", name);
    snprintf(unwanted, sizeof unwanted, " %s;", bare);
    if (!strstr(names, wanted) || (*bare && strstr(names, unwanted)))
        fail_msg("%s: expected%s found%s", function, wanted, names);
}

static void expect_scopes(void)
{
    expect("enter_file", "in_file", "");
    expect("enter_row", "shop::(anonymous namespace)::row::touch", "touch");
    expect("enter_newer", "shop::v2::newer", "newer");
    expect("enter_lid", "shop::(anonymous namespace)::Box::Lid::lift", "lift");
    expect("enter_c", "c_function", "shop::c_function");
}

static void names_have_scopes_of_gcc(void **state)
{
    static const char *const options[] = {
        "", "-gdwarf-4", "-O3", "-flto", "-fdebug-types-section", "-gsplit-dwarf"};
    (void)state;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(options); i++) {
        if (!compile("g++", options[i]))
            skip();
        start_symbolizer(SP_DEMANGLE_SHORT);
        expect_scopes();
        expect(FILL, "shop::Cart::fill::{lambda}::operator()", "operator()");
        expect(PACK, "shop::Cart::pack::{lambda:101}::operator()", "");
        expect(PACK, "shop::Cart::pack::{lambda:102}::operator()", "");
        expect(PACK, "shop::Cart::pack::{lambda:102}::operator()::{lambda}::operator()<int>",
               "operator()<int>");
        expect(PACK, "shop::Cart::pack::local::go", "go");
        expect(PACK, "operator()", ""); /* of a class without a name: not a lambda */
        expect("enter_each", "shop::each<enter_each(int)::<lambda(int)> >", "");
        expect("enter_each", "shop::caller<enter_each(int)::<lambda(int)> >::call", "call");
        expect("enter_each", "enter_each::{lambda}::operator()", "operator()");
    }
}

/* A tool that shares entries between files puts them into units of their own. */
static void names_have_scopes_that_are_in_a_shared_file(void **state)
{
    (void)state;
    if (!compile("g++", ""))
        skip();
    test_run("cp shop.so more.so && dwz -m shared.dwz shop.so more.so");
    expect_scopes();
    expect(FILL, "shop::Cart::fill::{lambda}::operator()", "operator()");
}

/* clang writes a linkage name for each function. */
static void names_of_clang_are_those_of_linkage_names(void **state)
{
    (void)state;
    if (!compile("clang++-14", ""))
        skip();
    expect_scopes();
    expect(FILL, "shop::Cart::fill(int)::$_1::operator()", "operator()");
    expect(PACK, "shop::Cart::pack(int)::local::go", "go");
}

/* The functions are known, but their scopes are not. */
static void names_are_bare_when_there_are_only_tables_of_lines(void **state)
{
    (void)state;
    if (!compile("clang++-14", "-gline-tables-only"))
        skip();
    expect("enter_row", "touch", "row::touch");
    expect("enter_c", "c_function", "shop::c_function");
}

static void names_of_the_source_are_folded(void **state)
{
    (void)state;
    if (!compile("g++", ""))
        skip();
    start_symbolizer(SP_DEMANGLE_FOLDED);
    expect("enter_each", "shop::each<\xe2\x80\xa6>", "");
    expect("enter_each", "shop::caller<\xe2\x80\xa6>::call", "");
    expect(PACK, "shop::Cart::pack::{lambda:102}::operator()", "");
}

static int begin(void **state)
{
    (void)state;
    dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL); /* demangles linkage names */
    return test_files_begin() ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    test_files_end();
    return 0;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(names_have_scopes_of_gcc),
        CASE(names_have_scopes_that_are_in_a_shared_file),
        CASE(names_of_clang_are_those_of_linkage_names),
        CASE(names_are_bare_when_there_are_only_tables_of_lines),
        CASE(names_of_the_source_are_folded),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
