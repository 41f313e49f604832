/* SPDX-License-Identifier: Apache-2.0 */
/* The names of functions in answers. Names of C++ and Rust are as short as possible, but two
 * functions never get the same name (docs/formats/answers.md). */
#ifndef SP_TOOL_MODEL_NAMES_H
#define SP_TOOL_MODEL_NAMES_H

#include "core/intern.h"
#include "symbol/demangle.h"
#include "proto/profiles.pb-c.h"
#include "tool/read/input.h"

/* The styles that the user can ask for: those before SP_DEMANGLE_NONE. */
#define SP_NAMES_STYLES SP_DEMANGLE_NONE

/* All functions with one full name. */
typedef struct sp_named {
    /* as in the profile; SYMBOL is "" when the profile has only RECORDED */
    const char *recorded, *symbol;
    /* For each style that the user can ask for: the shortest style, from this one on, in which no
     * other function has the same name. */
    sp_demangle_style styles[SP_NAMES_STYLES];
    bool same_base; /* two of the function's files have the same base name, in different folders */
    /* local to a source file: other files may have another function of this name */
    bool is_of_its_file;
    bool several_files; /* several functions, in different files, have this name */
} sp_named;

typedef struct sp_names {
    sp_demangle_style style; /* the style that the user asked for */
    bool all_styles;         /* names in the other styles are needed, too */
    sp_intern keys;          /* recorded name and symbol */
    uint32_t *functions;     /* by key: a number of `full` */
    size_t key_capacity;
    sp_intern full; /* full names */
    /* keys are a number of `full` and the base name of a file that has the function */
    sp_intern bases;
    const char **paths; /* by number of `bases`: the first file that was seen */
    size_t base_capacity;
    sp_named *named;
    size_t capacity;
    sp_intern recorded; /* recorded names, with their NUL */
    /* by number of `recorded`: the number of `full` of the function that has the name;
     * SP_INTERN_FAILED: several functions have it */
    uint32_t *by_recorded;
    size_t recorded_capacity;
} sp_names;

/* Learn all functions of INPUT, which must outlive NAMES, and choose their styles. Returns false
 * when memory is short. Free NAMES by sp_names_deinit in any case. */
bool sp_names_learn(sp_names *names, const sp_input *input);
void sp_names_deinit(sp_names *names);
/* Write the name of a function in STYLE to OUT, which is emptied first. STYLE is `style`, or any
 * style with `all_styles`. Returns false when memory is short. */
bool sp_names_show(const sp_names *names, sp_demangle_style style, const char *recorded,
                   const char *symbol, const char *file, sp_buffer *out);
/* As sp_names_show, for a function of which only the RECORDED name is known, as one in the stack of
 * a thread that held a lock. It has the same name as in other stacks. Without sp_names_learn it has
 * the recorded name. */
bool sp_names_show_recorded(const sp_names *names, sp_demangle_style style, const char *recorded,
                            sp_buffer *out);
/* The same for all functions of STACK, "root;…;leaf". */
bool sp_names_show_stack(const sp_names *names, sp_demangle_style style, const char *stack,
                         sp_buffer *out);
/* The begin of the function's own name, with its scopes, in NAME, which may be full: then a return
 * type may be before it. */
const char *sp_names_function(const char *name);
/* Learn a function of which only the RECORDED name is known. Does nothing when a function with the
 * name was learned. Returns false when memory is short. */
bool sp_names_learn_recorded(sp_names *names, const char *recorded);
/* Learn the functions in the stacks of threads that held locks. Call it when all functions with
 * symbols were learned. Returns false when memory is short. A step of learning, in
 * names_holders.c. */
bool sp_names_learn_holders(sp_names *names, const sp_document *document);
/* Find names in DICTIONARY that several functions have. NUMBERS: for each function of DICTIONARY
 * its number of `full`, or SP_INTERN_FAILED. Returns false when memory is short. A step of
 * learning, in names_apart.c. */
bool sp_names_tell_apart(sp_names *names, const Sp__Profiles__ProfilesDictionary *dictionary,
                         const uint32_t *numbers);
/* Parse WORD: "short", "folded" or "full". Returns SP_TOOL_WRONG, after a message, for other
 * words. */
int sp_names_parse(const char *word, sp_demangle_style *out);

#endif
