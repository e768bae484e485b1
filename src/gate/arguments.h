/*
 * A call's arguments on their way through stages 2 and 3: read as sent,
 * mended where one reading fits, judged by schema and rules. The values are
 * immutable; each step may point to a new one.
 */
#ifndef TOOLGATE_GATE_ARGUMENTS_H
#define TOOLGATE_GATE_ARGUMENTS_H

#include "catalog/tool.h"

struct arguments {
    const struct json *sent;  /* what the client wrote; {} where it wrote nothing */
    const struct json *raw;   /* the same, or the object that a string held: nothing is mended yet */
    const struct json *now;   /* after mending and normalising */
    struct problems problems; /* errors and warnings; problems.errors > 0: not valid */
    struct str broke;         /* not empty: the policy itself failed, and how; NUL-terminated */
    bool unreadable;          /* there are no arguments to go on with, whatever is enforced */
};

/* Absent becomes {}; a string that holds an object (OpenAI's habit) becomes that object. `fault`, where not
 * empty, says why they could not be read at all. */
void arguments_read(struct arguments *args, struct arena *arena, const struct json *sent, struct str fault,
                    const struct config *config);

/* Stage 2: coerce, JSON Schema, undeclared fields. Every problem at once. */
void arguments_check_schema(struct arguments *args, struct arena *arena, const struct tool *tool);

/* Stage 3: rules and normalise, then the schema again if they changed anything. Where stage 2 found errors,
 * only what the rules would say is added. */
void arguments_check_rules(struct arguments *args, struct arena *arena, const struct tool *tool,
                           const struct policy_call *call);

/* What mending and normalising changed, as a JSON Patch; NULL where nothing. */
const struct json *arguments_rewrites(const struct arguments *args, struct arena *arena);

#endif
