/* SPDX-License-Identifier: Apache-2.0 */
#include "export/pull_box.h"

#include "core/lock.h"

/* The stage of the order. */
typedef enum stage {
    IDLE,
    BEGINNING,  /* the open window is not wanted, because it began before the order */
    COLLECTING, /* all windows are wanted */
    LAST,       /* the open window is the last one that is wanted */
    ENDING,     /* the last window has ended, and is being encoded */
    DONE,
    FAILED,
} stage;

static struct {
    sp_lock lock;
    uint32_t run; /* of the last open */
    bool is_open;
    void (*end_window)(void *user);
    void *user;
    stage stage;
    sp_pull_kind kind;
    uint64_t number; /* of the order */
    sp_buffer pprof; /* so far */
} box = {.lock = SP_LOCK_AT(SP_LOCK_PULL), .pprof = SP_BUFFER_INIT(SP_PULL_MAX_BYTES)};

static void forget_order(void)
{
    box.stage = IDLE;
    sp_buffer_deinit(&box.pprof);
    box.pprof = (sp_buffer)SP_BUFFER_INIT(SP_PULL_MAX_BYTES);
}

static bool is_current(uint64_t number)
{
    return number == box.number && box.stage != IDLE;
}

uint32_t sp_pull_open(void (*end_window)(void *user), void *user)
{
    sp_lock_take(&box.lock);
    box.end_window = end_window;
    box.user = user;
    box.is_open = true;
    uint32_t run = ++box.run;
    forget_order();
    sp_lock_give(&box.lock);
    return run;
}

void sp_pull_close(void)
{
    sp_lock_take(&box.lock);
    box.is_open = false;
    forget_order();
    sp_lock_give(&box.lock);
}

/* Another thread of the parent may have held the lock or been changing the buffer: so the lock is
 * initialised again, and the buffer is not freed. */
void sp_pull_after_fork(void)
{
    sp_lock_init(&box.lock, SP_LOCK_PULL);
    box.is_open = false;
    box.stage = IDLE;
    box.pprof = (sp_buffer)SP_BUFFER_INIT(SP_PULL_MAX_BYTES);
}

uint64_t sp_pull_begin(sp_pull_kind kind, bool at_once)
{
    uint64_t number = 0;
    sp_lock_take(&box.lock);
    if (box.is_open) {
        forget_order();
        box.kind = kind;
        box.stage = at_once ? LAST : BEGINNING;
        number = ++box.number;
        box.end_window(box.user);
    }
    sp_lock_give(&box.lock);
    return number;
}

void sp_pull_finish(uint64_t number)
{
    sp_lock_take(&box.lock);
    if (box.is_open && is_current(number) && box.stage == COLLECTING) {
        box.stage = LAST;
        box.end_window(box.user);
    }
    sp_lock_give(&box.lock);
}

sp_pull_state sp_pull_take(uint64_t number, sp_buffer *out)
{
    sp_pull_state state = SP_PULL_WAITING;
    sp_lock_take(&box.lock);
    if (!is_current(number) || box.stage == FAILED) {
        state = SP_PULL_FAILED;
    } else if (box.stage == DONE) {
        state = SP_PULL_DONE;
        *out = box.pprof;
        box.pprof = (sp_buffer){0};
    }
    if (state != SP_PULL_WAITING && is_current(number))
        forget_order();
    sp_lock_give(&box.lock);
    return state;
}

void sp_pull_cancel(uint64_t number)
{
    sp_lock_take(&box.lock);
    if (is_current(number))
        forget_order();
    sp_lock_give(&box.lock);
}

sp_pull_order sp_pull_window_ends(uint32_t run)
{
    sp_pull_order order = {0};
    sp_lock_take(&box.lock);
    if (run == box.run && box.is_open) {
        if (box.stage == COLLECTING || box.stage == LAST)
            order = (sp_pull_order){box.number, box.kind, box.stage == LAST};
        if (box.stage == BEGINNING)
            box.stage = COLLECTING;
        else if (box.stage == LAST)
            box.stage = ENDING;
    }
    sp_lock_give(&box.lock);
    return order;
}

void sp_pull_window_done(const sp_pull_order *order, const sp_buffer *part)
{
    sp_lock_take(&box.lock);
    if (is_current(order->number)) {
        bool added = !part->failed && sp_buffer_add(&box.pprof, part->data, part->length);
        if (!added)
            box.stage = FAILED;
        else if (order->is_last)
            box.stage = DONE;
    }
    sp_lock_give(&box.lock);
}
