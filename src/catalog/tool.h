/*
 * A tool as the gate knows it: its definition, its compiled schemas, its
 * policy and the limits that follow, worked out once per generation.
 */
#ifndef TOOLGATE_CATALOG_TOOL_H
#define TOOLGATE_CATALOG_TOOL_H

#include "ledger/ledger.h"
#include "policy/policy.h"
#include "schema/schema.h"
#include "upstream/upstream.h"

struct config;

#define TOOL_NAME_MAX_BYTES                                                                                  \
    64u /* a name longer, or outside [A-Za-z0-9_-], is served to check and report only */

enum tool_runner {
    RUNNER_AGENT,   /* the agent runs it: check, then report */
    RUNNER_LUA,     /* the policy's run(args, call) */
    RUNNER_UPSTREAM /* tool->target: a server, an endpoint, a command */
};

struct tool {
    struct str name, title, description, origin;     /* origin: the file or "register" */
    const struct json *definition;                   /* as it came; NULL where the policy alone defines it */
    const struct json *input, *output, *annotations; /* output, annotations: NULL where none */
    struct schema *input_schema, *output_schema;
    const struct policy *policy; /* NULL: none */
    bool unregistered;   /* a policy whose tool is yet to be registered: it exists for its examples alone */
    bool schema_pending; /* its upstream has not told yet what it takes: not listed, and any object goes
                            through */
    enum tool_runner runner;
    struct target target;      /* RUNNER_UPSTREAM */
    bool idempotent;           /* the same call twice does no more than once */
    struct policy_retry retry; /* times 0: a failure is told at once */
    enum policy_effects effects;
    enum policy_mode mode;
    enum policy_unknown unknown;
    struct coerce_options coerce;
    struct ledger_limits limits;
    struct policy_compact compact;
    const struct str *parameters; /* names of the declared properties, for suggestions and feedback */
    size_t parameter_count;
    const struct str *warnings; /* what was odd about its definition, for status and lint */
    size_t warning_count;
};

/*
 * Builds one from an MCP definition (NULL: the policy declares everything)
 * and a policy (NULL: none). Everything is borrowed or allocated in `arena`.
 * ERR_SCHEMA where it cannot be served, with the reason.
 */
enum err tool_build(struct arena *arena, const struct json *definition, const struct policy *policy,
                    const struct config *config, struct str origin, struct tool **out, struct why *why);

/* The same for a tool that an upstream offers: under `name` here, whatever it is called there. */
enum err tool_build_from_upstream(struct arena *arena, struct str name, const struct json *definition,
                                  const struct target *target, const struct policy *policy,
                                  const struct config *config, struct str origin, struct tool **out,
                                  struct why *why);

/* The upstream and its tool in a policy's `upstream = "calendar/getEvents"`; without a slash the tool has the
 * policy's name. Empty: the policy names none. */
struct str tool_upstream(const struct policy *policy, struct str *tool);

/* Letters, digits, '_' and '-', 1 to TOOL_NAME_MAX_BYTES of them. */
bool tool_name_fits(struct str name);
bool tool_is_listed(
    const struct tool *tool); /* appears in tools/list: toolgate runs it, and the name fits MCP */
bool tool_is_described(const struct tool *tool); /* neither undefined nor awaited: what it takes is known */
bool tool_is_enforced(const struct tool *tool);  /* it has a policy, and the model sees and feels it */
/* The tool, or a copy of it whose policy is felt whatever its mode: what an example shows. */
const struct tool *tool_as_enforced(struct arena *arena, const struct tool *tool);

#endif
