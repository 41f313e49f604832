/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tool/command/commands.h"
#include "tool/model/merge.h"
#include "tool/read/repeats.h"
#include "tool/text/messages.h"
#include "tool/text/output.h"
#include "wire/json.h"

typedef struct convert_options {
    const char *out;
    const char *to;
} convert_options;

enum { TO_PROTOBUF, TO_JSON };

static int find_target(const convert_options *options, int *target)
{
    if (!options->to)
        return sp_tool_wrong("convert: --to is missing; there are otlp, otlp-json");
    if (!options->out)
        return sp_tool_wrong("convert: -o OUT is missing; - is standard output");
    *target = strcmp(options->to, "otlp") == 0 ? TO_PROTOBUF : TO_JSON;
    if (*target == TO_PROTOBUF || strcmp(options->to, "otlp-json") == 0)
        return SP_TOOL_DONE;
    if (strcmp(options->to, "pprof") == 0 || strcmp(options->to, "folded") == 0)
        return sp_tool_wrong("convert: --to %s is not built yet; there are otlp, otlp-json",
                             options->to);
    return sp_tool_wrong("convert: --to %s is unknown; there are otlp, otlp-json", options->to);
}

static bool encode(sp_buffer *out, const ProtobufCMessage *message, int target)
{
    if (target == TO_JSON)
        return sp_otlp_json_write(out, message) && sp_buffer_add_char(out, '\n');
    size_t length = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = sp_buffer_reserve(out, length);
    if (!bytes)
        return false;
    protobuf_c_message_pack(message, bytes);
    out->length += length;
    return true;
}

static int write_merged(const sp_input *input, const convert_options *options, int target)
{
    size_t traces = sp_input_count(input, SP_SIGNAL_TRACES);
    if (traces && traces < input->count)
        return sp_tool_wrong(
            "convert: the files hold both traces and profiles, and a request holds "
            "one of them; convert them one after the other");
    sp_arena memory = {0};
    sp_buffer out = SP_BUFFER_INIT(SP_OUTPUT_MAX_BYTES);
    ProtobufCMessage *merged =
        sp_merge(&memory, input, traces ? SP_SIGNAL_TRACES : SP_SIGNAL_PROFILES);
    int status = SP_TOOL_WRONG;
    if (merged && !encode(&out, merged, target))
        status = sp_tool_no_memory();
    else if (merged)
        status = sp_output_write(&out, options->out);
    sp_buffer_deinit(&out);
    sp_arena_deinit(&memory);
    return status;
}

static int answer(const sp_operands *files, const convert_options *options)
{
    int target = TO_PROTOBUF;
    int status = find_target(options, &target);
    if (status != SP_TOOL_DONE)
        return status;
    sp_input input;
    status = sp_input_read_once(&input, files);
    if (status == SP_TOOL_DONE)
        status = write_merged(&input, options, target);
    sp_input_deinit(&input);
    return status;
}

static int run(int argc, char **argv)
{
    convert_options options = {0};
    sp_operands files;
    int status = sp_options_parse(&sp_command_convert, argc, argv, &options, &files);
    if (status == SP_OPTIONS_GO_ON)
        status = answer(&files, &options);
    sp_operands_deinit(&files);
    return status;
}

static const sp_option options[] = {
    {"--to", "FORMAT", SP_OPTION_TEXT, offsetof(convert_options, to),
     "otlp (protobuf) or otlp-json: one bare request"},
    {"-o", "OUT", SP_OPTION_TEXT, offsetof(convert_options, out), "the file to write"},
};

const sp_command sp_command_convert = {
    .name = "convert",
    .arguments = "IN… -o OUT --to otlp|otlp-json",
    .summary = "One bare export request from files of traces, or from files of profiles.",
    .details = "Several profiles get one dictionary without duplicates and orphans.",
    .options = options,
    .option_count = SP_ARRAY_LENGTH(options),
    .run = run,
};
