/* SPDX-License-Identifier: Apache-2.0 */
/* The extension of examples/postgres by the label scheme. */
#include "postgres.h" /* goes before all others */

#include "truth/labels.h"

#include "../../../../examples/postgres/spanprof_postgres.c"
