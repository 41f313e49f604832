/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/text/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/env.h"
#include "core/spelling.h"
#include "tool/text/messages.h"

static void print_examples(const char *examples)
{
    printf("\nexamples:\n");
    for (const char *line = examples; *line;) {
        int length = (int)strcspn(line, "\n");
        printf("  %.*s\n", length, line);
        line += length + (line[length] == '\n');
    }
}

void sp_command_help(const sp_command *command)
{
    printf("usage: spanprof %s %s\n\n%s\n", command->name, command->arguments, command->summary);
    if (command->details)
        printf("\n%s\n", command->details);
    printf("\noptions:\n");
    for (size_t i = 0; i < command->option_count; i++) {
        const sp_option *option = &command->options[i];
        char left[64];
        snprintf(left, sizeof left, "%s%s%s", option->name, option->argument ? " " : "",
                 option->argument ? option->argument : "");
        printf("  %-22s %s%s\n", left, option->help,
               option->kind == SP_OPTION_LATER ? " (not built yet)" : "");
    }
    printf("  %-22s %s\n", "--help", "this text");
    if (command->examples)
        print_examples(command->examples);
}

/* The option that ARGUMENT names before its equals sign, if it has one; *VALUE is the text after
 * the equals sign, else NULL. */
static const sp_option *find_option(const sp_command *command, const char *argument,
                                    const char **value)
{
    const char *equals = strchr(argument, '=');
    size_t length = equals ? (size_t)(equals - argument) : strlen(argument);
    *value = equals ? equals + 1 : NULL;
    for (size_t i = 0; i < command->option_count; i++)
        if (strlen(command->options[i].name) == length &&
            memcmp(command->options[i].name, argument, length) == 0)
            return &command->options[i];
    return NULL;
}

static bool parse_percent(const char *text, double *out)
{
    char *end;
    if (text[strspn(text, "0123456789.")]) /* strtod accepts other forms, too, such as 0x10 */
        return false;
    *out = strtod(text, &end);
    return end != text && *end == 0 && *out >= 0 && *out <= 100;
}

bool sp_text_list_takes(const sp_text_list *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(text, list->items[i]) == 0)
            return true;
    return list->count == 0;
}

static int add_text(const sp_command *command, const sp_option *option, const char *value,
                    sp_text_list *list)
{
    if (list->count == SP_TEXT_LIST_MAX)
        return sp_tool_wrong("%s: %s is given more than %d times", command->name, option->name,
                             SP_TEXT_LIST_MAX);
    list->items[list->count++] = value;
    return SP_OPTIONS_GO_ON;
}

static int set_value(const sp_command *command, const sp_option *option, const char *value,
                     void *values)
{
    void *member = (char *)values + option->offset;
    switch (option->kind) {
    case SP_OPTION_FLAG:
        *(bool *)member = true;
        break;
    case SP_OPTION_TEXT:
        *(const char **)member = value;
        break;
    case SP_OPTION_NUMBER:
        if (!sp_parse_u64(value, member))
            return sp_tool_wrong("%s: %s %s: a whole number is needed", command->name, option->name,
                                 value);
        break;
    case SP_OPTION_PERCENT:
        if (!parse_percent(value, member))
            return sp_tool_wrong("%s: %s %s: a number from 0 to 100 is needed", command->name,
                                 option->name, value);
        break;
    case SP_OPTION_LIST:
        return add_text(command, option, value, member);
    case SP_OPTION_LATER:
        return sp_tool_wrong("%s: %s is not built yet; `spanprof help %s` lists what is",
                             command->name, option->name, command->name);
    }
    return SP_OPTIONS_GO_ON;
}

/* The option that the user probably meant by TEXT, which is not an option. NULL: none is
 * similar. */
static const char *meant_option(const sp_command *command, const char *text)
{
    sp_spelling spelling = {.text = text, .length = strcspn(text, "=")};
    /* without its dashes */
    spelling.far_off = sp_spelling_far(spelling.length > 2 ? spelling.length - 2 : 0);
    for (size_t i = 0; i < command->option_count; i++)
        sp_spelling_try(&spelling, command->options[i].name);
    return spelling.found;
}

static int refuse_option(const sp_command *command, const char *text)
{
    const char *meant = meant_option(command, text);
    return sp_tool_wrong("%s: unknown option %s%s%s; `spanprof help %s` lists the options",
                         command->name, text, meant ? ", was it " : "", meant ? meant : "",
                         command->name);
}

/* Parse argv[*I], an option, and its argument. *I becomes the index of the last word of both. */
static int take_option(const sp_command *command, int argc, char **argv, int *i, void *values)
{
    if (strcmp(argv[*i], "--help") == 0 || strcmp(argv[*i], "-h") == 0) {
        sp_command_help(command);
        return SP_TOOL_DONE;
    }
    const char *value;
    const sp_option *option = find_option(command, argv[*i], &value);
    if (!option)
        return refuse_option(command, argv[*i]);
    if (option->kind != SP_OPTION_LATER && option->argument && !value) {
        if (*i + 1 >= argc)
            return sp_tool_wrong("%s: %s needs an argument: %s", command->name, option->name,
                                 option->argument);
        value = argv[++*i];
    }
    if (!option->argument && value)
        return sp_tool_wrong("%s: %s takes no argument", command->name, option->name);
    return set_value(command, option, value, values);
}

int sp_option_word(const char *command, const char *option, const char *value,
                   const char *const *words, int *out)
{
    char list[256] = "";
    size_t used = 0;
    for (*out = 0; words[*out]; ++*out) {
        if (strcasecmp(words[*out], value) == 0)
            return SP_TOOL_DONE;
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", *out ? ", " : "",
                                     words[*out]);
    }
    return sp_tool_wrong("%s: %s %s is unknown; there are %s", command, option, value, list);
}

int sp_options_parse(const sp_command *command, int argc, char **argv, void *values,
                     sp_operands *operands)
{
    *operands = (sp_operands){.items = calloc((size_t)argc + 1, sizeof *operands->items)};
    if (!operands->items)
        return sp_tool_no_memory();
    bool options_over = false;
    for (int i = 1; i < argc; i++) {
        if (!options_over && strcmp(argv[i], "--") == 0) {
            options_over = true;
        } else if (!options_over && argv[i][0] == '-' && argv[i][1]) {
            int status = take_option(command, argc, argv, &i, values);
            if (status != SP_OPTIONS_GO_ON)
                return status;
        } else {
            operands->items[operands->count++] = argv[i];
            options_over |= command->program_follows;
        }
    }
    return SP_OPTIONS_GO_ON;
}

void sp_operands_deinit(sp_operands *operands)
{
    free(operands->items);
    *operands = (sp_operands){0};
}
