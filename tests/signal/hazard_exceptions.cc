// SPDX-License-Identifier: Apache-2.0
// C++ exceptions through frames with destructors, for test_hazard_stacks.c.
#include <stdexcept>
#include <string>

extern "C" unsigned hazard_throw_and_catch(unsigned count);

namespace
{

struct counter {
    unsigned *destroyed;
    ~counter()
    {
        ++*destroyed;
    }
};

__attribute__((noinline)) unsigned throw_deep(unsigned depth, unsigned *destroyed)
{
    counter on_unwinding{destroyed};
    if (depth == 0)
        throw std::runtime_error("a message too long for the small string's own buffer");
    return throw_deep(depth - 1, destroyed) + 1;
}

} // namespace

// Returns how many destructors ran: 21 a throw.
unsigned hazard_throw_and_catch(unsigned count)
{
    unsigned destroyed = 0;
    for (unsigned i = 0; i < count; i++) {
        try {
            throw_deep(20, &destroyed);
        } catch (const std::runtime_error &error) {
            destroyed += std::string(error.what()).empty();
        }
    }
    return destroyed;
}
