/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/compiler.h"
#include "symbol/demangle.h"

typedef struct sample_name {
    const char *symbol, *name;
} sample_name;

static sp_buffer out = SP_BUFFER_INIT(4096);

static void assert_names(const sample_name *samples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sp_demangle(&out, samples[i].symbol, SP_DEMANGLE_SHORT);
        assert_false(out.failed);
        assert_string_equal((char *)out.data, samples[i].name);
    }
}

static void demangle_plain_symbol_stays(void **state)
{
    static const sample_name samples[] = {
        {"main", "main"},
        {"_start", "_start"},
        {"_Z", "_Z"},
        {"_R", "_R"},
        {"_ZN", "_ZN"},
        {"_RNv", "_RNv"},
        {"memcpy.avx2", "memcpy.avx2"},
        {"R\303\244", "R\303\244"},
        {"", ""},
    };
    (void)state;
    assert_names(samples, SP_ARRAY_LENGTH(samples));
}

static void demangle_clone_loses_suffix(void **state)
{
    static const sample_name samples[] = {
        {"parse.isra.0", "parse"},           {"parse.part.3.isra.0", "parse"},
        {"parse.constprop.0.cold", "parse"}, {"parse.llvm.123456789", "parse"},
        {"parse.lto_priv.0", "parse"},       {".cold", ".cold"},
    };
    (void)state;
    assert_names(samples, SP_ARRAY_LENGTH(samples));
}

static void demangle_rust_legacy_name_loses_hash(void **state)
{
    static const sample_name samples[] = {
        {"_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"},
        {"_ZN4core3fmt5write17h0123456789abcdefE.llvm.77", "core::fmt::write"},
        {"_ZN60_$LT$alloc..string..String$u20$as$u20$core..fmt..Display$GT$"
         "3fmt17h5a3f7d21bc90e468E",
         "<alloc::string::String as core::fmt::Display>::fmt"},
        {"_ZN3std2rt10lang_start28_$u7b$$u7b$closure$u7d$$u7d$17h0011223344556677E",
         "std::rt::lang_start::{{closure}}"},
        {"_ZN37_$LT$$RF$mut$u20$$BP$T$C$$LP$$RP$$GT$1f17h0123456789abcdefE", "<&mut *T,()>::f"},
        {"_ZN1a4$u0$17h0123456789abcdefE", "a::$u0$"}, /* no printable character */
    };
    (void)state;
    assert_names(samples, SP_ARRAY_LENGTH(samples));
}

/* Expected by hand from the grammar of RFC 2603. */
static void demangle_rust_v0_name_is_read(void **state)
{
    static const sample_name samples[] = {
        {"_RNvC7mycrate3foo", "mycrate::foo"},
        {"_RNvCs1234_7mycrate3foo", "mycrate::foo"},
        {"_RNvCs1234_7mycrate3foo.llvm.99", "mycrate::foo"},
        {"_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"},
        {"_RNCNvC7mycrate3foo0B3_", "mycrate::foo::{closure#0}"},
        {"_RNCNvC7mycrate3foos_0B3_", "mycrate::foo::{closure#1}"},
        {"_RNSNvC7mycrate3foo6vtable", "mycrate::foo::{shim:vtable#0}"},
        {"_RINvC7mycrate3foolE", "mycrate::foo::<i32>"},
        {"_RINvC7mycrate3fooReQShKj10_E", "mycrate::foo::<&str, &mut [u8], 16>"},
        {"_RINvC7mycrate3fooTlbEAhj4_TaEuE", "mycrate::foo::<(i32, bool), [u8; 4], (i8,), ()>"},
        {"_RINvC7mycrate3fooPcOdKb1_Kc61_Kanf_E",
         "mycrate::foo::<*const char, *mut f64, true, 'a', -15>"},
        {"_RINvC7mycrate3fooFUKCjEuFlEzE",
         "mycrate::foo::<unsafe extern \"C\" fn(usize), fn(i32) -> !>"},
        {"_RINvC7mycrate3fooDNtC3std4Iterp4ItemhEL_E", "mycrate::foo::<dyn std::Iter<Item = u8>>"},
        {"_RINvC7mycrate3fooDINtC3std2FnTlEEp6OutputuNtC3std4SendEL_E",
         "mycrate::foo::<dyn std::Fn<(i32,), Output = ()> + std::Send>"},
        {"_RNvMC7mycrateNtB2_3Bar3foo", "<mycrate::Bar>::foo"},
        {"_RNvXC7mycrateNtB2_3BarNtB2_5Trait3foo", "<mycrate::Bar as mycrate::Trait>::foo"},
        {"_RNvYlNtC7mycrate5Trait3foo", "<i32 as mycrate::Trait>::foo"},
        {"_RINvC7mycrate3fooINtC5alloc3VeclEL_EC4main", "mycrate::foo::<alloc::Vec<i32>, '_>"},
        {"_RNvC7mycrateu8gdel_5qa", "mycrate::g\303\266del"},
    };
    (void)state;
    assert_names(samples, SP_ARRAY_LENGTH(samples));
}

/* Each is wrong in another way, and stays as it is. */
static void demangle_rust_v0_garbage_stays(void **state)
{
    static const char *const symbols[] = {
        "_RNvC7mycrate4foo",                       /* longer than the symbol */
        "_RNvC99999999999999999999999a",           /* a length that overflows */
        "_RNvB_3foo",                              /* refers to itself */
        "_RNvC7mycrate3fooBz_x",                   /* rest that is no path */
        "_RNvC7mycrate3foo!",                      /* rest that is no suffix */
        "_RINvC7mycrate3fool",                     /* list without end */
        "_RINvC7mycrate3fooKj00000000000000000_E", /* more than 64 bits */
        "_RINvC7mycrate3fooKcd800_E",              /* a surrogate */
        "_RINvC7mycrate3fooKS_E",                  /* no such constant */
        "_RINvC7mycrate3fookE",                    /* no such type */
        "_RNvCszzzzzzzzzzzzzzzzzz_1a1b",           /* a number that overflows */
    };
    (void)state;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(symbols); i++) {
        sp_demangle(&out, symbols[i], SP_DEMANGLE_SHORT);
        assert_string_equal((char *)out.data, symbols[i]);
    }
}

/* Each tuple refers twice to the one before: 2^40 types when written out. */
static void demangle_rust_v0_growing_name_is_given_up(void **state)
{
    char symbol[2048] = "_RINvC1a1b", previous[16] = "l";
    (void)state;
    for (int i = 0; i < 40; i++) {
        size_t at = strlen(symbol) - 2; /* references count from behind "_R" */
        size_t used = strlen(symbol);
        snprintf(symbol + used, sizeof symbol - used, "T%s%sE", previous, previous);
        static const char digits[] =
            "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        size_t number = at - 1; /* base 62, "_" being 0 */
        if (number >= 62)
            snprintf(previous, sizeof previous, "B%c%c_", digits[number / 62], digits[number % 62]);
        else
            snprintf(previous, sizeof previous, "B%c_", digits[number]);
    }
    strcat(symbol, "E");
    sp_demangle(&out, symbol, SP_DEMANGLE_SHORT);
    assert_string_equal((char *)out.data, symbol);
    assert_false(out.failed);
}

static void demangle_deep_name_is_given_up(void **state)
{
    char symbol[8000] = "_RINvC1a1b";
    (void)state;
    memset(symbol + strlen(symbol), 'S', 3000);
    strcat(symbol, "lE");
    sp_demangle(&out, symbol, SP_DEMANGLE_SHORT);
    assert_string_equal((char *)out.data, symbol);
}

static void demangle_cpp_name_is_short(void **state)
{
    static const sample_name samples[] = {
        {"_Z3foov", "foo"},
        {"_ZN2ns1fIiEEvPc", "ns::f<int>"},
        {"_ZN2ns1fIiEEvPc.isra.0", "ns::f<int>"},
        {"_ZNK2ns5ClasscvbEv", "ns::Class::operator bool"},
        {"_ZN2ns5ClassclEi", "ns::Class::operator()"},
        {"_ZN2ns5ClassltERKS0_", "ns::Class::operator<"},
        {"_ZlsIcEvT_i", "operator<< <char>"},
        {"_ZN12_GLOBAL__N_13fooEv", "(anonymous namespace)::foo"},
        {"_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()"},
        {"_ZNKSt6vectorIiSaIiEE4sizeEv", "std::vector<int, std::allocator<int> >::size"},
        {"_ZN1A1fB5cxx11Ev", "A::f[abi:cxx11]"},
        {"_ZThn8_N1A1fEi", "non-virtual thunk to A::f"},
        {"_ZTV1A", "vtable for A"},
        {"_ZnwmPv", "operator new"},
        {"_Z1fIXadL_Z1gvEEEvv", "f<&g>"},
        {"_Zgarbage", "_Zgarbage"},
    };
    (void)state;
    if (!dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL)) {
        print_message("skipped: no libstdc++.so.6 on this system\n");
        skip();
    }
    for (size_t i = 0; i < SP_ARRAY_LENGTH(samples); i++) {
        sp_demangle(&out, samples[i].symbol, SP_DEMANGLE_SHORT);
        if (strcmp(samples[i].symbol, "_Z1fIXadL_Z1gvEEEvv") == 0)
            assert_non_null(strstr((char *)out.data,
                                   "f<")); /* runtimes differ in how they write the argument */
        else
            assert_string_equal((char *)out.data, samples[i].name);
    }
}

/* Symbols that gcc 12, clang 14 and rustc 1.95 made of small programs. NULL: the same as the short
 * name. */
typedef struct styled_name {
    const char *symbol, *name, *folded, *full;
} styled_name;

#define FOLD "<\xe2\x80\xa6>"

static void assert_style(const char *symbol, sp_demangle_style style, const char *expected)
{
    sp_demangle(&out, symbol, style);
    assert_false(out.failed);
    assert_string_equal((char *)out.data, expected);
}

static void assert_styles(const styled_name *samples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const styled_name *s = &samples[i];
        assert_style(s->symbol, SP_DEMANGLE_SHORT, s->name);
        assert_style(s->symbol, SP_DEMANGLE_FOLDED, s->folded ? s->folded : s->name);
        assert_style(s->symbol, SP_DEMANGLE_FULL, s->full ? s->full : s->name);
        assert_style(s->symbol, SP_DEMANGLE_NONE, s->symbol);
    }
}

static void demangle_cpp_name_in_each_style(void **state)
{
    static const styled_name samples[] = {
        {"_ZN2ns1gEi", "ns::g", NULL, "ns::g(int)"},
        {"_ZN2ns5withbILb1EEEvv", "ns::withb<true>", "ns::withb" FOLD, "void ns::withb<true>()"},
        {"_ZN2ns1AltERKS0_", "ns::A::operator<", NULL, "ns::A::operator<(ns::A const&)"},
        {"_ZN2ns1AltIiEEbPT_", "ns::A::operator< <int>", "ns::A::operator< " FOLD,
         "bool ns::A::operator< <int>(int*)"},
        {"_ZN2ns1AlsEi", "ns::A::operator<<", NULL, "ns::A::operator<<(int)"},
        {"_ZN2ns1AlsIiEES0_PT_", "ns::A::operator<< <int>", "ns::A::operator<< " FOLD,
         "ns::A ns::A::operator<< <int>(int*)"},
        {"_ZN2ns1ArsEi", "ns::A::operator>>", NULL, "ns::A::operator>>(int)"},
        {"_ZN2ns1AgtEi", "ns::A::operator>", NULL, "ns::A::operator>(int)"},
        {"_ZN2ns1AptEv", "ns::A::operator->", NULL, "ns::A::operator->()"},
        {"_ZNK2ns1ApmEi", "ns::A::operator->*", NULL, "ns::A::operator->*(int) const"},
        {"_ZNK2ns1AssERKS0_", "ns::A::operator<=>", NULL, "ns::A::operator<=>(ns::A const&) const"},
        {"_ZNV2ns1AixEi", "ns::A::operator[]", NULL, "ns::A::operator[](int) volatile"},
        {"_ZN2ns1AcmEi", "ns::A::operator,", NULL, "ns::A::operator,(int)"},
        {"_ZNKR2ns1AclIiEET_S2_", "ns::A::operator()<int>", "ns::A::operator()" FOLD,
         "int ns::A::operator()<int>(int) const &"},
        {"_ZN2nsli2_xB5cxx11Ey", "ns::operator\"\" _x[abi:cxx11]", NULL,
         "ns::operator\"\" _x[abi:cxx11](unsigned long long)"},
        /* conversions */
        {"_ZNK2ns1AcvSt6vectorIiSaIiEEEv", "ns::A::operator std::vector<int, std::allocator<int> >",
         "ns::A::operator std::vector" FOLD,
         "ns::A::operator std::vector<int, std::allocator<int> >() const"},
        {"_ZNK2ns1AcvPFviEEv", "ns::A::operator void (*)(int)", NULL,
         "ns::A::operator void (*)(int)() const"},
        /* functions that stand inside of what they return */
        {"_ZN2ns1A5getfpIiEEPFviET_", "ns::A::getfp<int>", "ns::A::getfp" FOLD,
         "void (*ns::A::getfp<int>(int))(int)"},
        {"_ZN2ns1A5getmpIiEEMS0_KFviET_", "ns::A::getmp<int>", "ns::A::getmp" FOLD,
         "void (ns::A::*ns::A::getmp<int>(int))(int) const"},
        {"_ZN2ns1A6getarrIiEERA3_iT_", "ns::A::getarr<int>", "ns::A::getarr" FOLD,
         "int (&ns::A::getarr<int>(int)) [3]"},
        {"_ZN2ns2cbEPFvPFicEEMNS_1AEKFifE", "ns::cb", NULL,
         "ns::cb(void (*)(int (*)(char)), int (ns::A::*)(float) const)"},
        /* expressions */
        {"_ZN2ns2dtIiEEDTplfp_Li1EET_", "ns::dt<int>", "ns::dt" FOLD,
         "decltype ({parm#1}+(1)) ns::dt<int>(int)"},
        {"_ZN2ns3cmpILi5EEENSt11conditionalIXgtT_Li3EEicE4typeEv", "ns::cmp<5>", "ns::cmp" FOLD,
         "std::conditional<((5)>(3)), int, char>::type ns::cmp<5>()"},
        {"_ZN2ns7autoargIXadL_ZNS_1A1xEEEEEvv", "ns::autoarg<&ns::A::x>", "ns::autoarg" FOLD,
         "void ns::autoarg<&ns::A::x>()"},
        {"_ZN2ns7autoargIXadL_ZNS_1AgtEiEEEEvv", "ns::autoarg<&ns::A::operator> >",
         "ns::autoarg" FOLD, "void ns::autoarg<&ns::A::operator> >()"},
        /* lambdas, nested templates, unnamed namespaces */
        {"_ZZN2ns3lamIiEEiT_ENKUlS1_E_clIdEEDaS1_",
         "ns::lam<int>(int)::{lambda(auto:1)#1}::operator()<double>",
         "ns::lam" FOLD "(int)::{lambda(auto:1)#1}::operator()" FOLD,
         "auto ns::lam<int>(int)::{lambda(auto:1)#1}::operator()<double>(double) const"},
        {"_ZZNK3sky9catalogueIdE8crowdingEmmENKUlRKT_RKT0_E_clIddEEDaS4_S7_",
         "sky::catalogue<double>::crowding(unsigned long, unsigned long) "
         "const::{lambda(auto:1 const&, auto:2 const&)#1}::operator()<double, double>",
         "sky::catalogue" FOLD "::crowding(unsigned long, unsigned long) "
         "const::{lambda(auto:1 const&, auto:2 const&)#1}::operator()" FOLD,
         "auto sky::catalogue<double>::crowding(unsigned long, unsigned long) "
         "const::{lambda(auto:1 const&, auto:2 const&)#1}::operator()<double, double>(double "
         "const&, double const&) const"},
        {"_ZZNVKR3sky9catalogueIdE3volEmENKUlRKT_E_clIdEEDaS4_",
         "sky::catalogue<double>::vol(unsigned long) const volatile "
         "&::{lambda(auto:1 const&)#1}::operator()<double>",
         "sky::catalogue" FOLD "::vol(unsigned long) const volatile "
         "&::{lambda(auto:1 const&)#1}::operator()" FOLD,
         "auto sky::catalogue<double>::vol(unsigned long) const volatile "
         "&::{lambda(auto:1 const&)#1}::operator()<double>(double const&) const"},
        {"_ZNKSt9_Any_data9_M_accessIZN2ns2mkEvEUliE_EERKT_v",
         "std::_Any_data::_M_access<ns::mk()::{lambda(int)#1}>", "std::_Any_data::_M_access" FOLD,
         "ns::mk()::{lambda(int)#1} const& std::_Any_data::_M_access<ns::mk()::{lambda(int)#1}>() "
         "const"},
        {"_ZNK2ns1SIiE1I1hIdEERKSt6vectorIiSaIiEET_", "ns::S<int>::I::h<double>",
         "ns::S" FOLD "::I::h" FOLD,
         "std::vector<int, std::allocator<int> > const& ns::S<int>::I::h<double>(double) const"},
        {"_ZSt10destroy_atISt4pairIKiSt6vectorIiSaIiEEEEvPT_",
         "std::destroy_at<std::pair<int const, std::vector<int, std::allocator<int> > > >",
         "std::destroy_at" FOLD,
         "void std::destroy_at<std::pair<int const, std::vector<int, std::allocator<int> > > "
         ">(std::pair<int const, std::vector<int, std::allocator<int> > >*)"},
        {"_ZN2ns12_GLOBAL__N_11L1mINS_1AEEEvT_", "ns::(anonymous namespace)::L::m<ns::A>",
         "ns::(anonymous namespace)::L::m" FOLD,
         "void ns::(anonymous namespace)::L::m<ns::A>(ns::A)"},
        {"_ZN2ns1SIiED2Ev", "ns::S<int>::~S", "ns::S" FOLD "::~S", "ns::S<int>::~S()"},
        {"_ZNSt8functionIFiiEEC2IZN2ns2mkEvEUliE_vEEOT_",
         "std::function<int (int)>::function<ns::mk()::{lambda(int)#1}, void>",
         "std::function" FOLD "::function" FOLD,
         "std::function<int (int)>::function<ns::mk()::{lambda(int)#1}, "
         "void>(ns::mk()::{lambda(int)#1}&&)"},
    };
    (void)state;
    if (!dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL)) {
        print_message("skipped: no libstdc++.so.6 on this system\n");
        skip();
    }
    assert_styles(samples, SP_ARRAY_LENGTH(samples));
}

static void demangle_rust_name_in_each_style(void **state)
{
    static const styled_name samples[] = {
        {"_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write", NULL,
         "core::fmt::write::h0123456789abcdef"},
        {"_ZN53_$LT$r..Sq$LT$T$GT$$u20$as$u20$r..Shape$LT$u8$GT$$GT$4area17h0123456789abcdefE",
         "<r::Sq<T> as r::Shape<u8>>::area", "<r::Sq" FOLD " as r::Shape" FOLD ">::area",
         "<r::Sq<T> as r::Shape<u8>>::area::h0123456789abcdef"},
        {"_RINvCs6GmmlP4bgsG_1r5applyNCNvB2_4main0EB2_", "r::apply::<r::main::{closure#0}>",
         "r::apply::" FOLD, "r[4dd80272b5a2d1fc]::apply::<r[4dd80272b5a2d1fc]::main::{closure#0}>"},
        {"_RINvCs6GmmlP4bgsG_1r3arrKj4_EB2_", "r::arr::<4>", "r::arr::" FOLD,
         "r[4dd80272b5a2d1fc]::arr::<4>"},
        {"_RNvMs4_NtNtCsduwmD7cSIQq_5gimli4read6abbrevNtB5_13Abbreviations6insert",
         "<gimli::read::abbrev::Abbreviations>::insert", NULL,
         "<gimli[9d272e8433f81454]::read::abbrev::Abbreviations>::insert"},
        {"_RINvMsi_NtNtNtCslNYArtu3iFV_5alloc11collections5btree3mapINtB6_"
         "8BTreeMapyNtNtNtCsduwmD7cSIQq_5gimli4read6abbrev12AbbreviationE3getyEB1f_",
         "<alloc::collections::btree::map::BTreeMap<u64, gimli::read::abbrev::Abbreviation>>::get"
         "::<u64>",
         "<alloc::collections::btree::map::BTreeMap" FOLD ">::get::" FOLD,
         "<alloc[fdfd2bd8633a6659]::collections::btree::map::BTreeMap<u64, "
         "gimli[9d272e8433f81454]::read::abbrev::Abbreviation>>::get::<u64>"},
    };
    (void)state;
    assert_styles(samples, SP_ARRAY_LENGTH(samples));
}

/* Names that no compiler makes, but a buffer that is too small for a longer one may not spoil. */
static void demangle_folded_name_that_does_not_fit_stays(void **state)
{
    (void)state;
    sp_buffer small = SP_BUFFER_INIT(40);
    sp_demangle(&small, "_RINvC1r3arrKj4_E", SP_DEMANGLE_FOLDED);
    assert_string_equal((char *)small.data, "r::arr::" FOLD);
    sp_demangle(&small, "_RINvC1r16a_long_name_is_iKj4_E", SP_DEMANGLE_FOLDED);
    assert_string_equal((char *)small.data, "_RINvC1r16a_long_name_is_iKj4_E");
    assert_false(small.failed);
    sp_buffer_deinit(&small);
}

static void demangle_without_cpp_runtime_keeps_symbol(void **state)
{
    (void)state;
    if (dlsym(RTLD_DEFAULT, "__cxa_demangle")) {
        print_message("skipped: something brought a C++ runtime into this test (a sanitizer?)\n");
        skip();
    }
    sp_demangle(&out, "_ZN2ns1fIiEEvPc", SP_DEMANGLE_SHORT);
    assert_string_equal((char *)out.data, "_ZN2ns1fIiEEvPc");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(demangle_without_cpp_runtime_keeps_symbol), /* before one is loaded */
        cmocka_unit_test(demangle_plain_symbol_stays),
        cmocka_unit_test(demangle_clone_loses_suffix),
        cmocka_unit_test(demangle_rust_legacy_name_loses_hash),
        cmocka_unit_test(demangle_rust_v0_name_is_read),
        cmocka_unit_test(demangle_rust_v0_garbage_stays),
        cmocka_unit_test(demangle_rust_v0_growing_name_is_given_up),
        cmocka_unit_test(demangle_deep_name_is_given_up),
        cmocka_unit_test(demangle_cpp_name_is_short),
        cmocka_unit_test(demangle_cpp_name_in_each_style),
        cmocka_unit_test(demangle_rust_name_in_each_style),
        cmocka_unit_test(demangle_folded_name_that_does_not_fit_stays),
    };
    int failed = cmocka_run_group_tests_name("demangle", tests, NULL, NULL);
    sp_buffer_deinit(&out);
    return failed;
}
