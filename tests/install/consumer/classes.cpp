/* SPDX-License-Identifier: Apache-2.0 */
/* The same with the classes of spanprof.hpp. */
#include <spanprof/spanprof.hpp>

#include <cstdio>
#include <cstring>

int main()
{
    spanprof_options options{};
    options.struct_size = sizeof options;
    options.exporter = "none";
    spanprof_stats stats{};
    stats.struct_size = sizeof stats;
    if (std::strcmp(spanprof_version(), SPANPROF_VERSION) != 0 ||
        spanprof_start(&options, nullptr) != SPANPROF_OK)
        return 1;
    {
        spanprof::active_span work("work");
        work.set_attribute("key", "value");
        if (!spanprof::context::current().is_valid())
            return 1;
    }
    spanprof_stats_get(&stats);
    std::printf("spans: %llu\n", static_cast<unsigned long long>(stats.spans_ended));
    return spanprof_stop(UINT64_C(5000000000)) == SPANPROF_OK && stats.spans_ended == 1 ? 0 : 1;
}
