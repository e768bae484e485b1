/*
 * Paths in a policy that its schema does not have; a schema with references or
 * branches is not checked. And options of exec that stay without their argument.
 */
#include "cli/lint.h"

#include "base/suggest.h"
#include "policy/source_location.h"
#include "upstream/exec/exec.h"

#define PATH_NAMES_MAX 256u

enum lookup { FOUND, UNKNOWN, MISSING };

static bool is_plain(const struct json *schema)
{
    static const char *const branching[] = {"$ref", "$dynamicRef",       "anyOf",           "oneOf", "allOf",
                                            "if",   "patternProperties", "dependentSchemas"};
    for (size_t i = 0; i < sizeof(branching) / sizeof(branching[0]); i++)
        if (json_get_text(schema, branching[i]))
            return false;
    return json_is(schema, JSON_OBJECT);
}

/* Moves `*schema` to the property. */
static enum lookup enter_property(const struct json **schema, struct str name, struct str *closest)
{
    const struct json *properties = json_get_text(*schema, "properties");
    const struct json *others = json_get_text(*schema, "additionalProperties"), *found;
    if (!is_plain(*schema) || !json_is(properties, JSON_OBJECT) || !properties->len)
        return UNKNOWN;
    found = json_get(properties, name);
    if (!found && json_is(others, JSON_OBJECT))
        found = others;
    if (!found) {
        struct str names[PATH_NAMES_MAX];
        uint32_t count = 0;
        for (; count < properties->len && count < PATH_NAMES_MAX; count++)
            names[count] = properties->members[count].key;
        *closest = suggest_closest(name, names, count);
        return MISSING;
    }
    *schema = found;
    return FOUND;
}

/* "events[].id" */
static enum lookup find_path(const struct json *schema, struct str path, struct str *closest)
{
    enum lookup lookup = FOUND;
    *closest = STR_NONE;
    while (path.len && lookup == FOUND) {
        size_t n = 0;
        while (n < path.len && path.at[n] != '.' && path.at[n] != '[')
            n++;
        if (n)
            lookup = enter_property(&schema, (struct str){path.at, n}, closest);
        path = str_from(path, n);
        while (lookup == FOUND && str_starts(path, "[]")) {
            const struct json *items = json_get_text(schema, "items");
            lookup = is_plain(schema) && json_is(items, JSON_OBJECT) ? FOUND : UNKNOWN;
            schema = items;
            path = str_from(path, 2);
        }
        if (path.len && path.at[0] != '.' && lookup == FOUND)
            return UNKNOWN;
        path = str_from(path, path.len ? 1 : 0);
    }
    return lookup;
}

static void check_path(struct lint_context *c, const struct json *schema, const char *parent,
                       const char *field, struct str path, const char *which)
{
    struct str closest;
    if (!schema || find_path(schema, path, &closest) != MISSING)
        return;
    int line = location_of_field(c->tokens, parent, str_of(field));
    const char *dot = parent ? "." : "";
    if (closest.len)
        lint_report(c, line,
                    "'%s%s%s' names '" STR_FMT "', which the %s does not have (did you mean '" STR_FMT "'?)",
                    parent ? parent : "", dot, field, STR_ARG(path), which, STR_ARG(closest));
    else
        lint_report(c, line,
                    "'%s%s%s' names '" STR_FMT
                    "', which the %s does not have: add it there, or remove it here",
                    parent ? parent : "", dot, field, STR_ARG(path), which);
}

void lint_argument_paths(struct lint_context *c)
{
    const struct policy *p = c->policy;
    for (size_t i = 0; p && i < p->id_count; i++)
        check_path(c, c->tool->input, NULL, "ids", p->ids[i].path, "schema");
    for (size_t i = 0; p && i < p->volatile_count; i++)
        check_path(c, c->tool->input, "loop", "volatile", p->volatiles[i], "schema");
}

/* Only real paths: in redact, keep and drop a single name means a field at any depth. */
static void check_paths(struct lint_context *c, const char *parent, const char *field, const struct str *list,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (memchr(list[i].at, '.', list[i].len) || memchr(list[i].at, '[', list[i].len))
            check_path(c, c->tool->output, parent, field, list[i], "output schema");
}

void lint_result_paths(struct lint_context *c)
{
    const struct policy *p = c->policy;
    for (size_t i = 0; p && i < p->gives_id_count; i++)
        check_path(c, c->tool->output, NULL, "gives_ids", p->gives_ids[i], "output schema");
    if (!p)
        return;
    check_paths(c, "loop", "volatile_result", p->volatile_results, p->volatile_result_count);
    check_paths(c, NULL, "redact", p->redact, p->redact_count);
    check_paths(c, "compact", "keep", p->compact.keep, p->compact.keep_count);
    check_paths(c, "compact", "drop", p->compact.drop, p->compact.drop_count);
}

/* The optional argument that the word names, without which exec omits it, or STR_NONE. */
static struct str optional_argument(const struct json *schema, struct str word)
{
    struct exec_piece piece;
    while (exec_argv_next_piece(&word, &piece))
        if (piece.kind == EXEC_PIECE_ARGUMENT &&
            !json_array_has(json_get_text(schema, "required"), piece.text))
            return piece.text;
    return STR_NONE;
}

/* "--max-count" and "max_count"; of other options it is unknown whether they take a value. */
static bool is_named_after(struct str option, struct str name)
{
    bool same = option.len == name.len + 2 && str_starts(option, "--");
    for (size_t i = 0; same && i < name.len; i++)
        same = option.at[i + 2] == name.at[i] || (option.at[i + 2] == '-' && name.at[i] == '_');
    return same;
}

/* "--limit", "{limit}" outside a group. */
void lint_left_option(struct lint_context *c)
{
    const struct exec_spec *exec = c->policy ? c->policy->exec : NULL;
    const struct json *schema = c->policy ? c->policy->schema : NULL;
    if (!exec || !schema)
        return;
    for (size_t i = 1; i < exec->word_count; i++) {
        const struct exec_word *option = &exec->words[i - 1], *word = &exec->words[i];
        if (option->group || word->group)
            continue;
        struct str name = optional_argument(schema, word->text);
        if (name.len && is_named_after(option->text, name))
            lint_report(c, lint_tool_line(c),
                        "exec: without the argument '" STR_FMT "', the option '" STR_FMT
                        "' takes the next word as its value: put both into a group, { \"" STR_FMT
                        "\", \"{" STR_FMT "}\" }",
                        STR_ARG(name), STR_ARG(option->text), STR_ARG(option->text), STR_ARG(name));
    }
}
