/*
 * A call's arguments in stages 2 and 3: read as sent, coerced, checked by schema and rules. The values are
 * immutable; each step may point to a new one.
 */
#ifndef TOOLGATE_GATE_ARGUMENTS_H
#define TOOLGATE_GATE_ARGUMENTS_H

#include "catalog/tool.h"
#include "json/spelled.h"
#include "policy/policy_hooks.h"

#define ARGUMENTS_PROPOSED_MAX_BYTES 8192u /* longer arguments are not repeated in a refusal */

struct arguments {
    struct arena *arena;
    const struct tool *tool; /* whose they are; NULL: any */
    struct schema_work work; /* of all passes over them */
    const struct json *sent; /* as the client wrote them; NULL: it wrote none */
    /* `sent`, or the object that its text spells; {} for nothing, null and blank text */
    const struct json *raw;
    const struct json *whole; /* `raw`, or the object that it wraps; nothing is coerced yet */
    const struct json *now;   /* after coercion and normalise */
    /* the tool destroys: what they would be, had they been repaired; NULL: nothing to repair */
    const struct json *proposed;
    struct problems problems; /* errors and warnings; problems.errors > 0: not valid */
    struct str policy_error;  /* how the policy failed; empty: it did not; NUL-terminated */
    bool unreadable;          /* no arguments to go on with, in any mode */
    bool lax;                 /* policies check what the schema has something against */
    bool perhaps_cut;         /* a tool that writes lacks a long field: insisting is not possible */
    bool empty;               /* null or blank text was sent */
    bool spelled;             /* `sent` is text that spells JSON oddly */
    struct str wrapper;       /* the member that `whole` was taken out of; empty: none */
};

/* Some clients send the object as a JSON string, and some models spell that oddly: it is read as the object
 * if it has one reading. `tool`: NULL: any. `fault`: why the message could not be read; empty: it could. */
void arguments_read(struct arguments *args, struct arena *arena, const struct tool *tool,
                    const struct json *sent, struct str fault, const struct config *config);

/* Stage 2: JSON Schema, repairs, unknown fields. Adds all problems. */
void arguments_check_schema(struct arguments *args);

/* Stage 3: rules and normalise of one policy, and the schema again if they changed anything. After errors,
 * only adds the rules' problems. */
void arguments_check_policy(struct arguments *args, const struct policy *policy,
                            const struct policy_call *call);

/* The same for the tool's own policy, if it has one that is on. */
void arguments_check_rules(struct arguments *args, const struct policy_call *call);

/* What was changed between params.arguments as they were sent (none: {}) and `now`, as a JSON Patch; NULL:
 * nothing. Of arguments that came as text, one operation replaces the whole. */
const struct json *arguments_rewrites(const struct arguments *args);

/* The same between `whole` and `now`: what the model reads, member by member. */
const struct json *arguments_changes(const struct arguments *args);

#endif
