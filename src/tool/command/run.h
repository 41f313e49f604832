/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `spanprof run`. docs/design/run.md has the design. Threads: one. */
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

/* What to show when a run has ended. */
typedef struct sp_run_answer {
    const char *prefix;     /* the prefix of the files */
    const char *what;       /* what the files contain, as the beginning of a sentence */
    const char *no_samples; /* why there are no samples, and what to do */
    bool wall;              /* wall time was recorded, too */
} sp_run_answer;

/* One of the files that an earlier run has left. In run_earlier.c. */
typedef struct sp_run_earlier {
    const char *ending; /* the part of the name after the prefix; NULL: there is no file */
    dev_t device;
    ino_t inode;
} sp_run_earlier;

/* The profiles that the user asks for, by --profiles or by the environment: a list as in
 * SPANPROF_PROFILES. In run.c. */
const char *sp_run_profiles(const sp_run_options *options);
/* Whether wall time is recorded, by --wall or by the list of profiles. In run.c. */
bool sp_run_records_wall(const sp_run_options *options);

/* Find a file of an earlier run. Call it before the run. */
sp_run_earlier sp_run_earlier_find(const char *prefix);
/* Say where the files of the earlier run are now, if the run has moved them. Call it after the
 * run. */
void sp_run_earlier_say(const sp_run_earlier *earlier, const char *prefix);

/* A file with the prefix that existed before the run. */
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
    bool writes_files; /* false: it sends, as the environment asks */
    const char *name;  /* the prefix of the files, as the user gave it, or own_name */
    char own_name[PATH_MAX];
    char prefix[PATH_MAX];  /* `name` as an absolute path */
    char folder[PATH_MAX];  /* for the files of all processes but the first; "": there is none */
    char preload[PATH_MAX]; /* LD_PRELOAD */
    sp_run_earlier earlier;
    sp_run_before before;
} sp_run;

/* Check whether the program that execvp runs for FILE can run with the library. Returns
 * SP_TOOL_DONE if it can run; a note says when some or all of it is not recorded. Returns
 * SP_TOOL_WRONG, after a message, if it cannot. */
int sp_run_check_program(const char *file);

/* Write the libraries to load into the program to RUN->preload, in the form of LD_PRELOAD. CALLS:
 * also the library that records calls, such as allocations. Returns SP_TOOL_DONE or
 * SP_TOOL_WRONG. */
int sp_run_find_libraries(sp_run *run, bool calls);

/* Run the program to its end. Signals that are sent to this process are passed on. Signals from a
 * terminal reach both processes, and this process ignores them. *STATUS is as from waitpid. Returns
 * SP_TOOL_DONE, or SP_TOOL_WRONG after a message about why the program cannot be started. */
int sp_run_program(const sp_run *run, int *status);

/* `run --attach PID`. Returns the exit code. */
int sp_run_attach(const sp_run_options *options, const sp_operands *rest);
/* Write to OUT how often and how long --attach stopped threads, when it took HZ samples a second.
 * If the process may have noticed, OUT also says what makes it less. "": it stopped none. In
 * run_stops.c. Returns OUT. */
enum { SP_RUN_STOPS_LENGTH = 512 };
struct sp_attach_outcome;
const char *sp_run_stops_text(char out[SP_RUN_STOPS_LENGTH],
                              const struct sp_attach_outcome *outcome, uint64_t hz);

/* Show the table of spans, the flamegraph and then the names of the files, all on standard
 * error. */
void sp_run_show_answer(const sp_run_answer *answer);

/* The prefix to use: PREFIX, or if another program is writing its files, OWN, which is PREFIX with
 * the PID after it; a note says so. Call it before the run. */
const char *sp_run_free_prefix(char own[PATH_MAX], const char *prefix);

/* Note in RUN->before which files with its prefix exist. Call it before the run. */
void sp_run_look_before(sp_run *run);

/* What the processes of a run have left in its folder. */
typedef struct sp_run_files_left {
    size_t processes; /* the number of recorded processes, with the first one */
    size_t running;   /* files that a process still writes; they stay in the folder */
} sp_run_files_left;

/* Append what the processes of RUN have written to the files of its prefix. These are the files in
 * its folder, which is removed if it is empty then, and the files PREFIX.PID of forked children of
 * a first process that uses spanprof itself. */
sp_run_files_left sp_run_gather(const sp_run *run);

/* In run_background.c: after sp_run_gather, a remark that names the processes of RUN that still
 * run. */
void sp_run_note_background(const sp_run *run, const sp_run_files_left *left);

#endif
