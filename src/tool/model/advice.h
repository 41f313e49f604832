/* SPDX-License-Identifier: Apache-2.0 */
/* Advice to the user when an answer has few samples, or none. */
#ifndef SP_TOOL_MODEL_ADVICE_H
#define SP_TOOL_MODEL_ADVICE_H

#include "tool/model/select.h"

#define SP_ADVICE_LENGTH 512

/* How to get more samples than SELECTION has. HAS_BUTTON: the user reads the advice in a page that
 * has a button to show wall time. */
void sp_advice_more(char out[SP_ADVICE_LENGTH], const sp_selection *selection, bool has_button);
/* If the selected spans used little CPU time for their duration, write where the rest is, and
 * return true: they waited, or much CPU time is in no sample. */
bool sp_advice_waited(char out[SP_ADVICE_LENGTH], const sp_selection *selection, bool has_button);
/* Why SPAN has no samples of the selected type, and what to do. */
void sp_advice_none(char out[SP_ADVICE_LENGTH], const sp_selection *selection, uint32_t span);
/* Why the spans that match have no samples of the selected type, and what to do. */
void sp_advice_none_of_several(char out[SP_ADVICE_LENGTH], const sp_selection *selection);
/* How to record a type that is called WORD, as the rest of a sentence; "" when WORD is unknown. */
void sp_advice_record(char out[SP_ADVICE_LENGTH], const char *word);

/* Why files have no spans, and what to do, as the rest of a sentence. */
#define SP_ADVICE_NO_SPANS                                                                         \
    "the program was killed, or still runs, before its spans ended, it does not call "             \
    "spanprof_span_end, or the sampler dropped all its spans (OTEL_TRACES_SAMPLER); a span is "    \
    "written up to 5 s after its end: wait for that, and end the program by exit or "              \
    "spanprof_stop, not by a signal that kills it"

/* The standard error of the selected sum, in its unit: of wall time, because a waiting thread is
 * visited only once per period, and of allocations, because only some blocks are sampled. 0: the
 * error of the type is not known. */
uint64_t sp_selection_error(const sp_selection *selection);

#endif
