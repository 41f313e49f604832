/* SPDX-License-Identifier: Apache-2.0 */
/* Debug files from a server, which is a thread of this test: it has them, has none, hangs, or sends
 * rubbish. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/atomic.h"
#include "core/clock.h"
#include "symbol/elf_object.h"
#include "symbol/symbolizer.h"
#include "unit/symbol/test_files.h"
#include "unit/symbol/test_module.h"

/* ---- the server ---- */

typedef enum server_mode { HAS_FILE, HAS_NONE, HANGS, SENDS_RUBBISH, SENDS_OTHER_FILE } server_mode;

static int listener = -1;
static _Atomic int mode;
static _Atomic unsigned asked_count;
static char last_request[512]; /* written by the server's thread before asked_count grows */

static void send_all(int fd, const void *data, size_t length)
{
    for (const char *at = data; length;) {
        ssize_t sent = send(fd, at, length, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        at += sent;
        length -= (size_t)sent;
    }
}

static void send_file(int fd, const char *name)
{
    static char content[1 << 20];
    char head[128];
    FILE *file = fopen(test_path(name), "r");
    size_t length = file ? fread(content, 1, sizeof content, file) : 0;
    if (file)
        fclose(file);
    snprintf(head, sizeof head,
             "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", length);
    send_all(fd, head, strlen(head));
    send_all(fd, content, length);
}

/* One that is kept open, for the client to wait at, is closed with the next connection. */
static void serve(int fd)
{
    static const char none[] =
        "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    static const char rubbish[] =
        "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nrubbish";
    static int kept = -1;
    char request[sizeof last_request] = "";
    ssize_t got = recv(fd, request, sizeof request - 1, 0);
    memcpy(last_request, request, sizeof last_request);
    atomic_fetch_add(&asked_count, got > 0);
    int now = sp_load_relaxed(&mode);
    if (now == HAS_FILE)
        send_file(fd, "one.debug");
    else if (now == SENDS_OTHER_FILE)
        send_file(fd, "two.debug");
    else if (now == HAS_NONE)
        send_all(fd, none, sizeof none - 1);
    else if (now == SENDS_RUBBISH)
        send_all(fd, rubbish, sizeof rubbish - 1);
    if (kept >= 0)
        close(kept);
    kept = now == HANGS ? fd : -1;
    if (now != HANGS)
        close(fd);
}

static void *run_server(void *unused)
{
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            return unused;
        serve(fd);
    }
}

static bool start_server(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    pthread_t thread;
    char url[64];
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) != 0 ||
        listen(listener, 8) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0)
        return false;
    snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(address.sin_port));
    setenv("DEBUGINFOD_URLS", url, 1);
    return pthread_create(&thread, NULL, run_server, NULL) == 0;
}

/* ---- time, which stands still while an answer is waited for: the patience with a server does not
 * end ---- */

static _Atomic uint64_t held_ns; /* 0: the clock goes */

/* The linker sends the library here (tests/CMakeLists.txt). */
uint64_t __real_sp_clock_monotonic_ns(void);
uint64_t __wrap_sp_clock_monotonic_ns(void);
uint64_t __wrap_sp_clock_monotonic_ns(void)
{
    uint64_t now_ns = sp_load_relaxed(&held_ns);
    return now_ns ? now_ns : __real_sp_clock_monotonic_ns();
}

/* ---- a stripped library whose debug file the server has ---- */

static bool make_libraries(void)
{
    static const char source[] =
        "int exported(int i) { return i + NUMBER; }\n"
        "static __attribute__((noinline, used)) int hidden(int i) { return i * NUMBER; }\n";
    test_write(test_path("lib.c"), source, sizeof source - 1);
    return test_run_command(
        "i=0; for n in one two; do i=$((i + 1)); "
        "cc -g -O1 -shared -fPIC -Wl,--build-id -DNUMBER=$i -o $n.full lib.c && "
        "objcopy --only-keep-debug $n.full $n.debug && "
        "strip -o $n.so $n.full || exit 1; done");
}

static uint64_t address_of_hidden(void)
{
    char command[PATH_MAX];
    unsigned long long address = 0;
    snprintf(command, sizeof command, "nm %s | sed -n 's/ t hidden$//p'", test_path("one.full"));
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_int_equal(fscanf(pipe, "%llx", &address), 1);
    pclose(pipe);
    return address;
}

static sp_module *make_module(void)
{
    char command[PATH_MAX];
    sp_module *module = test_module_make(test_path("one.so"), 0, 1 << 20, 0);
    snprintf(command, sizeof command, "readelf -n %s | sed -n 's/.*Build ID: //p'",
             test_path("one.full"));
    FILE *pipe = popen(command, "r");
    unsigned byte;
    while (pipe && module->build_id_length < SP_BUILD_ID_MAX && fscanf(pipe, "%2x", &byte) == 1)
        module->build_id[module->build_id_length++] = (uint8_t)byte;
    pclose(pipe);
    assert_true(module->build_id_length > 2);
    return module;
}

static sp_symbolizer *symbolizer;
static sp_module *module;
static uint64_t address;

static int set_up(void **state)
{
    (void)state;
    if (!test_run_command("rm -rf cache && mkdir cache"))
        return -1;
    test_forget_lines();
    sp_store_relaxed(&held_ns, 0);
    atomic_store(&asked_count, 0);
    symbolizer = sp_symbolizer_create();
    module = make_module();
    address = address_of_hidden();
    return symbolizer ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    sp_symbolizer_destroy(symbolizer);
    free(module);
    return 0;
}

static const sp_frame *ask(void)
{
    const sp_frame *frames;
    assert_int_equal(sp_symbolizer_frames(symbolizer, module, address, &frames), 1);
    return frames;
}

/* Ask, wait as the collector does, ask again. */
static const sp_frame *ask_and_wait(server_mode of_server)
{
    sp_store_relaxed(&mode, (int)of_server);
    sp_store_relaxed(&held_ns, of_server == HANGS ? 0 : __real_sp_clock_monotonic_ns());
    sp_symbolizer_configure(symbolizer, &(sp_symbolizer_options){.debuginfod = true});
    assert_true(ask()->unresolved);
    while (sp_symbolizer_wait(symbolizer, 20))
        usleep(1000);
    sp_store_relaxed(&held_ns, 0);
    return ask();
}

static void assert_unresolved(const sp_frame *frame)
{
    assert_true(frame->unresolved);
    assert_memory_equal(frame->name, "one.so+0x", 9);
}

static void server_is_not_asked_unless_wanted(void **state)
{
    (void)state;
    sp_store_relaxed(&mode, HAS_FILE);
    assert_unresolved(ask());
    assert_false(sp_symbolizer_wait(symbolizer, 1000));
    assert_unresolved(ask());
    assert_int_equal(atomic_load(&asked_count), 0);
}

static void file_of_server_gives_names(void **state)
{
    (void)state;
    const sp_frame *frame = ask_and_wait(HAS_FILE);
    assert_string_equal(frame->name, "hidden");
    assert_int_equal(frame->line, 2);
    assert_non_null(strstr(last_request, "/debuginfo "));
    for (int round = 0; round < 7; round++)
        sp_symbolizer_rest(symbolizer);
    const sp_frame *frames;
    sp_symbolizer_frames(symbolizer, module, address + 1, &frames); /* opened again */
    assert_string_equal(frames[0].name, "hidden");
    assert_int_equal(atomic_load(&asked_count), 1);
    assert_int_equal(test_logged_count, 0);
}

/* The next process finds it in the cache. */
static void file_in_cache_needs_no_server(void **state)
{
    (void)state;
    assert_string_equal(ask_and_wait(HAS_FILE)->name, "hidden");
    sp_symbolizer_destroy(symbolizer);
    symbolizer = sp_symbolizer_create();
    assert_string_equal(ask_and_wait(HAS_NONE)->name, "hidden");
    assert_int_equal(atomic_load(&asked_count), 1);
}

static void server_without_file_is_asked_once(void **state)
{
    (void)state;
    assert_unresolved(ask_and_wait(HAS_NONE));
    for (int round = 0; round < 7; round++)
        sp_symbolizer_rest(symbolizer);
    const sp_frame *frames;
    sp_symbolizer_frames(symbolizer, module, address + 1, &frames);
    assert_false(sp_symbolizer_wait(symbolizer, 1000));
    assert_int_equal(atomic_load(&asked_count), 1);
    assert_int_equal(test_logged_count, 0); /* nothing is wrong with that */
}

static void rubbish_of_server_is_named_and_not_used(void **state)
{
    (void)state;
    assert_unresolved(ask_and_wait(SENDS_RUBBISH));
    assert_int_equal(test_logged_count, 1);
    assert_true(test_was_logged("not an ELF file"));
}

static void other_file_of_server_is_not_used(void **state)
{
    (void)state;
    assert_unresolved(ask_and_wait(SENDS_OTHER_FILE));
}

/* Waiting ends by itself, and a second question does not wait again; so does destroy, with the
 * request under way. The bounds say only that nothing waits for the server, which would take 90 s.
 */
static void server_that_hangs_holds_nobody_up(void **state)
{
    (void)state;
    uint64_t begin = sp_clock_monotonic_ns();
    assert_unresolved(ask_and_wait(HANGS));
    assert_false(sp_symbolizer_wait(symbolizer, 1000));
    sp_symbolizer_destroy(symbolizer);
    symbolizer = NULL;
    assert_true(sp_clock_monotonic_ns() - begin < 80 * SP_NS_PER_S);
}

static void no_server_named_is_said_once(void **state)
{
    (void)state;
    char *urls = strdup(getenv("DEBUGINFOD_URLS"));
    unsetenv("DEBUGINFOD_URLS");
    sp_symbolizer_configure(symbolizer, &(sp_symbolizer_options){.debuginfod = true});
    assert_unresolved(ask());
    assert_false(sp_symbolizer_wait(symbolizer, 1000));
    assert_int_equal(test_logged_count, 1);
    assert_true(test_was_logged("DEBUGINFOD_URLS"));
    setenv("DEBUGINFOD_URLS", urls, 1);
    free(urls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        CASE(server_is_not_asked_unless_wanted),
        CASE(file_of_server_gives_names),
        CASE(file_in_cache_needs_no_server),
        CASE(server_without_file_is_asked_once),
        CASE(rubbish_of_server_is_named_and_not_used),
        CASE(other_file_of_server_is_not_used),
        CASE(no_server_named_is_said_once),
        CASE(server_that_hangs_holds_nobody_up), /* last: the server is left with a connection */
    };
    if (!test_files_begin())
        return 1;
    sp_elf_object_set_debug_directory("/nonexistent");
    setenv("DEBUGINFOD_CACHE_PATH", test_path("cache"), 1);
    unsetenv("http_proxy");
    int failed = 77;
    if (!dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL))
        printf("SKIPPED: libdebuginfod.so.1 is not there: install libdebuginfod1\n");
    else if (make_libraries() && start_server())
        failed = cmocka_run_group_tests_name("debuginfod", tests, NULL, NULL);
    test_files_end();
    return failed;
}
