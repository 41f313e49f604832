/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: the executable, its libraries and the vdso, with their unwind tables. A *generation* is
 * an immutable list of all modules at one moment. The collector thread makes a new one when the
 * loader's counters have changed (never by hooking dlopen) and publishes it by a pointer swap;
 * handlers read it.
 *
 * | operation                                   | setup | collector | handler |
 * | sp_modules_prepare, create, destroy         |  yes  |           |         |
 * | sp_modules_refresh, reclaim, hazard_number  |  yes  |    yes    |         |
 * | sp_module_acquire, release                  |  yes  |    yes    |         |
 * | sp_generation_enter, leave                  |  yes  |    yes    |   yes   |
 * | sp_generation_find, sp_generation_rule      |  yes  |    yes    |   yes   |
 */
#ifndef SP_UNWIND_MODULE_H
#define SP_UNWIND_MODULE_H

#include "core/atomic.h"
#include "core/compiler.h"

#define SP_BUILD_ID_MAX 64

typedef struct sp_unwind_table sp_unwind_table;   /* unwind/unwind_table.h */
typedef struct sp_rule_pool sp_rule_pool;         /* unwind/rule_pool.h */
typedef struct sp_shelved_table sp_shelved_table; /* unwind/table_shelf.h */

/* What is known about the file that a module was loaded from. */
typedef enum sp_origin_state {
    SP_ORIGIN_NOT_CHECKED = 0, /* the build id identifies the file, or nothing is known */
    SP_ORIGIN_SEEN,            /* the file at the path was the mapped one: `device`, `inode` */
    SP_ORIGIN_REPLACED,        /* at the discovery the mapped file was no longer at its path */
} sp_origin_state;

typedef struct sp_module_origin {
    sp_origin_state state;
    uint64_t device;
    uint64_t inode;
} sp_module_origin;

/* start < end; a runtime address minus bias is an ELF virtual address. Never changes after
 * publication, except `references`. */
typedef struct sp_module {
    uint64_t start; /* lowest mapped address */
    uint64_t end;   /* after the highest mapped address */
    uint64_t bias;
    uint64_t file_offset;              /* of the first executable segment */
    uint64_t frame_header;             /* where .eh_frame_hdr is; 0: there is none */
    const sp_unwind_table *table;      /* NULL: none could be made */
    sp_shelved_table *shelved;         /* owns `table` */
    bool is_from_start;                /* in the first generation */
    uint32_t id;                       /* from 1, never used again in this process */
    uint32_t build_id_length;          /* 0: none */
    uint8_t build_id[SP_BUILD_ID_MAX]; /* .note.gnu.build-id, from the loaded image */
    uint32_t references; /* one per generation that lists it and per acquire; collector only */
    sp_module_origin origin;
    const char *loader_name; /* its name in the loader, "": the main program; stored after path */
    char path[];             /* absolute where a file was found; "[vdso]" */
} sp_module;

/* modules are sorted by start and do not overlap. rule_cache has the rules that handlers of all
 * threads have looked up. It is empty at the start of a generation, so it has no rule of an
 * unloaded library. */
typedef struct sp_generation {
    uint32_t number; /* from 1, increasing */
    uint32_t module_count;
    struct sp_generation *next; /* of the retired ones, newest first; collector thread only */
    uint64_t subs;              /* libraries unloaded since the process began */
    const sp_rule_pool *rules;
    _Atomic uint64_t *rule_cache; /* generation_sig.h */
    sp_module *modules[];
} sp_generation;

typedef struct sp_modules sp_modules;

/* Do the work of the next sp_modules_create in advance. That call, here or in a forked child, takes
 * the result. Another call of this function updates it. False when memory is short. */
bool sp_modules_prepare(void);

/* NULL when memory is short. The first generation is published when it returns. */
sp_modules *sp_modules_create(void);
/* No handler may be inside a generation any more. Acquired modules live until their release. */
void sp_modules_destroy(sp_modules *modules);

/* If libraries were loaded or unloaded, publish a new generation and retire the old one. Returns
 * whether it did. Cheap (well below a microsecond) when nothing changed. When memory is short the
 * old generation stays, and the next call tries again. */
bool sp_modules_refresh(sp_modules *modules);

/* The current generation, marked in *HAZARD so that it is not freed until sp_generation_leave. It
 * cannot be nested with the same HAZARD. Never NULL: sp_modules_create publishes the first. */
SP_SIGSAFE const sp_generation *sp_generation_enter(const sp_modules *modules,
                                                    _Atomic(const sp_generation *) *hazard);
SP_SIGSAFE void sp_generation_leave(_Atomic(const sp_generation *) *hazard);

/* The module whose range holds PC, or NULL. */
SP_SIGSAFE const sp_module *sp_generation_find(const sp_generation *generation, uint64_t pc);

/* The number of the newest generation. Collector only. */
uint32_t sp_modules_newest_number(const sp_modules *modules);

/* Whether MODULE of GENERATION has been loaded without interruption since then. False for a library
 * that was loaded after the first generation if any library was unloaded since: it may have been
 * unloaded, and another one mapped in its place, between two refreshes. Collector only. */
bool sp_modules_has_stayed(const sp_modules *modules, const sp_generation *generation,
                           const sp_module *module);

/* The generation with NUMBER, current or retired and not yet reclaimed; NULL when it is gone.
 * Collector only. */
const sp_generation *sp_modules_generation(const sp_modules *modules, uint32_t number);

/* The number of the generation that HAZARD protects, UINT32_MAX when it protects none: the caller
 * takes the minimum. HAZARD is never dereferenced, because a handler that was stopped in the middle
 * of sp_generation_enter may have left a pointer to a freed generation in it. */
uint32_t sp_modules_hazard_number(const sp_modules *modules,
                                  _Atomic(const sp_generation *) *hazard);

/* Free retired generations below OLDEST_IN_USE: the least number that a hazard or a ring still
 * holds, UINT32_MAX for none. Read the hazards *first*, then the rings: a handler stores its sample
 * before it leaves, so an empty hazard means that the sample is in the ring already. Modules with
 * references stay. */
void sp_modules_reclaim(sp_modules *modules, uint32_t oldest_in_use);

void sp_module_acquire(sp_module *module);
void sp_module_release(sp_module *module);

#endif
