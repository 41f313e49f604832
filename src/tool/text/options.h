/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a subcommand. One table is used both for parsing and for help. */
#ifndef SP_TOOL_TEXT_OPTIONS_H
#define SP_TOOL_TEXT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum sp_option_kind {
    SP_OPTION_FLAG = 0,    /* sets a bool */
    SP_OPTION_TEXT = 1,    /* sets a const char *, borrowed from argv */
    SP_OPTION_NUMBER = 2,  /* sets a uint64_t */
    SP_OPTION_PERCENT = 3, /* sets a double in [0, 100] */
    SP_OPTION_LIST = 4,    /* appends to an sp_text_list */
    SP_OPTION_LATER = 5,   /* documented, but not built yet: it is refused with exit code 2 */
} sp_option_kind;

/* The arguments of an option that may be given several times; borrowed from argv. */
#define SP_TEXT_LIST_MAX 64
typedef struct sp_text_list {
    const char *items[SP_TEXT_LIST_MAX];
    size_t count;
} sp_text_list;

/* Whether TEXT is in LIST. True for each TEXT when LIST is empty, because then the user gave no
 * condition. */
bool sp_text_list_takes(const sp_text_list *list, const char *text);

typedef struct sp_option {
    const char *name;     /* with its dashes */
    const char *argument; /* the name of its argument in help; NULL: it takes none */
    sp_option_kind kind;
    size_t offset; /* of the member that the option sets in the struct of the command's values */
    const char *help;
} sp_option;

typedef struct sp_command {
    const char *name;
    const char *arguments; /* as in the usage line, without the name */
    const char *summary;   /* one line, for `spanprof help` */
    const char *details;   /* more, for `spanprof help NAME`; may be NULL */
    const char *examples; /* lines "# what it does" and "spanprof NAME …" alternate; may be NULL */
    const sp_option *options;
    size_t option_count;
    /* the first operand ends the options: the rest belongs to another program */
    bool program_follows;
    /* argv[0] is the command's name. Returns the exit code. */
    int (*run)(int argc, char **argv);
} sp_command;

/* The arguments that are not options; borrowed from argv. */
typedef struct sp_operands {
    const char **items;
    size_t count;
} sp_operands;

/* Returned instead of an exit code: continue. */
#define SP_OPTIONS_GO_ON (-1)

/* Sort ARGV into VALUES (the struct that the table's offsets refer to) and OPERANDS. Returns
 * SP_OPTIONS_GO_ON, or the exit code to end with: a mistake was reported, or help was printed. Free
 * OPERANDS by sp_operands_deinit in any case. */
int sp_options_parse(const sp_command *command, int argc, char **argv, void *values,
                     sp_operands *operands);
/* Find VALUE, the argument of OPTION, in WORDS (NULL at the end), ignoring case. *OUT gets its
 * index. Returns SP_TOOL_DONE, or SP_TOOL_WRONG after a message that lists the words. */
int sp_option_word(const char *command, const char *option, const char *value,
                   const char *const *words, int *out);
void sp_operands_deinit(sp_operands *operands);

void sp_command_help(const sp_command *command);

#endif
