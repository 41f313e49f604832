/* SPDX-License-Identifier: Apache-2.0 */
/* The functions below take the place of malloc, calloc and realloc in what is linked into a
 * program. The linker's --wrap for all three puts them there (CMakeLists.txt). What libraries
 * allocate inside is not touched. One file of the program includes this. */
#ifndef TESTS_FAILING_MEMORY_H
#define TESTS_FAILING_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* The test defines it. It is called for each allocation; true: this one gets no memory. */
static bool allocation_fails(void);

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    return allocation_fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return allocation_fails() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return allocation_fails() ? NULL : __real_realloc(memory, bytes);
}

#endif
