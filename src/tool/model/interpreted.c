/* SPDX-License-Identifier: Apache-2.0 */
/* Says why an answer has functions of an interpreter or nameless code, and no functions of the
 * program that it runs. */
#include "tool/model/interpreted.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/compiler.h"
#include "tool/model/sum.h"
#include "tool/text/messages.h"

/* The least number of samples for which a note is written. */
enum { FEW = 5 };

/* A program that runs programs of another language. A stack is of it if a frame has a name of
 * `frames`. Where `frames` is NULL, its code has no names: the executable is called `program`, and
 * the innermost function has no name. `named` is how its functions begin where it names them. */
static const struct {
    const char *language;
    const char *frames[3];
    const char *program, *named;
    const char *remedy;
} all[] = {
    {"Python",
     {"_PyEval_EvalFrameDefault", "PyEval_EvalFrameEx"},
     NULL,
     "py::",
     "Python 3.12 and newer shows the innermost Python function when it is started with -X perf "
     "(or PYTHONPERFSUPPORT=1), and its callers if it is built with frame pointers; for older ones "
     "spanprof has nothing"},
    {"JavaScript",
     {"Builtins_InterpreterEntryTrampoline", "Builtins_JSEntry"},
     NULL,
     "JS:",
     "node shows compiled functions when it is started with --perf-basic-prof, and all with "
     "--interpreted-frames-native-stack, too"},
    {"Java",
     {NULL},
     "java",
     NULL,
     "JDK 17 and newer names compiled methods with -XX:+UnlockDiagnosticVMOptions "
     "-XX:+DumpPerfMapAtExit; before --attach call jcmd PID Compiler.perfmap; callers of methods "
     "are not found"},
    {"Ruby",
     {"vm_exec_core", "rb_vm_exec"},
     NULL,
     NULL,
     "spanprof has nothing for Ruby: use a profiler that reads its frames"},
    {"Perl", {"Perl_runops_standard"}, NULL, NULL, "spanprof has nothing for Perl"},
    {"PHP", {"execute_ex"}, NULL, NULL, "spanprof has nothing for PHP"},
    {"Lua", {"luaV_execute"}, NULL, NULL, "spanprof has nothing for Lua"},
};

/* What the name of a function shows: bit I, it is of the interpreter of language I; bit NAMED + I,
 * it is a function in this language; NAMELESS: it is code in no module, of a just-in-time compiler.
 */
typedef uint32_t marks;
enum { NAMED = 8, NAMELESS = 1 << 16 };
_Static_assert(SP_ARRAY_LENGTH(all) <= NAMED, "each language has a bit");

typedef struct tally {
    uint64_t all, interpreted[SP_ARRAY_LENGTH(all)];
    marks seen; /* of all stacks */
} tally;

static bool begins_with(const char *text, const char *with)
{
    return with && strncmp(text, with, strlen(with)) == 0;
}

static marks marks_of(const char *name)
{
    marks found = begins_with(name, "[unknown]+0x") ? NAMELESS : 0;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(all); i++) {
        for (size_t k = 0; k < SP_ARRAY_LENGTH(all[i].frames) && all[i].frames[k]; k++)
            if (strcmp(name, all[i].frames[k]) == 0)
                found |= UINT32_C(1) << i;
        if (begins_with(name, all[i].named))
            found |= UINT32_C(1) << (NAMED + i);
    }
    return found;
}

static void add(tally *tally, const sp_model *model, const marks *of_names,
                const sp_model_sample *sample)
{
    const sp_intern_entry *entry = &model->stacks.entries[sample->stack];
    const uint32_t *frames = entry->key;
    size_t count = entry->length / sizeof *frames;
    marks found = 0, leaf = count ? of_names[frames[0]] : 0;
    for (size_t i = 0; i < count; i++)
        found |= of_names[frames[i]];
    tally->seen |= found;
    sp_sum_add(&tally->all, sample->count);
    for (size_t i = 0; i < SP_ARRAY_LENGTH(all); i++)
        if (all[i].frames[0] ? found >> i & 1 : leaf & NAMELESS)
            sp_sum_add(&tally->interpreted[i], sample->count);
}

/* Returns false when memory is short. */
static bool count(tally *tally, const sp_model *model, uint32_t type)
{
    marks *of_names = calloc(model->strings.count + (size_t)1, sizeof *of_names);
    *tally = (struct tally){0};
    for (uint32_t i = 0; of_names && i < model->strings.count; i++)
        of_names[i] = marks_of(sp_model_text(model, i));
    for (uint32_t i = 0; of_names && i < model->sample_index.count; i++)
        if (model->samples[i].type == type)
            add(tally, model, of_names, &model->samples[i]);
    free(of_names);
    return of_names != NULL;
}

/* Whether a process with samples of TYPE is of the executable PROGRAM. */
static bool has_program(const sp_model *model, uint32_t type, const char *program)
{
    for (size_t i = 0; i < model->profile_count; i++) {
        const sp_model_profile *profile = &model->profiles[i];
        if (profile->type == type && strcmp(sp_resource_text(profile->resource, profile->dictionary,
                                                             "process.executable.name"),
                                            program) == 0)
            return true;
    }
    return false;
}

static bool is_missing(const tally *tally, size_t language, const sp_model *model, uint32_t type)
{
    uint64_t interpreted = tally->interpreted[language];
    const char *program = all[language].program;
    return interpreted >= FEW && interpreted > tally->all / 2 &&
           !(tally->seen >> (NAMED + language) & 1) &&
           (!program || has_program(model, type, program));
}

void sp_model_note_interpreted(const sp_model *model, uint32_t type)
{
    tally tally;
    size_t i = 0;
    if (!count(&tally, model, type))
        return;
    while (i < SP_ARRAY_LENGTH(all) && !is_missing(&tally, i, model, type))
        i++;
    if (i < SP_ARRAY_LENGTH(all))
        sp_tool_note("functions of the %s program are not shown, only %s: %s", all[i].language,
                     all[i].frames[0] ? "those of its interpreter"
                                      : "addresses of the code that was compiled from them",
                     all[i].remedy);
}
