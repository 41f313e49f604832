/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/text/shell_words.h"

#include <string.h>

#include "core/compiler.h"

/* Add TEXT for a place inside single quotes, with a backslash before each character of SPECIAL. A
 * quote in TEXT becomes '\'': it ends the string, adds an escaped quote, and begins the string
 * again. */
static void add_quoted(sp_buffer *out, const char *text, const char *special)
{
    for (; *text; text++) {
        if (strchr(special, *text))
            sp_buffer_add_char(out, '\\');
        if (*text == '\'')
            sp_buffer_add_string(out, "'\\''");
        else
            sp_buffer_add_char(out, *text);
    }
}

static void add_names(sp_buffer *out, const sp_command *const *commands, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sp_buffer_printf(out, "%s ", commands[i]->name);
    sp_buffer_add_string(out, "help");
}

/* ---- bash ---- */

static void add_bash_options(sp_buffer *out, const sp_command *command)
{
    sp_buffer_printf(out, "    %s) words='", command->name);
    for (size_t i = 0; i < command->option_count; i++)
        if (command->options[i].kind != SP_OPTION_LATER)
            sp_buffer_printf(out, "%s ", command->options[i].name);
    sp_buffer_add_string(out, "--help' ;;\n");
}

static void write_bash(sp_buffer *out, const sp_command *const *commands, size_t count)
{
    sp_buffer_add_string(out, "# Completion of spanprof for bash.\n"
                              "_spanprof() {\n"
                              "    local word=${COMP_WORDS[COMP_CWORD]} words='' names='");
    add_names(out, commands, count);
    sp_buffer_add_string(out,
                         "'\n"
                         "    COMPREPLY=()\n"
                         "    if [[ $COMP_CWORD == 1 || ( $COMP_CWORD == 2 && "
                         "${COMP_WORDS[1]} == help ) ]]; then\n"
                         "        mapfile -t COMPREPLY < <(compgen -W \"$names\" -- \"$word\")\n"
                         "        return\n"
                         "    fi\n"
                         "    case ${COMP_WORDS[1]} in\n");
    for (size_t i = 0; i < count; i++)
        add_bash_options(out, commands[i]);
    sp_buffer_add_string(out,
                         "    esac\n"
                         "    if [[ $word == -* ]]; then\n"
                         "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
                         "    fi\n"
                         "}\n"
                         "complete -o default -F _spanprof spanprof\n");
}

/* ---- zsh ---- */

static void add_zsh_options(sp_buffer *out, const sp_command *command)
{
    sp_buffer_printf(out, "    %s)\n        _arguments \\\n", command->name);
    for (size_t i = 0; i < command->option_count; i++) {
        const sp_option *option = &command->options[i];
        if (option->kind == SP_OPTION_LATER)
            continue;
        sp_buffer_printf(out, "            '%s%s[", option->kind == SP_OPTION_LIST ? "*" : "",
                         option->name);
        add_quoted(out, option->help, "[]\\");
        sp_buffer_add_char(out, ']');
        if (option->argument) {
            sp_buffer_add_char(out, ':');
            add_quoted(out, option->argument, ":\\");
            sp_buffer_add_string(out, ":_files");
        }
        sp_buffer_add_string(out, "' \\\n");
    }
    sp_buffer_printf(out, "            '--help[this text]' '*:%s:_files'\n        ;;\n",
                     command->program_follows ? "program" : "file");
}

static void write_zsh(sp_buffer *out, const sp_command *const *commands, size_t count)
{
    sp_buffer_add_string(out, "#compdef spanprof\n"
                              "# Completion of spanprof for zsh.\n"
                              "_spanprof() {\n"
                              "    local -a names\n"
                              "    names=(\n");
    for (size_t i = 0; i < count; i++) {
        sp_buffer_printf(out, "        '%s:", commands[i]->name);
        add_quoted(out, commands[i]->summary, ":\\");
        sp_buffer_add_string(out, "'\n");
    }
    sp_buffer_add_string(out,
                         "        'help:What a command does, and its options.'\n"
                         "    )\n"
                         "    if (( CURRENT == 2 )) || [[ CURRENT -eq 3 && $words[2] == help ]]; "
                         "then\n"
                         "        _describe command names\n"
                         "        return\n"
                         "    fi\n"
                         "    local name=$words[2]\n"
                         "    shift words\n"
                         "    (( CURRENT-- ))\n"
                         "    case $name in\n");
    for (size_t i = 0; i < count; i++)
        add_zsh_options(out, commands[i]);
    sp_buffer_add_string(out, "    esac\n"
                              "}\n"
                              "if [[ $funcstack[1] == _spanprof ]]; then\n"
                              "    _spanprof \"$@\"\n"
                              "else\n"
                              "    compdef _spanprof spanprof\n"
                              "fi\n");
}

/* ---- fish ---- */

static void add_fish_options(sp_buffer *out, const sp_command *command)
{
    for (size_t i = 0; i < command->option_count; i++) {
        const sp_option *option = &command->options[i];
        bool is_long = option->name[1] == '-';
        if (option->kind == SP_OPTION_LATER)
            continue;
        sp_buffer_printf(out,
                         "complete -c spanprof -n '__fish_seen_subcommand_from %s' -%c %s%s -d '",
                         command->name, is_long ? 'l' : 's', option->name + (is_long ? 2 : 1),
                         option->argument ? " -r" : "");
        add_quoted(out, option->help, "\\");
        sp_buffer_add_string(out, "'\n");
    }
}

static void write_fish(sp_buffer *out, const sp_command *const *commands, size_t count)
{
    sp_buffer_add_string(out, "# Completion of spanprof for fish.\n");
    for (size_t i = 0; i < count; i++) {
        sp_buffer_printf(out, "complete -c spanprof -f -n __fish_use_subcommand -a %s -d '",
                         commands[i]->name);
        add_quoted(out, commands[i]->summary, "\\");
        sp_buffer_add_string(out, "'\n");
    }
    sp_buffer_add_string(out, "complete -c spanprof -f -n __fish_use_subcommand -a help -d 'What a "
                              "command does, and its options.'\n"
                              "complete -c spanprof -f -n '__fish_seen_subcommand_from help' -a '");
    add_names(out, commands, count);
    sp_buffer_add_string(out, "'\n");
    for (size_t i = 0; i < count; i++)
        add_fish_options(out, commands[i]);
}

bool sp_completion_write(sp_buffer *out, const char *shell, const sp_command *const *commands,
                         size_t count)
{
    static const struct {
        const char *name;
        void (*write)(sp_buffer *out, const sp_command *const *commands, size_t count);
    } shells[] = {{"bash", write_bash}, {"zsh", write_zsh}, {"fish", write_fish}};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(shells); i++)
        if (strcmp(shells[i].name, shell) == 0) {
            shells[i].write(out, commands, count);
            return !out->failed;
        }
    return false;
}
