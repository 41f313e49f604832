/* SPDX-License-Identifier: Apache-2.0 */
/* The tool without the html page: npm was not there when it was built. */
#include "tool/draw/flame.h"

const char *const sp_flame_page_head = NULL;
const char *const sp_flame_page_tail = NULL;
