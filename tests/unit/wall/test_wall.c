/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the wall profiler that need no thread: the kernel's line about a thread, the files
 * it comes from, and the places where visits add up. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "wall/syscall_file.h"
#include "wall/wall_places.h"

/* --- the line --------------------------------------------------------------------------------- */

static void line_of_a_blocked_thread_is_taken_apart(void **state)
{
    (void)state;
    sp_syscall_line line;
    assert_true(sp_syscall_line_parse(
        "202 0x7f01 0x80 0x2 0x0 0x7ffc0000 0xffffffffffffffff 0x7ffe1234 0x7f5678\n", &line));
    assert_int_equal(line.number, 202);
    assert_int_equal(line.arguments[0], 0x7f01);
    assert_int_equal(line.arguments[3], 0);
    assert_true(line.arguments[5] == UINT64_MAX);
    assert_int_equal(line.sp, 0x7ffe1234);
    assert_int_equal(line.pc, 0x7f5678);
}

static void line_outside_of_system_calls_has_no_arguments(void **state)
{
    (void)state;
    sp_syscall_line line;
    assert_true(sp_syscall_line_parse("-1 0x7ffe1234 0x7f5678\n", &line));
    assert_int_equal(line.number, -1);
    assert_int_equal(line.arguments[0], 0);
    assert_int_equal(line.sp, 0x7ffe1234);
    assert_int_equal(line.pc, 0x7f5678);
}

static void line_that_is_cut_anywhere_is_refused(void **state)
{
    (void)state;
    static const char whole[] = "7 0x1 0x2 0x3 0x4 0x5 0x6 0x7ffe1234 0x7f5678\n";
    char text[sizeof whole];
    sp_syscall_line line;
    for (size_t length = 0; length < strlen(whole) - strlen("0x7f5678\n"); length++) {
        memcpy(text, whole, length);
        text[length] = 0;
        assert_false(sp_syscall_line_parse(text, &line));
    }
}

static void line_that_is_something_else_is_refused(void **state)
{
    (void)state;
    static const char *const others[] = {
        "",
        "\n",
        "running",
        "running\n",
        "0",
        "x 0x1 0x2",
        "-1",
        "-1 \n",
        "-1 0x1 zz\n",
        "-1 0x1 0x2 0x3\n",
        "0 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8 0x9\n",
        "0 0x1,0x2 0x3 0x4 0x5 0x6 0x7 0x8\n",
        "99999999999999999999999 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8\n",
        "0 0x1 0x2 0x3 0x4 0x5 0x6 0x11112222333344445 0x8\n",
    };
    sp_syscall_line line;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(sp_syscall_line_parse(others[i], &line));
}

/* --- files ------------------------------------------------------------------------------------ */

typedef struct blocked_thread {
    pthread_t thread;
    int pipe[2];
    _Atomic pid_t tid;
} blocked_thread;

static void *block(void *argument)
{
    blocked_thread *self = argument;
    char byte;
    atomic_store(&self->tid, (pid_t)syscall(SYS_gettid));
    return read(self->pipe[0], &byte, 1) == 0 ? self : NULL;
}

static void start_blocked(blocked_thread *self)
{
    atomic_store(&self->tid, 0);
    assert_int_equal(pipe(self->pipe), 0);
    assert_int_equal(pthread_create(&self->thread, NULL, block, self), 0);
    while (!atomic_load(&self->tid))
        usleep(100);
}

static void end_blocked(blocked_thread *self)
{
    close(self->pipe[1]);
    pthread_join(self->thread, NULL);
    close(self->pipe[0]);
}

/* Until the thread is blocked in a system call. While memory is short it may first wait for a page,
 * which the kernel shows as -1. */
static sp_syscall_state read_until_blocked(sp_syscall_files *files, sp_syscall_file *file,
                                           pid_t tid, sp_syscall_line *line)
{
    sp_syscall_state state;
    while ((state = sp_syscall_file_read(files, file, tid, line)) == SP_SYSCALL_RUNNING ||
           (state == SP_SYSCALL_BLOCKED && line->number < 0))
        usleep(100);
    return state;
}

/* A thread that was joined has said that it ends; the kernel still has it for a moment. */
static void read_until_gone(sp_syscall_files *files, sp_syscall_file *file, pid_t tid)
{
    sp_syscall_line line;
    while (sp_syscall_file_read(files, file, tid, &line) != SP_SYSCALL_GONE)
        usleep(100);
}

static void blocked_thread_is_told_with_its_arguments(void **state)
{
    (void)state;
#ifdef TESTS_EMULATOR_SIG_H
    skip(); /* the emulator's own system calls are shown */
#endif
    blocked_thread thread;
    sp_syscall_files files;
    sp_syscall_file file = {0};
    sp_syscall_line line;
    assert_true(sp_syscall_files_open(&files));
    start_blocked(&thread);
    assert_int_equal(read_until_blocked(&files, &file, thread.tid, &line), SP_SYSCALL_BLOCKED);
    assert_int_equal(line.number, SYS_read);
    assert_int_equal(line.arguments[0], thread.pipe[0]);
    assert_int_equal(files.count, 1);
    end_blocked(&thread);
    read_until_gone(&files, &file, thread.tid);
    sp_syscall_files_close(&files);
    assert_int_equal(file.fd_plus_one, 0);
}

static void descriptor_that_became_the_hosts_is_let_alone(void **state)
{
    (void)state;
    blocked_thread thread;
    sp_syscall_files files;
    sp_syscall_file file = {0};
    sp_syscall_line line;
    assert_true(sp_syscall_files_open(&files));
    start_blocked(&thread);
    read_until_blocked(&files, &file, thread.tid, &line);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC), fd = file.fd_plus_one - 1,
        tasks = files.tasks;
    assert_int_equal(dup2(null, fd), fd); /* closed and taken at once */
    assert_int_equal(read_until_blocked(&files, &file, thread.tid, &line), SP_SYSCALL_BLOCKED);
    assert_int_not_equal(file.fd_plus_one - 1, fd);
    assert_int_equal(dup2(null, tasks), tasks);
    sp_syscall_files_close(&files);
    assert_int_equal(fcntl(fd, F_GETFD) >= 0 && fcntl(tasks, F_GETFD) >= 0, 1);
    end_blocked(&thread);
    close(fd);
    close(tasks);
    close(null);
}

/* Each file stays where it is, and is opened again when it was closed in favour of another. */
static void files_are_kept_up_to_the_limit(void **state)
{
    (void)state;
    enum { THREADS = 12, KEPT = 4 };
    blocked_thread threads[THREADS];
    sp_syscall_file kept[THREADS] = {0};
    sp_syscall_files files;
    sp_syscall_line line;
    assert_true(sp_syscall_files_open(&files));
    files.limit = KEPT;
    for (int i = 0; i < THREADS; i++)
        start_blocked(&threads[i]);
    for (int n = 0; n < 5 * THREADS; n++) {
        int i = n % THREADS;
        assert_int_equal(read_until_blocked(&files, &kept[i], threads[i].tid, &line),
                         SP_SYSCALL_BLOCKED);
        assert_int_equal(line.arguments[0], threads[i].pipe[0]);
        unsigned open_files = 0;
        for (int k = 0; k < THREADS; k++)
            open_files += kept[k].fd_plus_one != 0;
        assert_int_equal(open_files, files.count);
        assert_true(files.count <= KEPT);
    }
    for (int i = 0; i < THREADS; i++)
        end_blocked(&threads[i]);
    sp_syscall_files_close(&files);
}

/* --- places ----------------------------------------------------------------------------------- */

static void fill_visit(sp_visit *visit, uint32_t frames, uint64_t number)
{
    memset(visit, 0, sizeof *visit);
    sp_visit_record *record = (sp_visit_record *)(void *)visit->record;
    sp_visit_interval(record)->header.size = sizeof(sp_interval_record);
    sp_sample_record *sample = sp_visit_sample(record);
    record->header.size = (uint32_t)(sizeof *record + sizeof(sp_interval_record) + sizeof *sample +
                                     frames * sizeof(uint64_t));
    sample->count = (uint16_t)frames;
    sample->number = number;
    sample->generation = 7;
    for (uint32_t i = 0; i < frames; i++)
        sample->pcs[i] = frames + i;
    visit->cpu_ns = number * 10;
    visit->is_proven = true;
}

static void place_adds_up_until_it_is_taken(void **state)
{
    (void)state;
    static sp_visit visit;
    sp_wall_places places = {0};
    sp_wall_place *place = sp_wall_place_of(&places, 300, true);
    fill_visit(&visit, 20, 4);
    assert_true(sp_wall_place_put(place, &visit));
    assert_null(sp_wall_place_take(place)); /* nothing is weighed yet */
    for (int i = 1; i <= 3; i++)
        sp_wall_place_stay(place, 100);
    const sp_visit_record *record = sp_wall_place_take(place);
    assert_int_equal(record->visits, 3);
    assert_int_equal(record->weight_ns, 300);
    assert_int_equal(sp_visit_sample(record)->pcs[19], 39);
    assert_null(sp_wall_place_take(place));
    assert_true(place->is_still);
    assert_int_equal(place->cpu_ns, 40);
    assert_int_equal(place->number, 4);
    assert_int_equal(place->modules, 7);
    sp_wall_place_stay(place, 100); /* in the next window it begins anew, with the same record */
    assert_int_equal(sp_wall_place_take(place)->weight_ns, 100);
    sp_wall_places_deinit(&places);
}

static void place_takes_records_of_any_length(void **state)
{
    (void)state;
    static sp_visit visit;
    sp_wall_places places = {0};
    sp_wall_place *place = sp_wall_place_of(&places, 0, true);
    for (uint32_t n = 0; n < 40; n++) {
        uint32_t frames = 1 + n * 1013 % SP_VISIT_DEPTH_MAX;
        fill_visit(&visit, frames, n);
        assert_true(sp_wall_place_put(place, &visit));
        sp_wall_place_stay(place, 1);
        const sp_visit_record *record = sp_wall_place_take(place);
        assert_int_equal(record->visits, 1);
        assert_int_equal(sp_visit_sample(record)->pcs[frames - 1], 2 * frames - 1);
    }
    sp_wall_places_deinit(&places);
}

static void places_are_made_on_request_and_stay(void **state)
{
    (void)state;
    sp_wall_places places = {0};
    assert_null(sp_wall_place_of(&places, SP_THREADS_MAX - 1, false));
    sp_wall_place *last = sp_wall_place_of(&places, SP_THREADS_MAX - 1, true);
    for (uint32_t slot = 0; slot < SP_THREADS_MAX; slot += 100)
        assert_non_null(sp_wall_place_of(&places, slot, true));
    assert_ptr_equal(sp_wall_place_of(&places, SP_THREADS_MAX - 1, false), last);
    assert_ptr_equal(sp_wall_place_of(&places, 301, true),
                     sp_wall_place_of(&places, 300, true) + 1);
    sp_wall_places_deinit(&places);
    assert_null(sp_wall_place_of(&places, 300, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(line_of_a_blocked_thread_is_taken_apart),
        cmocka_unit_test(line_outside_of_system_calls_has_no_arguments),
        cmocka_unit_test(line_that_is_cut_anywhere_is_refused),
        cmocka_unit_test(line_that_is_something_else_is_refused),
        cmocka_unit_test(blocked_thread_is_told_with_its_arguments),
        cmocka_unit_test(descriptor_that_became_the_hosts_is_let_alone),
        cmocka_unit_test(files_are_kept_up_to_the_limit),
        cmocka_unit_test(place_adds_up_until_it_is_taken),
        cmocka_unit_test(place_takes_records_of_any_length),
        cmocka_unit_test(places_are_made_on_request_and_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
