/*
 * A tool of a generation: its definition, its compiled schemas, its policy, and the limits that follow from
 * configuration and policy. Built once, immutable from then on.
 */
#ifndef TOOLGATE_CATALOG_TOOL_H
#define TOOLGATE_CATALOG_TOOL_H

#include "ledger/ledger.h"
#include "policy/policy.h"
#include "schema/schema.h"
#include "upstream/upstream.h"

struct arena_pool;
struct config;

#define TOOL_NAME_MAX_BYTES 128u /* a tool with another name is served to check and report only */

enum tool_runner {
    RUNNER_AGENT,   /* the agent runs it: check, then report */
    RUNNER_LUA,     /* the policy's run(args, call) */
    RUNNER_UPSTREAM /* tool->target: a server, an endpoint, a command */
};

enum effects_source {
    EFFECTS_FROM_NOTHING,
    EFFECTS_FROM_POLICY,
    EFFECTS_FROM_ANNOTATIONS,
    EFFECTS_FROM_NAME
};

/* Pins keep it out of service: it is neither listed nor callable until its definition is accepted. */
enum tool_held { TOOL_NOT_HELD, TOOL_HELD_CHANGED, TOOL_HELD_NEW };

/* A policy for several tools that lies over one of them. */
struct overlay {
    const struct policy *policy;
    enum policy_mode mode;
};

struct tool {
    struct str name, title, description;
    struct str
        plain_name;    /* for providers that do not accept the name (provider_formats.h); empty: they do */
    struct str origin; /* the file, "upstream NAME" or "register" */
    const struct json *definition;                   /* as it was given; NULL: the policy alone defines it */
    const struct json *input, *output, *annotations; /* output, annotations: NULL: none */
    struct schema *input_schema, *output_schema;     /* input: without contradictions */
    bool *output_misfits; /* of a server's own output schema, which binds nobody: a result did not fit; else
                             NULL */
    struct schema *contradictory; /* the input schema as published, where it contradicts itself; else NULL */
    const struct problem *contradictions;
    size_t contradiction_count;
    const struct policy *policy;    /* its own; NULL: none */
    const struct overlay *overlays; /* in the order of their files */
    size_t overlay_count;
    enum tool_runner runner;
    enum policy_schema_mode schema_mode; /* of the input schema; never SCHEMA_MODE_UNSET */
    enum tool_held held;                 /* changed: built from what was accepted; new: without a schema */
    enum policy_effects effects;
    enum effects_source effects_from; /* EFFECTS_FROM_NAME: guessed */
    enum policy_mode mode;
    enum policy_unknown unknown;
    enum policy_formats formats;
    struct policy_retry retry; /* times 0: no retry */
    bool keeps_contradictions; /* a policy wrote the schema, or it is declared strict */
    bool takes_ids;            /* one of its policies says which arguments are ids */
    bool redacts;              /* one of its policies redacts results */
    struct policy_wants wants; /* of its own policy and of the overlays */
    bool unregistered;         /* the agent has yet to register it: only examples can call it */
    bool schema_pending; /* its upstream has yet to list it: not in tools/list, any object is accepted */
    bool idempotent;     /* a second identical call has no further effect */
    struct coerce_options coerce;     /* applied; tool_destroys: what its policy names, and JSON's spelling */
    struct coerce_options proposes;   /* what a refusal may suggest */
    struct target target;             /* RUNNER_UPSTREAM */
    const struct time_zone *timezone; /* of date-times that lack one; NULL: they stay as they are */
    const struct ledger_limits *limits; /* most tools have those of others */
    const struct str *volatiles;        /* loop.volatile of all its policies */
    size_t volatile_count;
    struct policy_compact compact;
    const struct json *parameters;   /* the declared properties, an object; NULL: none */
    const struct str *secret_fields; /* paths of arguments that the schema declares secret: definition.h */
    size_t secret_field_count;
    const struct str *warnings; /* about its definition, for status and lint */
    size_t warning_count;
};

/* What a tool is built from. Everything is borrowed. */
struct tool_source {
    const struct json *definition;     /* MCP; NULL: the policy declares everything */
    const struct policy *policy;       /* NULL: none */
    const struct policy_set *policies; /* where its overlays are */
    struct arena_pool *pool;           /* in the tool's arena, for what tools share; NULL: none */
    struct str origin;
    struct str name;      /* empty: the definition's, or the policy's */
    struct target target; /* where an upstream's tool runs; else all zero */
};

/* Allocates the tool in `arena`. ERR_SCHEMA or ERR_LIMIT: it cannot be served, and `why` names the reason. */
enum err tool_build(struct arena *arena, const struct config *config, const struct tool_source *source,
                    struct tool **out, struct why *why);

/* The upstream and its tool in a policy's `upstream = "calendar/getEvents"`; without a slash the tool has the
 * policy's name. Empty: the policy names none. */
struct str tool_upstream(const struct policy *policy, struct str *tool);

/* The policy for several tools lies over this one. */
static inline bool tool_has_overlay(const struct tool *tool, const struct policy *policy)
{
    for (size_t i = 0; i < tool->overlay_count; i++)
        if (tool->overlays[i].policy == policy)
            return true;
    return false;
}

/* MCP's rule: letters, digits, '_', '-' and '.', 1 to TOOL_NAME_MAX_BYTES of them. */
bool tool_name_fits(struct str name);

/* tools/list shows it: toolgate runs it and knows its schema. */
static inline bool tool_is_listed(const struct tool *tool)
{
    return tool->runner != RUNNER_AGENT && !tool->schema_pending && !tool->held;
}

/* Its schema is known. */
static inline bool tool_is_described(const struct tool *tool)
{
    return !tool->unregistered && !tool->schema_pending;
}

/* It has a policy in mode enforce. */
static inline bool tool_is_enforced(const struct tool *tool)
{
    return tool->policy && tool->mode == POLICY_ENFORCE;
}

/* It destroys data, by its policy, its annotations or its name: its arguments are not guessed. */
static inline bool tool_destroys(const struct tool *tool)
{
    return tool->effects == EFFECTS_DESTRUCTIVE;
}

/* It changes something, by the same sources. */
static inline bool tool_writes(const struct tool *tool)
{
    return tool->effects == EFFECTS_WRITE || tool->effects == EFFECTS_TOGGLE || tool_destroys(tool);
}

/* "read", "write", "destructive", "toggle", or "unknown". */
const char *tool_effects_name(const struct tool *tool);

/* The tool, or a copy with its own policy and this overlay in mode enforce. NULL: each has its mode. */
const struct tool *tool_as_enforced(struct arena *arena, const struct tool *tool,
                                    const struct policy *overlay);

/* The policies that are enforced: its own, then its overlays. Begin with *next = 0; NULL after the last. */
const struct policy *tool_enforced_policy(const struct tool *tool, size_t *next);

#endif
