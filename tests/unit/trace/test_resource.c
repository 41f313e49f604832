/* SPDX-License-Identifier: Apache-2.0 */
/* The resource: what is detected, what the user names, and what is refused. */
#include "unit/trace/support.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/log.h"
#include "trace/resource.h"

static char last_warning[512];

static void keep_warning(spanprof_log_level level, const char *line, void *user)
{
    (void)level, (void)user;
    snprintf(last_warning, sizeof last_warning, "%s", line);
}

static int clean_environment(void **state)
{
    (void)state;
    unsetenv("OTEL_SERVICE_NAME");
    unsetenv("OTEL_RESOURCE_ATTRIBUTES");
    last_warning[0] = 0;
    sp_log_configure(SPANPROF_LOG_WARN, keep_warning, NULL);
    return 0;
}

static sp_resource init(const char *service_name, const char *attributes)
{
    sp_resource resource;
    assert_true(sp_resource_init(&resource, service_name, attributes));
    return resource;
}

static void expect(const sp_resource *resource, const char *key, const char *value)
{
    const char *got = sp_resource_get(resource, key);
    if (!got || strcmp(got, value) != 0)
        fail_msg("%s is %s, not %s", key, got ? got : "not there", value);
}

static void resource_detects_process_host_and_sdk(void **state)
{
    (void)state;
    sp_resource resource = init(NULL, NULL);
    expect(&resource, "service.name", "unknown_service:unit_trace_resource");
    expect(&resource, "process.executable.name", "unit_trace_resource");
    expect(&resource, "telemetry.sdk.name", "spanprof");
    expect(&resource, "telemetry.sdk.language", "c");
    expect(&resource, "telemetry.sdk.version", SPANPROF_VERSION);
    expect(&resource, "os.type", "linux");
    char host[256];
    assert_int_equal(gethostname(host, sizeof host), 0);
    expect(&resource, "host.name", host);
    const char *arch = sp_resource_get(&resource, "host.arch");
    assert_non_null(arch);
    assert_string_not_equal(arch, "x86_64");
    bool has_pid = false;
    for (uint32_t i = 0; i < resource.attribute_count; i++)
        if (strcmp(resource.attributes[i].key, "process.pid") == 0) {
            assert_int_equal(resource.attributes[i].type, SPANPROF_ATTRIBUTE_INT);
            assert_int_equal(resource.attributes[i].value.int_value, getpid());
            has_pid = true;
        }
    assert_true(has_pid);
    assert_null(sp_resource_get(&resource, "process.pid")); /* no string */
    assert_null(sp_resource_get(&resource, "no such key"));
    assert_string_equal(last_warning, "");
    sp_resource_deinit(&resource);
    sp_resource_deinit(&resource);
}

/* What the resource of a child says. */
static void read_id_of_child(char id[37])
{
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        alarm(300);
        sp_tracer_after_fork();
        sp_resource resource = init(NULL, NULL);
        const char *own = sp_resource_get(&resource, "service.instance.id");
        _exit(write(pipes[1], own, 37) == 37 ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(read(pipes[0], id, 37), 37);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(pipes[0]);
    close(pipes[1]);
}

static void instance_id_is_a_uuid_of_the_process(void **state)
{
    (void)state;
    char of_child[37], of_other[37];
    sp_resource one = init(NULL, NULL), two = init(NULL, NULL);
    const char *id = sp_resource_get(&one, "service.instance.id");
    assert_int_equal(strlen(id), 36);
    for (int i = 0; i < 36; i++)
        assert_int_equal(id[i] == '-', i == 8 || i == 13 || i == 18 || i == 23);
    assert_int_equal(strspn(id, "0123456789abcdef-"), 36);
    assert_int_equal(id[14], '4');
    assert_non_null(strchr("89ab", id[19]));
    expect(&two, "service.instance.id", id); /* the SDK may stop and start */
    read_id_of_child(of_child);
    read_id_of_child(of_other);
    assert_string_not_equal(of_child, id);
    assert_string_not_equal(of_child, of_other);
    sp_resource_deinit(&two);
    two = init(NULL, "service.instance.id=shop-1");
    expect(&two, "service.instance.id", "shop-1");
    sp_resource_deinit(&one);
    sp_resource_deinit(&two);
}

static void set_or_unset(const char *variable, const char *value)
{
    if (value)
        setenv(variable, value, 1);
    else
        unsetenv(variable);
}

static void service_name_has_its_precedence(void **state)
{
    (void)state;
    static const struct {
        const char *argument, *attributes; /* in code */
        const char *name, *more;           /* in the environment */
        const char *expected;
    } cases[] = {
        {"code", "service.name=attr", "env", "service.name=env-attr", "code"},
        {NULL, "service.name=attr", "env", "service.name=env-attr", "attr"},
        {"", "service.name=attr", "env", NULL, "attr"},
        {NULL, "service.name=", "env", "service.name=env-attr", "env"},
        {NULL, "other=1", "env", "service.name=env-attr", "env"},
        {NULL, NULL, "", "service.name=env-attr", "env-attr"},
        {NULL, "other=1", NULL, "service.name=env-attr", "env-attr"},
        {NULL, "service.name=%zz", NULL, "service.name=env-attr", "env-attr"},
        {NULL, "service.name=", NULL, NULL, "unknown_service:unit_trace_resource"},
        {NULL, "service.name", NULL, NULL, "unknown_service:unit_trace_resource"},
        {NULL, NULL, NULL, "service.name=", "unknown_service:unit_trace_resource"},
        {"caf\xe9", NULL, NULL, NULL, "caf\xef\xbf\xbd"},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(cases); i++) {
        set_or_unset("OTEL_SERVICE_NAME", cases[i].name);
        set_or_unset("OTEL_RESOURCE_ATTRIBUTES", cases[i].more);
        sp_resource resource = init(cases[i].argument, cases[i].attributes);
        expect(&resource, "service.name", cases[i].expected);
        sp_resource_deinit(&resource);
    }
}

static void attributes_are_decoded_and_win_over_what_is_detected(void **state)
{
    (void)state;
    setenv("OTEL_RESOURCE_ATTRIBUTES",
           "host.name=from%20env, deployment.environment.name = prod ,,a%2Cb=c%3Dd%2ce,empty=,"
           "twice=1,twice=2,telemetry.sdk.name=other,utf8=%C3%A9,",
           1);
    sp_resource resource = init(NULL, NULL);
    expect(&resource, "host.name", "from env");
    expect(&resource, "deployment.environment.name", "prod");
    expect(&resource, "a,b", "c=d,e");
    expect(&resource, "empty", "");
    expect(&resource, "twice", "2");
    expect(&resource, "utf8", "\xc3\xa9");
    expect(&resource, "telemetry.sdk.name", "spanprof"); /* nobody else can say who we are */
    for (uint32_t i = 0; i < resource.attribute_count; i++)
        for (uint32_t j = 0; j < i; j++)
            assert_string_not_equal(resource.attributes[i].key, resource.attributes[j].key);
    assert_string_equal(last_warning, "");
    sp_resource_deinit(&resource);
}

static void attributes_in_code_win_key_by_key(void **state)
{
    (void)state;
    setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=prod,service.version=0,b=env",
           1);
    sp_resource resource = init(NULL, "service.version=1,b=");
    expect(&resource, "deployment.environment.name", "prod");
    expect(&resource, "service.version", "1");
    expect(&resource, "b", "");
    sp_resource_deinit(&resource);
    resource = init(NULL, "service.version"); /* what cannot be read takes nothing away */
    expect(&resource, "service.version", "0");
    assert_non_null(strstr(last_warning, "resource_attributes is ignored"));
    sp_resource_deinit(&resource);
}

static void attributes_with_any_error_are_discarded_whole(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "good=1,bad",     "bad,good=1",      "good=1,=value", "good=1,bad=%",   "good=1,bad=%4",
        "good=1,bad=%zz", "good=1,bad=%00",  "good=1,b%=2",   "good=1,a=b=c",   "good=1,bad=\xff",
        "good=1,bad=%ff", "good=1,bad=%C3x", "good=1, = ",    "good=1,bad=%4,", "good=1;bad",
    };
    static const size_t last = SP_ARRAY_LENGTH(bad) - 1;
    for (size_t i = 0; i < last; i++) {
        last_warning[0] = 0;
        sp_resource resource = init("service", bad[i]);
        if (sp_resource_get(&resource, "good"))
            fail_msg("%s was not discarded", bad[i]);
        expect(&resource, "service.name", "service");
        assert_non_null(strstr(last_warning, "resource_attributes is ignored"));
        sp_resource_deinit(&resource);
    }
    sp_resource resource = init(NULL, bad[last]); /* a semicolon is a character as any other */
    expect(&resource, "good", "1;bad");
    sp_resource_deinit(&resource);
}

/* Pyroscope makes a label of each, and refuses profiles with more than 30 of them, 4 of which it
 * adds. */
static void resource_without_names_of_the_users_leaves_room_for_some(void **state)
{
    (void)state;
    sp_resource resource = init(NULL, NULL);
    assert_in_range(resource.attribute_count, 10, SP_RESOURCE_ATTRIBUTES - 6);
    sp_resource_deinit(&resource);
}

static void resource_takes_many_attributes(void **state)
{
    (void)state;
    enum { COUNT = 2000 };
    char *text = malloc(COUNT * 32), *end = text;
    assert_non_null(text);
    for (int i = 0; i < COUNT; i++)
        end += sprintf(end, "%skey.%d=value.%d", i ? "," : "", i, i);
    sp_resource resource = init(NULL, text);
    expect(&resource, "key.0", "value.0");
    expect(&resource, "key.1999", "value.1999");
    expect(&resource, "service.name", "unknown_service:unit_trace_resource");
    /* And service.name, service.instance.id, three of telemetry.sdk, process.executable.name:
     * nothing else is detected. */
    assert_int_equal(resource.attribute_count, COUNT + 6);
    sp_resource_deinit(&resource);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(resource_detects_process_host_and_sdk, clean_environment),
        cmocka_unit_test_setup(instance_id_is_a_uuid_of_the_process, clean_environment),
        cmocka_unit_test_setup(service_name_has_its_precedence, clean_environment),
        cmocka_unit_test_setup(attributes_are_decoded_and_win_over_what_is_detected,
                               clean_environment),
        cmocka_unit_test_setup(attributes_in_code_win_key_by_key, clean_environment),
        cmocka_unit_test_setup(attributes_with_any_error_are_discarded_whole, clean_environment),
        cmocka_unit_test_setup(resource_without_names_of_the_users_leaves_room_for_some,
                               clean_environment),
        cmocka_unit_test_setup(resource_takes_many_attributes, clean_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
