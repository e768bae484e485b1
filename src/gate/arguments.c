/*
 * Reads, repairs and checks arguments. What is not an object is read by arguments_text.c; what the schema
 * does not accept, or has names that it does not declare, is repaired by arguments_repair.c.
 */
#include "gate/arguments.h"

#include "base/arena.h"
#include "config/config.h"
#include "gate/arguments_repair.h"
#include "gate/arguments_text.h"
#include "json/build.h"
#include "json/patch.h"

void arguments_read(struct arguments *args, struct arena *arena, const struct tool *tool,
                    const struct json *sent, struct str fault, const struct config *config)
{
    struct problem problem = {.code = NULL};
    *args = (struct arguments){.sent = sent, .raw = sent};
    problems_init(&args->problems, arena);
    if (fault.len)
        problem = (struct problem){.code = "unreadable", .message = arena_dup(arena, fault)};
    else if (sent && sent->raw_len > config->limits.arguments)
        problem = (struct problem){
            .code = "too_large",
            .message =
                arena_printf(arena, "must be at most %u bytes of JSON, got %u: send less, in several calls",
                             config->limits.arguments, sent->raw_len)};
    else if (!json_is(sent, JSON_OBJECT))
        arguments_read_text(args, arena, tool);
    if (problem.code)
        problems_add(&args->problems, problem);
    args->unreadable |= problem.code != NULL;
    if (!args->raw)
        args->raw = json_keep(arena, json_object(arena, NULL, 0));
    args->whole = args->now = args->raw;
}

/* Fields that an open schema does not declare: dropped, refused, or passed with a warning if a declared name
 * is close, as `unknown` says. A closed schema has refused them already. */
static void check_unknown_fields(struct arguments *args, struct arena *arena, const struct tool *tool)
{
    struct problems unknown;
    if (tool->unknown == UNKNOWN_DROP) {
        args->now = schema_drop_unknown_properties(arena, tool->input_schema, args->now, &args->work);
        return;
    }
    problems_init(&unknown, arena);
    schema_unknown_properties(tool->input_schema, args->now, &unknown, &args->work);
    for (size_t i = 0; i < unknown.count; i++) {
        struct problem problem = unknown.list[i];
        problem.warning = tool->unknown != UNKNOWN_REFUSE;
        if (!problem.warning || problem.suggestion.len)
            problems_add(&args->problems, problem);
    }
    if (tool->unknown == UNKNOWN_REFUSE)
        args->problems.more += unknown.more;
}

/* What the schema has against the arguments, as warnings. */
static void advise(struct arguments *args, struct arena *arena, const struct schema *schema)
{
    struct problems found;
    problems_init(&found, arena);
    schema_explain(schema, args->now, &found, &args->work);
    for (size_t i = 0; i < found.count; i++) {
        found.list[i].warning = found.list[i].quiet = true;
        problems_add(&args->problems, found.list[i]);
    }
}

/* A schema without its contradictions need not take all that it took with them: what fits either is valid. */
static bool fits(const struct tool *tool, const struct json *args, struct schema_work *work)
{
    struct schema_remarks ignored;
    return schema_inspect(tool->input_schema, args, &ignored, work) == SCHEMA_VALID ||
           (tool->contradictory && schema_inspect(tool->contradictory, args, &ignored, work) == SCHEMA_VALID);
}

static void explain(struct arguments *args, const struct tool *tool)
{
    if (tool->contradictory &&
        fits(tool, args->now, &args->work)) /* schema_explain finds nothing in what fits its own */
        return;
    if (tool->schema_mode == SCHEMA_ADVISE)
        advise(args, args->problems.arena, tool->contradictory ? tool->contradictory : tool->input_schema);
    else
        schema_explain(tool->input_schema, args->now, &args->problems, &args->work);
}

/* Where the schema finds nothing wrong, the reading that was only proposed still stops the call. */
static void explain_unrepaired(struct arguments *args, struct arena *arena, const struct tool *tool)
{
    explain(args, tool);
    arguments_explain_cuts(args, arena, tool);
    if (args->proposed && !args->problems.errors)
        problems_add(&args->problems,
                     (struct problem){.code = "not_repaired",
                                      .message = STR_LIT("are not repaired, since this tool destroys data: "
                                                         "send exactly what you mean")});
}

/* At most half of the budget goes into other readings, and what they took is given back: arguments without
 * one are explained, however many there are. */
static bool repair(struct arguments *args, struct arena *arena, const struct tool *tool)
{
    uint32_t spent = args->work.steps, half = SCHEMA_MAX_STEPS / 2;
    args->work.steps = spent > half ? spent : half;
    bool valid = arguments_repair(args, arena, tool);
    args->work.steps = spent;
    return valid;
}

void arguments_check_schema(struct arguments *args, struct arena *arena, const struct tool *tool)
{
    if (args->unreadable || args->problems.errors || (tool->policy && !tool->policy->validate))
        return;
    struct schema_remarks remarks = {0};
    enum schema_validity validity = schema_inspect(tool->input_schema, args->now, &remarks, &args->work);
    bool valid = validity == SCHEMA_VALID;
    if (validity == SCHEMA_TOO_COMPLEX) {
        explain(args, tool);
        return;
    }
    if (!valid || remarks.undeclared) {
        valid = repair(args, arena, tool);
        if (valid)
            schema_inspect(tool->input_schema, args->now, &remarks, &args->work);
    }
    if (!valid && !args->problems.errors)
        explain_unrepaired(args, arena, tool);
    if (args->problems.errors)
        return;
    if (tool->contradictory && !args->problems.count)
        advise(args, arena, tool->contradictory);
    if (remarks.local_times)
        args->now =
            schema_coerce_times(tool->input_schema, args->now, tool->timezone, &args->problems, &args->work);
    if (!remarks.declared)
        check_unknown_fields(args, arena, tool);
}

static bool accepts(void *schema, const struct json *args)
{
    return schema_validate(schema, args) == SCHEMA_VALID;
}

/* If rules or normalise make valid arguments invalid, the policy is at fault, not the model; its changes are
 * dropped, even with on_policy_error = "open". */
static void take_changed(struct arguments *args, struct arena *arena, const struct tool *tool,
                         const struct policy *policy, const struct json *changed)
{
    struct problems violations;
    bool validates =
        !(tool->policy && !tool->policy->validate) && tool->schema_mode != SCHEMA_ADVISE && !args->lax;
    if (!validates || fits(tool, changed, NULL)) {
        args->now = changed;
        return;
    }
    problems_init(&violations, arena);
    schema_explain(tool->input_schema, changed, &violations, NULL);
    struct str complaint = arena_printf(arena, "'" STR_FMT "' " STR_FMT, STR_ARG(violations.list[0].path),
                                        STR_ARG(violations.list[0].message));
    args->policy_error =
        policy_report_schema_violation(policy, args->now, accepts, tool->input_schema, complaint, arena);
}

void arguments_check_policy(struct arguments *args, struct arena *arena, const struct tool *tool,
                            const struct policy *policy, const struct policy_call *call)
{
    struct policy_outcome outcome __attribute__((uninitialized)); /* 2 KB, filled in by policy_normalise */
    if (args->problems.errors) {
        policy_rules_explain(policy, args->now, &args->problems);
        return;
    }
    policy_normalise(policy, call, args->now, arena, &outcome);
    if (outcome.kind == OUTCOME_POLICY_ERROR) {
        args->policy_error = arena_dup(arena, str_of(outcome.why.text));
    } else if (outcome.kind == OUTCOME_REPAIR) {
        for (size_t i = 0; i < outcome.problems.count; i++)
            problems_add(&args->problems, outcome.problems.list[i]);
        args->problems.more += outcome.problems.more;
    } else if (outcome.args != args->now) {
        take_changed(args, arena, tool, policy, outcome.args);
    }
}

void arguments_check_rules(struct arguments *args, struct arena *arena, const struct tool *tool,
                           const struct policy_call *call)
{
    if (tool->policy && tool->mode != POLICY_OFF && !args->unreadable)
        arguments_check_policy(args, arena, tool, tool->policy, call);
}

static const struct json *difference(struct arena *arena, const struct json *before, const struct json *after)
{
    if (before == after)
        return NULL;
    struct json patch = json_patch(arena, before, after);
    return patch.len ? json_keep(arena, patch) : NULL;
}

const struct json *arguments_rewrites(const struct arguments *args, struct arena *arena)
{
    if (args->now == args->sent || !json_is(args->now, JSON_OBJECT))
        return NULL;
    struct json nothing = json_object(arena, NULL, 0);
    return difference(arena, args->sent ? args->sent : &nothing, args->now);
}

const struct json *arguments_changes(const struct arguments *args, struct arena *arena)
{
    return json_is(args->whole, JSON_OBJECT) ? difference(arena, args->whole, args->now) : NULL;
}
