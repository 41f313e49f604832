// SPDX-License-Identifier: Apache-2.0
// Two libraries, loaded and unloaded in turns, mostly at one address, while they are sampled and throw exceptions. Whoever looks up an address in
// the tables of the library that was there before walks wrong, or gives it the other's name. What runs before the collector has seen a library
// has no names.
//
// reloaded ROUNDS LIBRARY LIBRARY
#include <spanprof/spanprof.h>

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

enum { LIBRARIES = 2, CALLS = 150, WORK_NS = 400000 };

static void *base_of(void *function)
{
    Dl_info info;
    return dladdr(function, &info) ? info.dli_fbase : nullptr;
}

extern "C" __attribute__((noinline)) void *call_library(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *run = library ? dlsym(library, "plugin_run") : nullptr;
    if (!run) {
        std::fprintf(stderr, "%s\n", dlerror());
        std::exit(1);
    }
    void *base = base_of(run);
    for (int i = 0; i < CALLS; i++)
        reinterpret_cast<void (*)(uint64_t)>(run)(WORK_NS);
    dlclose(library);
    return base;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? std::atoi(argv[1]) : 0, same = 0;
    spanprof_span spans[LIBRARIES];
    void *bases[LIBRARIES] = {};
    if (argc < 2 + LIBRARIES || spanprof_start(nullptr, nullptr) != SPANPROF_OK)
        return 1;
    for (int i = 0; i < LIBRARIES; i++) {
        spans[i] = spanprof_span_start(nullptr, "library", nullptr);
        spanprof_span_set_int(spans[i], "truth.work", i + 1);
    }
    for (int round = 0; round < rounds; round++) {
        int which = round % LIBRARIES;
        spanprof_scope scope = spanprof_span_attach(spans[which]);
        bases[which] = call_library(argv[2 + which]);
        spanprof_scope_detach(&scope);
        same += bases[0] == bases[1];
    }
    for (spanprof_span span : spans)
        spanprof_span_end(span);
    std::printf("same address %d of %d\n", same, rounds);
    return spanprof_stop(UINT64_C(60000000000)) == SPANPROF_OK ? 0 : 1;
}
