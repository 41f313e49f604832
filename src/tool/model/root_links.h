/* SPDX-License-Identifier: Apache-2.0 */
/* Changes links of profiles to lead to local roots, and not to innermost spans. Backends that show
 * the profile of a request expect such links. */
#ifndef SP_TOOL_MODEL_ROOT_LINKS_H
#define SP_TOOL_MODEL_ROOT_LINKS_H

#include "tool/model/model.h"

/* Change the links of DOCUMENT, which holds profiles, to lead to the local roots in MODEL, and the
 * profiles to say so. Links to
 * spans that the files do not have are not changed; returns their number. The new ids are borrowed
 * from MODEL. */
size_t sp_links_to_roots(const sp_document *document, const sp_model *model);

#endif
