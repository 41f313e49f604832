/* SPDX-License-Identifier: Apache-2.0 */
/* The order of locks, and that the check sees each way to break it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/lock.h"

static sp_lock outer = SP_LOCK_AT(SP_LOCK_REGISTRY), inner = SP_LOCK_AT(SP_LOCK_LOG);

/* What ORDER, run in a child, says on standard error before it aborts; "" when it does not. */
static const char *words_of(void (*order)(void))
{
    static char words[256];
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(pipes[1], STDERR_FILENO);
        order();
        _exit(0);
    }
    close(pipes[1]);
    size_t length = 0;
    for (ssize_t count; (count = read(pipes[0], words + length, sizeof words - 1 - length)) > 0;)
        length += (size_t)count;
    words[length] = '\0';
    close(pipes[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, length > 0);
    return words;
}

static void in_order(void)
{
    sp_lock_order_take(&outer);
    sp_lock_order_take(&inner);
    sp_lock_order_give(&outer);
    sp_lock_order_give(&inner);
    sp_lock_order_take(&outer);
}

static void in_wrong_order(void)
{
    sp_lock_order_take(&inner);
    sp_lock_order_take(&outer);
}

static void twice(void)
{
    sp_lock_order_take(&outer);
    sp_lock_order_take(&outer);
}

static void lock_in_order_is_taken(void **state)
{
    (void)state;
    assert_string_equal(words_of(in_order), "");
}

static void lock_in_wrong_order_ends_the_program_with_both_names(void **state)
{
    (void)state;
    const char *words = words_of(in_wrong_order);
    assert_non_null(strstr(words, "REGISTRY is taken after LOG"));
}

static void lock_taken_twice_ends_the_program(void **state)
{
    (void)state;
    assert_non_null(strstr(words_of(twice), "REGISTRY is taken after REGISTRY"));
}

static void given_up_lock_of_a_forked_parent_can_be_made_anew(void **state)
{
    (void)state;
    sp_lock lock = SP_LOCK_AT(SP_LOCK_WALL);
    sp_lock_take(&lock);
    sp_lock_init(&lock, SP_LOCK_WALL);
    sp_lock_take(&lock);
    sp_lock_give(&lock);
    sp_lock_deinit(&lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lock_in_order_is_taken),
        cmocka_unit_test(lock_in_wrong_order_ends_the_program_with_both_names),
        cmocka_unit_test(lock_taken_twice_ends_the_program),
        cmocka_unit_test(given_up_lock_of_a_forked_parent_can_be_made_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
