/* SPDX-License-Identifier: Apache-2.0 */
/* Tells locks, conditions, semaphores and joins apart. For the kernel, each wait for another thread
 * is a wait for a futex. The function of the C or C++ library that called the kernel shows what the
 * program waits for. */
#include <string.h>

#include "core/compiler.h"
#include "tool/model/model.h"

/* How many frames, from the leaf on, are searched for this function. The frames before it are the
 * system call and internal functions of the library. */
enum { FRAMES_MOST = 8 };

static bool begins_with_any(const char *name, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(name, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}

/* UNSURE: a wait until a value changes. Semaphores and barriers of C++20 are made of these, so a
 * function further from the leaf may say more. */
static sp_where kind_of(const char *name, bool *unsure)
{
    static const char *const conditions[] = {
        "pthread_cond_",           "cnd_wait",
        "cnd_timedwait",           "std::condition_variable",
        "std::_V2::condition_var", "std::__1::condition_variable",
        "std::__atomic_futex_",    "std::__basic_future",
        "std::__future_base"};
    static const char *const semaphores[] = {"sem_wait",
                                             "sem_timedwait",
                                             "sem_clockwait",
                                             "new_sem_wait",
                                             "std::counting_semaphore",
                                             "std::__atomic_semaphore",
                                             "std::__1::counting_semaphore"};
    static const char *const joins[] = {"pthread_join",           "pthread_timedjoin",
                                        "pthread_clockjoin",      "thrd_join",
                                        "std::thread::join",      "std::jthread::join",
                                        "std::__1::thread::join", "pthread_barrier_wait",
                                        "std::barrier",           "std::__tree_barrier",
                                        "std::latch::",           "std::__1::barrier",
                                        "std::__1::latch::",      "gomp_barrier_wait",
                                        "gomp_team_barrier_wait"};
    static const char *const changes[] = {"std::__atomic_wait", "std::__detail::__platform_wait",
                                          "std::__detail::__waiter", "std::__atomic_base",
                                          "std::atomic"};
    /* the C library's internal names begin with "_" */
    const char *plain = sp_names_function(name);
    plain += strspn(plain, "_");
    *unsure = begins_with_any(plain, changes, SP_ARRAY_LENGTH(changes));
    if (*unsure || begins_with_any(plain, conditions, SP_ARRAY_LENGTH(conditions)))
        return SP_WHERE_CONDITION;
    if (begins_with_any(plain, semaphores, SP_ARRAY_LENGTH(semaphores)))
        return SP_WHERE_SEMAPHORE;
    if (begins_with_any(plain, joins, SP_ARRAY_LENGTH(joins)))
        return SP_WHERE_JOIN;
    return SP_WHERE_LOCK;
}

sp_where sp_model_lock_kind(const sp_model *model, uint32_t stack)
{
    const sp_intern_entry *entry = &model->stacks.entries[stack];
    const uint32_t *frames = entry->key;
    size_t count = entry->length / sizeof *frames;
    sp_where kind = SP_WHERE_LOCK;
    bool unsure = true;
    for (size_t i = 0; unsure && i < count && i < FRAMES_MOST; i++) {
        sp_where found = kind_of(sp_model_text(model, frames[i]), &unsure);
        kind = found == SP_WHERE_LOCK ? kind : found;
        unsure = unsure || found == SP_WHERE_LOCK;
    }
    return kind;
}
