/* SPDX-License-Identifier: Apache-2.0 */
/* A whole file of the `spanprof` command, unzipped: read, then all that commands do with it:
 * checked, modelled, merged, made a pprof. */
#include "fuzz/fuzz.h"

#include "wire/gzip.h"
#include "wire/json.h"
#include "tool/check/check.h"
#include "tool/model/merge.h"
#include "tool/model/model.h"
#include "tool/model/selected.h"
#include "tool/read/repeats.h"
#include "tool/text/messages.h"

static int read_bytes(sp_input *input, const uint8_t *data, size_t length)
{
    size_t start = 0;
    while (start < length && data[start] && strchr(" \t\r\n", data[start]))
        start++;
    if (start < length && data[start] == '{')
        return sp_input_read_json(input, "fuzz", data, length);
    if (sp_input_is_collapsed(data, length))
        return sp_input_read_collapsed(input, "fuzz", data, length);
    return length ? sp_input_read_protobuf(input, "fuzz", data, length) : SP_TOOL_WRONG;
}

static void check_document(sp_checker *checker)
{
    sp_place top = sp_place_of("%s", "");
    sp_check_utf8(checker, checker->document->message, &top);
    if (checker->document->signal == SP_SIGNAL_TRACES)
        sp_check_traces(checker);
    else
        sp_check_profiles(checker);
    for (int backend = SP_BACKEND_PYROSCOPE; backend <= SP_BACKEND_COLLECTOR; backend++) {
        checker->backend = (sp_backend)backend;
        sp_check_backend(checker);
    }
}

static void check(const sp_input *input)
{
    sp_checker checker = {.input = input, .out = SP_BUFFER_INIT(64 << 20)};
    for (size_t i = 0; i < input->count; i++) {
        checker.document = &input->documents[i];
        check_document(&checker);
    }
    FUZZ_CHECK(!checker.failed);
    sp_intern_deinit(&checker.span_ids);
    sp_intern_deinit(&checker.keys);
    free(checker.spans);
    sp_buffer_deinit(&checker.out);
}

/* All samples as one pprof, which the command reads. */
static void to_pprof(const sp_model *model)
{
    sp_selection *all = calloc(model->type_count + 1, sizeof *all);
    sp_buffer zipped = SP_BUFFER_INIT(64 << 20), bytes = SP_BUFFER_INIT(64 << 20);
    for (uint32_t i = 0; all && i < model->type_count; i++)
        all[i] = (sp_selection){.model = model, .type = i};
    if (all && model->sample_index.count &&
        sp_selected_pprof(&zipped, all, model->type_count) == SP_TOOL_DONE) {
        sp_input again = {0};
        FUZZ_CHECK(sp_gunzip(&bytes, zipped.data, zipped.length));
        FUZZ_CHECK(sp_input_is_pprof(bytes.data, bytes.length) == SP_INPUT_LIKE);
        FUZZ_CHECK(sp_input_read_pprof(&again, "pprof", bytes.data, bytes.length) == SP_TOOL_DONE);
        sp_input_deinit(&again);
    }
    sp_buffer_deinit(&zipped);
    sp_buffer_deinit(&bytes);
    free(all);
}

/* The sums of a span hold its own part, and no cycle was left in the forest. */
static void model(const sp_input *input)
{
    sp_model model;
    if (sp_model_build(&model, input) == SP_TOOL_DONE) {
        for (uint32_t i = 0; i < model.span_index.count; i++) {
            const sp_model_span *span = &model.spans[i];
            FUZZ_CHECK(span->start_ns <= span->end_ns);
            FUZZ_CHECK(span->parent == SP_MODEL_NONE || span->parent < model.span_index.count);
            FUZZ_CHECK(sp_model_local_root(&model, i) < model.span_index.count);
        }
        FUZZ_CHECK(sp_model_time_type(&model) == SP_MODEL_NONE ||
                   sp_model_time_type(&model) < model.type_count);
        to_pprof(&model);
    }
    sp_model_deinit(&model);
}

static void merge(const sp_input *input, sp_signal signal)
{
    sp_arena memory = {0};
    ProtobufCMessage *merged =
        sp_input_count(input, signal) == input->count ? sp_merge(&memory, input, signal) : NULL;
    sp_buffer text = SP_BUFFER_INIT(64 << 20);
    FUZZ_CHECK(!merged || sp_otlp_json_write(&text, merged));
    sp_buffer_deinit(&text);
    sp_arena_deinit(&memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    sp_input input = {0};
    if (read_bytes(&input, data, length) == SP_TOOL_DONE) {
        check(&input);
        FUZZ_CHECK(sp_input_drop_repeats(&input) == SP_TOOL_DONE);
        model(&input);
        merge(&input, SP_SIGNAL_TRACES);
        merge(&input, SP_SIGNAL_PROFILES);
    }
    sp_input_deinit(&input);
    return 0;
}
