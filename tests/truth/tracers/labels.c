/* SPDX-License-Identifier: Apache-2.0 */
/* The scheme of a label for each thread (../labels.h) for programs that find spanprof's functions
 * when they are loaded: a library that goes before libspanprof, or in its place, for it needs that
 * one and hides four of its functions. A span's start, told to a span processor, sets the label of
 * its thread, its end clears that of the thread that it ends on; what the adapters attach and
 * detach does nothing. */
#include <dlfcn.h>

#include <spanprof/spanprof.h>

#define EXPORTED __attribute__((visibility("default")))

static __typeof__(spanprof_context_attach) *attach;
static __typeof__(spanprof_scope_detach) *detach;
static __typeof__(spanprof_processor_on_start) *on_start;
static __typeof__(spanprof_processor_on_end) *on_end;

static __thread spanprof_scope label_of_thread;

/* Not RTLD_NEXT: a library that dlopen brought is not in the order in which that looks. */
__attribute__((constructor)) static void find_hidden(void)
{
    void *spanprof = dlopen("libspanprof.so.0", RTLD_NOW | RTLD_NOLOAD);

    attach = (__typeof__(attach))dlsym(spanprof, "spanprof_context_attach");
    detach = (__typeof__(detach))dlsym(spanprof, "spanprof_scope_detach");
    on_start = (__typeof__(on_start))dlsym(spanprof, "spanprof_processor_on_start");
    on_end = (__typeof__(on_end))dlsym(spanprof, "spanprof_processor_on_end");
}

static void label_clear(void)
{
    if (label_of_thread.serial != 0)
        detach(&label_of_thread);
}

EXPORTED void spanprof_processor_on_start(const spanprof_context *context,
                                          const spanprof_context *parent, const char *name,
                                          uint64_t time_ns, spanprof_start_attributes *out)
{
    on_start(context, parent, name, time_ns, out);
    label_clear();
    label_of_thread = attach(context);
}

EXPORTED void spanprof_processor_on_end(const spanprof_context *context, uint64_t time_ns)
{
    on_end(context, time_ns);
    label_clear();
}

EXPORTED spanprof_scope spanprof_context_attach(const spanprof_context *context)
{
    (void)context;
    return (spanprof_scope){0, 0, 0};
}

EXPORTED spanprof_status spanprof_scope_detach(spanprof_scope *scope)
{
    (void)scope;
    return SPANPROF_OK;
}
