/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/command/stats_switches.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/buffer.h"
#include "core/counted.h"
#include "tool/read/switches.h"
#include "tool/text/messages.h"
#include "tool/text/output.h"

#define MAX_FILE_BYTES ((size_t)16 << 30)

bool sp_stats_switches_recognize(const sp_operands *files)
{
    uint8_t start[8];
    FILE *file = files->count ? fopen(files->items[0], "rbe") : NULL;
    if (!file)
        return false;
    size_t length = fread(start, 1, sizeof start, file);
    fclose(file);
    return sp_switches_recognize(start, length);
}

static int load(const char *path, sp_buffer *out)
{
    enum { STEP = 1 << 20 };
    FILE *file = fopen(path, "rbe");
    size_t count = STEP;
    if (!file)
        return sp_tool_wrong("%s: cannot be opened: %s", path, strerror(errno));
    while (count == STEP) {
        uint8_t *end = sp_buffer_reserve(out, STEP);
        if (!end) {
            fclose(file);
            return sp_tool_no_memory();
        }
        count = fread(end, 1, STEP, file);
        out->length += count;
    }
    fclose(file);
    return SP_TOOL_DONE;
}

/* The share of the recorded time, over all threads, with a known context. */
static double known_share(const sp_switches *switches)
{
    double known = 0, whole = 0;
    for (size_t i = 0; i < switches->thread_count; i++) {
        const sp_switch_thread *thread = &switches->threads[i];
        for (size_t n = 0; n < thread->interval_count; n++) {
            const sp_switch_interval *interval = &thread->intervals[n];
            double ns = (double)(interval->end_ns - interval->start_ns);
            whole += ns;
            known += interval->state == SP_SWITCH_STATE_UNKNOWN ? 0 : ns;
        }
    }
    return whole > 0 ? known / whole : 1;
}

static json_t *make_json(const char *path, const sp_switches *switches, bool is_damaged)
{
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:b, s:b}", "file", path, "pid",
                     (json_int_t)switches->pid, "threads", (json_int_t)switches->thread_count,
                     "contexts", (json_int_t)switches->contexts.count, "switches",
                     (json_int_t)switches->switches, "span_events", (json_int_t)switches->events,
                     "lost", (json_int_t)switches->lost, "known_share", known_share(switches),
                     "cut", switches->is_cut, "damaged", is_damaged);
}

static int print_line(const char *path, const sp_switches *switches, sp_stats_explain *explain)
{
    sp_buffer out = SP_BUFFER_INIT(SP_OUTPUT_MAX_BYTES);
    sp_buffer_printf(&out,
                     "%s: switches of process %" PRIu64 ": %s, %s of %s, %" PRIu64
                     " starts and ends of spans, %" PRIu64 " lost, %.2f %% of the time known%s\n",
                     path, switches->pid, SP_COUNTED(switches->thread_count, "thread"),
                     SP_COUNTED(switches->switches, "switch"),
                     SP_COUNTED(switches->contexts.count, "context"), switches->events,
                     switches->lost, 100 * known_share(switches),
                     switches->is_cut ? "; the last block is cut" : "");
    sp_stats_explain_line(explain, &out, "switches", "");
    return sp_output_write(&out, NULL);
}

/* Read all of DATA. If a block is damaged, read only the blocks before it, because a damaged block
 * may contain anything. */
static int read_whole_blocks(const char *path, const sp_buffer *data, sp_switches *out,
                             bool *is_damaged)
{
    const char *wrong = sp_switches_read(out, data->data, data->length);
    uint64_t end = out->read_bytes;
    *is_damaged = wrong && out->blocks > 0;
    if (*is_damaged) {
        sp_tool_note("%s: byte %" PRIu64 ": %s: only what stands before it is told", path, end,
                     wrong);
        sp_switches_deinit(out);
        wrong = sp_switches_read(out, data->data, end);
    }
    return wrong ? sp_tool_wrong("%s: byte %" PRIu64 ": %s", path, out->read_bytes, wrong)
                 : SP_TOOL_DONE;
}

static int tell(const char *path, bool as_json, sp_stats_explain *explain)
{
    sp_buffer data = SP_BUFFER_INIT(MAX_FILE_BYTES);
    sp_switches switches = {0};
    bool is_damaged = false;
    int status = load(path, &data);
    if (status == SP_TOOL_DONE)
        status = read_whole_blocks(path, &data, &switches, &is_damaged);
    if (status == SP_TOOL_DONE)
        status = as_json ? sp_output_write_json(make_json(path, &switches, is_damaged), NULL)
                         : print_line(path, &switches, explain);
    sp_switches_deinit(&switches);
    sp_buffer_deinit(&data);
    return status;
}

int sp_stats_switches(const sp_operands *files, bool as_json, sp_stats_explain *explain)
{
    int status = SP_TOOL_DONE;
    for (size_t i = 0; i < files->count && status == SP_TOOL_DONE; i++)
        status = tell(files->items[i], as_json, explain);
    return status;
}
