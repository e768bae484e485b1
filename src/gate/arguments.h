/*
 * A call's arguments in stages 2 and 3: read as sent, coerced, checked by schema and rules. The values are
 * immutable; each step may point to a new one.
 */
#ifndef TOOLGATE_GATE_ARGUMENTS_H
#define TOOLGATE_GATE_ARGUMENTS_H

#include "catalog/tool.h"
#include "policy/policy_hooks.h"

struct arguments {
    const struct json *sent;  /* as the client wrote them; {} if it wrote none */
    const struct json *raw;   /* `sent`, or the object inside a JSON string; nothing is coerced yet */
    const struct json *now;   /* after coercion and normalise */
    struct problems problems; /* errors and warnings; problems.errors > 0: not valid */
    struct str policy_error;  /* how the policy failed; empty: it did not; NUL-terminated */
    bool unreadable;          /* no arguments to go on with, in any mode */
    bool lax;                 /* policies check what the schema has something against */
};

/* Some clients send the object as a JSON string; it is read as that object. `fault`: why the arguments could
 * not be read; empty: they could. */
void arguments_read(struct arguments *args, struct arena *arena, const struct json *sent, struct str fault,
                    const struct config *config);

/* Stage 2: coercion, JSON Schema, unknown fields. Adds all problems. */
void arguments_check_schema(struct arguments *args, struct arena *arena, const struct tool *tool);

/* Stage 3: rules and normalise of one policy, and the schema again if they changed anything. After errors,
 * only adds the rules' problems. */
void arguments_check_policy(struct arguments *args, struct arena *arena, const struct tool *tool,
                            const struct policy *policy, const struct policy_call *call);

/* The same for the tool's own policy, if it has one that is on. */
void arguments_check_rules(struct arguments *args, struct arena *arena, const struct tool *tool,
                           const struct policy_call *call);

/* What coercion and normalise changed, as a JSON Patch; NULL: nothing. */
const struct json *arguments_rewrites(const struct arguments *args, struct arena *arena);

#endif
