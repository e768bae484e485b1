/*
 * Frameworks send arguments as a JSON string, models spell the JSON in it oddly, and both cut long texts off.
 * A text is read if it has one reading; one that was cut off is never completed, and the problem says where
 * it ends.
 */
#include "gate/arguments.h"

#include "base/arena.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"

#define SEND_IN_PARTS "If the value is long, send it in parts."

static const struct json *no_arguments(struct arena *arena)
{
    return json_keep(arena, json_object(arena, NULL, 0));
}

/* ---- cut off ---- */

/* 18932 as "18,932". */
static struct str grouped(struct arena *arena, size_t n)
{
    struct str digits = arena_printf(arena, "%zu", n);
    struct buf out = buf_in(arena);
    for (size_t i = 0; i < digits.len; i++) {
        if (i && (digits.len - i) % 3 == 0)
            buf_byte(&out, ',');
        buf_byte(&out, digits.at[i]);
    }
    return buf_view(&out);
}

static struct problem cut_problem(struct arena *arena, struct str path, const struct json_cut *cut)
{
    struct buf text = buf_in(arena);
    buf_text(&text, path.len ? "was cut off after " : "arguments were cut off after ");
    buf_str(&text, grouped(arena, cut->chars));
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

bool arguments_begin_as_json(const struct json *text)
{
    return begins_as_json(str_trim(json_str(text)));
}

bool arguments_is_cut_off(struct arena *arena, const struct json *value, struct str path,
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

const struct json *arguments_container(struct arena *arena, const struct json *value)
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

/* The value that the text holds. NULL: none, and *problem says why. */
static const struct json *read_one(struct arguments *args, const struct json *value, struct problem *problem)
{
    struct json read;
    struct json_cut cut;
    struct json_error error;
    struct str text = str_trim(json_str(value));
    if (json_parse(args->arena, text, NULL, &read, &error) == OK)
        return json_keep(args->arena, read);
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
    return NULL;
}

/* ---- nothing instead of the arguments ---- */

bool arguments_are_declared(const struct tool *tool)
{
    static const char *const keywords[] = {"$ref",  "anyOf",       "oneOf",
                                           "allOf", "$dynamicRef", "patternProperties"};
    for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
        if (json_get_text(tool->input, keywords[i]))
            return true;
    return tool->parameter_count;
}

/* Without arguments a tool whose parameters are all optional often acts on everything. */
bool arguments_may_mean_all(const struct arguments *args)
{
    return arguments_are_declared(args->tool) &&
           schema_validate(args->tool->input_schema, no_arguments(args->arena)) == SCHEMA_VALID;
}

void arguments_read_text(struct arguments *args)
{
    const struct json *value = args->sent;
    struct problem problem = {.code = NULL};
    for (unsigned i = 0; i < ARGUMENTS_ENCODED_MAX && json_is(value, JSON_STRING); i++) {
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
        if (risky && arguments_may_mean_all(args)) {
            const char *got = !value ? "nothing" : value->type == JSON_NULL ? "null" : "blank text";
            problems_add(&args->problems,
                         (struct problem){
                             .code = "empty",
                             .message = arena_printf(
                                 args->arena,
                                 "expected an object with the tool's parameters, got %s: this tool %s, and "
                                 "without arguments it may act on everything. Send what you mean; {} if you "
                                 "mean no arguments",
                                 got, tool_destroys(args->tool) ? "destroys data" : "changes data")});
            args->unreadable = json_is(args->sent, JSON_STRING);
        }
        return;
    }
    if (json_is(value, JSON_OBJECT)) {
        args->raw = value;
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

static bool is_name_of_long_text(struct str name)
{
    static const char *const words[] = {"code",   "content",  "contents", "query", "text",
                                        "body",   "html",     "script",   "patch", "diff",
                                        "prompt", "markdown", "sql",      "source"};
    size_t start = name.len; /* of its last word: "newContent" and "new_content" end in "content" */
    while (start > 0 && ascii_is_letter(name.at[start - 1])) {
        start--;
        bool is_upper = name.at[start] < 'a';
        if (is_upper && start > 0 && name.at[start - 1] >= 'a')
            break;
    }
    struct str word = str_from(name, start);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (word.len == strlen(words[i]) && strncasecmp(word.at, words[i], word.len) == 0)
            return word.len == name.len || strcmp(words[i], "code") != 0; /* country_code is short */
    return false;
}

/* A string without bounds whose name or description makes a long value likely. */
static bool is_long_field(const struct tool *tool, struct str name)
{
    static const char *const phrases[] = {"source code",   "full text",  "full content", "entire content",
                                          "whole content", "multi-line", "multiline",    "complete content"};
    static const char *const bounds[] = {"maxLength", "enum", "const", "format", "pattern"};
    const struct json *schema = json_get(json_get_text(tool->input, "properties"), name);
    if (!str_is(json_str(json_get_text(schema, "type")), "string"))
        return false;
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++)
        if (json_get_text(schema, bounds[i]))
            return false;
    for (size_t i = 0; i < sizeof(phrases) / sizeof(phrases[0]); i++)
        if (str_contains_nocase(json_str(json_get_text(schema, "description")), str_of(phrases[i])))
            return true;
    return is_name_of_long_text(name);
}

void arguments_explain_cuts(struct arguments *args)
{
    bool arrived_empty = json_is(args->now, JSON_OBJECT) && !args->now->len;
    for (size_t i = 0; i < args->problems.count; i++) {
        struct problem *p = &args->problems.list[i], cut;
        const struct json *value = p->path.len ? value_at(args->now, p->path) : NULL;
        if (json_is(value, JSON_STRING) && arguments_is_cut_off(args->arena, value, p->path, &cut)) {
            args->problems.errors += p->warning;
            *p = cut;
        } else if (strcmp(p->code, "missing") == 0 && !p->warning && is_long_field(args->tool, p->path)) {
            p->message = arena_printf(
                args->arena,
                STR_FMT ". Note: %sif '" STR_FMT "' was long, it may have been cut off: send it in parts",
                STR_ARG(p->message), arrived_empty ? "arguments arrived empty; " : "", STR_ARG(p->path));
            args->perhaps_cut = tool_writes(args->tool);
        }
    }
}
