/* SPDX-License-Identifier: Apache-2.0 */
/* What generated code (generate.py) sees: the way that a thread takes through it, until it blocks.
 */
#ifndef OUTSIDE_WALK_WAY_H
#define OUTSIDE_WALK_WAY_H

#include <stddef.h>
#include <stdint.h>

typedef struct way way;
typedef long way_function(way *w);

typedef struct way_entry {
    int number; /* -1: behind the last */
    way_function *function;
} way_entry;

extern const way_entry
    *const parts[]; /* of functions without arguments, by part; NULL behind the last */

int way_choice(way *w); /* 0 to 2: call one; 3: through a pointer; 4: block */
way_function *way_pointer(way *w, int number); /* one with a number above NUMBER */
long way_number(way *w);                       /* any */
size_t way_size(way *w);                       /* of a dynamic array */
void way_touch(char *bytes, size_t count);     /* so that it is not left out */
int way_again(way *w);                         /* call yourself once more */
int way_never(way *w);                         /* 0 */
int way_always(way *w);                        /* 1 */
__attribute__((cold)) void way_rare(way *w);
__attribute__((cold, noreturn)) void way_give_up(way *w);

/* Block, or, on a way that is only taken to leave its traces on the stack, return. */
long way_block(way *w);
int way_ends(way *w); /* is it such a way? */
int way_pipe(void);   /* nobody writes into it */

#define way_read(w) (way_ends(w) ? 1 : (long)read(way_pipe(), &(char){0}, 1))
#define way_poll(w)                                                                                \
    (way_ends(w) ? 2 : (long)poll(&(struct pollfd){.fd = way_pipe(), .events = 1}, 1, -1))
#define way_sleep(w) (way_ends(w) ? 3 : (long)nanosleep(&(struct timespec){.tv_sec = 100000}, 0))
#define way_futex(w) (way_ends(w) ? 4 : syscall(SYS_futex, &(int){0}, FUTEX_WAIT_PRIVATE, 0, 0))

#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#endif
