/* SPDX-License-Identifier: Apache-2.0 */
#include "export/export_internal.h"

enum { REPEAT_AFTER_S = 60 };

bool sp_repeat_allows(sp_repeat *repeat, uint64_t now_ns)
{
    if (repeat->said_ns && now_ns - repeat->said_ns < REPEAT_AFTER_S * SP_NS_PER_S) {
        repeat->kept_back++;
        return false;
    }
    repeat->said_ns = now_ns;
    return true;
}
