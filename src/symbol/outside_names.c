/* SPDX-License-Identifier: Apache-2.0 */
/* The code at such an address changes while the process runs, so nothing is remembered by address.
 * Frames are kept by content: equal frames are one object, and repeated requests return the same
 * pointer. */
#include "symbol/outside_names.h"

#include <stdlib.h>
#include <string.h>

#include "symbol/jit_names.h"
#include "symbol/kernel_names.h"

/* With more frames than this, the next rest forgets all of them. */
enum { LONGEST_NAME = 16 * 1024, FRAMES_KEPT = 64 * 1024 };

struct sp_outside_names {
    sp_demangle_style style;
    sp_jit_names *jit;
    sp_kernel_names *kernel; /* NULL until an address of the kernel is requested */
    sp_intern strings;
    sp_intern frames; /* keys are of type sp_frame, with padding zeroed */
    sp_buffer text;   /* scratch */
};

static const char *kallsyms = "/proc/kallsyms";

void sp_outside_names_set_kallsyms(const char *path)
{
    kallsyms = path;
}

sp_outside_names *sp_outside_names_create(sp_demangle_style style, pid_t process)
{
    sp_outside_names *names = calloc(1, sizeof *names);
    if (!names)
        return NULL;
    names->style = style;
    names->text = (sp_buffer)SP_BUFFER_INIT(LONGEST_NAME);
    names->jit = sp_jit_names_create(process);
    if (names->jit)
        return names;
    free(names);
    return NULL;
}

void sp_outside_names_destroy(sp_outside_names *names)
{
    if (!names)
        return;
    sp_jit_names_destroy(names->jit);
    sp_kernel_names_destroy(names->kernel);
    sp_intern_deinit(&names->strings);
    sp_intern_deinit(&names->frames);
    sp_buffer_deinit(&names->text);
    free(names);
}

void sp_outside_names_rest(sp_outside_names *names)
{
    sp_jit_names_rest(names->jit);
    if (names->frames.count <= FRAMES_KEPT)
        return;
    sp_intern_clear(&names->frames);
    sp_intern_clear(&names->strings);
}

static const char *keep(sp_outside_names *names, const char *text)
{
    uint32_t number = sp_intern_put_string(&names->strings, text);
    return number == SP_INTERN_FAILED ? NULL : sp_intern_key(&names->strings, number);
}

/* FRAME was zeroed with its padding, because frames are compared bytewise. NULL when memory is
 * short. */
static const sp_frame *keep_frame(sp_outside_names *names, sp_frame *frame)
{
    if (!frame->name || !frame->system_name || !frame->file)
        return NULL;
    uint32_t number = sp_intern_put(&names->frames, frame, sizeof *frame, NULL);
    return number == SP_INTERN_FAILED ? NULL : sp_intern_key(&names->frames, number);
}

/* Just-in-time compilers of C++ or Rust report mangled names. Other names are shown as reported: a
 * dot or an at sign has no meaning in them. */
static void set_name(sp_outside_names *names, sp_frame *frame, const char *reported)
{
    bool mangled = reported[0] == '_' && (reported[1] == 'Z' || reported[1] == 'R');
    frame->name = frame->system_name = keep(names, reported);
    if (mangled) {
        sp_demangle(&names->text, reported, names->style);
        frame->name = names->text.failed ? NULL : keep(names, (const char *)names->text.data);
    }
    if (frame->name == frame->system_name)
        frame->system_name = keep(names, "");
}

static void set_unknown(sp_outside_names *names, sp_frame *frame, uint64_t address)
{
    sp_buffer_clear(&names->text);
    sp_buffer_printf(&names->text, "%s+0x%llx",
                     sp_is_kernel_address(address) ? "[kernel]" : "[unknown]",
                     (unsigned long long)address);
    frame->name = names->text.failed ? NULL : keep(names, (const char *)names->text.data);
    frame->system_name = keep(names, "");
    frame->unresolved = true;
}

static const char *kernel_name(sp_outside_names *names, uint64_t address)
{
    if (!names->kernel)
        names->kernel = sp_kernel_names_create(kallsyms);
    return names->kernel ? sp_kernel_names_find(names->kernel, address) : NULL;
}

const sp_frame *sp_outside_names_frame(sp_outside_names *names, uint64_t address)
{
    sp_code_name reported = {.file = ""};
    sp_frame frame;
    memset(&frame, 0, sizeof frame);
    bool known = sp_is_kernel_address(address)
                     ? (reported.name = kernel_name(names, address)) != NULL
                     : sp_jit_names_find(names->jit, address, &reported);
    if (known)
        set_name(names, &frame, reported.name);
    else
        set_unknown(names, &frame, address);
    frame.file = keep(names, reported.file);
    frame.line = reported.line;
    return keep_frame(names, &frame);
}
