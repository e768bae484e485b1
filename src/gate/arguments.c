/* Reads, repairs and checks arguments. What is not an object is read by arguments_text.c. */
#include "gate/arguments.h"

#include "base/arena.h"
#include "policy/config.h"
#include "json/build.h"
#include "json/diff.h"

void arguments_read(struct arguments *args, struct arena *arena, const struct tool *tool,
                    const struct json *sent, struct str fault, const struct config *config)
{
    struct problem problem = {.code = NULL};
    *args = (struct arguments){.arena = arena, .tool = tool, .sent = sent, .raw = sent};
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
        arguments_read_text(args);
    if (problem.code)
        problems_add(&args->problems, problem);
    args->unreadable |= problem.code != NULL;
    if (!args->raw)
        args->raw = json_keep(arena, json_object(arena, NULL, 0));
    args->whole = args->now = args->raw;
}

/* What the schema has against the arguments, as warnings. */
static void advise(struct arguments *args, const struct schema *schema)
{
    struct problems found;
    problems_init(&found, args->arena);
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

static void explain(struct arguments *args)
{
    const struct tool *tool = args->tool;
    if (tool->contradictory &&
        fits(tool, args->now, &args->work)) /* schema_explain finds nothing in what fits its own */
        return;
    if (tool->schema_mode == SCHEMA_ADVISE)
        advise(args, tool->contradictory ? tool->contradictory : tool->input_schema);
    else
        schema_explain(tool->input_schema, args->now, &args->problems, &args->work);
}

/*
 * ---- other readings ----
 *
 * Arguments that the schema does not accept as they are, read in another way: taken out of a wrapper, then
 * coerced. A reading counts only if the schema accepts it, and if there is one: of two nobody knows which was
 * meant. Of a tool that destroys, only the spelling of JSON is repaired; what else would fit is proposed, and
 * the model must send it.
 */

#define WRAPPERS_MAX 3u /* around each other */

struct reading {
    const struct json *args;
    const struct json *whole; /* what it was coerced from: the arguments, or what they wrapped */
    struct str wrapper;       /* that was taken off; empty: none */
    bool fits, ambiguous;
};

static bool names_a_wrapper(const struct tool *tool, struct str name)
{
    static const char *const names[] = {"arguments", "args", "input", "parameters", "params"};
    return STR_IS_ONE_OF(name, names) || str_eq(name, tool->name);
}

/* How many members the schema does not declare, if it declares any. */
static size_t undeclared(struct arguments *args, const struct json *object)
{
    struct problems unknown;
    problems_init(&unknown, args->arena);
    schema_unknown_properties(args->tool->input_schema, object, &unknown, &args->work);
    return unknown.count + unknown.more;
}

/* The member whose name stands for the arguments as a whole, if there is no other one and the schema declares
 * none of them. */
static const struct json_member *wrapper_of(struct arguments *args, const struct json *value)
{
    const struct tool *tool = args->tool;
    static const char *const keys[] = {"name", "tool", "tool_name", "function"};
    if (!value->len || value->len > 2)
        return NULL;
    const struct json_member *first = value->members, *last = first + value->len - 1;
    const struct json_member *wrapper = names_a_wrapper(tool, first->key) ? first : last;
    const struct json_member *other = wrapper == first ? last : first;
    /* {"name": "edit"} beside the wrapper: some models send the whole call as its arguments. */
    bool names_the_tool = STR_IS_ONE_OF(other->key, keys) && str_eq(json_str(&other->value), tool->name);
    if (!names_a_wrapper(tool, wrapper->key) || (value->len == 2 && !names_the_tool))
        return NULL;
    return !arguments_are_declared(tool) || undeclared(args, value) == value->len ? wrapper : NULL;
}

/* The object inside, however often it is wrapped, if it has declared names, or nothing where the outer object
 * is wrong; else NULL. */
static const struct json *unwrap(struct arguments *args, const struct json_member *wrapper)
{
    const struct json *inner = NULL;
    for (unsigned i = 0; i < WRAPPERS_MAX && wrapper; i++) {
        inner = arguments_container(args->arena, &wrapper->value);
        if (!json_is(inner, JSON_OBJECT))
            return NULL;
        wrapper = wrapper_of(args, inner);
    }
    return inner->len == 0 || undeclared(args, inner) < inner->len ? inner : NULL;
}

static bool is_valid(struct arguments *args, const struct json *value, struct schema_remarks *remarks)
{
    *remarks = (struct schema_remarks){0};
    return schema_inspect(args->tool->input_schema, value, remarks, &args->work) == SCHEMA_VALID;
}

static struct reading coerced(struct arguments *args, const struct json *value,
                              const struct coerce_options *options)
{
    struct reading r = {.args = value, .whole = value};
    struct schema_remarks remarks;
    r.fits = is_valid(args, value, &remarks);
    if (!r.fits)
        r.args = schema_coerce(args->tool->input_schema, value, options, args->arena, &args->work);
    if (r.args != value)
        r.fits = is_valid(args, r.args, &remarks);
    if (r.fits && remarks.undeclared) /* a misspelled name in an open object: its value would be lost */
        r.args = schema_coerce_names(args->tool->input_schema, r.args, options, args->arena, &args->work);
    return r;
}

/* An open object that fits with a wrapper in it fits without its parameters: then what is inside counts,
 * right or wrong. If both a wrapper and a misspelled name fit, nobody knows which was meant. */
static struct reading read_as(struct arguments *args, const struct json *value,
                              const struct coerce_options *options)
{
    struct reading outer = coerced(args, value, options), inner;
    const struct json_member *wrapper = options->wrapped ? wrapper_of(args, value) : NULL;
    const struct json *content = wrapper ? unwrap(args, wrapper) : NULL;
    if (!content || (!content->len && outer.fits))
        return outer;
    inner = coerced(args, content, options);
    inner.wrapper = wrapper->key;
    if (!outer.fits || outer.args == value)
        return inner;
    if (!inner.fits)
        return outer;
    return (struct reading){.args = value, .whole = value, .wrapper = wrapper->key, .ambiguous = true};
}

/* A wrapper around text that begins as JSON and cannot be read: an open schema would take it as it is, and
 * the tool would run without its parameters. */
static bool explain_wrapped_text(struct arguments *args)
{
    const struct json_member *wrapper = wrapper_of(args, args->now);
    struct problem problem;
    if (!wrapper || !args->tool->proposes.wrapped || !json_is(&wrapper->value, JSON_STRING) ||
        !arguments_begin_as_json(&wrapper->value) || arguments_container(args->arena, &wrapper->value))
        return false;
    if (!arguments_is_cut_off(args->arena, &wrapper->value, wrapper->key, &problem))
        problem =
            (struct problem){.path = wrapper->key,
                             .code = "not_json",
                             .message = STR_LIT("holds text that is no JSON: send the parameters at the top "
                                                "level, as a JSON object")};
    problems_add(&args->problems, problem);
    return true;
}

/* A wrapper around nothing. Of a tool that writes, it may mean all. */
static bool explain_wrapped_nothing(struct arguments *args)
{
    const struct json_member *wrapper = tool_writes(args->tool) ? wrapper_of(args, args->now) : NULL;
    if (!wrapper || !args->tool->proposes.wrapped)
        return false;
    const struct json *inner = arguments_container(args->arena, &wrapper->value);
    bool blank = json_is(&wrapper->value, JSON_STRING) && !str_trim(json_str(&wrapper->value)).len;
    bool nothing =
        json_is(&wrapper->value, JSON_NULL) || blank || (json_is(inner, JSON_OBJECT) && !inner->len);
    if (!nothing || !arguments_may_mean_all(args))
        return false;
    problems_add(
        &args->problems,
        (struct problem){.path = wrapper->key,
                         .code = "empty",
                         .message = STR_LIT("holds nothing, and without arguments this tool may act on "
                                            "everything: send what you mean at the top level; {} if you "
                                            "mean no arguments")});
    return true;
}

/* Finds the one reading of args->now that the schema accepts and makes it args->now, or proposes it. False:
 * it is not applied, and unless problems were added the schema says what is wrong with args->now. For
 * arguments that the schema rejects, or that have members which it does not declare. */
static bool read_otherwise(struct arguments *args)
{
    const struct tool *tool = args->tool;
    struct reading reading = read_as(args, args->now, &tool->coerce);
    if (explain_wrapped_text(args) || explain_wrapped_nothing(args))
        return false;
    if (tool_destroys(tool)) { /* more than the spelling of JSON is only proposed */
        struct reading meant = read_as(args, args->now, &tool->proposes);
        if (meant.fits && !json_equal(meant.args, reading.args)) {
            args->proposed = meant.args;
            return false;
        }
        if (!meant.fits) /* a wrapper around wrong parameters, or an ambiguous one, fits an open schema as it
                            is */
            reading = meant;
    }
    if (reading.ambiguous) {
        problems_add(
            &args->problems,
            (struct problem){.path = reading.wrapper,
                             .code = "ambiguous",
                             .message = STR_LIT("is a wrapper around the parameters, or another spelling of "
                                                "one of them: send the parameters at the top level")});
        return false;
    }
    args->wrapper = reading.wrapper;
    args->whole = reading.whole;
    args->now = reading.fits ? reading.args : reading.whole;
    if (!reading.fits && reading.args != reading.whole) {
        /* Names are not replaced in arguments that stay invalid: the problems then list all the names to
         * change. */
        struct coerce_options options = tool->coerce;
        options.names = false;
        args->now = schema_coerce(tool->input_schema, reading.whole, &options, args->arena, &args->work);
    }
    return reading.fits;
}

/* ---- stages 2 and 3 ---- */

/* At most half of the budget goes into other readings, and what they took is given back: arguments without
 * one are explained, however many there are. */
static bool repair(struct arguments *args)
{
    uint32_t spent = args->work.steps, half = SCHEMA_MAX_STEPS / 2;
    args->work.steps = spent > half ? spent : half;
    bool valid = read_otherwise(args);
    args->work.steps = spent;
    return valid;
}

void arguments_check_schema(struct arguments *args)
{
    const struct tool *tool = args->tool;
    if (args->unreadable || args->problems.errors || (tool->policy && !tool->policy->validate))
        return;
    struct schema_remarks remarks = {0};
    enum schema_validity validity = schema_inspect(tool->input_schema, args->now, &remarks, &args->work);
    bool valid = validity == SCHEMA_VALID;
    if (validity == SCHEMA_TOO_COMPLEX) {
        explain(args);
        return;
    }
    if (!valid || remarks.undeclared) {
        valid = repair(args);
        if (valid)
            schema_inspect(tool->input_schema, args->now, &remarks, &args->work);
    }
    if (!valid && !args->problems.errors) { /* a reading that is only proposed stops the call in any case */
        explain(args);
        arguments_explain_cuts(args);
        if (args->proposed && !args->problems.errors)
            problems_add(
                &args->problems,
                (struct problem){.code = "not_repaired",
                                 .message = STR_LIT("are not repaired, since this tool destroys data: "
                                                    "send exactly what you mean")});
    }
    if (args->problems.errors)
        return;
    if (tool->contradictory && !args->problems.count)
        advise(args, tool->contradictory);
    if (remarks.local_times)
        args->now =
            schema_coerce_times(tool->input_schema, args->now, tool->timezone, &args->problems, &args->work);
    if (!remarks.declared) {
        /* Fields that an open schema does not declare: dropped, refused, or passed with a warning if a
         * declared name is close, as `unknown` says. A closed schema has refused them already. */
        struct problems unknown;
        if (tool->unknown == UNKNOWN_DROP) {
            args->now =
                schema_drop_unknown_properties(args->arena, tool->input_schema, args->now, &args->work);
            return;
        }
        problems_init(&unknown, args->arena);
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
}

static bool accepts(void *schema, const struct json *args)
{
    return schema_validate(schema, args) == SCHEMA_VALID;
}

/* If rules or normalise make valid arguments invalid, the policy is at fault, not the model; its changes are
 * dropped, even with on_policy_error = "open". */
static void take_changed(struct arguments *args, const struct policy *policy, const struct json *changed)
{
    const struct tool *tool = args->tool;
    struct problems violations;
    bool validates =
        !(tool->policy && !tool->policy->validate) && tool->schema_mode != SCHEMA_ADVISE && !args->lax;
    if (!validates || fits(tool, changed, NULL)) {
        args->now = changed;
        return;
    }
    problems_init(&violations, args->arena);
    schema_explain(tool->input_schema, changed, &violations, NULL);
    struct str complaint =
        arena_printf(args->arena, "'" STR_FMT "' " STR_FMT, STR_ARG(violations.list[0].path),
                     STR_ARG(violations.list[0].message));
    args->policy_error = policy_report_schema_violation(policy, args->now, accepts, tool->input_schema,
                                                        complaint, args->arena);
}

void arguments_check_policy(struct arguments *args, const struct policy *policy,
                            const struct policy_call *call)
{
    struct policy_outcome outcome __attribute__((uninitialized)); /* 2 KB, filled in by policy_normalise */
    if (args->problems.errors) {
        policy_rules_explain(policy, args->now, &args->problems);
        return;
    }
    policy_normalise(policy, call, args->now, args->arena, &outcome);
    if (outcome.kind == OUTCOME_POLICY_ERROR) {
        args->policy_error = arena_dup(args->arena, str_of(outcome.why.text));
    } else if (outcome.kind == OUTCOME_REPAIR) {
        for (size_t i = 0; i < outcome.problems.count; i++)
            problems_add(&args->problems, outcome.problems.list[i]);
        args->problems.more += outcome.problems.more;
    } else if (outcome.args != args->now) {
        take_changed(args, policy, outcome.args);
    }
}

void arguments_check_rules(struct arguments *args, const struct policy_call *call)
{
    if (args->tool->policy && args->tool->mode != POLICY_OFF && !args->unreadable)
        arguments_check_policy(args, args->tool->policy, call);
}

static const struct json *difference(struct arena *arena, const struct json *before, const struct json *after)
{
    if (before == after)
        return NULL;
    struct json patch = json_patch(arena, before, after);
    return patch.len ? json_keep(arena, patch) : NULL;
}

const struct json *arguments_rewrites(const struct arguments *args)
{
    if (args->now == args->sent || !json_is(args->now, JSON_OBJECT))
        return NULL;
    struct json nothing = json_object(args->arena, NULL, 0);
    return difference(args->arena, args->sent ? args->sent : &nothing, args->now);
}

const struct json *arguments_changes(const struct arguments *args)
{
    return json_is(args->whole, JSON_OBJECT) ? difference(args->arena, args->whole, args->now) : NULL;
}
