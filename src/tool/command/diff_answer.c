/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/command/diff_answer.h"

#include <string.h>

#include "tool/draw/flame.h"
#include "tool/text/messages.h"

int sp_diff_format_find(const char *command, const char *format)
{
    static const char *const formats[] = {"text", "json", "svg", "html"};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(formats); i++)
        if (strcmp(format, formats[i]) == 0)
            return strcmp(format, "html") == 0 ? sp_flame_html_check(command) : SP_TOOL_DONE;
    return sp_tool_wrong("%s: --format %s is unknown; there are text, json, svg, html", command,
                         format);
}

int sp_diff_answer_write(const sp_diff_answer *answer, const char *format, const char *out_path)
{
    if (strcmp(format, "json") == 0)
        return sp_output_write_json(sp_diff_json(answer), out_path);
    sp_buffer out = SP_BUFFER_INIT(SP_OUTPUT_MAX_BYTES);
    sp_terminal terminal = sp_terminal_get(out_path && strcmp(out_path, "-") != 0);
    bool done = strcmp(format, "text") == 0
                    ? sp_diff_text(&out, answer, &terminal)
                    : sp_diff_picture(&out, answer, strcmp(format, "html") == 0);
    if (done)
        return sp_output_write(&out, out_path);
    sp_buffer_deinit(&out);
    return sp_tool_no_memory();
}
