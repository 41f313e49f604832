/* SPDX-License-Identifier: Apache-2.0 */
#include "context/ring_sig.h"

#include <string.h>
#include <sys/mman.h>

bool sp_ring_init(sp_ring *ring, uint64_t size)
{
    /* Populated at once: a handler must not touch a page that the kernel cannot provide. */
    void *data =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (data == MAP_FAILED)
        return false;
    ring->size = size;
    sp_store_relaxed(&ring->head, 0);
    sp_store_relaxed(&ring->tail, 0);
    sp_store_release(&ring->data, (uint8_t *)data);
    return true;
}

void sp_ring_skip_corrupt(sp_ring *ring, uint64_t end)
{
    ring->corrupt++;
    sp_store_release(&ring->tail, end); /* pairs with sp_ring_reserve */
}

void sp_ring_deinit(sp_ring *ring)
{
    uint8_t *data = sp_load_relaxed(&ring->data);
    if (data)
        munmap(data, ring->size);
    memset(ring, 0, sizeof *ring);
}
