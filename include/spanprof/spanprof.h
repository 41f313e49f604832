/* SPDX-License-Identifier: Apache-2.0 */
/* spanprof: record which span is active on which thread, sample the threads' stacks, and send
 * profiles whose samples are linked to their spans. This header includes the others. Names contain
 * units: _ns _hz _ms _bytes _count. */
#ifndef SPANPROF_SPANPROF_H
#define SPANPROF_SPANPROF_H

#include <spanprof/version.h>
#include <spanprof/status.h>
#include <spanprof/context.h>
#include <spanprof/fiber.h>
#include <spanprof/propagation.h>
#include <spanprof/tracer.h>
#include <spanprof/processor.h>
#include <spanprof/sampler.h>
#include <spanprof/sdk.h>
#include <spanprof/alloc.h>
#include <spanprof/value.h>

#endif
