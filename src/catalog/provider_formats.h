/* Tool definitions in the formats of model providers' APIs, and names that all of them accept. */
#ifndef TOOLGATE_CATALOG_PROVIDER_FORMATS_H
#define TOOLGATE_CATALOG_PROVIDER_FORMATS_H

#include "base/err.h"
#include "base/str.h"

struct arena;
struct json;
struct json_out;

/* A plain name: 1 to 64 letters, digits, '_' and '-'. MCP allows more. */
#define PLAIN_NAME_MAX_BYTES 64u

bool plain_name_fits(struct str name);

enum provider_format {
    PROVIDER_FORMAT_MCP,
    PROVIDER_FORMAT_OPENAI,
    PROVIDER_FORMAT_ANTHROPIC,
    PROVIDER_FORMAT_GEMINI,
    PROVIDER_FORMAT_MISTRAL,
    PROVIDER_FORMAT_BEDROCK
};

/* OK or ERR_NOT_FOUND. */
enum err provider_format_named(struct str name, enum provider_format *out);
const char *provider_format_name(enum provider_format format);

/* Something that a format cannot express about a tool, or that the provider would refuse. */
typedef void provider_warn(void *owner, struct str tool, const char *why);
provider_warn
    provider_warn_collect; /* {"tool","text"} into the open array of the struct json_out at `owner` */

struct provider_options {
    enum provider_format format;
    bool strict;         /* OpenAI strict mode: closed objects, everything required, optional ones nullable */
    struct str protocol; /* PROVIDER_FORMAT_MCP: what the client speaks (mcp_version.h); empty: unknown */
    provider_warn *warn; /* NULL: warnings go to the log */
    void *owner;
    const struct json *left; /* of what a list's definitions share; NULL before the first one */
    bool under_way;          /* a definition is written in part */
};

/* `definition` is one of tools/list; `plain`: the name for providers that accept no other, empty if it has
 * none but its own. A large definition is written in pieces, in this process one at a time: true as long as
 * it is under way, until which the next call must be for the same one. */
bool provider_format_write(struct arena *arena, struct provider_options *options,
                           const struct json *definition, struct str plain, struct json_out *out);
/* Ends a list whose definition may be under way. */
void provider_format_end(struct provider_options *options);

/* OpenAI's strict mode: every object closed, every property required (optional ones nullable), and only the
 * keywords that it accepts. The keywords that are dropped only validate values, which the gate does itself.
 * ERR_SCHEMA: strict mode cannot express the schema; `why` names the place. */
enum err openai_strict_schema(struct arena *arena, const struct json *schema, struct json *out,
                              struct why *why);

#endif
