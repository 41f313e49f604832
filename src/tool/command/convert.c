/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tool/command/commands.h"
#include "tool/command/convert_samples.h"
#include "tool/model/merge.h"
#include "tool/read/repeats.h"
#include "tool/text/messages.h"
#include "tool/text/output.h"
#include "wire/json.h"

typedef struct convert_options {
    const char *out;
    const char *to;
    const char *type;
} convert_options;

typedef enum target { TO_PROTOBUF, TO_JSON, TO_PPROF, TO_FOLDED, TARGET_COUNT } target;

#define TARGETS "otlp, otlp-json, pprof, folded"

static int find_target(const convert_options *options, target *target)
{
    static const char *const names[TARGET_COUNT] = {"otlp", "otlp-json", "pprof", "folded"};
    if (!options->to)
        return sp_tool_wrong("convert: --to is missing; there are " TARGETS);
    if (!options->out)
        return sp_tool_wrong("convert: -o OUT is missing; - is standard output");
    for (*target = 0; *target < TARGET_COUNT; ++*target)
        if (strcmp(options->to, names[*target]) == 0)
            break;
    if (*target == TARGET_COUNT)
        return sp_tool_wrong("convert: --to %s is unknown; there are " TARGETS, options->to);
    if (options->type && *target < TO_PPROF)
        return sp_tool_wrong("convert: --type is for pprof and folded: a request of OTLP holds all "
                             "types");
    return SP_TOOL_DONE;
}

static bool encode(sp_buffer *out, const ProtobufCMessage *message, target target)
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

static int add_merged(sp_buffer *out, const sp_input *input, target target)
{
    size_t traces = sp_input_count(input, SP_SIGNAL_TRACES);
    if (traces && traces < input->count)
        return sp_tool_wrong(
            "convert: the files hold both traces and profiles, and a request holds "
            "one of them; convert them one after the other");
    sp_arena memory = {0};
    ProtobufCMessage *merged =
        sp_merge(&memory, input, traces ? SP_SIGNAL_TRACES : SP_SIGNAL_PROFILES);
    int status = merged ? SP_TOOL_DONE : SP_TOOL_WRONG;
    if (merged && !encode(out, merged, target))
        status = sp_tool_no_memory();
    sp_arena_deinit(&memory);
    return status;
}

static int convert(const sp_input *input, const convert_options *options, target target)
{
    sp_buffer out = SP_BUFFER_INIT(SP_OUTPUT_MAX_BYTES);
    int status = target < TO_PPROF
                     ? add_merged(&out, input, target)
                     : sp_convert_samples(&out, input, options->type, target == TO_PPROF);
    if (status == SP_TOOL_DONE)
        return sp_output_write(&out, options->out);
    sp_buffer_deinit(&out);
    return status;
}

static int answer(const sp_operands *files, const convert_options *options)
{
    target target = TO_PROTOBUF;
    int status = find_target(options, &target);
    if (status != SP_TOOL_DONE)
        return status;
    sp_input input;
    status = sp_input_read_once(&input, files);
    if (status == SP_TOOL_DONE)
        status = sp_input_status(&input, convert(&input, options, target));
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
     "otlp (protobuf) or otlp-json: one bare request; pprof (gzipped); folded: root;…;leaf VALUE"},
    {"-o", "OUT", SP_OPTION_TEXT, offsetof(convert_options, out), "the file to write"},
    {"--type", "TYPE", SP_OPTION_TEXT, offsetof(convert_options, type),
     "for pprof and folded: cpu, wall, offcpu, alloc, inuse, lock, or another that the files have"},
};

const sp_command sp_command_convert = {
    .name = "convert",
    .arguments = "IN… -o OUT --to otlp|otlp-json|pprof|folded",
    .summary = "Files of traces or of profiles as one export request, pprof, or collapsed stacks.",
    .details =
        "Several profiles get one dictionary without duplicates and orphans.\n"
        "A pprof holds all types that have one period (alloc_space, alloc_objects, …); "
        "of others, and for folded,\none has to be chosen with --type. Spans become the "
        "labels trace_id and span_id, and with the traces\namong IN also local root span "
        "id; folded has no place for them.\n"
        "Functions keep the names that the files have; `spanprof flame --format folded --names "
        "full` chooses others.",
    .examples = "# for `go tool pprof` and speedscope\n"
                "spanprof convert shop.profiles.jsonl --type cpu -o cpu.pb.gz --to pprof\n"
                "# collapsed stacks of another profiler as OTLP\n"
                "spanprof convert stacks.folded -o stacks.binpb --to otlp",
    .options = options,
    .option_count = SP_ARRAY_LENGTH(options),
    .run = run,
};
