/* SPDX-License-Identifier: Apache-2.0 */
/* The whole call tree of a tick in one file, registered by signal(): so clang-tidy's
 * bugprone-signal-handler can follow it, for it knows neither sigaction nor other files. Never run.
 * BREAK_THE_CHARTER adds what the check must find. */
#include <signal.h>

#include "unwind/generation_sig.c"
#include "cpu/handler_sig.c"
#include "cpu/host_action_sig.c"
#include "unwind/walk_sig.c"

#ifdef BREAK_THE_CHARTER
#include <stdlib.h>
#endif

sp_thread *sp_thread_states;
_Atomic uintptr_t sp_thread_states_bytes;
_Atomic(void *) *sp_perf_owners;

static void tick(int signal)
{
    static siginfo_t info;
    static ucontext_t context;
#ifdef BREAK_THE_CHARTER
    free(malloc(1));
#endif
    sp_handle_tick(signal, &info, &context);
}

int main(void)
{
    signal(SIGPROF, tick);
    return 0;
}
