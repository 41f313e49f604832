/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the html page when npm is not installed at build time. */
#include "tool/draw/flame.h"

const char *const sp_flame_page_head = NULL;
const char *const sp_flame_page_tail = NULL;
