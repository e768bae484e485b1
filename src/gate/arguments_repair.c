/*
 * Arguments that the schema does not accept as they are, read in another way: taken out of a wrapper, then
 * coerced. A reading counts only if the schema accepts it, and two readings are none. Of a tool that
 * destroys, only the spelling of JSON is repaired; what else would fit is proposed, and the model must send
 * it.
 */
#include "gate/arguments_repair.h"

#include "base/arena.h"
#include "gate/arguments_text.h"
#include "json/build.h"

#define WRAPPERS_MAX 3u /* around each other */

struct reading {
    const struct json *args;
    const struct json *whole; /* what it was coerced from: the arguments, or what they wrapped */
    struct str wrapper;       /* that was taken off; empty: none */
    bool fits, ambiguous;
};

/* ---- wrappers ---- */

static bool names_a_wrapper(const struct tool *tool, struct str name)
{
    static const char *const names[] = {"arguments", "args", "input", "parameters", "params"};
    return STR_IS_ONE_OF(name, names) || str_eq(name, tool->name);
}

/* How many members the schema does not declare, if it declares any. */
static size_t undeclared(const struct tool *tool, struct arena *arena, const struct json *object,
                         struct schema_work *work)
{
    struct problems unknown;
    problems_init(&unknown, arena);
    schema_unknown_properties(tool->input_schema, object, &unknown, work);
    return unknown.count + unknown.more;
}

/* {"name": "edit"} beside the wrapper: some models send the whole call as its arguments. */
static bool names_the_tool(const struct tool *tool, const struct json_member *member)
{
    static const char *const keys[] = {"name", "tool", "tool_name", "function"};
    return STR_IS_ONE_OF(member->key, keys) && str_eq(json_str(&member->value), tool->name);
}

/* The member whose name stands for the arguments as a whole, if there is no other one and the schema declares
 * none of them. */
static const struct json_member *wrapper_of(const struct tool *tool, struct arena *arena,
                                            const struct json *args, struct schema_work *work)
{
    if (!args->len || args->len > 2)
        return NULL;
    const struct json_member *first = args->members, *last = first + args->len - 1;
    const struct json_member *wrapper = names_a_wrapper(tool, first->key) ? first : last;
    if (!names_a_wrapper(tool, wrapper->key) ||
        (args->len == 2 && !names_the_tool(tool, wrapper == first ? last : first)))
        return NULL;
    return !arguments_are_declared(tool) || undeclared(tool, arena, args, work) == args->len ? wrapper : NULL;
}

/* The object inside, however often it is wrapped, if it has declared names, or nothing where the outer object
 * is wrong; else NULL. */
static const struct json *unwrap(const struct tool *tool, struct arena *arena,
                                 const struct json_member *wrapper, struct schema_work *work)
{
    const struct json *inner = NULL;
    for (unsigned i = 0; i < WRAPPERS_MAX && wrapper; i++) {
        inner = arguments_container(arena, &wrapper->value);
        if (!json_is(inner, JSON_OBJECT))
            return NULL;
        wrapper = wrapper_of(tool, arena, inner, work);
    }
    return inner->len == 0 || undeclared(tool, arena, inner, work) < inner->len ? inner : NULL;
}

/* ---- readings ---- */

static bool is_valid(const struct tool *tool, const struct json *args, struct schema_remarks *remarks,
                     struct schema_work *work)
{
    *remarks = (struct schema_remarks){0};
    return schema_inspect(tool->input_schema, args, remarks, work) == SCHEMA_VALID;
}

static struct reading coerced(const struct tool *tool, struct arena *arena, const struct json *args,
                              const struct coerce_options *options, struct schema_work *work)
{
    struct reading r = {.args = args, .whole = args};
    struct schema_remarks remarks;
    r.fits = is_valid(tool, args, &remarks, work);
    if (!r.fits)
        r.args = schema_coerce(tool->input_schema, args, options, arena, work);
    if (r.args != args)
        r.fits = is_valid(tool, r.args, &remarks, work);
    if (r.fits && remarks.undeclared) /* a misspelled name in an open object: its value would be lost */
        r.args = schema_coerce_names(tool->input_schema, r.args, options, arena, work);
    return r;
}

/* An open object that fits with a wrapper in it fits without its parameters: then what is inside counts,
 * right or wrong. If both a wrapper and a misspelled name fit, nobody knows which was meant. */
static struct reading read_as(const struct tool *tool, struct arena *arena, const struct json *args,
                              const struct coerce_options *options, struct schema_work *work)
{
    struct reading outer = coerced(tool, arena, args, options, work), inner;
    const struct json_member *wrapper = options->wrapped ? wrapper_of(tool, arena, args, work) : NULL;
    const struct json *content = wrapper ? unwrap(tool, arena, wrapper, work) : NULL;
    if (!content || (!content->len && outer.fits))
        return outer;
    inner = coerced(tool, arena, content, options, work);
    inner.wrapper = wrapper->key;
    if (!outer.fits || outer.args == args)
        return inner;
    if (!inner.fits)
        return outer;
    return (struct reading){.args = args, .whole = args, .wrapper = wrapper->key, .ambiguous = true};
}

/* ---- what has no reading ---- */

static void explain_ambiguous(struct arguments *args, struct str wrapper)
{
    problems_add(
        &args->problems,
        (struct problem){.path = wrapper,
                         .code = "ambiguous",
                         .message = STR_LIT("is a wrapper around the parameters, or another spelling of "
                                            "one of them: send the parameters at the top level")});
}

/* A wrapper around text that begins as JSON and cannot be read: an open schema would take it as it is, and
 * the tool would run without its parameters. */
static bool explain_wrapped_text(struct arguments *args, struct arena *arena, const struct tool *tool)
{
    const struct json_member *wrapper = wrapper_of(tool, arena, args->now, &args->work);
    struct problem problem;
    if (!wrapper || !tool->proposes.wrapped || !json_is(&wrapper->value, JSON_STRING) ||
        !arguments_begin_as_json(&wrapper->value) || arguments_container(arena, &wrapper->value))
        return false;
    if (!arguments_is_cut_off(arena, &wrapper->value, wrapper->key, &problem))
        problem =
            (struct problem){.path = wrapper->key,
                             .code = "not_json",
                             .message = STR_LIT("holds text that is no JSON: send the parameters at the top "
                                                "level, as a JSON object")};
    problems_add(&args->problems, problem);
    return true;
}

/* A wrapper around nothing. Of a tool that writes, it may mean all. */
static bool explain_wrapped_nothing(struct arguments *args, struct arena *arena, const struct tool *tool)
{
    const struct json_member *wrapper =
        tool_writes(tool) ? wrapper_of(tool, arena, args->now, &args->work) : NULL;
    if (!wrapper || !tool->proposes.wrapped)
        return false;
    const struct json *inner = arguments_container(arena, &wrapper->value);
    bool blank = json_is(&wrapper->value, JSON_STRING) && !str_trim(json_str(&wrapper->value)).len;
    bool nothing =
        json_is(&wrapper->value, JSON_NULL) || blank || (json_is(inner, JSON_OBJECT) && !inner->len);
    if (!nothing || !arguments_may_mean_all(tool, arena))
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

static void take(struct arguments *args, const struct reading *reading)
{
    args->wrapper = reading->wrapper;
    args->whole = reading->whole;
    args->now = reading->args;
}

/* Names are not replaced in arguments that stay invalid: the problems then list all the names to change. */
static void take_invalid(struct arguments *args, const struct tool *tool, struct arena *arena,
                         const struct reading *reading)
{
    struct coerce_options options = tool->coerce;
    options.names = false;
    args->wrapper = reading->wrapper;
    args->whole = args->now = reading->whole;
    if (reading->args != reading->whole)
        args->now = schema_coerce(tool->input_schema, reading->whole, &options, arena, &args->work);
}

/* True: the tool destroys, and more was repaired than the spelling of JSON. */
static bool is_only_proposed(struct arguments *args, const struct tool *tool, struct arena *arena,
                             struct reading *reading)
{
    if (!tool_destroys(tool))
        return false;
    struct reading meant = read_as(tool, arena, args->now, &tool->proposes, &args->work);
    if (meant.fits && !json_equal(meant.args, reading->args)) {
        args->proposed = meant.args;
        return true;
    }
    if (!meant.fits)
        *reading =
            meant; /* a wrapper around wrong parameters, or an ambiguous one, fits an open schema as it is */
    return false;
}

bool arguments_repair(struct arguments *args, struct arena *arena, const struct tool *tool)
{
    struct reading reading = read_as(tool, arena, args->now, &tool->coerce, &args->work);
    if (explain_wrapped_text(args, arena, tool) || explain_wrapped_nothing(args, arena, tool) ||
        is_only_proposed(args, tool, arena, &reading))
        return false;
    if (reading.ambiguous)
        explain_ambiguous(args, reading.wrapper);
    else if (reading.fits)
        take(args, &reading);
    else
        take_invalid(args, tool, arena, &reading);
    return reading.fits;
}
