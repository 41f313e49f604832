/* SPDX-License-Identifier: Apache-2.0 */
#include "page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool make_room(page *page, size_t bytes)
{
    size_t needed = page->length + bytes + 1;
    if (needed > page->capacity) {
        size_t capacity = page->capacity * 2 > needed ? page->capacity * 2 : needed + 4096;
        char *text = realloc(page->text, capacity);
        if (!text) {
            page->failed = true;
            return false;
        }
        page->text = text;
        page->capacity = capacity;
    }
    return true;
}

void page_printf(page *page, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0 || !make_room(page, (size_t)length))
        return;
    va_start(arguments, format);
    vsnprintf(page->text + page->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    page->length += (size_t)length;
}

static void append(page *page, const char *text, size_t length)
{
    if (!make_room(page, length))
        return;
    memcpy(page->text + page->length, text, length);
    page->length += length;
    page->text[page->length] = 0;
}

static const char *entity(char c)
{
    switch (c) {
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '&':
        return "&amp;";
    default:
        return "&quot;";
    }
}

void page_escape(page *page, const char *text)
{
    for (;;) {
        size_t plain = strcspn(text, "<>&\"");
        append(page, text, plain);
        text += plain;
        if (!*text)
            return;
        const char *escaped = entity(*text++);
        append(page, escaped, strlen(escaped));
    }
}

void page_deinit(page *page)
{
    free(page->text);
    *page = (struct page){0};
}
