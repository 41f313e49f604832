/* SPDX-License-Identifier: Apache-2.0 */
/* The names of functions in answers: C++ and Rust names are as short as possible without two
 * functions having the same (docs/formats/answers.md). */
#ifndef SP_TOOL_MODEL_NAMES_H
#define SP_TOOL_MODEL_NAMES_H

#include "core/intern.h"
#include "symbol/demangle.h"
#include "proto/profiles.pb-c.h"
#include "tool/read/input.h"

/* What may be asked for: all before SP_DEMANGLE_NONE. */
#define SP_NAMES_STYLES SP_DEMANGLE_NONE

/* A function: all that has one full name. */
typedef struct sp_named {
    const char *recorded, *symbol; /* of the profile; SYMBOL "" where RECORDED is that */
    /* By what is asked for: the shortest style, from this on, in which no other function is called
     * so. */
    sp_demangle_style styles[SP_NAMES_STYLES];
    bool same_base;      /* two of its files differ in their folders only */
    bool is_of_its_file; /* other files do not see it, and may have another one */
    bool several_files;  /* it is several */
} sp_named;

typedef struct sp_names {
    sp_demangle_style style; /* what is asked for */
    bool all_styles;         /* names in the others are asked for, too */
    sp_intern keys;          /* recorded name and symbol */
    uint32_t *functions;     /* by key: a number of FULL */
    size_t key_capacity;
    sp_intern full;     /* full names */
    sp_intern bases;    /* a number of FULL, and the base of a file of it */
    const char **paths; /* by base: the first file */
    size_t base_capacity;
    sp_named *named;
    size_t capacity;
} sp_names;

/* Learn all functions of INPUT, which outlives NAMES, and choose their styles. False when memory is
 * short; NAMES is to be freed in any case. */
bool sp_names_learn(sp_names *names, const sp_input *input);
void sp_names_deinit(sp_names *names);
/* Write what the function is called in STYLE, one that was asked for, into OUT, emptied first. */
bool sp_names_show(const sp_names *names, sp_demangle_style style, const char *recorded,
                   const char *symbol, const char *file, sp_buffer *out);
/* Part of learning, in names_apart.c: of which functions of DICTIONARY there are several. NUMBERS:
 * those of FULL by function, or SP_INTERN_FAILED. */
bool sp_names_tell_apart(sp_names *names, const Sp__Profiles__ProfilesDictionary *dictionary,
                         const uint32_t *numbers);
/* "short", "folded", "full". SP_TOOL_WRONG, having said so, when WORD is none of these. */
int sp_names_parse(const char *word, sp_demangle_style *out);

#endif
