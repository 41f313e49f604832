/* SPDX-License-Identifier: Apache-2.0 */
/* What is read of a process from outside is what the loader tells inside: of this process both are
 * there. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/images.h"
#include "attach/loader_names.h"
#include "unwind/generation_sig.h"

static const sp_generation *newest(const sp_modules *modules)
{
    return sp_modules_generation(modules, sp_modules_newest_number(modules));
}

static void images_of_this_process_are_what_the_loader_tells(void **state)
{
    (void)state;
    sp_loader_snapshot snapshot;
    sp_modules *inside = sp_modules_create();
    assert_non_null(inside);
    assert_true(sp_attach_images_take(&snapshot, getpid(), NULL));
    sp_modules *outside = sp_modules_create_from(&snapshot);
    sp_loader_snapshot_deinit(&snapshot);
    assert_non_null(outside);
    for (uint32_t i = 0; i < newest(inside)->module_count; i++) {
        const sp_module *one = newest(inside)->modules[i];
        const sp_module *same = sp_generation_find(newest(outside), one->start);
        assert_non_null(same);
        assert_int_equal(same->start, one->start);
        assert_int_equal(same->end, one->end);
        assert_int_equal(same->bias, one->bias);
        assert_string_equal(same->path, one->path); /* of a library, the name that the loader has */
        assert_int_equal(same->build_id_length, one->build_id_length);
        assert_memory_equal(same->build_id, one->build_id, one->build_id_length);
        assert_int_equal(!same->table, !one->table);
        if (one->table) {
            assert_int_equal(same->table->row_count, one->table->row_count);
            assert_memory_equal(same->table->pcs, one->table->pcs,
                                one->table->row_count * sizeof one->table->pcs[0]);
        }
    }
    sp_modules_destroy(outside);
    sp_modules_destroy(inside);
}

static void images_taken_again_are_known(void **state)
{
    (void)state;
    sp_loader_snapshot snapshot;
    assert_true(sp_attach_images_take(&snapshot, getpid(), NULL));
    sp_modules *modules = sp_modules_create_from(&snapshot);
    sp_loader_snapshot_deinit(&snapshot);
    assert_true(sp_attach_images_take(&snapshot, getpid(), newest(modules)));
    assert_int_equal(snapshot.image_count, newest(modules)->module_count);
    for (size_t i = 0; i < snapshot.image_count; i++)
        if (snapshot.images[i].build_id_length)
            assert_non_null(snapshot.images[i].known);
    uint32_t before = sp_modules_newest_number(modules);
    assert_true(sp_modules_replace(modules, &snapshot));
    assert_int_equal(sp_modules_newest_number(modules), before + 1);
    sp_modules_reclaim(modules, UINT32_MAX);
    sp_loader_snapshot_deinit(&snapshot);
    sp_modules_destroy(modules);
}

static const char *path_in(const sp_loader_snapshot *snapshot, const char *part)
{
    for (size_t i = 0; i < snapshot->image_count; i++)
        if (snapshot->images[i].path && strstr(snapshot->images[i].path, part))
            return snapshot->images[i].path;
    return "";
}

/* What another process has in its memory may be anything. */
static void images_keep_their_names_when_the_list_is_damaged(void **state)
{
    (void)state;
    struct link_map program = {0}, wrong_name = {0}, no_name = {0};
    struct r_debug head = {.r_map = &program};
    sp_loader_snapshot snapshot;
    char before[PATH_MAX];
    assert_true(sp_attach_images_take(&snapshot, getpid(), NULL));
    snprintf(before, sizeof before, "%s", path_in(&snapshot, "libc.so"));
    assert_int_equal(before[0], '/');
    for (size_t i = 0; i < snapshot.image_count; i++)
        if (snapshot.images[i].path && strcmp(snapshot.images[i].path, before) == 0)
            wrong_name.l_addr = no_name.l_addr = snapshot.images[i].bias;
    wrong_name.l_name = (char[]){"/bin/sh"};
    no_name.l_name = (char *)16; // NOLINT
    program.l_next = &wrong_name;
    wrong_name.l_next = &no_name;
    no_name.l_next = &wrong_name; /* without an end */
    sp_attach_loader_rename(getpid(), (uintptr_t)&head, "", &snapshot);
    assert_string_equal(path_in(&snapshot, "libc.so"), before);
    sp_attach_loader_rename(getpid(), 16, "", &snapshot);
    sp_attach_loader_rename(getpid(), 0, "", &snapshot);
    sp_loader_snapshot_deinit(&snapshot);
}

static void images_of_an_ended_process_are_none(void **state)
{
    (void)state;
    sp_loader_snapshot snapshot;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_false(sp_attach_images_take(&snapshot, child, NULL));
    assert_int_equal(snapshot.image_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_of_this_process_are_what_the_loader_tells),
        cmocka_unit_test(images_taken_again_are_known),
        cmocka_unit_test(images_keep_their_names_when_the_list_is_damaged),
        cmocka_unit_test(images_of_an_ended_process_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
