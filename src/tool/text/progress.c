/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/text/progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "tool/text/escape.h"
#include "tool/text/output.h"

#define QUIET_NS    UINT64_C(1000000000) /* no line is shown for shorter work */
#define INTERVAL_NS UINT64_C(200000000)

#define ERASE "\r\033[K"

static struct {
    bool is_known, is_shown; /* has_terminal is known; the line is on the terminal */
    bool has_terminal;
    uint64_t started_ns, drawn_ns;
} line;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Whether the line can be erased. A dumb terminal cannot erase. NO_COLOR does not matter, because
 * the line has no colours. */
static bool can_erase(void)
{
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

static unsigned columns_of_terminal(void)
{
    struct winsize size;
    bool is_known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    /* one less than the width, because a full line would wrap */
    return is_known ? size.ws_col - 1U : 79;
}

void sp_progress_text(char out[SP_PROGRESS_LENGTH], const char *what, const char *of, uint64_t done,
                      uint64_t total, unsigned columns)
{
    char at[SP_VALUE_LENGTH], whole[SP_VALUE_LENGTH], text[SP_PROGRESS_LENGTH];
    sp_format_value(at, done, "bytes");
    sp_format_value(whole, total, "bytes");
    snprintf(text, sizeof text, "%s%s%.700s: %s%s%s", what, of ? " " : "", of ? of : "", at,
             total ? " of " : "", total ? whole : "");
    sp_buffer escaped = SP_BUFFER_INIT(16 * sizeof text), fitted = SP_BUFFER_INIT(sizeof text - 1);
    sp_escape_terminal(&escaped, text);
    sp_text_fit(&fitted, escaped.data ? (const char *)escaped.data : "", columns, "~");
    snprintf(out, SP_PROGRESS_LENGTH, "%s", fitted.data ? (const char *)fitted.data : "");
    sp_buffer_deinit(&escaped);
    sp_buffer_deinit(&fitted);
}

static void draw(const char *what, const char *of, uint64_t done, uint64_t total)
{
    char text[SP_PROGRESS_LENGTH];
    sp_progress_text(text, what, of, done, total, columns_of_terminal());
    fprintf(stderr, "%s%s", ERASE, text);
    fflush(stderr);
    line.is_shown = true;
}

void sp_progress_step(const char *what, const char *of, uint64_t done, uint64_t total)
{
    if (!line.is_known) {
        line.is_known = true;
        line.has_terminal = can_erase();
        line.started_ns = now_ns();
    }
    if (!line.has_terminal)
        return;
    uint64_t now = now_ns();
    if (now - line.started_ns < QUIET_NS || now - line.drawn_ns < INTERVAL_NS)
        return;
    line.drawn_ns = now;
    draw(what, of, done, total);
}

void sp_progress_end(void)
{
    if (!line.is_shown)
        return;
    fputs(ERASE, stderr);
    fflush(stderr);
    line.is_shown = false;
}
