/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/names.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/compiler.h"
#include "core/path.h"
#include "core/reach.h"
#include "proto/profiles.pb-c.h"
#include "tool/text/messages.h"

enum { LONGEST_NAME = 1 << 28 };

int sp_names_parse(const char *word, sp_demangle_style *out)
{
    static const char *const words[] = {"short", "folded", "full"};
    static const sp_demangle_style styles[] = {SP_DEMANGLE_SHORT, SP_DEMANGLE_FOLDED,
                                               SP_DEMANGLE_FULL};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(words); i++)
        if (strcmp(word, words[i]) == 0) {
            *out = styles[i];
            return SP_TOOL_DONE;
        }
    return sp_tool_wrong("--names %s is unknown; there are short, folded, full", word);
}

/* ---- one name ---- */

/* Load the C++ runtime, which demangles C++ symbols. The command is not a C++ program, so the
 * runtime is not loaded yet. If the machine has no C++ runtime, names stay as they were
 * recorded. */
static void load_runtime(void)
{
    dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_GLOBAL);
}

/* Load the C++ runtime once. Several threads may call this at once. */
static void need_runtime(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_runtime);
}

static bool is_mangled(const char *symbol)
{
    return strncmp(symbol, "_Z", 2) == 0 || strncmp(symbol, "_R", 2) == 0;
}

/* Whether NAME has template arguments. Names of other languages contain angle brackets, too:
 * "<module>", "f.<locals>.g". */
static bool has_arguments(const char *name)
{
    static const char call[] = "operator()";
    const char *open = strchr(name, '<');
    if (!open || open == name)
        return false;
    bool follows_call = open - name >= (ptrdiff_t)sizeof call - 1 &&
                        memcmp(open - (sizeof call - 1), call, sizeof call - 1) == 0;
    return follows_call || open[-1] == '_' || (open[-1] >= '0' && open[-1] <= '9') ||
           (open[-1] >= 'a' && open[-1] <= 'z') || (open[-1] >= 'A' && open[-1] <= 'Z');
}

static bool write_recorded(const char *recorded, sp_demangle_style style, sp_buffer *out)
{
    sp_buffer_clear(out);
    if (!sp_buffer_add_string(out, recorded))
        return false;
    return style != SP_DEMANGLE_FOLDED || !has_arguments(recorded) || sp_demangle_fold(out);
}

static bool write_name(const char *recorded, const char *symbol, sp_demangle_style style,
                       sp_buffer *out)
{
    const char *from = *symbol ? symbol : recorded;
    if (!is_mangled(from))
        return write_recorded(recorded, style, out);
    need_runtime();
    sp_demangle(out, from, style);
    if (out->failed)
        return false;
    return is_mangled((const char *)out->data) ? write_recorded(recorded, style, out) : true;
}

/* ---- all functions ---- */

/* Whether the function with SYMBOL is local to its source file. Then other files may have another
 * function with this name. */
static bool is_of_its_file(const char *symbol)
{
    return !*symbol || strncmp(symbol, "_ZL", 3) == 0 || strncmp(symbol, "_ZNL", 4) == 0 ||
           strstr(symbol, "_GLOBAL__N_");
}

static bool make_key(sp_buffer *key, const char *recorded, const char *symbol)
{
    sp_buffer_clear(key);
    return sp_buffer_add(key, recorded, strlen(recorded) + 1) && sp_buffer_add_string(key, symbol);
}

static sp_named *find_named(const sp_names *names, const char *recorded, const char *symbol)
{
    sp_buffer key = SP_BUFFER_INIT(2 * LONGEST_NAME);
    uint32_t number = make_key(&key, recorded, symbol)
                          ? sp_intern_find(&names->keys, key.data, key.length)
                          : SP_INTERN_FAILED;
    sp_buffer_deinit(&key);
    return number == SP_INTERN_FAILED ? NULL : &names->named[names->functions[number]];
}

static bool learn_full(sp_names *names, uint32_t key, const char *recorded, const char *symbol)
{
    sp_buffer full = SP_BUFFER_INIT(LONGEST_NAME);
    bool is_new, done = write_name(recorded, symbol, SP_DEMANGLE_FULL, &full);
    uint32_t number =
        done ? sp_intern_put(&names->full, full.data, full.length, &is_new) : SP_INTERN_FAILED;
    sp_buffer_deinit(&full);
    if (number == SP_INTERN_FAILED || !SP_REACH(names->named, number, names->capacity, 256) ||
        !SP_REACH(names->functions, key, names->key_capacity, 256))
        return false;
    if (is_new)
        names->named[number] = (sp_named){.recorded = recorded, .symbol = symbol};
    names->functions[key] = number;
    return true;
}

/* Add the key of a function, and its full name when the key is new. Returns NULL when memory is
 * short. */
static sp_named *learn_key(sp_names *names, const char *recorded, const char *symbol)
{
    sp_buffer key = SP_BUFFER_INIT(2 * LONGEST_NAME);
    bool is_new = false;
    uint32_t number = make_key(&key, recorded, symbol)
                          ? sp_intern_put(&names->keys, key.data, key.length, &is_new)
                          : SP_INTERN_FAILED;
    sp_buffer_deinit(&key);
    if (number == SP_INTERN_FAILED || (is_new && !learn_full(names, number, recorded, symbol)))
        return NULL;
    return &names->named[names->functions[number]];
}

/* Note that NAMED, which is local to its source file, is in FILE. */
static bool learn_file(sp_names *names, sp_named *named, const char *file)
{
    uint32_t function = (uint32_t)(named - names->named);
    sp_buffer key = SP_BUFFER_INIT(LONGEST_NAME);
    bool is_new = false;
    uint32_t base = sp_buffer_add(&key, &function, sizeof function) &&
                            sp_buffer_add_string(&key, sp_path_base(file))
                        ? sp_intern_put(&names->bases, key.data, key.length, &is_new)
                        : SP_INTERN_FAILED;
    sp_buffer_deinit(&key);
    if (base == SP_INTERN_FAILED || !SP_REACH(names->paths, base, names->base_capacity, 256))
        return false;
    if (is_new)
        names->paths[base] = file;
    named->same_base |= strcmp(names->paths[base], file) != 0;
    return true;
}

/* Note that the function with the full name NUMBER has the recorded name RECORDED. */
static bool note_recorded(sp_names *names, const char *recorded, uint32_t number)
{
    bool is_new;
    uint32_t at = sp_intern_put(&names->recorded, recorded, strlen(recorded) + 1, &is_new);
    if (at == SP_INTERN_FAILED || !SP_REACH(names->by_recorded, at, names->recorded_capacity, 256))
        return false;
    if (is_new)
        names->by_recorded[at] = number;
    else if (names->by_recorded[at] != number)
        names->by_recorded[at] = SP_INTERN_FAILED;
    return true;
}

/* Learn one function. *NUMBER gets the number of its full name. */
static bool learn(sp_names *names, const char *recorded, const char *symbol, const char *file,
                  uint32_t *number)
{
    sp_named *named = learn_key(names, recorded, symbol);
    if (!named)
        return false;
    *number = (uint32_t)(named - names->named);
    if (!note_recorded(names, recorded, *number))
        return false;
    named->is_of_its_file = is_of_its_file(symbol);
    return !*file || !named->is_of_its_file || learn_file(names, named, file);
}

bool sp_names_learn_recorded(sp_names *names, const char *recorded)
{
    bool is_new;
    uint32_t number;
    uint32_t at = sp_intern_put(&names->recorded, recorded, strlen(recorded) + 1, &is_new);
    if (at == SP_INTERN_FAILED || !SP_REACH(names->by_recorded, at, names->recorded_capacity, 256))
        return false;
    const char *kept = sp_intern_key(&names->recorded, at);
    if (!is_new)
        return true;
    sp_named *named = learn_key(names, kept, "");
    number = named ? (uint32_t)(named - names->named) : SP_INTERN_FAILED;
    names->by_recorded[at] = number;
    return named != NULL;
}

static const char *string_at(const Sp__Profiles__ProfilesDictionary *dictionary, int32_t index)
{
    return index >= 0 && (size_t)index < dictionary->n_string_table
               ? dictionary->string_table[index]
               : "";
}

static bool learn_document(sp_names *names, const sp_document *document)
{
    const Sp__Profiles__ProfilesData *data = (const Sp__Profiles__ProfilesData *)document->message;
    const Sp__Profiles__ProfilesDictionary *d = data->dictionary;
    uint32_t *numbers = d ? malloc((d->n_function_table + 1) * sizeof *numbers) : NULL;
    bool done = !d || numbers;
    for (size_t i = 0; d && done && i < d->n_function_table; i++) {
        const Sp__Profiles__Function *function = d->function_table[i];
        const char *recorded = string_at(d, function->name_strindex);
        const char *symbol = string_at(d, function->system_name_strindex);
        numbers[i] = SP_INTERN_FAILED;
        if (*recorded || *symbol)
            done = learn(names, *recorded ? recorded : symbol, symbol,
                         string_at(d, function->filename_strindex), &numbers[i]);
    }
    done = done && (!d || sp_names_tell_apart(names, d, numbers));
    free(numbers);
    return done;
}

/* ---- styles ---- */

static sp_demangle_style longer(sp_demangle_style style)
{
    return style == SP_DEMANGLE_FOLDED ? SP_DEMANGLE_SHORT : SP_DEMANGLE_FULL;
}

/* Give a longer style to functions whose name in their current style is also the name of another
 * function. ASKED: the style that the user asked for. *CHANGED: a function got a longer style. */
static bool lengthen_equal_names(sp_names *names, sp_demangle_style asked, bool *changed)
{
    sp_intern shown = {0};
    uint32_t *numbers = calloc(names->full.count + (size_t)1, sizeof *numbers);
    uint32_t *owners = calloc(names->full.count + (size_t)1, sizeof *owners);
    sp_buffer name = SP_BUFFER_INIT(LONGEST_NAME);
    bool done = numbers && owners;
    for (uint32_t i = 0; done && i < names->full.count; i++) {
        const sp_named *named = &names->named[i];
        done = write_name(named->recorded, named->symbol, named->styles[asked], &name);
        numbers[i] = done ? sp_intern_put(&shown, name.data, name.length, NULL) : SP_INTERN_FAILED;
        done = numbers[i] != SP_INTERN_FAILED;
        if (done)
            owners[numbers[i]]++;
    }
    *changed = false;
    for (uint32_t i = 0; done && i < names->full.count; i++)
        if (owners[numbers[i]] > 1 && names->named[i].styles[asked] != SP_DEMANGLE_FULL) {
            names->named[i].styles[asked] = longer(names->named[i].styles[asked]);
            *changed = true;
        }
    sp_buffer_deinit(&name);
    sp_intern_deinit(&shown);
    free(numbers);
    free(owners);
    return done;
}

static bool choose_styles(sp_names *names, sp_demangle_style asked)
{
    bool done = true, changed = true;
    for (uint32_t i = 0; i < names->full.count; i++)
        names->named[i].styles[asked] = asked;
    while (done && changed)
        done = lengthen_equal_names(names, asked, &changed);
    return done;
}

bool sp_names_learn(sp_names *names, const sp_input *input)
{
    bool done = true;
    for (size_t i = 0; done && i < input->count; i++)
        if (input->documents[i].signal == SP_SIGNAL_PROFILES)
            done = learn_document(names, &input->documents[i]);
    for (size_t i = 0; done && i < input->count; i++)
        if (input->documents[i].signal == SP_SIGNAL_PROFILES)
            done = sp_names_learn_holders(names, &input->documents[i]);
    for (int style = 0; done && style < SP_NAMES_STYLES; style++)
        if (names->all_styles || style == (int)names->style)
            done = choose_styles(names, (sp_demangle_style)style);
    return done;
}

bool sp_names_show(const sp_names *names, sp_demangle_style style, const char *recorded,
                   const char *symbol, const char *file, sp_buffer *out)
{
    const sp_named *named = find_named(names, recorded, symbol);
    if (!write_name(recorded, symbol, named ? named->styles[style] : style, out))
        return false;
    if (!named || !named->several_files || !*file)
        return true;
    return sp_buffer_printf(out, " [%s]", named->same_base ? file : sp_path_base(file));
}

bool sp_names_show_recorded(const sp_names *names, sp_demangle_style style, const char *recorded,
                            sp_buffer *out)
{
    uint32_t at = sp_intern_find(&names->recorded, recorded, strlen(recorded) + 1);
    sp_buffer_clear(out);
    if (at == SP_INTERN_FAILED)
        return sp_buffer_add_string(out, recorded);
    if (names->by_recorded[at] == SP_INTERN_FAILED)
        return write_recorded(recorded, style, out);
    const sp_named *named = &names->named[names->by_recorded[at]];
    return write_name(named->recorded, named->symbol, named->styles[style], out);
}

bool sp_names_show_stack(const sp_names *names, sp_demangle_style style, const char *stack,
                         sp_buffer *out)
{
    sp_buffer one = SP_BUFFER_INIT(LONGEST_NAME);
    char *copy = strdup(stack), *rest = copy;
    bool done = copy;
    sp_buffer_clear(out);
    for (const char *name; done && (name = strsep(&rest, ";"));)
        done = sp_names_show_recorded(names, style, name, &one) &&
               (!out->length || sp_buffer_add_string(out, ";")) &&
               sp_buffer_add_string(out, (const char *)one.data);
    free(copy);
    sp_buffer_deinit(&one);
    return done;
}

const char *sp_names_function(const char *name)
{
    static const char anonymous[] = "(anonymous namespace)";
    size_t length = strlen(name), begin = 0;
    for (size_t i = 0; i < length; i++) {
        size_t end = sp_demangle_operator(name, i, length);
        if (end || strncmp(name + i, "operator ", 9) == 0)
            break; /* the name ends here */
        if (name[i] == '(' && strncmp(name + i, anonymous, sizeof anonymous - 1) != 0)
            break; /* parameters */
        if (name[i] == '<' || name[i] == '(' || name[i] == '[' || name[i] == '{')
            end = sp_demangle_group(name, i, length);
        else if (name[i] == ' ')
            begin = i + 1;
        if (end > i)
            i = end - 1;
    }
    return name + begin;
}

void sp_names_deinit(sp_names *names)
{
    sp_intern_deinit(&names->recorded);
    free(names->by_recorded);
    sp_intern_deinit(&names->keys);
    sp_intern_deinit(&names->full);
    sp_intern_deinit(&names->bases);
    free(names->paths);
    free(names->functions);
    free(names->named);
    *names = (sp_names){0};
}
