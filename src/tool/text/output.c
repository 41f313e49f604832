/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/text/output.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/compiler.h"
#include "core/counted.h"
#include "core/path.h"
#include "tool/text/messages.h"
#include "tool/text/progress.h"

enum { COLUMNS_IN_A_PIPE = 100, COLUMNS_MINIMUM = 40, COLUMNS_MAXIMUM = 1000 };

static unsigned columns_from_environment(void)
{
    const char *text = getenv("COLUMNS");
    long columns = text ? strtol(text, NULL, 10) : 0;
    return columns > 0 && columns <= COLUMNS_MAXIMUM ? (unsigned)columns : 0;
}

sp_terminal sp_terminal_get(bool to_file)
{
    sp_terminal terminal = {.columns = columns_from_environment()};
    struct winsize size;
    terminal.is_terminal = !to_file && isatty(STDOUT_FILENO);
    if (terminal.is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
        terminal.columns = size.ws_col;
    terminal.has_width = terminal.is_terminal || terminal.columns;
    if (!terminal.columns)
        terminal.columns = terminal.is_terminal ? 80 : COLUMNS_IN_A_PIPE;
    if (terminal.columns < COLUMNS_MINIMUM)
        terminal.columns = COLUMNS_MINIMUM;
    const char *term = getenv("TERM");
    const char *no_color = getenv("NO_COLOR");
    terminal.color =
        terminal.is_terminal && term && strcmp(term, "dumb") != 0 && !(no_color && *no_color);
    terminal.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    return terminal;
}

static bool write_all(int fd, const uint8_t *data, size_t length)
{
    while (length) {
        ssize_t written = write(fd, data, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        data += written;
        length -= (size_t)written;
    }
    return true;
}

static int write_to(int fd, const sp_buffer *out, const char *name)
{
    if (out->length == 0 || write_all(fd, out->data, out->length))
        return SP_TOOL_DONE;
    return sp_tool_wrong("writing %s to %s: %s", SP_COUNTED(out->length, "byte"), name,
                         strerror(errno));
}

static int write_file(const sp_buffer *out, const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return sp_tool_wrong("cannot write %s: %s; name a file that can be written with -o", path,
                             strerror(errno));
    int status = write_to(fd, out, path);
    if (close(fd) != 0 && status == SP_TOOL_DONE)
        status = sp_tool_wrong("writing %s: %s", path, strerror(errno));
    return status;
}

int sp_output_write(sp_buffer *out, const char *path)
{
    int status;
    sp_progress_end();
    if (out->failed) {
        status = sp_tool_no_memory();
    } else if (path && strcmp(path, "-") != 0) {
        status = write_file(out, path);
    } else {
        fflush(stdout);
        status = write_to(STDOUT_FILENO, out, "standard output");
    }
    sp_buffer_deinit(out);
    return status;
}

static int add_json(const char *data, size_t length, void *buffer)
{
    return sp_buffer_add(buffer, data, length) ? 0 : -1;
}

int sp_output_write_json(json_t *json, const char *path)
{
    sp_buffer out = SP_BUFFER_INIT(SP_OUTPUT_MAX_BYTES);
    if (!json || json_dump_callback(json, add_json, &out, JSON_COMPACT) != 0 ||
        !sp_buffer_add_char(&out, '\n'))
        out.failed = true;
    json_decref(json);
    return sp_output_write(&out, path);
}

/* The extension of the file PATH, with its dot; "": it has none. A name whose only dot is at its
 * beginning has no extension, and neither has NULL, which means standard output. */
static const char *extension_of(const char *path)
{
    const char *name = path ? sp_path_base(path) : NULL;
    const char *dot = name && *name ? strrchr(name + 1, '.') : NULL;
    return dot ? dot : "";
}

static const char *format_of_file(const char *path)
{
    static const struct {
        const char *end, *format;
    } ends[] = {{".folded", "folded"}, {".html", "html"},        {".htm", "html"},
                {".json", "json"},     {".svg", "svg"},          {".pb.gz", "pprof"},
                {".pprof", "pprof"},   {".pftrace", "perfetto"}, {".txt", "text"}};
    for (size_t i = 0; path && i < SP_ARRAY_LENGTH(ends); i++) {
        size_t length = strlen(path), end = strlen(ends[i].end);
        if (length > end && strcmp(path + length - end, ends[i].end) == 0)
            return ends[i].format;
    }
    return *extension_of(path) ? NULL : "text";
}

int sp_output_format_find(const char *command, const char *asked, const char *path,
                          const char *ends, const char **format)
{
    *format = asked ? asked : format_of_file(path);
    return *format ? SP_TOOL_DONE
                   : sp_tool_wrong("%s: -o %s: %s is no format: end the name in %s, or say which "
                                   "with --format",
                                   command, path, extension_of(path), ends);
}

typedef struct scale {
    double factor;
    const char *unit;
} scale;

/* Format VALUE in the largest scale that it reaches, with three digits. */
static void format_scaled(char *out, size_t size, double value, const scale *scales, size_t count)
{
    size_t i = 0;
    while (i + 1 < count && value < scales[i].factor * 0.9995)
        i++;
    value /= scales[i].factor;
    int digits = scales[i].factor == 1 ? 0 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    bool is_one = scales[i].factor == 1 && value == 1 && strcmp(scales[i].unit, "bytes") == 0;
    snprintf(out, size, "%.*f %s", digits, value, is_one ? "byte" : scales[i].unit);
}

void sp_format_duration(char out[SP_DURATION_LENGTH], uint64_t ns)
{
    static const scale scales[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
    format_scaled(out, SP_DURATION_LENGTH, (double)ns, scales, SP_ARRAY_LENGTH(scales));
}

void sp_format_value(char out[SP_VALUE_LENGTH], uint64_t value, const char *unit)
{
    static const scale bytes[] = {
        {1024.0 * 1024 * 1024, "GiB"}, {1024.0 * 1024, "MiB"}, {1024, "KiB"}, {1, "bytes"}};
    if (strcmp(unit, "nanoseconds") == 0)
        sp_format_duration(out, value);
    else if (strcmp(unit, "bytes") == 0)
        format_scaled(out, SP_VALUE_LENGTH, (double)value, bytes, SP_ARRAY_LENGTH(bytes));
    else
        snprintf(out, SP_VALUE_LENGTH, "%llu %.24s", (unsigned long long)value, unit);
}
