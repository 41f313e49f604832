/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/command/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/compiler.h"
#include "core/counted.h"
#include "tool/command/commands.h"
#include "tool/text/messages.h"

/* ---- the libraries ---- */

/* The folders of the libraries, relative to the folder of this command: when installed, and in a
 * build tree. */
static const char *const library_folders[] = {SP_LIBRARIES_FROM_COMMAND, "../run", "../preload"};

static bool own_folder(char out[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", out, PATH_MAX - 1);
    out[length > 0 ? length : 0] = 0;
    char *slash = strrchr(out, '/');
    if (slash)
        *slash = 0;
    return slash != NULL;
}

static bool find_library(char out[PATH_MAX], const char *name)
{
    char folder[PATH_MAX], path[2 * PATH_MAX];
    if (!own_folder(folder))
        return false;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(library_folders); i++) {
        snprintf(path, sizeof path, "%s/%s/%s", folder, library_folders[i], name);
        if (realpath(path, out))
            return true;
    }
    return false;
}

static int add_library(sp_run *run, const char *name)
{
    char path[PATH_MAX];
    size_t length = strlen(run->preload);
    if (!find_library(path, name))
        return sp_tool_wrong("run: %s is not found beside this command: install both from one "
                             "build (cmake --install)",
                             name);
    if (strpbrk(path, " :"))
        return sp_tool_wrong("run: %s: the loader takes no path with a blank or a colon: install "
                             "spanprof elsewhere",
                             path);
    if (snprintf(run->preload + length, sizeof run->preload - length, "%s%s", length ? ":" : "",
                 path) >= (int)(sizeof run->preload - length))
        return sp_tool_wrong("run: %s: the path is too long: install spanprof elsewhere", path);
    return SP_TOOL_DONE;
}

int sp_run_find_libraries(sp_run *run, bool calls)
{
    int status = add_library(run, "libspanprof-run.so");
    return status == SP_TOOL_DONE && calls ? add_library(run, "libspanprof-preload.so") : status;
}

/* ---- files ---- */

/* Make the prefix absolute, because the program may change its directory. */
static int make_prefix(sp_run *run, const char *prefix)
{
    char here[PATH_MAX] = "";
    if (prefix[0] != '/' && !getcwd(here, sizeof here))
        return sp_tool_wrong("run: the current directory is not known: %s", strerror(errno));
    int length =
        snprintf(run->prefix, sizeof run->prefix, "%s%s%s", here, here[0] ? "/" : "", prefix);
    if (length >= (int)sizeof run->prefix)
        return sp_tool_wrong("run: the path that -o names is too long");
    return SP_TOOL_DONE;
}

static int make_folder(sp_run *run)
{
    if (snprintf(run->folder, sizeof run->folder, "%s.run-XXXXXX", run->prefix) >=
        (int)sizeof run->folder)
        return sp_tool_wrong("run: the path that -o names is too long");
    if (mkdtemp(run->folder))
        return SP_TOOL_DONE;
    run->folder[0] = 0;
    return sp_tool_wrong("run: %s: name a prefix with -o that can be written to, not %s",
                         strerror(errno), run->prefix);
}

/* Decide whether files are written, and prepare them. If the environment has an exporter without
 * "file", files are written only if the user gave -o. */
static int prepare_files(sp_run *run)
{
    const char *exporter = getenv("SPANPROF_EXPORTER"), *prefix = run->options->out;
    run->writes_files = prefix || !exporter || !*exporter || strstr(exporter, "file");
    if (!run->writes_files)
        return SP_TOOL_DONE;
    prefix = prefix ? prefix : getenv("SPANPROF_FILE");
    run->name = sp_run_free_prefix(run->own_name, prefix && *prefix ? prefix : "spanprof");
    int status = make_prefix(run, run->name);
    run->earlier = sp_run_earlier_find(run->prefix);
    if (status != SP_TOOL_DONE)
        return status;
    sp_run_look_before(run);
    return make_folder(run);
}

/* ---- the answer ---- */

/* Run COMMAND with WORDS. Its output goes to standard error, because standard output belongs to the
 * program. */
static int show(const sp_command *command, char *const *words, int count)
{
    char *arguments[10] = {0};
    memcpy(arguments, words, (size_t)count * sizeof *words);
    fflush(stderr);
    return command->run(count, arguments);
}

/* Show wall time if it was recorded. It may be missing: the SDK cannot sample it in every process.
 */
static void show_flame(char *prefix, bool wall)
{
    char *words[] = {"flame", prefix, "--min-percent", "5", "--limit", "40", "--type", "wall"};
    int count = SP_ARRAY_LENGTH(words);
    if (!wall || show(&sp_command_flame, words, count) != SP_TOOL_DONE)
        show(&sp_command_flame, words, count - 2);
}

/* Whether the files of PREFIX have any data of SIGNAL, which is "traces" or "profiles". */
static bool has_any(const char *prefix, const char *signal)
{
    static const char *const formats[] = {"jsonl", "binpb"};
    char path[PATH_MAX + 32];
    struct stat status;
    bool found = false;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(formats); i++) {
        snprintf(path, sizeof path, "%s.%s.%s", prefix, signal, formats[i]);
        found |= stat(path, &status) == 0 && status.st_size > 0;
    }
    return found;
}

void sp_run_show_answer(const sp_run_answer *answer)
{
    const char *name = answer->prefix;
    char *prefix = (char *)(uintptr_t)name;
    char *spans[] = {"spans", prefix, "--limit", "20"};
    dup2(STDERR_FILENO, STDOUT_FILENO);
    fprintf(stderr, "\n");
    if (!has_any(name, "traces") && !has_any(name, "profiles")) {
        sp_tool_note("run: nothing was recorded: the program was killed before it could write");
        return;
    }
    bool has_samples = has_any(name, "profiles");
    show(&sp_command_spans, spans, SP_ARRAY_LENGTH(spans));
    fprintf(stderr, "\n");
    if (has_samples)
        show_flame(prefix, answer->wall);
    else
        sp_tool_note("no samples: %s", answer->no_samples);
    fprintf(stderr, "\n");
    sp_tool_note("%s in the files %s.*; `spanprof flame %s --format html -o flame.html` "
                 "draws them, and --span ID one process%s",
                 answer->what, prefix, prefix,
                 answer->wall && has_samples
                     ? "; --type cpu shows the CPU time, --type offcpu the waits"
                     : "");
}

const char *sp_run_profiles(const sp_run_options *options)
{
    const char *profiles = options->profiles ? options->profiles : getenv("SPANPROF_PROFILES");
    return profiles && *profiles ? profiles : "cpu";
}

bool sp_run_records_wall(const sp_run_options *options)
{
    return options->wall || strstr(sp_run_profiles(options), "wall");
}

/* Whether the processes of the run used at least a second of CPU time. This includes descendants
 * that their parents waited for. */
static bool used_a_second(void)
{
    struct rusage used;
    return getrusage(RUSAGE_CHILDREN, &used) == 0 &&
           used.ru_utime.tv_sec + used.ru_stime.tv_sec >= 1;
}

static const char *why_no_samples(const sp_run_options *options)
{
    if (!used_a_second() && sp_run_records_wall(options))
        return "the run was too short; SPANPROF_WALL_HZ=200 looks more often at threads that wait, "
               "and --hz 1000 at those that compute";
    return used_a_second()
               ? "none of the processes that used CPU time was recorded: one that has become "
                 "another user cannot write to the run's folder (start `spanprof run` as that "
                 "user), a static one loads no library, and one that is killed loses its last "
                 "window"
               : "the run took too little CPU time; --hz 1000 samples more often, --wall shows "
                 "what it waited for";
}

static void show_answer(const sp_run *run, size_t processes)
{
    sp_run_answer answer = {
        .prefix = run->name,
        .what = SP_COUNTED(processes, "process"),
        .no_samples = why_no_samples(run->options),
        .wall = sp_run_records_wall(run->options),
    };
    sp_run_show_answer(&answer);
}

static void end_files(const sp_run *run)
{
    sp_run_files_left left = sp_run_gather(run);
    if (left.processes == 0)
        sp_tool_note("run: nothing was recorded: no program of this run loaded the library");
    else if (!run->options->quiet)
        show_answer(run, left.processes);
    if (!run->options->quiet)
        sp_run_earlier_say(&run->earlier, run->name);
    sp_run_note_background(run, &left);
}

/* ---- the end ---- */

/* End as the program ended: return its exit code, or raise its signal. */
static int end_like(int status)
{
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    const struct rlimit no_core = {0};
    setrlimit(RLIMIT_CORE, &no_core); /* the core dump of the program is enough */
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
    return 128 + WTERMSIG(status);
}

static bool names_calls(const sp_run_options *options)
{
    const char *profiles = sp_run_profiles(options);
    return strstr(profiles, "alloc") || strstr(profiles, "heap") || strstr(profiles, "lock");
}

/* Check the words of --profiles before the program starts. Without this check an unknown word would
 * only be a warning in the output of the program. */
static int check_profiles(const char *list)
{
    static const char *const words[] = {"cpu", "wall", "alloc", "heap", "lock", "none", NULL};
    char *copy = strdup(list), *rest = copy, *word;
    int status = copy ? SP_TOOL_DONE : sp_tool_no_memory(), number;
    while (status == SP_TOOL_DONE && (word = strtok_r(rest, ", ", &rest)))
        status = sp_option_word("run", "--profiles", word, words, &number);
    free(copy);
    return status;
}

static int record(const sp_run_options *options, const sp_operands *program)
{
    sp_run run = {.options = options, .program = (char **)(uintptr_t)program->items};
    int ended = 0;
    if (program->count == 0)
        return sp_tool_wrong("run: no program is named: spanprof run [options] -- PROGRAM ARGS…");
    int status = options->profiles ? check_profiles(options->profiles) : SP_TOOL_DONE;
    if (status == SP_TOOL_DONE)
        status = sp_run_check_program(run.program[0]);
    if (status == SP_TOOL_DONE)
        status = sp_run_find_libraries(&run, names_calls(options));
    if (status == SP_TOOL_DONE)
        status = prepare_files(&run);
    if (status == SP_TOOL_DONE)
        status = sp_run_program(&run, &ended);
    if (status != SP_TOOL_DONE && run.folder[0])
        rmdir(run.folder);
    else if (status == SP_TOOL_DONE && run.writes_files)
        end_files(&run);
    free(run.before.files);
    return status == SP_TOOL_DONE ? end_like(ended) : status;
}

static int run(int argc, char **argv)
{
    sp_run_options options = {0};
    sp_operands program;
    int status = sp_options_parse(&sp_command_run, argc, argv, &options, &program);
    if (status == SP_OPTIONS_GO_ON)
        status = options.attach || options.duration ? sp_run_attach(&options, &program)
                                                    : record(&options, &program);
    sp_operands_deinit(&program);
    return status;
}

#define AT(member) offsetof(sp_run_options, member)
static const sp_option options[] = {
    {"-o", "PREFIX", SP_OPTION_TEXT, AT(out),
     "write PREFIX.traces.jsonl and PREFIX.profiles.jsonl (spanprof)"},
    {"--wall", NULL, SP_OPTION_FLAG, AT(wall), "waiting time, too"},
    {"--profiles", "LIST", SP_OPTION_TEXT, AT(profiles),
     "list of cpu, wall, alloc, heap, lock (cpu)"},
    {"--hz", "N", SP_OPTION_NUMBER, AT(hz), "samples a second of CPU time of a thread (99)"},
    {"--service", "NAME", SP_OPTION_TEXT, AT(service),
     "service.name of all programs of the run (PROGRAM)"},
    {"--quiet", NULL, SP_OPTION_FLAG, AT(quiet), "no table and no flamegraph at the end"},
    {"--attach", "PID", SP_OPTION_TEXT, AT(attach),
     "sample a process that runs already, from outside, in place of PROGRAM"},
    {"--duration", "TIME", SP_OPTION_TEXT, AT(duration),
     "with --attach: for so long, as 10s, 500ms or 2m (until it ends, or Ctrl-C)"},
};

const sp_command sp_command_run = {
    .name = "run",
    .arguments = "[options] (-- PROGRAM ARGS… | --attach PID)",
    .summary = "Run any program, and show what was slow.",
    .details =
        "The program needs no change. The process is one span, named after its command; programs "
        "that it starts\nare spans below it, and TRACEPARENT in the environment names the span "
        "above it. A program that uses\nspanprof itself has its own spans. Answers come on "
        "standard error when it has ended; the exit code is the\nprogram's. Variables of the "
        "environment (SPANPROF_…, OTEL_…) hold as for every program.\nWith --attach a process that "
        "runs already is sampled from outside: nothing is loaded into it. Where it publishes\nits "
        "threads' contexts (OTEP 4947), samples belong to its spans, and else to one span that is "
        "named after\nthe command. It takes the right to trace the process, and exits 0, or 2 "
        "saying which right is missing.",
    .examples = "# what took the time in a build, one span for each process\n"
                "spanprof run -o build -- make -j2\n"
                "# with the time that threads wait\n"
                "spanprof run --wall -- python3 script.py\n"
                "# what a server that runs already does, for ten seconds\n"
                "spanprof run --attach 4711 --duration 10s",
    .options = options,
    .option_count = SP_ARRAY_LENGTH(options),
    .program_follows = true,
    .run = run,
};
