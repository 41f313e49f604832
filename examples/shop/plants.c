/* SPDX-License-Identifier: Apache-2.0 */
#include "plants.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { VISIT_BYTES = 1 << 20, INDEX_WORDS = 1 << 16, ROUNDS_MAX = 1000 };

/* --- a leak ----------------------------------------------------------------------------------- */

typedef struct visit {
    struct visit *next;
    int64_t user;
    char page[VISIT_BYTES];
} visit;

static pthread_mutex_t visits_lock = PTHREAD_MUTEX_INITIALIZER;
static visit *visits; /* the fault: visits are never removed */

__attribute__((noinline)) static visit *remember_visit(int64_t user)
{
    visit *kept = calloc(1, sizeof *kept);
    if (!kept)
        return NULL;
    kept->user = user;
    pthread_mutex_lock(&visits_lock);
    kept->next = visits;
    visits = kept;
    pthread_mutex_unlock(&visits_lock);
    return kept;
}

int answer_visit(int64_t user, page *out)
{
    bool is_kept = remember_visit(user) != NULL;
    page_printf(out, "<p>Welcome, user %lld</p>\n", (long long)user);
    return is_kept ? 200 : 500;
}

/* --- a convoy --------------------------------------------------------------------------------- */

static pthread_mutex_t index_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t word_index[INDEX_WORDS];

/* The fault: the lock is held for the whole time. Instead, a new index could be made without the
 * lock, and only its replacement of the old one needs the lock. */
__attribute__((noinline)) static uint32_t rebuild_index(int64_t rounds)
{
    pthread_mutex_lock(&index_lock);
    for (int64_t round = 0; round < rounds; round++)
        for (uint32_t i = 0; i < INDEX_WORDS; i++)
            word_index[i] = (word_index[i] + i) * 2654435761u + 1;
    uint32_t first = word_index[0];
    pthread_mutex_unlock(&index_lock);
    return first;
}

__attribute__((noinline)) static uint32_t look_up(int64_t word)
{
    pthread_mutex_lock(&index_lock);
    uint32_t found = word_index[(uint64_t)word % INDEX_WORDS];
    pthread_mutex_unlock(&index_lock);
    return found;
}

int answer_rebuild(int64_t rounds, page *out)
{
    if (rounds < 1 || rounds > ROUNDS_MAX) {
        page_printf(out, "<p>/rebuild wants ?rounds=1 to %d</p>\n", ROUNDS_MAX);
        return 400;
    }
    uint32_t first = rebuild_index(rounds);
    page_printf(out, "<p>The index is new and begins with %u.</p>\n", first);
    return 200;
}

int answer_search(int64_t word, page *out)
{
    page_printf(out, "<p>Word %lld is on page %u.</p>\n", (long long)word, look_up(word));
    return 200;
}
