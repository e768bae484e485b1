/*
 * Tool definitions as a model will see them: for tools/list, and in the forms
 * of other providers. Policies may reword or hide (prepare, prepare_tools).
 */
#ifndef TOOLGATE_CATALOG_CATALOG_H
#define TOOLGATE_CATALOG_CATALOG_H

#include "base/buf.h"
#include "catalog/client_tools.h"

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

/* Something that a provider's form cannot say about a tool, or would refuse. */
typedef void catalog_warn(void *owner, struct str tool, const char *text);

struct catalog_request {
    enum provider_format format;
    bool strict; /* OpenAI strict mode: closed objects, everything required, optional ones nullable */
    bool all;    /* also tools that the agent runs itself, and the client_tools (toolgate/tools) */
    const struct peer *peer;
    struct client_tools *client_tools; /* NULL: none */
    struct str session, goal;
    bool session_stuck; /* the session is stuck: what prepare_tools leaves out is shown, too */
    catalog_warn *warn; /* NULL: such things go to the log */
    void *owner;
    struct buf *places; /* gets {"search":{"kind":"mcp","upstream":"docs","tool":"find"}}, where each tool
                           that is run elsewhere is run; NULL: not wanted */
};

/* Writes a JSON array, in the order of names. A policy that breaks in prepare is logged, and its tool is
 * shown as it is. */
void catalog_write(struct arena *arena, struct generation *generation, const struct catalog_request *request,
                   struct buf *out);

/* Are there hooks that look at goal and session: for one tool, for any. Where not, nobody needs to know
 * either. */
bool catalog_may_hide(const struct generation *generation, struct str tool);
bool catalog_has_hooks(const struct generation *generation);

/* Does this tool exist for this peer and is it not hidden by prepare / prepare_tools. */
bool catalog_shows(struct arena *arena, struct generation *generation, const struct catalog_request *request,
                   struct str tool);

#endif
