/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `spanprof run`. docs/design/run.md has the design. Threads: the tool has one. */
#ifndef SP_TOOL_COMMAND_RUN_H
#define SP_TOOL_COMMAND_RUN_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tool/text/options.h"

typedef struct sp_run_options {
    const char *out, *profiles, *service, *attach, *duration;
    uint64_t hz;
    bool wall, quiet;
} sp_run_options;

/* What is shown when a run has ended. */
typedef struct sp_run_answer {
    const char *prefix;     /* of its files */
    const char *what;       /* is in them */
    const char *no_samples; /* what to do when there are none */
    bool wall;              /* waits were recorded, too */
} sp_run_answer;

/* In run_earlier.c: one of the files that an earlier run has left. */
typedef struct sp_run_earlier {
    const char *ending; /* behind the prefix; NULL: there is none */
    dev_t device;
    ino_t inode;
} sp_run_earlier;

/* Before the run. */
sp_run_earlier sp_run_earlier_find(const char *prefix);
/* After it: say where that file is now, when it has been moved. */
void sp_run_earlier_say(const sp_run_earlier *earlier, const char *prefix);

/* A file of the prefix that was there before the run. */
typedef struct sp_run_known_file {
    dev_t device;
    ino_t inode;
    off_t bytes;
} sp_run_known_file;

typedef struct sp_run_before {
    sp_run_known_file *files; /* owned */
    size_t count;
} sp_run_before;

/* One run. */
typedef struct sp_run {
    const sp_run_options *options;
    char **program;    /* its name and its arguments, as execvp takes them */
    bool writes_files; /* else it sends, as the environment asks for */
    const char *name;  /* of the files, as the user gave it, or own_name */
    char own_name[PATH_MAX];
    char prefix[PATH_MAX];  /* the same, absolute */
    char folder[PATH_MAX];  /* that the processes write to, but the first; "": there is none */
    char preload[PATH_MAX]; /* LD_PRELOAD */
    sp_run_earlier earlier;
    sp_run_before before;
} sp_run;

/* Whether FILE, which execvp would take for a program of that name, can be run under the library,
 * or else why not. SP_TOOL_DONE, also with a remark: it runs, but some or all of it is not
 * recorded; or SP_TOOL_WRONG, having said why. */
int sp_run_check_program(const char *file);

/* The libraries to load into the program, as LD_PRELOAD takes them. SP_TOOL_DONE or SP_TOOL_WRONG.
 */
int sp_run_find_libraries(sp_run *run, bool calls);

/* Run the program to its end. Signals to this process are passed on; what a terminal sends reaches
 * both. *STATUS is as waitpid has it. SP_TOOL_DONE, or SP_TOOL_WRONG, having said why it cannot be
 * started. */
int sp_run_program(const sp_run *run, int *status);

/* `run --attach PID`: the exit code. */
int sp_run_attach(const sp_run_options *options, const sp_operands *rest);

/* The table of spans and the flamegraph of the files of PREFIX, on standard error, and then the
 * names of the files. */
void sp_run_show_answer(const sp_run_answer *answer);

/* In run_names.c: a remark when most samples in the files of PREFIX have no function name. */
void sp_run_note_names(const char *prefix);

/* PREFIX, or, when another program writes its files now, OWN: PREFIX with the PID after it; a
 * message says so. Before the run. */
const char *sp_run_free_prefix(char own[PATH_MAX], const char *prefix);

/* Note in RUN->before which files of its prefix exist, before the run. */
void sp_run_look_before(sp_run *run);

/* What the processes of a run have left in its folder. */
typedef struct sp_run_files_left {
    size_t processes; /* with the first one: 0 means that nothing was recorded */
    size_t running;   /* of them still writing: their files stay in the folder */
} sp_run_files_left;

/* Append what the processes of RUN have written to the files of its prefix: what lies in its
 * folder, which is removed when it is empty then, and the files of forked children of a first
 * process that uses spanprof itself, PREFIX.PID. */
sp_run_files_left sp_run_gather(const sp_run *run);

#endif
