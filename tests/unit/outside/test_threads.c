/* SPDX-License-Identifier: Apache-2.0 */
/* Records of threads (OTEP 4947) as our reader outside sees them: in a forked child, which writes
 * them as the case says. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "export/process_context_publish.h"
#include "outside/outside.h"

typedef struct record {
    uint8_t trace_id[16], span_id[8];
    uint8_t valid, trace_flags;
    uint8_t attributes_bytes[2];
    uint8_t attributes[700];
} record;

/* The library's own (src/context/registry.c), which no thread here has used; the linker shows it to
 * readers (tests/CMakeLists.txt). */
extern _Thread_local void *otel_thread_ctx_v1;

static record the_record = {.trace_id = {1, 2, 3}, .span_id = {4, 5}, .valid = 1, .trace_flags = 3};
static const char *const keys[] = {"http.route", "tenant.id", "late"};

static void set_attributes(const void *bytes, size_t count)
{
    the_record.attributes_bytes[0] = (uint8_t)count;
    the_record.attributes_bytes[1] = (uint8_t)(count >> 8);
    memcpy(the_record.attributes, bytes, count);
}

/* --- the child -------------------------------------------------------------------------------- */

/* It does a STEP each time it is told to, and says that it did. */
typedef void step(sp_resource *resource, unsigned number);

typedef struct child {
    pid_t pid;
    int tell, told;
    sp_outside_process *process;
} child;

static void obey(step *step, int commands, int answers)
{
    sp_resource resource;
    char command;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!sp_resource_init(&resource, "child", ""))
        _exit(1);
    for (unsigned number = 0; read(commands, &command, 1) == 1; number++) {
        step(&resource, number);
        if (write(answers, "", 1) != 1)
            _exit(1);
    }
    _exit(0);
}

static void next_step(const child *child)
{
    char answer;
    assert_int_equal(write(child->tell, "", 1), 1);
    assert_int_equal(read(child->told, &answer, 1), 1);
}

/* The first step is done when the reader opens. */
static child begin(step *step)
{
    int commands[2], answers[2];
    child child = {0};
    assert_int_equal(pipe(commands), 0);
    assert_int_equal(pipe(answers), 0);
    child.pid = fork();
    if (child.pid == 0) {
        close(commands[1]);
        obey(step, commands[0], answers[1]);
    }
    close(commands[0]);
    close(answers[1]);
    child.tell = commands[1];
    child.told = answers[0];
    next_step(&child);
    assert_int_equal(sp_outside_open(child.pid, &child.process), SP_OUTSIDE_OK);
    return child;
}

static void end(child *child)
{
    int status;
    sp_outside_close(child->process);
    close(child->tell);
    close(child->told);
    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
    assert_int_equal(status, 0);
}

static sp_outside_result look(const child *child, sp_outside_context *context)
{
    return sp_outside_thread_context(child->process, child->pid, context);
}

/* --- cases ------------------------------------------------------------------------------------ */

static void publish_keys(sp_resource *resource, uint32_t count)
{
    sp_process_context_publish(resource, keys, count);
}

static void show_attributes(sp_resource *resource, unsigned number)
{
    publish_keys(resource, 2);
    if (number == 0)
        set_attributes("\0\3/a?\1\4acme", 11);
    else
        set_attributes("\0\3/a?\1\4acme\0\2/b\1\0\1",
                       18); /* each again, and a tail without its length */
    otel_thread_ctx_v1 = &the_record;
}

static void assert_attribute(const sp_outside_attribute *attribute, const char *key,
                             const char *value)
{
    if (key)
        assert_string_equal(attribute->key, key);
    else
        assert_null(attribute->key);
    assert_int_equal(attribute->length, strlen(value));
    assert_memory_equal(attribute->value, value, attribute->length);
}

static void attributes_are_named_and_the_last_of_a_key_counts(void **state)
{
    (void)state;
    sp_outside_context context;
    child child = begin(show_attributes);
    assert_int_equal(look(&child, &context), SP_OUTSIDE_OK);
    assert_memory_equal(context.trace_id, the_record.trace_id, 16);
    assert_memory_equal(context.span_id, the_record.span_id, 8);
    assert_int_equal(context.trace_flags, 3);
    assert_int_equal(context.attribute_count, 2);
    assert_attribute(&context.attributes[0], "http.route", "/a?");
    assert_attribute(&context.attributes[1], "tenant.id", "acme");
    next_step(&child);
    assert_int_equal(look(&child, &context), SP_OUTSIDE_OK);
    assert_int_equal(context.attribute_count, 2);
    assert_attribute(&context.attributes[0], "http.route", "/b");
    assert_attribute(&context.attributes[1], "tenant.id", "");
    end(&child);
}

/* The key of the first step's attribute comes with the second. */
static void add_key(sp_resource *resource, unsigned number)
{
    publish_keys(resource, number == 0 ? 2 : 3);
    set_attributes("\2\2no", 4);
    otel_thread_ctx_v1 = &the_record;
}

static void a_key_that_is_not_known_is_asked_for_again(void **state)
{
    (void)state;
    sp_outside_context context;
    child child = begin(add_key);
    assert_int_equal(look(&child, &context), SP_OUTSIDE_OK);
    assert_attribute(&context.attributes[0], NULL, "no");
    next_step(&child);
    assert_int_equal(look(&child, &context), SP_OUTSIDE_OK);
    assert_attribute(&context.attributes[0], "late", "no");
    end(&child);
}

static void change_validity(sp_resource *resource, unsigned number)
{
    static const uint8_t valid[] = {1, 0, 2, 255, 1};
    (void)resource;
    the_record.valid = valid[number];
    otel_thread_ctx_v1 = &the_record;
}

static void only_a_valid_record_counts(void **state)
{
    (void)state;
    sp_outside_context context;
    child child = begin(change_validity);
    assert_int_equal(sp_outside_published_at_ns(child.process), 0);
    assert_int_equal(look(&child, &context), SP_OUTSIDE_OK);
    for (int i = 0; i < 3; i++) {
        next_step(&child);
        assert_int_equal(look(&child, &context), SP_OUTSIDE_NONE);
    }
    next_step(&child);
    assert_int_equal(look(&child, &context), SP_OUTSIDE_OK);
    end(&child);
}

static void change_pointer(sp_resource *resource, unsigned number)
{
    (void)resource;
    void *pointers[] = {NULL, &the_record, (void *)16, NULL};
    otel_thread_ctx_v1 = pointers[number];
}

static void no_pointer_and_a_wild_one_are_none(void **state)
{
    (void)state;
    sp_outside_context context;
    child child = begin(change_pointer);
    assert_int_equal(look(&child, &context), SP_OUTSIDE_NONE);
    next_step(&child);
    assert_int_equal(look(&child, &context), SP_OUTSIDE_OK);
    next_step(&child);
    assert_int_equal(look(&child, &context), SP_OUTSIDE_NONE);
    next_step(&child);
    assert_int_equal(look(&child, &context), SP_OUTSIDE_NONE);
    end(&child);
}

/* The longest that its length can say; some of it lies behind what a reader takes. */
static void show_too_much(sp_resource *resource, unsigned number)
{
    uint8_t many[700];
    (void)number;
    publish_keys(resource, 2);
    for (size_t i = 0; i < sizeof many; i++)
        many[i] = (uint8_t)(i % 7 == 0 ? i / 7 : i % 7 == 1 ? 5 : 'x');
    set_attributes(many, sizeof many);
    the_record.attributes_bytes[1] = 255;
    otel_thread_ctx_v1 = &the_record;
}

static void more_attributes_than_a_reader_takes_are_cut(void **state)
{
    (void)state;
    sp_outside_context context;
    child child = begin(show_too_much);
    assert_int_equal(look(&child, &context), SP_OUTSIDE_OK);
    assert_int_equal(context.attribute_count, SP_OUTSIDE_ATTRIBUTES);
    assert_attribute(&context.attributes[1], "tenant.id", "xxxxx");
    assert_attribute(&context.attributes[SP_OUTSIDE_ATTRIBUTES - 1], NULL, "xxxxx");
    end(&child);
}

/* --- stops ------------------------------------------------------------------------------------ */

static volatile sig_atomic_t caught;

static void count_signal(int signal)
{
    (void)signal;
    caught = caught + 1;
}

/* Sends itself signals while it is looked at: each must arrive. */
static void raise_many(sp_resource *resource, unsigned number)
{
    (void)resource;
    if (number == 0) {
        signal(SIGUSR1, count_signal);
        otel_thread_ctx_v1 = &the_record;
        return;
    }
    for (int i = 0; i < 20000; i++)
        raise(SIGUSR1);
    if (caught != 20000)
        _exit(3);
}

static void signals_of_a_thread_that_is_looked_at_arrive(void **state)
{
    (void)state;
    sp_outside_context context;
    child child = begin(raise_many);
    assert_int_equal(write(child.tell, "", 1), 1);
    for (int i = 0; i < 2000; i++)
        assert_int_equal(look(&child, &context), SP_OUTSIDE_OK);
    char answer;
    assert_int_equal(read(child.told, &answer, 1), 1);
    end(&child);
}

static void a_thread_that_has_ended_is_told(void **state)
{
    (void)state;
    sp_outside_context context;
    child child = begin(change_validity);
    assert_int_equal(look(&child, &context), SP_OUTSIDE_OK);
    siginfo_t ended; /* kill returns before the process has ended; unreaped, it keeps its number */
    assert_int_equal(kill(child.pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)child.pid, &ended, WEXITED | WNOWAIT), 0);
    assert_int_equal(look(&child, &context), SP_OUTSIDE_GONE);
    assert_non_null(strstr(sp_outside_problem(child.process), "has ended"));
    sp_outside_close(child.process);
    close(child.tell);
    close(child.told);
    waitpid(child.pid, NULL, 0);
}

/* Somebody else's SIGSTOP holds, however often it is looked at. */
static void a_stopped_thread_stays_stopped(void **state)
{
    (void)state;
    sp_outside_context context;
    int status;
    child child = begin(change_validity);
    assert_int_equal(look(&child, &context), SP_OUTSIDE_OK);
    kill(child.pid, SIGSTOP);
    for (int i = 0; i < 10; i++)
        assert_int_equal(look(&child, &context), SP_OUTSIDE_OK);
    sp_outside_close(child.process);
    assert_int_equal(waitpid(child.pid, &status, WUNTRACED), child.pid);
    assert_true(WIFSTOPPED(status));
    kill(child.pid, SIGCONT);
    next_step(&child);
    close(child.tell);
    close(child.told);
    assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
    assert_int_equal(status, 0);
}

static void a_stranger_is_denied_and_told_why(void **state)
{
    (void)state;
    sp_outside_process *process;
    if (getuid() == 0 && setresuid(65534, 65534, 0) != 0)
        skip();
    sp_outside_result result = sp_outside_open(1, &process);
    int restored = setresuid(0, 0, 0);
    if (restored != 0)
        print_message("not root\n");
    assert_int_equal(result, SP_OUTSIDE_DENIED);
    assert_non_null(strstr(sp_outside_problem(process), "process 1"));
    sp_outside_close(process);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_are_named_and_the_last_of_a_key_counts),
        cmocka_unit_test(a_key_that_is_not_known_is_asked_for_again),
        cmocka_unit_test(only_a_valid_record_counts),
        cmocka_unit_test(no_pointer_and_a_wild_one_are_none),
        cmocka_unit_test(more_attributes_than_a_reader_takes_are_cut),
        cmocka_unit_test(signals_of_a_thread_that_is_looked_at_arrive),
        cmocka_unit_test(a_thread_that_has_ended_is_told),
        cmocka_unit_test(a_stopped_thread_stays_stopped),
        cmocka_unit_test(a_stranger_is_denied_and_told_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
