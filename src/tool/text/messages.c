/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/text/messages.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/buffer.h"
#include "tool/text/escape.h"
#include "tool/text/progress.h"

/* Write a message. The buffer cuts very long messages, but their beginning says what is wrong. */
static void say(const char *format, va_list arguments)
{
    char text[2048];
    sp_progress_end();
    vsnprintf(text, sizeof text, format, arguments);
    sp_buffer line = SP_BUFFER_INIT(16 * sizeof text);
    if (sp_escape_terminal(&line, text))
        fprintf(stderr, "spanprof: %s\n", (const char *)line.data);
    sp_buffer_deinit(&line);
}

int sp_tool_wrong(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    return SP_TOOL_WRONG;
}

int sp_tool_no(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    return SP_TOOL_NO;
}

void sp_tool_note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

int sp_tool_no_memory(void)
{
    return sp_tool_wrong("memory is short: give fewer or smaller files");
}
