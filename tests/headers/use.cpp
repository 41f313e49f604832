/* SPDX-License-Identifier: Apache-2.0 */
/* The headers as C++17 sees them; compiled, never run. The *_INIT macros are C: C++17 has no designated initialisers. */
#include <spanprof/spanprof.h>

static_assert(sizeof(spanprof_context) == 64, "the contract says 64 bytes");
static_assert(sizeof(spanprof_span) == 16, "the contract says 16 bytes");

int use(int early);

int use(int early)
{
    spanprof_options options{};
    options.struct_size = sizeof options;
    if (spanprof_start(&options, nullptr) != SPANPROF_OK)
        return 1;
    SPANPROF_SPAN("outer") {
        SPANPROF_SPAN("inner") {
            if (early)
                throw early;
        }
    }
    return spanprof_stop(0);
}
