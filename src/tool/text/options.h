/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a subcommand, as a table from which both parsing and help come. */
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
    SP_OPTION_LATER = 5,   /* named by the contract, not built yet: says so and is exit code 2 */
} sp_option_kind;

/* The arguments of an option that may be given several times; borrowed from argv. */
#define SP_TEXT_LIST_MAX 64
typedef struct sp_text_list {
    const char *items[SP_TEXT_LIST_MAX];
    size_t count;
} sp_text_list;

/* Whether TEXT is in LIST, or LIST is empty: nothing was asked for. */
bool sp_text_list_takes(const sp_text_list *list, const char *text);

typedef struct sp_option {
    const char *name;     /* with its dashes */
    const char *argument; /* what help calls its argument; NULL when it takes none */
    sp_option_kind kind;
    size_t offset; /* of the member of the command's own struct that it sets */
    const char *help;
} sp_option;

typedef struct sp_command {
    const char *name;
    const char *arguments; /* as the usage line shows them, without the name */
    const char *summary;   /* one line, for `spanprof help` */
    const char *details;   /* more, for `spanprof help NAME`; may be NULL */
    const char *examples; /* lines "# what it does" and "spanprof NAME …", by turns; may be NULL */
    const sp_option *options;
    size_t option_count;
    bool program_follows; /* the first operand ends the options: the rest is another program's */
    /* argv[0] is the command's name. Returns the exit code. */
    int (*run)(int argc, char **argv);
} sp_command;

/* What is left when the options are taken away; borrowed from argv. */
typedef struct sp_operands {
    const char **items;
    size_t count;
} sp_operands;

/* Go on, beside the exit codes. */
#define SP_OPTIONS_GO_ON (-1)

/* Sort ARGV into VALUES (the struct that the table's offsets mean) and OPERANDS, to be freed by
 * sp_operands_deinit whatever is returned. SP_OPTIONS_GO_ON, or the exit code with which to end: a
 * mistake was named, or help was asked for and given. */
int sp_options_parse(const sp_command *command, int argc, char **argv, void *values,
                     sp_operands *operands);
/* The number in *OUT of the word of WORDS (NULL at the end) that VALUE is, the argument of OPTION.
 * SP_TOOL_DONE; SP_TOOL_WRONG, having said which words there are. */
int sp_option_word(const char *command, const char *option, const char *value,
                   const char *const *words, int *out);
void sp_operands_deinit(sp_operands *operands);

void sp_command_help(const sp_command *command);

#endif
