/* SPDX-License-Identifier: Apache-2.0 */
/* Machine code that a program wrote at run time, as a just-in-time compiler does: without frame
 * information. It calls back into C, which spins. `work_jit keeping` keeps frame pointers,
 * `work_jit foreign` uses rbp for numbers, `work_jit leaving` leaves it alone. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static volatile unsigned sink;

static const uint8_t keeping[] = {
    0xf3, 0x0f, 0x1e, 0xfa, /* endbr64 */
    0x55,                   /* push %rbp */
    0x48, 0x89, 0xe5,       /* mov %rsp, %rbp */
    0x53, 0x50,             /* push %rbx; push %rax */
    0x89, 0xf3,             /* mov %esi, %ebx */
    0xff, 0xcb,             /* again: dec %ebx */
    0x75, 0xfc,             /* jnz again */
    0xff, 0xd7,             /* call *%rdi */
    0x58, 0x5b,             /* pop %rax; pop %rbx */
    0x5d, 0xc3,             /* pop %rbp; ret */
};

static const uint8_t foreign[] = {
    0xf3, 0x0f, 0x1e, 0xfa, /* endbr64 */
    0x55, 0x53, 0x50,       /* push %rbp; push %rbx; push %rax */
    0x89, 0xf5,             /* mov %esi, %ebp */
    0xff, 0xcd,             /* again: dec %ebp */
    0x75, 0xfc,             /* jnz again */
    0xff, 0xd7,             /* call *%rdi */
    0x58, 0x5b,             /* pop %rax; pop %rbx */
    0x5d, 0xc3,             /* pop %rbp; ret */
};

static const uint8_t leaving[] = {
    0xf3, 0x0f, 0x1e, 0xfa, /* endbr64 */
    0x53,                   /* push %rbx */
    0x89, 0xf3,             /* mov %esi, %ebx */
    0xff, 0xcb,             /* again: dec %ebx */
    0x75, 0xfc,             /* jnz again */
    0xff, 0xd7,             /* call *%rdi */
    0x5b, 0xc3,             /* pop %rbx; ret */
};

__attribute__((noinline)) static void called(void)
{
    for (unsigned i = 0; i < 300; i++)
        sink = sink + i;
}

__attribute__((noinline)) static void call(void (*code)(void (*)(void), unsigned), unsigned depth)
{
    if (depth)
        call(code, depth - 1);
    else
        code(called, 1000);
    sink = depth;
}

int main(int count, char **arguments)
{
    const char *kind = count > 1 ? arguments[1] : "";
    void *page =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void (*code)(void (*)(void), unsigned);
    if (page == MAP_FAILED)
        abort();
    if (strcmp(kind, "keeping") == 0)
        memcpy(page, keeping, sizeof keeping);
    else if (strcmp(kind, "foreign") == 0)
        memcpy(page, foreign, sizeof foreign);
    else
        memcpy(page, leaving, sizeof leaving);
    memcpy(&code, &page, sizeof code);
    for (;;)
        call(code, 5);
}
