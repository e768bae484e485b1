/* A tool's definition in the form that a provider's API takes. */
#ifndef TOOLGATE_CATALOG_PROVIDER_FORMATS_H
#define TOOLGATE_CATALOG_PROVIDER_FORMATS_H

#include "catalog/catalog.h"

/* `definition` as tools/list has it. False: that provider takes no tool of such a name; nothing was written.
 */
bool provider_format_write(struct arena *arena, const struct catalog_request *request,
                           const struct json *definition, struct json_out *out);

#endif
