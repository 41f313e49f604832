/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of a run that still run at its end: a server that became a daemon, or a job in the
 * background of a shell. They have SPANPROF_RUN in the environment. Some servers, such as nginx,
 * overwrite their environment with a title for ps. These have a mark in the folder, or have the
 * library of the run and are younger than the run. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/counted.h"
#include "tool/command/run.h"
#include "tool/text/messages.h"

enum { NAMED_MOST = 4, NAME_BYTES = 64 };

typedef struct background {
    const sp_run *run;
    size_t count;
    char names[NAMED_MOST * NAME_BYTES]; /* "nginx, PID 12; nginx, PID 13" */
} background;

static FILE *open_of_process(const char *pid, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%.20s/%s", pid, name);
    return fopen(path, "re");
}

typedef enum environment { OF_THE_RUN, OF_ANOTHER_RUN, WITHOUT_RUN } environment;

static environment environment_of(const sp_run *run, const char *pid)
{
    static const char variable[] = "SPANPROF_RUN=";
    FILE *file = open_of_process(pid, "environ");
    char *word = NULL;
    size_t size = 0, length = sizeof variable - 1;
    environment found = WITHOUT_RUN;
    while (file && found == WITHOUT_RUN && getdelim(&word, &size, '\0', file) > 0)
        if (strncmp(word, variable, length) == 0)
            found = strcmp(word + length, run->folder) == 0 ? OF_THE_RUN : OF_ANOTHER_RUN;
    free(word);
    if (file)
        fclose(file);
    return found;
}

/* Whether process PID has mapped the library of the run. Processes whose environment names no run
 * have it only when they overwrote the environment, or when a user loads it by hand. */
static bool has_library(const sp_run *run, const char *pid)
{
    FILE *file = open_of_process(pid, "maps");
    char *line = NULL, *path;
    size_t size = 0, length = strcspn(run->preload, ":");
    bool found = false;
    while (file && !found && getline(&line, &size, file) > 0)
        found = (path = strchr(line, '/')) && strncmp(path, run->preload, length) == 0 &&
                path[length] == '\n';
    free(line);
    if (file)
        fclose(file);
    return found;
}

/* In clock ticks since the boot; 0: not known. */
static unsigned long long start_of(const char *pid)
{
    enum { FIELDS_BETWEEN = 19 }; /* from the state, field 3, to the start, field 22 */
    char text[1024];
    FILE *file = open_of_process(pid, "stat");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[length] = '\0';
    char *at = strrchr(text, ')'); /* the end of the name, which may have blanks */
    at = at ? at + 2 : NULL;
    for (int i = 0; i < FIELDS_BETWEEN && at; i++)
        at = (at = strchr(at, ' ')) ? at + 1 : NULL;
    if (file)
        fclose(file);
    return at ? strtoull(at, NULL, 10) : 0;
}

static bool has_mark(const sp_run *run, const char *pid)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%.20s", run->folder, pid);
    return access(path, F_OK) == 0;
}

static bool is_of_run(const sp_run *run, const char *pid)
{
    environment found = environment_of(run, pid);
    if (found == OF_THE_RUN || has_mark(run, pid))
        return true;
    if (found == OF_ANOTHER_RUN)
        return false;
    /* A process that is in the middle of an exec has no environment: it is read once more. */
    return start_of(pid) >= start_of("self") && has_library(run, pid) &&
           environment_of(run, pid) != OF_ANOTHER_RUN;
}

static void add(background *all, const char *pid)
{
    char name[32] = "?";
    size_t length = strlen(all->names);
    FILE *file = open_of_process(pid, "comm");
    if (file && fgets(name, sizeof name, file))
        name[strcspn(name, "\n")] = '\0';
    if (file)
        fclose(file);
    if (all->count < NAMED_MOST)
        snprintf(all->names + length, sizeof all->names - length, "%s%s, PID %.20s",
                 all->count ? "; " : "", name, pid);
    all->count++;
}

static void find(background *all)
{
    DIR *folder = opendir("/proc");
    for (const struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        const char *pid = entry->d_name;
        if (strspn(pid, "0123456789") == strlen(pid) && is_of_run(all->run, pid))
            add(all, pid);
    }
    if (folder)
        closedir(folder);
}

/* Where the files are that running processes still write. Forked children of a program that uses
 * spanprof itself do not write in the folder. */
static const char *place_of_files(const sp_run *run)
{
    return access(run->folder, F_OK) == 0 ? run->folder : run->name;
}

void sp_run_note_background(const sp_run *run, const sp_run_files_left *left)
{
    background all = {.run = run};
    find(&all);
    if (all.count)
        sp_tool_note("run: %s of this run %s on in the background (%s%s): %s%s; run a server in "
                     "the foreground (nginx: daemon off)",
                     SP_COUNTED(all.count, "process"), all.count == 1 ? "goes" : "go", all.names,
                     all.count > NAMED_MOST ? "; …" : "",
                     left->running ? "the files of such a process stay in "
                                   : "what such a process does now is not in the answer",
                     left->running ? place_of_files(run) : "");
    else if (left->running)
        sp_tool_note("run: %s in %s still written by processes that run on",
                     SP_COUNTED(left->running, "file"), place_of_files(run));
}
