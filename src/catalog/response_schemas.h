/*
 * The operator's own JSON Schemas for what a model answers: each NAME.json of the folder schemas/, served by
 * toolgate/schemas as it is and as a provider's response format. toolgate validates nothing with them.
 */
#ifndef TOOLGATE_CATALOG_RESPONSE_SCHEMAS_H
#define TOOLGATE_CATALOG_RESPONSE_SCHEMAS_H

#include "base/str.h"
#include "json/value.h"

struct arena;
struct generation_report;

#define RESPONSE_SCHEMAS_MAX           256u
#define RESPONSE_SCHEMA_NAME_MAX_BYTES 64u /* as providers accept them */

/* toolgate's own, which toolgate/schemas serves too. */
#define RESPONSE_SCHEMA_VERDICT  "verdict"
#define RESPONSE_SCHEMA_COVERAGE "coverage"

struct response_schema {
    struct str name, file;
    const struct json *schema;
};

struct response_schemas {
    struct response_schema *list; /* sorted by name */
    size_t count;
    uint64_t hash; /* of names and contents */
};

/* Reads the folder; NULL: no folder. A file that is no schema is an error with its pointer, and so is one
 * with the name of toolgate's own. */
void response_schemas_load(struct arena *arena, const char *folder, struct generation_report *report,
                           struct response_schemas *out);

#endif
