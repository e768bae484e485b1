/*
 * JSON Schema (draft-07, 2019-09, 2020-12): compiled once, then two passes
 * over the same nodes. `schema_validate` answers yes or no and allocates
 * nothing; `schema_explain` runs only on failure and finds every problem.
 */
#ifndef TOOLGATE_SCHEMA_SCHEMA_H
#define TOOLGATE_SCHEMA_SCHEMA_H

#include "base/err.h"
#include "json/value.h"
#include "schema/problem.h"

struct arena;
struct map;
struct schema;

#define SCHEMA_MAX_BYTES         262144u /* of a schema as JSON; checked by the reader */
#define SCHEMA_MAX_SUBSCHEMAS    10000u
#define SCHEMA_MAX_NESTING       64u
#define SCHEMA_MAX_URI_BYTES     2048u    /* of an $id, resolved: each reference below it is joined to it */
#define SCHEMA_MAX_PATTERN_BYTES 4194304u /* of all patterns of a schema, compiled */
#define SCHEMA_MAX_STEPS                                                                                     \
    300000u /* of 25 ns on a slow core, so 10 ms, for all passes over a call's arguments; then               \
               SCHEMA_TOO_COMPLEX */

/* Adds a document that $ref and $schema may name by its URI; nothing is ever fetched, and the metaschemas of
 * the three drafts need no adding. It is borrowed while schemas are compiled with the registry. Of two with
 * the same URI the first stays. */
void schema_registry_add(struct map *registry, struct str uri, const struct json *document);

struct schema_options {
    bool annotate_format; /* `format` is an annotation, the specification's default; otherwise it is asserted
                           */
    const struct map *registry;  /* NULL: metaschemas only */
    const char *default_dialect; /* if there is no $schema; NULL: 2020-12 */
    bool local_times; /* a date-time without its zone is valid if nothing else is wrong with the instance */
};

/*
 * `source` is borrowed and must outlive the schema, which lives in `arena`.
 * Small faults of real-world schemas (draft-4 boolean exclusiveMinimum,
 * duplicate enum entries, `"type":"any"`, nullable) are understood, with a
 * problem in `warnings` (may be NULL). Any other fault is ERR_SCHEMA or
 * ERR_LIMIT with a message that holds the JSON pointer.
 */
enum err schema_compile(struct arena *arena, const struct json *source, const struct schema_options *options,
                        struct schema **out, struct problems *warnings, struct why *why);

/*
 * For a schema that a server publishes: without the keywords that cannot be read (wrong types, references
 * that lead nowhere or in a circle, patterns of another dialect, an unknown $schema), each with a problem in
 * `warnings`. It never accepts less than before. *out: `source` itself if it is sound. An error that is left
 * (ERR_LIMIT) is in `why`.
 */
enum err schema_repair(struct arena *arena, const struct json *source, const struct json **out,
                       struct problems *warnings, struct why *why);

/* What the passes over one call's arguments have spent of SCHEMA_MAX_STEPS: what they examine is counted, so
 * that a schema and an instance hold nobody else up, whatever they are. Where a function takes NULL it has a
 * budget of its own. */
struct schema_work {
    uint32_t steps;
};

enum schema_validity { SCHEMA_VALID, SCHEMA_INVALID, SCHEMA_TOO_COMPLEX };

/* The boolean pass. */
enum schema_validity schema_validate(const struct schema *schema, const struct json *instance);

/* What the boolean pass saw on its way. It may have seen it in an alternative that does not apply: a reason
 * to look closer, which costs a valid instance without it nothing. */
struct schema_remarks {
    bool undeclared;  /* an open object has a member that its properties do not declare */
    bool local_times; /* valid only because date-times may lack their zone */
    bool declared;    /* every member of the instance is a property of the schema: none is unknown */
};

enum schema_validity schema_inspect(const struct schema *schema, const struct json *instance,
                                    struct schema_remarks *remarks, struct schema_work *work);

/* The collecting pass: adds every problem, with strings in problems->arena. With SCHEMA_TOO_COMPLEX the
 * problem has the code "too_complex". An invalid instance whose problems are too many to find leaves some
 * out. Returns what schema_validate would. */
enum schema_validity schema_explain(const struct schema *schema, const struct json *instance,
                                    struct problems *problems, struct schema_work *work);

/* Adds a warning "unknown_field" for each member of an object that the schema does not declare (by property,
 * pattern or a schema for additional properties), with a close unused name as the suggestion. Top level only,
 * and only if the schema declares any property. */
void schema_unknown_properties(const struct schema *schema, const struct json *instance,
                               struct problems *problems, struct schema_work *work);

/* The instance without all of these members; itself if none exist. */
const struct json *schema_drop_unknown_properties(struct arena *arena, const struct schema *schema,
                                                  const struct json *instance, struct schema_work *work);

/* Whether a date-time may lack its zone anywhere in it. */
bool schema_takes_local_times(const struct schema *schema);

/* The JSON it was compiled from. */
const struct json *schema_source(const struct schema *schema);

#endif
