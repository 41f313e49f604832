/* SPDX-License-Identifier: Apache-2.0 */
/* Which values of spans the files cannot show. */
#ifndef SP_TOOL_MODEL_HIDDEN_H
#define SP_TOOL_MODEL_HIDDEN_H

#include "tool/model/model.h"

/* Write a note if hardly any sample of the time type was taken under a span. */
void sp_model_note_unlinked(const sp_model *model);

/* Whether the samples of TYPE cannot show the value of SPAN with its descendants, because they are
 * linked to its local root. */
static inline bool sp_scope_hides_total(const sp_model_type *type, const sp_model_span *span)
{
    return type->hides_inner && span->is_inner;
}

/* The same for the value of SPAN without its descendants. */
static inline bool sp_scope_hides_own(const sp_model_type *type, const sp_model_span *span)
{
    return type->hides_inner && (span->is_inner || span->has_inner);
}

/* Whether the samples of TYPE cannot show the value of SPAN with its descendants, because of the
 * link scope, or because its process was not sampled then. */
static inline bool sp_hides_total(const sp_model_type *type, const sp_model_span *span)
{
    return sp_scope_hides_total(type, span) || (type->is_from_outside && span->is_unsampled);
}

/* The same for the value of SPAN without its descendants. */
static inline bool sp_hides_own(const sp_model_type *type, const sp_model_span *span)
{
    return sp_scope_hides_own(type, span) || (type->is_from_outside && span->is_own_unsampled);
}

#endif
