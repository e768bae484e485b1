/* Reads, repairs and checks arguments. */
#include "gate/arguments.h"

#include "base/arena.h"
#include "json/build.h"
#include "json/diff.h"
#include "json/parse.h"
#include "json/write.h"
#include "policy/config.h"
#include "result/result.h"

/*
 * ---- arguments that arrive as text, empty, or cut off ----
 *
 * Frameworks send arguments as a JSON string, models spell the JSON in it oddly, and both cut long texts off.
 * A text is read if it has one reading; one that was cut off is never completed, and the problem says where
 * it ends.
 */

#define ENCODED_MAX   3u /* how often the arguments may be encoded as a JSON string */
#define SEND_IN_PARTS "If the value is long, send it in parts."

static const struct json *no_arguments(struct arena *arena)
{
    return json_keep(arena, json_object(arena, NULL, 0));
}

static void add_problem(struct arguments *args, struct str path, const char *code, struct str message)
{
    problems_add(&args->problems, (struct problem){.path = path, .code = code, .message = message});
}

/* ---- cut off ---- */

static struct problem cut_problem(struct arena *arena, struct str path, const struct json_cut *cut)
{
    struct buf text = buf_in(arena);
    struct str digits = arena_printf(arena, "%zu", (size_t)cut->chars);
    buf_text(&text, path.len ? "was cut off after " : "arguments were cut off after ");
    for (size_t i = 0; i < digits.len; i++) /* 18932 as "18,932" */
        buf_printf(&text, "%s%c", i && (digits.len - i) % 3 == 0 ? "," : "", digits.at[i]);
    buf_text(&text, cut->chars == 1 ? " character" : " characters");
    if (cut->path.len)
        buf_printf(&text, " inside '" STR_FMT "'", STR_ARG(cut->path));
    if (cut->open)
        buf_printf(&text, " (%u bracket%s open)", cut->open, cut->open == 1 ? "" : "s");
    buf_text(&text, ". " SEND_IN_PARTS);
    return (struct problem){.path = path, .code = "cut_off", .message = buf_view(&text)};
}

static bool begins_as_json(struct str text)
{
    return text.len > 0 && (memchr("{[", text.at[0], 2) || str_starts(text, "```"));
}

static bool is_cut_off(struct arena *arena, const struct json *value, struct str path,
                       struct problem *problem)
{
    struct json read;
    struct json_cut cut;
    struct str text = str_trim(json_str(value));
    if (!begins_as_json(text) || json_read_spelled(arena, text, &read, &cut) != JSON_CUT_OFF)
        return false;
    *problem = cut_problem(arena, path, &cut);
    return true;
}

static const struct json *container_in(struct arena *arena, const struct json *value)
{
    struct json read;
    struct str text = str_trim(json_str(value));
    if (json_is(value, JSON_STRING)) {
        if (!begins_as_json(text) || json_read_spelled(arena, text, &read, NULL) != JSON_SPELLED)
            return NULL;
        value = json_keep(arena, read);
    }
    return value->type == JSON_OBJECT || value->type == JSON_ARRAY ? value : NULL;
}

/* ---- a text instead of the arguments ---- */

static struct problem type_problem(struct arena *arena, const struct json *value, const char *why)
{
    struct str message = arena_printf(arena, "expected an object with the tool's parameters, got %s%s%s",
                                      json_type_name((enum json_type)value->type),
                                      why ? " that is no JSON: " : "", why ? why : "");
    return (struct problem){.code = "type", .message = message};
}

#define CALLS_IN_ONE_MAX 16u /* objects one after another in a text; with more it is no JSON */

/* Some providers put the arguments of one call, or of several, one after another: {…}{…}. The same object
 * again and empty ones add nothing. NULL: that is not what the text holds, or *problem says that the calls
 * differ. */
static const struct json *read_repeated(struct arguments *args, struct str text, struct problem *problem)
{
    const struct json *found = NULL;
    unsigned objects = 0, different = 0;
    for (; text.len && text.at[0] == '{' && objects < CALLS_IN_ONE_MAX; objects++) {
        struct json read;
        struct json_error error;
        size_t end = text.len;
        if (json_parse(args->arena, text, NULL, &read, &error) != OK) {
            end = error.offset; /* where the next one begins */
            if (json_parse(args->arena, str_cut(text, end), NULL, &read, &error) != OK)
                return NULL;
        }
        text = str_trim(str_from(text, end));
        different += found && read.len && found->len && !json_equal(found, &read);
        if (!found || !found->len)
            found = json_keep(args->arena, read);
    }
    if (text.len || objects < 2)
        return NULL;
    if (!different && !(args->tool && tool_destroys(args->tool)))
        return found;
    *problem = (struct problem){
        .code = "several",
        .message = arena_printf(args->arena,
                                "expected one object with the tool's parameters, got %u one after another: "
                                "make a call of its own for each",
                                objects)};
    return NULL;
}

/* The member whose string ended at a quote that was meant to be part of it: behind `at` follows what can
 * stand behind no string. Empty: that is not what is wrong. */
static struct str ended_too_early(struct str text, size_t at)
{
    struct str key = STR_NONE, last = STR_NONE;
    size_t i = 0, ended = 0;
    while (i < at && i < text.len) {
        if (text.at[i] != '"') {
            if (text.at[i] == ':' && last.at)
                key = last;
            last = ascii_is_space(text.at[i]) ? last : STR_NONE;
            i++;
            continue;
        }
        size_t from = ++i;
        while (i < text.len && text.at[i] != '"')
            i += text.at[i] == '\\' ? 2 : 1;
        last = (struct str){text.at + from, i < text.len ? i - from : 0};
        ended = ++i;
    }
    while (ended && ended < at && ascii_is_space(text.at[ended]))
        ended++;
    bool follows = ended && ended >= at && at < text.len && !memchr(",:}]\"", text.at[at], 5);
    return follows ? key : STR_NONE;
}

/* The value that the text holds. NULL: none, and *problem says why. */
static const struct json *read_one(struct arguments *args, const struct json *value, struct problem *problem)
{
    struct json read;
    struct json_cut cut;
    struct json_error error;
    struct str text = str_trim(json_str(value));
    if (str_starts(text, "\xef\xbb\xbf")) /* a byte order mark */
        text = str_trim(str_from(text, 3));
    if (json_parse(args->arena, text, NULL, &read, &error) == OK)
        return json_keep(args->arena, read);
    const struct json *repeated = error.soft ? NULL : read_repeated(args, text, problem);
    args->spelled |= repeated != NULL;
    if (repeated || problem->code)
        return repeated;
    enum json_spelling spelling =
        error.soft ? JSON_NOT_JSON : json_read_spelled(args->arena, text, &read, &cut);
    args->spelled |= spelling == JSON_SPELLED;
    if (spelling == JSON_SPELLED)
        return json_keep(args->arena, read);
    if (error.soft)
        *problem =
            (struct problem){.code = "unreadable", .message = arena_dup(args->arena, str_of(error.text))};
    else if (spelling == JSON_CUT_OFF)
        *problem = cut_problem(args->arena, STR_NONE, &cut);
    else
        *problem = type_problem(args->arena, value, begins_as_json(text) ? error.text : NULL);
    struct str inside = *problem->code == 't' ? ended_too_early(text, error.offset) : STR_NONE;
    if (inside.len)
        problem->message = arena_printf(
            args->arena,
            "expected an object with the tool's parameters, got string that is no JSON: inside '" STR_FMT
            "' a double quote before byte %zu is not escaped, so the text ended there: write it as \\\"",
            STR_ARG(str_cut(inside, PROBLEM_PATH_MAX_BYTES)), error.offset);
    return NULL;
}

/* ---- nothing instead of the arguments ---- */

static bool has_keyword(const struct json *schema, const char *const *keywords, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (json_get_text(schema, keywords[i]))
            return true;
    return false;
}

static bool declares_parameters(const struct tool *tool)
{
    static const char *const keywords[] = {"$ref",  "anyOf",       "oneOf",
                                           "allOf", "$dynamicRef", "patternProperties"};
    return has_keyword(tool->input, keywords, RESULT_COUNT(keywords)) || json_child_count(tool->parameters);
}

/* Without arguments a tool whose parameters are all optional often acts on everything. */
static bool may_mean_all(const struct arguments *args)
{
    return declares_parameters(args->tool) &&
           schema_validate(args->tool->input_schema, no_arguments(args->arena)) == SCHEMA_VALID;
}

static void read_text(struct arguments *args)
{
    const struct json *value = args->sent;
    struct problem problem = {.code = NULL};
    for (unsigned i = 0; i < ENCODED_MAX && json_is(value, JSON_STRING); i++) {
        if (!str_trim(json_str(value)).len)
            break;
        value = read_one(args, value, &problem);
    }
    bool blank = json_is(value, JSON_STRING) && !str_trim(json_str(value)).len;
    if (!args->sent || json_is(value, JSON_NULL) || blank) {
        args->raw = no_arguments(args->arena);
        args->empty = value != NULL; /* a client that leaves out empty arguments cannot send {} otherwise */
        args->spelled = false;
        bool risky = args->tool && (value ? tool_writes(args->tool) : tool_destroys(args->tool));
        if (risky && may_mean_all(args)) {
            const char *got = !value ? "nothing" : value->type == JSON_NULL ? "null" : "blank text";
            const char *does = tool_destroys(args->tool) ? "destroys data" : "changes data";
            add_problem(
                args, STR_NONE, "empty",
                arena_printf(args->arena,
                             "expected an object with the tool's parameters, got %s: this tool %s, and "
                             "without arguments it may act on everything. Send what you mean; {} if "
                             "you mean no arguments",
                             got, does));
            args->unreadable = json_is(args->sent, JSON_STRING);
        }
        return;
    }
    bool no_parameters =
        json_is(value, JSON_ARRAY) && !value->len && args->tool && !declares_parameters(args->tool);
    if (json_is(value, JSON_OBJECT) || no_parameters) {
        args->raw = no_parameters ? no_arguments(args->arena) : value;
        return;
    }
    problems_add(&args->problems, value ? type_problem(args->arena, value, NULL) : problem);
    args->unreadable = true;
}

/* ---- what the schema misses ---- */

/* The value at a path such as "items[2].name"; keys may contain dots. NULL: none. */
static const struct json *value_at(const struct json *value, struct str path)
{
    if (!path.len)
        return value;
    if (json_is(value, JSON_ARRAY) && path.at[0] == '[') {
        size_t index = 0, at = 1;
        for (; at < path.len && ascii_is_digit(path.at[at]) && index < value->len; at++)
            index = index * 10 + (size_t)(path.at[at] - '0');
        if (at >= path.len || path.at[at] != ']' || index >= value->len)
            return NULL;
        path = str_from(path, at + 1);
        return value_at(&value->items[index], path.len && path.at[0] == '.' ? str_from(path, 1) : path);
    }
    for (uint32_t i = 0; json_is(value, JSON_OBJECT) && i < value->len; i++) {
        struct str key = value->members[i].key, rest = str_from(path, key.len);
        if (key.len > path.len || !key.len || memcmp(key.at, path.at, key.len) != 0)
            continue;
        if (!rest.len || rest.at[0] == '[' || rest.at[0] == '.')
            return value_at(&value->members[i].value,
                            rest.len && rest.at[0] == '.' ? str_from(rest, 1) : rest);
    }
    return NULL;
}

/* A string without bounds whose name or description makes a long value likely. */
static bool is_long_field(const struct tool *tool, struct str name)
{
    static const char *const phrases[] = {"source code",   "full text",  "full content", "entire content",
                                          "whole content", "multi-line", "multiline",    "complete content"};
    static const char *const bounds[] = {"maxLength", "enum", "const", "format", "pattern"};
    static const char *const words[] = {"code",   "content",  "contents", "query", "text",
                                        "body",   "html",     "script",   "patch", "diff",
                                        "prompt", "markdown", "sql",      "source"};
    const struct json *schema = json_get(json_get_text(tool->input, "properties"), name);
    if (!str_is(json_str(json_get_text(schema, "type")), "string") ||
        has_keyword(schema, bounds, RESULT_COUNT(bounds)))
        return false;
    if (RESULT_HAS(json_str(json_get_text(schema, "description")), phrases))
        return true;
    size_t start = name.len; /* of its last word: "newContent" and "new_content" end in "content" */
    while (start > 0 && ascii_is_letter(name.at[start - 1])) {
        start--;
        bool is_upper = name.at[start] < 'a';
        if (is_upper && start > 0 && name.at[start - 1] >= 'a')
            break;
    }
    struct str word = str_from(name, start);
    bool is_short = word.len < name.len && str_starts_nocase(word, "code"); /* country_code */
    return RESULT_NAME_IS(word, "", words) && !is_short;
}

/* <parameter name="city"> inside a value: the model wrote its own markup of a call where JSON was wanted, and
 * the value ended before it. Empty: no value at the top holds any. */
static struct str markup_in(const struct json *args)
{
    for (uint32_t i = 0; json_is(args, JSON_OBJECT) && i < args->len; i++)
        if (str_contains_nocase(json_str(&args->members[i].value), STR_LIT("parameter name=")) ||
            str_contains_nocase(json_str(&args->members[i].value), STR_LIT("</parameter")))
            return args->members[i].key;
    return STR_NONE;
}

/* Where markup of the missing parameters stands. */
static void explain_markup(struct arguments *args)
{
    struct str inside = markup_in(args->now);
    for (size_t i = 0; inside.len && i < args->problems.count; i++) {
        struct problem *p = &args->problems.list[i];
        if (strcmp(p->code, "missing") == 0 && !p->warning)
            p->message = arena_printf(args->arena,
                                      STR_FMT "; markup of parameters stands inside '" STR_FMT
                                              "': send each parameter as a member of its own",
                                      STR_ARG(p->message), STR_ARG(inside));
    }
}

static void explain_cuts(struct arguments *args)
{
    bool arrived_empty = json_is(args->now, JSON_OBJECT) && !args->now->len;
    for (size_t i = 0; i < args->problems.count; i++) {
        struct problem *p = &args->problems.list[i], cut;
        const struct json *value = p->path.len ? value_at(args->now, p->path) : NULL;
        if (json_is(value, JSON_STRING) && is_cut_off(args->arena, value, p->path, &cut)) {
            args->problems.errors += p->warning;
            *p = cut;
        } else if (strcmp(p->code, "missing") == 0 && !p->warning && is_long_field(args->tool, p->path)) {
            p->message = arena_printf(
                args->arena, STR_FMT ". Note: %sif '" STR_FMT "' was long, it may have been cut off: send %s",
                STR_ARG(p->message), arrived_empty ? "arguments arrived empty; " : "", STR_ARG(p->path),
                /* what replaces a file or a statement cannot be sent in parts */
                tool_writes(args->tool) ? "less of it at once, or add the rest with another call"
                                        : "it in parts");
            args->perhaps_cut = tool_writes(args->tool);
        }
    }
}

/* ---- reading ---- */

void arguments_read(struct arguments *args, struct arena *arena, const struct tool *tool,
                    const struct json *sent, struct str fault, const struct config *config)
{
    *args = (struct arguments){.arena = arena, .tool = tool, .sent = sent, .raw = sent};
    problems_init(&args->problems, arena);
    args->unreadable = fault.len || (sent && sent->raw_len > config->limits.arguments);
    if (fault.len)
        add_problem(args, STR_NONE, "unreadable", arena_dup(arena, fault));
    else if (args->unreadable)
        add_problem(args, STR_NONE, "too_large",
                    arena_printf(arena,
                                 "must be at most %u bytes of JSON, got %u: send less, in several calls",
                                 config->limits.arguments, sent->raw_len));
    else if (!json_is(sent, JSON_OBJECT))
        read_text(args);
    if (!args->raw)
        args->raw = no_arguments(arena);
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

/* Removing contradictions can make a schema stricter: accept what fits either version. */
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
 * coerced. A reading counts only if the schema accepts it, and if there is one: with two, the intended
 * one is unknown. Of a tool that destroys, only the spelling of JSON is repaired; what else would fit is
 * proposed, and the model must send it.
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
    return !declares_parameters(tool) || undeclared(args, value) == value->len ? wrapper : NULL;
}

/* Unwraps up to WRAPPERS_MAX levels; returns the inner object if it has a declared name or is empty, else
 * NULL. */
static const struct json *unwrap(struct arguments *args, const struct json_member *wrapper)
{
    const struct json *inner = NULL;
    for (unsigned i = 0; i < WRAPPERS_MAX && wrapper; i++) {
        inner = container_in(args->arena, &wrapper->value);
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
 * right or wrong. If both a wrapper and a misspelled name fit, the intended one is unknown. */
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
 * the tool would run without its parameters. Or a wrapper around nothing: of a tool that writes, it may mean
 * all. Adds the problem; false: the wrapper is neither. */
static bool explain_wrapper(struct arguments *args)
{
    const struct json_member *wrapper = wrapper_of(args, args->now);
    if (!wrapper || !args->tool->proposes.wrapped)
        return false;
    const struct json *value = &wrapper->value, *inner = container_in(args->arena, value);
    struct str text = str_trim(json_str(value));
    struct problem cut;
    bool nothing = json_is(value, JSON_NULL) || (json_is(value, JSON_STRING) && !text.len) ||
                   (json_is(inner, JSON_OBJECT) && !inner->len);
    if (begins_as_json(text) && !inner && is_cut_off(args->arena, value, wrapper->key, &cut))
        problems_add(&args->problems, cut);
    else if (begins_as_json(text) && !inner)
        add_problem(args, wrapper->key, "not_json",
                    STR_LIT("holds text that is no JSON: send the parameters at the top level, as a JSON "
                            "object"));
    else if (nothing && tool_writes(args->tool) && may_mean_all(args))
        add_problem(args, wrapper->key, "empty",
                    STR_LIT("holds nothing, and without arguments this tool may act on everything: send "
                            "what you mean at the top level; {} if you mean no arguments"));
    return args->problems.errors;
}

/* Finds the one reading of args->now that the schema accepts and makes it args->now, or proposes it. False:
 * it is not applied, and unless problems were added the schema says what is wrong with args->now. For
 * arguments that the schema rejects, or that have members which it does not declare. */
static bool read_otherwise(struct arguments *args)
{
    const struct tool *tool = args->tool;
    struct reading reading = read_as(args, args->now, &tool->coerce);
    if (explain_wrapper(args))
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
        add_problem(args, reading.wrapper, "ambiguous",
                    STR_LIT("is a wrapper around the parameters, or another spelling of one of them: send "
                            "the parameters at the top level"));
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
        /* At most half of the budget goes into other readings, and what they took is given back: arguments
         * without one are explained, however many there are. */
        uint32_t spent = args->work.steps, half = SCHEMA_MAX_STEPS / 2;
        args->work.steps = spent > half ? spent : half;
        valid = read_otherwise(args);
        args->work.steps = spent;
        if (valid)
            schema_inspect(tool->input_schema, args->now, &remarks, &args->work);
    }
    if (!valid && !args->problems.errors) { /* a reading that is only proposed stops the call in any case */
        explain(args);
        explain_cuts(args);
        explain_markup(args);
        if (args->proposed && !args->problems.errors)
            add_problem(args, STR_NONE, "not_repaired",
                        STR_LIT("are not repaired, since this tool destroys data: send exactly what you "
                                "mean"));
    }
    if (args->problems.errors)
        return;
    if (tool->coerce.floats) { /* valid as they are, but a server in a strict language takes no 30.0 for 30 */
        static const struct coerce_options floats = {.floats = true};
        args->now = schema_coerce(tool->input_schema, args->now, &floats, args->arena, &args->work);
    }
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
        return;
    }
    if (outcome.kind == OUTCOME_REPAIR) {
        for (size_t i = 0; i < outcome.problems.count; i++)
            problems_add(&args->problems, outcome.problems.list[i]);
        args->problems.more += outcome.problems.more;
        return;
    }
    const struct tool *tool = args->tool;
    bool validates =
        !(tool->policy && !tool->policy->validate) && tool->schema_mode != SCHEMA_ADVISE && !args->lax;
    if (outcome.args == args->now || !validates || fits(tool, outcome.args, NULL)) {
        args->now = outcome.args;
        return;
    }
    /* If rules or normalise make valid arguments invalid, the policy is at fault, not the model; its changes
     * are dropped, even with on_policy_error = "open". */
    struct problems violations;
    problems_init(&violations, args->arena);
    schema_explain(tool->input_schema, outcome.args, &violations, NULL);
    struct str complaint =
        arena_printf(args->arena, "'" STR_FMT "' " STR_FMT, STR_ARG(violations.list[0].path),
                     STR_ARG(violations.list[0].message));
    args->policy_error = policy_report_schema_violation(policy, args->now, accepts, tool->input_schema,
                                                        complaint, args->arena);
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
