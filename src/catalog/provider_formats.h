/* Tool definitions in the formats of model providers' APIs. */
#ifndef TOOLGATE_CATALOG_PROVIDER_FORMATS_H
#define TOOLGATE_CATALOG_PROVIDER_FORMATS_H

#include "base/err.h"
#include "base/str.h"

struct arena;
struct json;
struct json_out;

enum provider_format {
    PROVIDER_FORMAT_MCP,
    PROVIDER_FORMAT_OPENAI,
    PROVIDER_FORMAT_ANTHROPIC,
    PROVIDER_FORMAT_GEMINI
};

/* OK or ERR_NOT_FOUND. */
enum err provider_format_named(struct str name, enum provider_format *out);
const char *provider_format_name(enum provider_format format);

/* Something that a format cannot express about a tool, or that the provider would refuse. */
typedef void provider_warn(void *owner, struct str tool, const char *why);

struct provider_options {
    enum provider_format format;
    bool strict;         /* OpenAI strict mode: closed objects, everything required, optional ones nullable */
    struct str protocol; /* PROVIDER_FORMAT_MCP: what the client speaks (mcp_version.h); empty: unknown */
    provider_warn *warn; /* NULL: warnings go to the log */
    void *owner;
};

/* `definition` is one of tools/list; `plain`: the name for providers that accept no other, empty if it has
 * none but its own. False: the provider accepts no tool of this name; nothing was written. */
bool provider_format_write(struct arena *arena, const struct provider_options *options,
                           const struct json *definition, struct str plain, struct json_out *out);

#endif
