/* SPDX-License-Identifier: Apache-2.0 */
/* Links of profiles, from the innermost span to its local root: what backends expect that show the
 * profile of a request. */
#ifndef SP_TOOL_MODEL_ROOT_LINKS_H
#define SP_TOOL_MODEL_ROOT_LINKS_H

#include "tool/model/model.h"

/* Change the links of DOCUMENT, which holds profiles, to the local roots that MODEL knows. Returns
 * how many links lead to spans that the files do not have; they stay as they are. Ids are borrowed
 * from MODEL. */
size_t sp_links_to_roots(const sp_document *document, const sp_model *model);

#endif
