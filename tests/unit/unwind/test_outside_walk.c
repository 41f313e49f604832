/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of other threads, blocked in all kinds of waits below functions of all kinds of frames.
 * Each function notes its return address, so that the truth is known. */
#include <alloca.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/compiler.h"
#include "core/syscall_sig.h"
#include "unwind/outside_walk.h"
#include "unwind/x86_instruction.h"

enum { DEPTH = 512, NOTES_MAX = 64 };

static sp_modules *modules;
static const sp_generation *generation;
static sp_stack_copy *copy;

static uint64_t address_of(const volatile void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

static sp_walk walk_from(uint64_t pc, uint64_t sp, uint64_t *pcs)
{
    sp_walk walk = {.generation = generation,
                    .registers = {.pc = pc, .sp = sp},
                    .pcs = pcs,
                    .max_depth = DEPTH};
    sp_outside_walk(copy, &walk);
    return walk;
}

__attribute__((noinline)) static uint64_t known_pc(void)
{
    return address_of(__builtin_return_address(0));
}

static void walk_of_unmapped_memory_ends_with_a_mark(void **state)
{
    (void)state;
    uint64_t pcs[DEPTH];
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    munmap(pages + 4096, 4096);
    const uint64_t sps[] = {0,
                            8,
                            4097,
                            UINT64_MAX - 7,
                            UINT64_MAX,
                            UINT64_C(1) << 63,
                            address_of(pages + 4096),
                            address_of(pages + 4096 - 8),
                            address_of(pages + 4096 - 3)};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(sps); i++) {
        sp_walk walk = walk_from(known_pc(), sps[i], pcs);
        assert_int_not_equal(walk.end, SP_WALK_TRUNCATED);
        assert_in_range(walk.count, 1, 3);
        assert_null(walk.outside);
    }
    munmap(pages, 4096);
}

#if defined(__x86_64__)
/* --- Instructions ----------------------------------------------------------------------------- */

typedef struct decoded {
    const char *bytes;
    size_t length;
    sp_x86_instruction expected;
} decoded;

static void instructions_are_understood(void **state)
{
    (void)state;
    static const decoded cases[] = {
        {"\x55", 1, {.stack = SP_X86_SP_ADD, .amount = -8}},
        {"\x41\x57", 2, {.stack = SP_X86_SP_ADD, .amount = -8}},
        {"\x48\x89\xe5", 3, {.frame = SP_X86_FP_FROM_SP}},
        {"\x48\x8b\xec", 3, {.frame = SP_X86_FP_FROM_SP}},
        {"\x48\x8d\x6c\x24\x10", 5, {.frame = SP_X86_FP_FROM_SP, .amount = 16}},
        {"\x48\x83\xec\x28", 4, {.stack = SP_X86_SP_ADD, .amount = -40}},
        {"\x48\x81\xec\x00\x10\x00\x00", 7, {.stack = SP_X86_SP_ADD, .amount = -4096}},
        {"\x48\x83\xc4\x80", 4, {.stack = SP_X86_SP_ADD, .amount = -128}},
        {"\x48\x83\xe4\xe0", 4, {.stack = SP_X86_SP_ALIGN, .amount = -32}},
        {"\x48\x29\xc4", 3, {.stack = SP_X86_SP_UNKNOWN}},
        {"\x4c\x89\xfc", 3, {.stack = SP_X86_SP_UNKNOWN}},
        {"\x48\x89\xec", 3, {.stack = SP_X86_SP_FROM_FP}},
        {"\x48\x8d\x65\xd8", 4, {.stack = SP_X86_SP_FROM_FP, .amount = -40}},
        {"\xc9", 1, {.stack = SP_X86_SP_FROM_FP, .frame = SP_X86_FP_LOST, .amount = 8}},
        {"\x5d", 1, {.stack = SP_X86_SP_ADD, .frame = SP_X86_FP_LOST, .amount = 8}},
        {"\xff\x75\x08", 3, {.stack = SP_X86_SP_ADD, .amount = -8}},
        {"\x6a\x01", 2, {.stack = SP_X86_SP_ADD, .amount = -8}},
        {"\x4c\x8d\x9c\x24\x00\x00\xff\xff", 8, {.copies_sp = true, .other = 11, .amount = -65536}},
        {"\x4c\x39\xdc", 3, {.compares_sp = true, .other = 11}},
        {"\xe8\x10\x00\x00\x00", 5, {.flow = SP_X86_CALL, .target = 16}},
        {"\xff\x15\x10\x00\x00\x00",
         6,
         {.flow = SP_X86_CALL_INDIRECT, .has_slot = true, .target = 16}},
        {"\x41\xff\xd4", 3, {.flow = SP_X86_CALL_INDIRECT}},
        {"\xf2\xff\x25\x10\x00\x00\x00",
         7,
         {.flow = SP_X86_JUMP_INDIRECT, .has_slot = true, .target = 16}},
        {"\xff\x24\xc5\x00\x00\x00\x00", 7, {.flow = SP_X86_JUMP_INDIRECT, .has_index = true}},
        {"\x3e\xff\xe0", 3, {.flow = SP_X86_JUMP_INDIRECT}},
        {"\x0f\x84\xfc\xff\xff\xff", 6, {.flow = SP_X86_BRANCH, .target = -4}},
        {"\xeb\x7f", 2, {.flow = SP_X86_JUMP, .target = 127}},
        {"\xf3\xc3", 2, {.flow = SP_X86_STOP}},
        {"\x0f\x0b", 2, {.flow = SP_X86_STOP}},
        {"\xf3\x0f\x1e\xfa", 4, {0}},
        {"\x48\xb8\x01\x02\x03\x04\x05\x06\x07\x08", 10, {0}},
        {"\xf6\x05\x10\x00\x00\x00\x01", 7, {0}},
        {"\xf7\xd8", 2, {0}},
        {"\x66\xc7\x00\x01\x00", 5, {0}},
        {"\xc5\xf8\x77", 3, {0}},
        {"\xc4\xe3\x7d\x19\xc1\x01", 6, {0}},
        {"\x62\xf1\xfe\x28\x6f\x44\x24\x01", 8, {0}},
        {"\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00", 10, {0}},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(cases); i++) {
        sp_x86_instruction found, expected = cases[i].expected;
        expected.length = (uint8_t)cases[i].length;
        assert_true(sp_x86_decode((const uint8_t *)cases[i].bytes, cases[i].length, &found));
        assert_memory_equal(&found, &expected, sizeof found);
        assert_false(sp_x86_decode((const uint8_t *)cases[i].bytes, cases[i].length - 1, &found));
    }
    sp_x86_instruction none;
    assert_false(sp_x86_decode((const uint8_t *)"\x06", 1, &none));
    assert_false(sp_x86_decode((const uint8_t *)"fffffffffffffffffff", 19,
                               &none)); /* prefixes without end */
}

/* --- Blocked threads -------------------------------------------------------------------------- */

typedef struct blocked blocked;
struct blocked {
    long (*wait)(blocked *b);
    int shape;
    pid_t tid;
    uint64_t notes[NOTES_MAX]; /* return addresses, outermost first */
    uint32_t count;
    pthread_t thread;
};

static int pipes[2], sockets[2], epoll;
static volatile int zero;

/* Who acquires the count sees the notes, also ThreadSanitizer. */
#define NOTE(b)                                                                                    \
    ((b)->notes[(b)->count] = address_of(__builtin_return_address(0)),                             \
     __atomic_store_n(&(b)->count, (b)->count + 1, __ATOMIC_RELEASE))
#if defined(__clang__)
#define SHAPE       __attribute__((noinline))
#define UNOPTIMIZED __attribute__((noinline, optnone))
#define WITH_FP     SHAPE /* as all here is compiled */
#else
#define SHAPE       __attribute__((noinline, noclone))
#define UNOPTIMIZED __attribute__((noinline, noclone, optimize("O0")))
#define WITH_FP     __attribute__((noinline, noclone, optimize("no-omit-frame-pointer")))
#endif

static struct timespec much_later(clockid_t clock)
{
    struct timespec at;
    clock_gettime(clock, &at);
    at.tv_sec += 100000;
    return at;
}

static long wait_nanosleep(blocked *b)
{
    (void)b;
    return nanosleep(&(struct timespec){.tv_sec = 100000}, NULL);
}

static long wait_poll(blocked *b)
{
    (void)b;
    return poll(&(struct pollfd){.fd = pipes[0], .events = POLLIN}, 1, -1);
}

static long wait_futex(blocked *b)
{
    (void)b;
    return syscall(SYS_futex, &zero, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

static long wait_read(blocked *b)
{
    return read(pipes[0], b->notes + NOTES_MAX - 1, 1);
}

static long wait_epoll(blocked *b)
{
    struct epoll_event event;
    (void)b;
    return epoll_wait(epoll, &event, 1, -1);
}

static long wait_semaphore(blocked *b)
{
    sem_t semaphore;
    struct timespec at = much_later(CLOCK_REALTIME);
    (void)b;
    sem_init(&semaphore, 0, 0);
    return sem_timedwait(&semaphore, &at);
}

static long wait_condition(blocked *b)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    (void)b;
    pthread_mutex_lock(&mutex);
    return pthread_cond_wait(&condition, &mutex);
}

static long wait_accept(blocked *b)
{
    (void)b;
    return accept(sockets[0], NULL, NULL);
}

static pid_t child;

static long wait_child(blocked *b)
{
    int status;
    (void)b;
    return wait4(child, &status, 0, NULL);
}

/* The last of all. */
SHAPE static long arrive(blocked *b)
{
    NOTE(b);
    return b->wait(b) + zero;
}

UNOPTIMIZED static long unoptimized(blocked *b, long x)
{
    long y = x + 1;
    NOTE(b);
    return arrive(b) + y;
}

WITH_FP static long with_fp(blocked *b, long x)
{
    NOTE(b);
    return arrive(b) + x;
}

WITH_FP static long block_here(blocked *b, long x)
{
    NOTE(b);
    return nanosleep(&(struct timespec){.tv_sec = 100000 + x}, NULL) + x;
}

SHAPE static long dynamic(blocked *b, long x)
{
    volatile char *bytes = alloca((size_t)(x + 100));
    bytes[0] = 1;
    NOTE(b);
    return nanosleep(&(struct timespec){.tv_sec = 100000}, NULL) + bytes[0];
}

SHAPE static long variable_array(blocked *b, long x)
{
    volatile char bytes[x + 5000];
    bytes[0] = 1;
    NOTE(b);
    return read(pipes[0], (void *)(uintptr_t)bytes, 1) + bytes[0];
}

SHAPE static long realigned(blocked *b, long x)
{
    _Alignas(64) volatile char bytes[128];
    bytes[x & 7] = 1;
    NOTE(b);
    return nanosleep(&(struct timespec){.tv_sec = 100000}, NULL) + bytes[0];
}

UNOPTIMIZED static long nine(blocked *b, long x, long c, long d, long e, long f, long g, long h,
                             long i)
{
    NOTE(b);
    return nanosleep(&(struct timespec){.tv_sec = 100000}, NULL) + x + c + d + e + f + g + h + i;
}

UNOPTIMIZED static long pushes_arguments(blocked *b, long x)
{
    NOTE(b);
    return nine(b, x, 2, 3, 4, 5, 6, 7, 8) + zero;
}

SHAPE static long large(blocked *b, long x)
{
    volatile char bytes[70000];
    bytes[x] = 1;
    NOTE(b);
    return with_fp(b, x) + bytes[0];
}

SHAPE static long recursive(blocked *b, long x)
{
    volatile char bytes[300];
    bytes[0] = 1;
    NOTE(b);
    return (b->count < 40 ? recursive(b, x + 1) : unoptimized(b, x)) + bytes[0];
}

enum { SHAPES = 9 };

/* Each shape by a direct call, with which a dynamic frame can be found. */
SHAPE static long start(blocked *b, long x)
{
    NOTE(b);
    switch (b->shape) {
    case 0:
        return unoptimized(b, x) + zero;
    case 1:
        return with_fp(b, x) + zero;
    case 2:
        return block_here(b, x) + zero;
    case 3:
        return dynamic(b, x) + zero;
    case 4:
        return variable_array(b, x) + zero;
    case 5:
        return realigned(b, x) + zero;
    case 6:
        return pushes_arguments(b, x) + zero;
    case 7:
        return large(b, x) + zero;
    default:
        return recursive(b, x) + zero;
    }
}

static void *run(void *user)
{
    blocked *b = user;
    __atomic_store_n(&b->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    start(b, zero);
    return NULL;
}

/* Where thread TID is blocked in a system call. False when it runs, or waits for a page: the kernel
 * shows that as call number -1. */
static bool read_place(pid_t tid, uint64_t *pc, uint64_t *sp)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)tid);
    FILE *file = fopen(path, "re");
    bool is_read = file && fgets(text, sizeof text, file);
    if (file)
        fclose(file);
    char *last = strrchr(text, ' ');
    if (!is_read || !last || text[0] == '-')
        return false;
    *pc = strtoull(last + 1, NULL, 16);
    *last = 0;
    *sp = strtoull(strrchr(text, ' ') + 1, NULL, 16);
    return true;
}

/* Blocked where it was before, several times. */
static void wait_until_blocked(const blocked *b, uint64_t *pc, uint64_t *sp)
{
    uint64_t before = 0;
    for (int same = 0; same < 5; usleep(2000)) {
        pid_t tid = __atomic_load_n(&b->tid, __ATOMIC_ACQUIRE);
        bool is_blocked = tid && read_place(tid, pc, sp);
        same = is_blocked && *sp == before ? same + 1 : 0;
        before = is_blocked ? *sp : 0;
    }
}

/* The notes have to be there, one behind the other, from some place on; and the walk to be whole.
 */
static void check_stack(const blocked *b, const sp_walk *walk)
{
    uint32_t notes = __atomic_load_n(&b->count, __ATOMIC_ACQUIRE);
    assert_int_equal(walk->end, SP_WALK_COMPLETE);
    uint32_t at = 0;
    while (at < walk->count && walk->pcs[at] + 1 != b->notes[notes - 1])
        at++;
    assert_in_range(at, 1, walk->count - notes);
    for (uint32_t i = 0; i < notes; i++)
        assert_true(walk->pcs[at + i] + 1 == b->notes[notes - 1 - i]);
}

static sp_walk walk_shape(int number, long (*wait)(blocked *))
{
    static uint64_t pcs[DEPTH];
    blocked *b = calloc(1, sizeof *b); /* as the thread, it stays */
    uint64_t pc, sp;
    assert_non_null(b);
    *b = (blocked){.wait = wait, .shape = number};
    assert_int_equal(pthread_create(&b->thread, NULL, run, b), 0);
    wait_until_blocked(b, &pc, &sp);
    sp_walk walk = walk_from(pc, sp, pcs);
    assert_true(pcs[0] == pc);
    check_stack(b, &walk);
    return walk;
}

static void stacks_below_all_shapes_are_whole(void **state)
{
    (void)state;
    uint32_t recovered = 0;
    for (int i = 0; i < SHAPES; i++) {
        sp_walk walk = walk_shape(i, wait_nanosleep);
        assert_int_equal(walk.fp_not_found, 0);
        recovered += walk.fp_by_call;
    }
    assert_in_range(recovered, 3, 100);
}

static void stacks_in_all_waits_are_whole(void **state)
{
    (void)state;
    static long (*const waits[])(blocked *) = {wait_nanosleep, wait_poll,   wait_futex,
                                               wait_read,      wait_epoll,  wait_semaphore,
                                               wait_condition, wait_accept, wait_child};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(waits); i++)
        for (int number = 0; number < 2; number++)
            walk_shape(number, waits[i]);
}

/* A policy may refuse process_vm_readv. */
static void walk_without_the_call_reads_the_file(void **state)
{
    (void)state;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = SP_ARRAY_LENGTH(filter), .filter = filter};
    pid_t pid = fork();
    if (pid == 0) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
            _exit(77);
        sp_walk walk = walk_shape(1, wait_nanosleep);
        _exit(walk.end == SP_WALK_COMPLETE ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* AddressSanitizer minds reading another's frame. */
SP_SIGSAFE static void copy_words(uint64_t *out, uint64_t address, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = ((const volatile uint64_t *)(uintptr_t)address)[i]; // NOLINT
}

/* The code tells where the frame is, but what is there is behind a call of another function. */
static void frame_below_another_functions_call_is_not_believed(void **state)
{
    (void)state;
    uint64_t pcs[DEPTH], pc, sp, stack[512] = {0};
    blocked *b = calloc(1, sizeof *b);
    assert_non_null(b);
    *b = (blocked){.shape = 2};
    assert_int_equal(pthread_create(&b->thread, NULL, run, b), 0);
    wait_until_blocked(b, &pc, &sp);
    sp_walk walk = walk_from(pc, sp, pcs);
    assert_int_equal(walk.fp_by_call, 1);
    copy_words(stack, sp, 256); /* the thread stays blocked */
    size_t replaced = 0;
    for (size_t i = 0; i < 256; i++)
        if (stack[i] == b->notes[b->count - 1]) {
            stack[i] = known_pc(); /* behind the call of known_pc, here */
            replaced++;
        }
    assert_in_range(replaced, 1, 4);
    walk = walk_from(pc, address_of(stack), pcs);
    assert_int_equal(walk.end, SP_WALK_NO_REGISTER);
    assert_int_equal(walk.fp_not_found, 1);
}

static bool is_over;

static void *scribble(void *user)
{
    volatile uint64_t *stack = user;
    uint64_t random = 88172645463325252u;
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        uint64_t word = random % 3 == 0   ? address_of(stack + random / 8 % 4096)
                        : random % 3 == 1 ? known_pc() + random / 8 % 4096
                                          : random;
        stack[random / 65536 % 4096] = word;
    }
    return NULL;
}

static void walks_on_memory_that_changes_end(void **state)
{
    (void)state;
    enum { ROUNDS = 2000 };
    static uint64_t pcs[DEPTH];
    pthread_t thread;
    char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const sp_module *module = sp_generation_find(generation, known_pc());
    assert_ptr_not_equal(stack, MAP_FAILED);
    assert_int_equal(pthread_create(&thread, NULL, scribble, stack), 0);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t pc = module->start + i * 7919 % (module->end - module->start);
        sp_walk walk = walk_from(pc, address_of(stack + i * 104 % 32768), pcs);
        assert_in_range(walk.count, 1, DEPTH);
    }
    __atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    munmap(stack, 65536);
}
#endif

static int set_up(void **state)
{
    static _Atomic(const sp_generation *) hazard;
    (void)state;
    modules = sp_modules_create();
    generation = modules ? sp_generation_enter(modules, &hazard) : NULL;
    copy = sp_stack_copy_create();
#if defined(__x86_64__)
    struct sockaddr address = {.sa_family = AF_UNIX};
    sockets[0] = socket(AF_UNIX, SOCK_STREAM, 0);
    epoll = epoll_create1(0);
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pause();
        _exit(0);
    }
    if (pipe(pipes) != 0 || bind(sockets[0], &address, sizeof address.sa_family) != 0 ||
        listen(sockets[0], 1) != 0)
        return -1;
#endif
    return generation && copy ? 0 : -1;
}

/* The blocked threads go with the process. */
static int tear_down(void **state)
{
    (void)state;
    sp_stack_copy_destroy(copy);
    return 0;
}

int main(void)
{
#if defined(__SANITIZE_THREAD__)
    puts("SKIPPED: TSan calls each function's waits through frames of its own, which save the "
         "frame pointers "
         "that are to be found here");
    return 77;
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walk_of_unmapped_memory_ends_with_a_mark),
#if defined(__x86_64__)
        cmocka_unit_test(instructions_are_understood),
        cmocka_unit_test(stacks_below_all_shapes_are_whole),
        cmocka_unit_test(stacks_in_all_waits_are_whole),
        cmocka_unit_test(walk_without_the_call_reads_the_file),
        cmocka_unit_test(frame_below_another_functions_call_is_not_believed),
        cmocka_unit_test(walks_on_memory_that_changes_end),
#endif
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
