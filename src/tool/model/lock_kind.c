/* SPDX-License-Identifier: Apache-2.0 */
/* Tells locks, conditions and semaphores apart. For the kernel, each wait for another thread is a
 * wait for a futex. The function of the C or C++ library that called the kernel shows what the
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

static sp_where kind_of(const char *name)
{
    static const char *const conditions[] = {
        "pthread_cond_",           "cnd_wait",
        "cnd_timedwait",           "std::condition_variable",
        "std::_V2::condition_var", "std::__1::condition_variable"};
    static const char *const semaphores[] = {"sem_wait", "sem_timedwait", "sem_clockwait",
                                             "new_sem_wait", "std::counting_semaphore"};
    /* the C library's internal names begin with "_" */
    const char *plain = name + strspn(name, "_");
    if (begins_with_any(plain, conditions, SP_ARRAY_LENGTH(conditions)))
        return SP_WHERE_CONDITION;
    if (begins_with_any(plain, semaphores, SP_ARRAY_LENGTH(semaphores)))
        return SP_WHERE_SEMAPHORE;
    return SP_WHERE_LOCK;
}

sp_where sp_model_lock_kind(const sp_model *model, uint32_t stack)
{
    const sp_intern_entry *entry = &model->stacks.entries[stack];
    const uint32_t *frames = entry->key;
    size_t count = entry->length / sizeof *frames;
    sp_where kind = SP_WHERE_LOCK;
    for (size_t i = 0; kind == SP_WHERE_LOCK && i < count && i < FRAMES_MOST; i++)
        kind = kind_of(sp_model_text(model, frames[i]));
    return kind;
}
