/* Reading, mending and judging arguments. */
#include "gate/arguments.h"

#include "base/arena.h"
#include "config/config.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/patch.h"

static const struct json *keep(struct arena *arena, struct json value)
{
    struct json *kept = arena_alloc(arena, sizeof(*kept));
    *kept = value;
    return kept;
}

static void say(struct arguments *args, const char *code, struct str message)
{
    problems_add(&args->problems, (struct problem){.code = code, .message = message});
}

/* Only an object is taken out of a string: any other text stays what it is, and the schema speaks of it. */
static const struct json *unquoted(struct arena *arena, const struct json *sent)
{
    struct json *inner = arena_alloc(arena, sizeof(*inner));
    struct json_error fault;
    struct str text = str_trim(json_str(sent));
    bool is_object = text.len && text.at[0] == '{' && json_parse(arena, text, NULL, inner, &fault) == OK;
    return is_object ? inner : sent;
}

void arguments_read(struct arguments *args, struct arena *arena, const struct json *sent, struct str fault,
                    const struct config *config)
{
    *args = (struct arguments){0};
    problems_init(&args->problems, arena);
    args->sent = sent ? sent : keep(arena, json_object(arena, NULL, 0));
    args->raw = json_is(args->sent, JSON_STRING) ? unquoted(arena, args->sent) : args->sent;
    args->now = args->raw;
    if (fault.len)
        say(args, "unreadable", arena_dup(arena, fault));
    else if (args->sent->raw_len > config->limits.arguments)
        say(args, "too_large",
            arena_printf(arena, "must be at most %u bytes of JSON, got %u: send less, in several calls",
                         config->limits.arguments, args->sent->raw_len));
    else if (!json_is(args->now, JSON_OBJECT))
        say(args, "type",
            arena_printf(arena, "expected an object with the tool's parameters, got %s",
                         json_type_name((enum json_type)args->now->type)));
    args->unreadable = args->problems.errors > 0;
}

/* Fields that an open schema does not name: passed (with a warning where a declared name is close), dropped
 * or refused, as the operator chose. A closed schema has refused them already. */
static void judge_strangers(struct arguments *args, struct arena *arena, const struct tool *tool)
{
    struct problems strangers;
    if (tool->unknown == UNKNOWN_DROP) {
        args->now = schema_drop_unknown_properties(arena, tool->input_schema, args->now);
        return;
    }
    problems_init(&strangers, arena);
    schema_unknown_properties(tool->input_schema, args->now, &strangers);
    for (size_t i = 0; i < strangers.count; i++) {
        struct problem p = strangers.list[i];
        p.warning = tool->unknown != UNKNOWN_REFUSE;
        if (!p.warning || p.suggestion.len)
            problems_add(&args->problems, p);
    }
    if (tool->unknown == UNKNOWN_REFUSE)
        args->problems.more += strangers.more;
}

void arguments_check_schema(struct arguments *args, struct arena *arena, const struct tool *tool)
{
    if (args->unreadable)
        return;
    bool judged = !(tool->policy && !tool->policy->validate);
    if (judged && schema_validate(tool->input_schema, args->now) != SCHEMA_VALID) {
        args->now = schema_coerce(tool->input_schema, args->now, &tool->coerce, arena);
        if (schema_validate(tool->input_schema, args->now) != SCHEMA_VALID)
            schema_explain(tool->input_schema, args->now, &args->problems);
    }
    if (judged && !args->problems.errors)
        judge_strangers(args, arena, tool);
}

static void take_problems(struct arguments *args, const struct problems *from)
{
    for (size_t i = 0; i < from->count; i++)
        problems_add(&args->problems, from->list[i]);
    args->problems.more += from->more;
}

static bool accepts(void *schema, const struct json *args)
{
    return schema_validate(schema, args) == SCHEMA_VALID;
}

/* A policy that turns valid arguments into invalid ones is at fault, not the model; what it made of them is
 * not taken, also where it fails open. */
static void take_changed(struct arguments *args, struct arena *arena, const struct tool *tool,
                         const struct json *changed)
{
    struct problems broken;
    if (!tool->policy->validate || schema_validate(tool->input_schema, changed) == SCHEMA_VALID) {
        args->now = changed;
        return;
    }
    problems_init(&broken, arena);
    schema_explain(tool->input_schema, changed, &broken);
    struct str complaint = arena_printf(arena, "'" STR_FMT "' " STR_FMT, STR_ARG(broken.list[0].path),
                                        STR_ARG(broken.list[0].message));
    args->broke = policy_report_schema_violation(tool->policy, args->now, accepts, tool->input_schema,
                                                 complaint, arena);
}

void arguments_check_rules(struct arguments *args, struct arena *arena, const struct tool *tool,
                           const struct policy_call *call)
{
    struct policy_outcome said;
    if (!tool->policy || tool->mode == POLICY_OFF || args->unreadable)
        return;
    if (args->problems.errors) {
        policy_rules_explain(tool->policy, args->now, &args->problems);
        return;
    }
    policy_normalise(tool->policy, call, args->now, arena, &said);
    if (said.kind == OUTCOME_POLICY_ERROR) {
        args->broke = arena_dup(arena, str_of(said.why.text));
    } else if (said.kind == OUTCOME_REPAIR) {
        take_problems(args, &said.problems);
    } else if (said.args != args->now) {
        take_changed(args, arena, tool, said.args);
    }
}

const struct json *arguments_rewrites(const struct arguments *args, struct arena *arena)
{
    if (args->now == args->raw || !json_is(args->raw, JSON_OBJECT))
        return NULL;
    struct json patch = json_patch(arena, args->raw, args->now);
    return patch.len ? keep(arena, patch) : NULL;
}
