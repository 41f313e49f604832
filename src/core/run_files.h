/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a prefix stands for: PREFIX.traces.jsonl and its siblings, each with the parts
 * that were written before it, PREFIX.traces.0001.jsonl, PREFIX.traces.0002.jsonl and so on.
 * Threads: any.  Signals: not safe. */
#ifndef SP_CORE_RUN_FILES_H
#define SP_CORE_RUN_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SP_RUN_FILE_SIGNALS = 2, SP_RUN_FILE_FORMATS = 2, SP_RUN_FILE_ENDING = 32 };

/* Earlier runs that are kept: PREFIX.1 to PREFIX.3. */
enum { SP_RUNS_KEPT = 3 };

typedef struct sp_run_file {
    uint8_t signal; /* 0: traces, 1: profiles */
    uint8_t format; /* 0: jsonl, 1: binpb */
    uint32_t part;  /* 0: the file without a number, which is the last one written to */
} sp_run_file;

typedef struct sp_run_files {
    sp_run_file *items; /* by format, then by signal, then in the order of writing */
    size_t count;
} sp_run_files;

/* The ending after the prefix, such as ".traces.0001.jsonl". Returns OUT. */
const char *sp_run_file_ending(char out[SP_RUN_FILE_ENDING], sp_run_file file);

/* Put all existing files into OUT. If the folder cannot be listed, OUT has only the files without a
 * number. False when memory is short. */
bool sp_run_files_find(sp_run_files *out, const char *prefix);
void sp_run_files_deinit(sp_run_files *files);

#endif
