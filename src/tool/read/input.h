/* SPDX-License-Identifier: Apache-2.0 */
/* Reads files. The format of a file is found out from its bytes, not from its name: OTLP/JSON of
 * traces or profiles, with one request on each line or with a single request; the same as protobuf,
 * each message after its length (a varint), or a single message; pprof; collapsed stacks. Each may
 * be gzipped (docs/formats/files.md). A name PREFIX means PREFIX.traces.jsonl,
 * PREFIX.profiles.jsonl and the other files of core/run_files.h, if one of them exists, even when
 * there is also a program called PREFIX. */
#ifndef SP_TOOL_READ_INPUT_H
#define SP_TOOL_READ_INPUT_H

#include <protobuf-c/protobuf-c.h>

#include "core/arena.h"
#include "tool/text/options.h"

typedef enum sp_signal {
    SP_SIGNAL_TRACES = 0,   /* messages are Sp__Trace__TracesData */
    SP_SIGNAL_PROFILES = 1, /* messages are Sp__Profiles__ProfilesData */
} sp_signal;

/* One request of a file. */
typedef struct sp_document {
    const char *path;
    uint64_t number; /* of the request in its file, from 1 */
    bool alone;      /* the only one in its file */
    sp_signal signal;
    size_t bytes;              /* of the request in the unzipped file */
    ProtobufCMessage *message; /* in the input's memory */
} sp_document;

typedef struct sp_input {
    sp_document *documents; /* in the order of the files, and in each file in its order */
    size_t count;
    size_t capacity;
    const char *empty; /* the first file, or prefix of files, that holds nothing; NULL: none */
    size_t empty_count;
    uint64_t empty_begin_ns; /* when that file was made; 0: not known */
    bool told_earlier;       /* the message that runs are mixed was printed */
    bool is_torn;            /* a file ends inside a request; the requests before it were read */
    sp_arena memory;         /* paths and requests */
} sp_input;

/* Read all FILES. If some of them are empty, print a remark. Returns SP_TOOL_DONE, or SP_TOOL_WRONG
 * after a message that says why, also when all files are empty. In both cases the caller frees
 * INPUT with sp_input_deinit. */
int sp_input_read(sp_input *input, const sp_operands *files);
void sp_input_deinit(sp_input *input);

/* The exit code of a command whose answer from INPUT ended with STATUS: SP_TOOL_WRONG also when a
 * file was torn, because the answer is not that of a whole recording. */
int sp_input_status(const sp_input *input, int status);

/* How many documents of SIGNAL there are. */
size_t sp_input_count(const sp_input *input, sp_signal signal);

/* When the run began that wrote the documents from index FIRST on, in nanoseconds since 1970; 0:
 * not known. This is the earliest start of a span or of a profile, or the time when one of the
 * files was created, if that is earlier. The SDK creates its files when it starts, but a copy is
 * created later. */
uint64_t sp_input_begin_ns(const sp_input *input, size_t first);

/* When the file PATH was made; 0: not known. An empty file counts as made when it was last written:
 * a copy may keep that time (cp -p). */
uint64_t sp_input_made_ns(const char *path);

/* "FILE", or "FILE:3" when the file has several requests. Returns OUT. */
#define SP_DOCUMENT_NAME_LENGTH 320
const char *sp_document_name(char out[SP_DOCUMENT_NAME_LENGTH], const sp_document *document);

/* Readers of the single formats, called by input.c with the whole unzipped file. */

/* Add a document, whose MESSAGE is in INPUT's memory. */
int sp_input_add(sp_input *input, const char *path, sp_signal signal, size_t bytes,
                 ProtobufCMessage *message);

typedef enum sp_input_likeness {
    SP_INPUT_OTHER = 0,
    SP_INPUT_LIKE,
    SP_INPUT_CUT, /* like the format, but the data ends too early */
} sp_input_likeness;

bool sp_input_is_collapsed(const uint8_t *data, size_t length);
sp_input_likeness sp_input_is_pprof(const uint8_t *data, size_t length);
int sp_input_read_collapsed(sp_input *input, const char *path, const uint8_t *data, size_t length);
int sp_input_read_pprof(sp_input *input, const char *path, const uint8_t *data, size_t length);
int sp_input_read_json(sp_input *input, const char *path, const uint8_t *data, size_t length);
int sp_input_read_protobuf(sp_input *input, const char *path, const uint8_t *data, size_t length);

/* Print that the file PATH ends at byte LENGTH, inside its last request, and that the requests
 * before it were read. WHERE names the last request, such as "line 3". A program that is killed
 * while it writes leaves such a file. */
void sp_input_note_torn(sp_input *input, const char *path, const char *where, size_t length);

/* The first position, from POSITION on, that is neither white space nor a byte order mark. */
size_t sp_input_skip_space(const uint8_t *data, size_t length, size_t position);

/* The message type of SIGNAL. */
const ProtobufCMessageDescriptor *sp_signal_descriptor(sp_signal signal);

#endif
