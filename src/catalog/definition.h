/*
 * A tool's definition as tools/list shows it. Schemas are copied unchanged, except for what makes an official
 * SDK reject the whole list because of one tool.
 */
#ifndef TOOLGATE_CATALOG_DEFINITION_H
#define TOOLGATE_CATALOG_DEFINITION_H

#include "catalog/tool.h"

/* Adds use_when, avoid_when and the rules to the description. ERR_SCHEMA: the tool cannot be listed. */
enum err definition_from_tool(struct arena *arena, const struct tool *tool, struct json *out,
                              struct why *why);

#define DEFINITION_STRICT_KEY "dev.toolgate/strict" /* of _meta: whether a provider's strict mode is used */

/* Repairs a definition that a prepare hook returned; its name becomes `name`, its `strict` a key of _meta. */
enum err definition_repair(struct arena *arena, struct str name, const struct json *definition,
                           struct json *out, struct why *why);

/* Of a prompt, a resource or a template: without the members for which SDKs reject the whole list, as they
 * are null or of another type than MCP's. The definition itself if it has none. */
const struct json *definition_fit(struct arena *arena, const struct json *definition);

/* Hidden characters in what a server says of its tools: zero-width, bidirectional and tag characters, which a
 * person who reviews the definition does not see and a model reads. Descriptions lose them; a name or an
 * allowed value that has any cannot be repaired without a change of its meaning, and its tool is left out. */
struct hidden_text {
    size_t removed;      /* characters */
    const char *refused; /* what has them: "a parameter's name"; NULL: nothing that cannot be repaired */
};

/* The definition itself if nothing is removed, else a copy. */
const struct json *hidden_text_strip(struct arena *arena, const struct json *definition,
                                     struct hidden_text *found);

/* The arguments that a schema declares secret: `writeOnly: true`, `format: "password"`. */
#define SECRET_FIELDS_MAX        64u
#define SECRET_FIELDS_DEPTH_MAX  16u    /* of nested schemas and references */
#define SECRET_FIELDS_STEPS_MAX  20000u /* schemas that are looked at: references multiply */
#define SECRET_FIELDS_STEP_BYTES 256u   /* of a path and a reference, for each step more that they count */

/* Their paths, as in a policy's `redact`: "account.pin", "keys[].value". `schema` NULL: none. */
size_t secret_fields_find(struct arena *arena, const struct json *schema, const struct str **paths);

/* What a call of the tool may change, for a tool whose policy and annotations do not say it: by the verb that
 * the name begins with: "get_events", "deleteFile", "calendar__create-event" and "users.list".
 * EFFECTS_UNDECLARED: it begins with none of the table, or with a verb that reads while a later word changes
 * something. */
enum policy_effects effects_guess(struct str name);

/* Whether the name is that of a step, which is meant to be repeated: "browser_press_key", "scroll-down",
 * "go_back", "undo". Never of a tool whose name says that it reads, writes or destroys: "send_back". */
bool steps_guess(struct str name);

#endif
