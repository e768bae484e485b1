/*
 * What the providers' APIs refuse, according to their documentation and error
 * messages in 2026: Anthropic (Messages API, tools.input_schema),
 * OpenAI (function calling, and Structured Outputs' "supported schemas" for
 * strict mode), Google (Gemini API, FunctionDeclaration and Schema).
 */
#include "lint/lint_internal.h"

#include "base/arena.h"
#include "catalog/openai_strict.h"

#define OPENAI_TOOLS_MAX         128u   /* "Expected an array with maximum length 128" */
#define OPENAI_DESCRIPTION_MAX   1024u  /* characters; "Expected a string with maximum length 1024" */
#define OPENAI_ENUM_VALUES_MAX   1000u  /* in all of a schema */
#define OPENAI_ENUM_LONG         250u   /* values of one enum; above that their total length is limited */
#define OPENAI_ENUM_CHARS_MAX    15000u /* of such an enum */
#define ANTHROPIC_PROPERTY_BYTES 64u    /* ^[a-zA-Z0-9_.-]{1,64}$ */

static struct str join(struct lint_context *c, struct str path, struct str name)
{
    return arena_printf(c->arena, STR_FMT "%s" STR_FMT, STR_ARG(path), path.len ? "." : "", STR_ARG(name));
}

static const char *const branches[] = {"anyOf", "oneOf", "allOf"};

/* The walk descends into anyOf, oneOf and allOf with the path of the schema around them; `visit` is not
 * called for a branch itself. */
static void walk(struct lint_context *c, struct str path, const struct json *schema, lint_visit *visit,
                 int depth)
{
    const struct json *properties = json_get_text(schema, "properties"),
                      *items = json_get_text(schema, "items");
    if (!json_is(schema, JSON_OBJECT) || depth > 64)
        return;
    for (uint32_t i = 0; json_is(properties, JSON_OBJECT) && i < properties->len; i++) {
        struct str below = join(c, path, properties->members[i].key);
        visit(c, below, &properties->members[i].value);
        walk(c, below, &properties->members[i].value, visit, depth + 1);
    }
    if (json_is(items, JSON_OBJECT)) {
        struct str below = arena_printf(c->arena, STR_FMT "[]", STR_ARG(path));
        visit(c, below, items);
        walk(c, below, items, visit, depth + 1);
    }
    for (size_t i = 0; depth > 0 && i < sizeof(branches) / sizeof(branches[0]); i++) {
        const struct json *list = json_get_text(schema, branches[i]);
        for (uint32_t n = 0; json_is(list, JSON_ARRAY) && n < list->len; n++)
            walk(c, path, &list->items[n], visit, depth + 1);
    }
}

void lint_walk(struct lint_context *c, const struct json *schema, lint_visit *visit)
{
    walk(c, STR_NONE, schema, visit, 0);
}

int lint_tool_line(const struct lint_context *c)
{
    return c->policy ? location_of_tool(c->tokens) : 0;
}

int lint_schema_line(const struct lint_context *c)
{
    int line = c->policy ? location_of_field(c->tokens, NULL, STR_LIT("schema")) : 0;
    return line ? line : lint_tool_line(c);
}

static const struct json *shown_schema(const struct lint_context *c)
{
    return c->shown ? json_get_text(c->shown, "inputSchema") : NULL;
}

void lint_root_choice(struct lint_context *c)
{
    for (size_t i = 0; i < sizeof(branches) / sizeof(branches[0]); i++)
        if (json_get_text(shown_schema(c), branches[i]))
            lint_report(
                c, lint_schema_line(c),
                "tool '" STR_FMT
                "': %s at the root of the schema, which Anthropic's API refuses, and OpenAI's "
                "in strict mode: use rules (needs_one_of, exclusive, when), or move it into a property",
                STR_ARG(c->tool->name), branches[i]);
}

static bool fits_anthropic(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        struct str one = {name.at + i, 1};
        if (name.at[i] != '.' && !str_is_name(one))
            return false;
    }
    return name.len >= 1 && name.len <= ANTHROPIC_PROPERTY_BYTES;
}

static void check_properties(struct lint_context *c, struct str path, const struct json *schema)
{
    const struct json *properties = json_get_text(schema, "properties");
    for (uint32_t i = 0; json_is(properties, JSON_OBJECT) && i < properties->len; i++)
        if (!fits_anthropic(properties->members[i].key))
            lint_report(c, lint_schema_line(c),
                        "tool '" STR_FMT "': the argument '" STR_FMT
                        "' has a name that Anthropic's API refuses: use 1 "
                        "to 64 letters, digits, '_', '.' and '-'",
                        STR_ARG(c->tool->name), STR_ARG(join(c, path, properties->members[i].key)));
}

void lint_property_name(struct lint_context *c)
{
    check_properties(c, STR_NONE, shown_schema(c));
    lint_walk(c, shown_schema(c), check_properties);
}

static void check_list(struct lint_context *c, struct str path, const struct json *schema)
{
    const struct json *type = json_get_text(schema, "type");
    bool list = str_is(json_str(type), "array") || json_array_has(type, STR_LIT("array"));
    if (list && !json_get_text(schema, "items"))
        lint_report(c, lint_schema_line(c),
                    "tool '" STR_FMT "': the list '" STR_FMT "' has no 'items' schema, which OpenAI's and "
                    "Gemini's APIs refuse: add items, as in list(str, \"…\")",
                    STR_ARG(c->tool->name), STR_ARG(path));
}

void lint_list_items(struct lint_context *c)
{
    lint_walk(c, shown_schema(c), check_list);
}

static size_t characters(struct str text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += (text.at[i] & 0xc0) != 0x80;
    return count;
}

void lint_long_description(struct lint_context *c)
{
    struct str text = c->shown ? json_str(json_get_text(c->shown, "description")) : STR_NONE;
    size_t count = characters(text);
    if (count > OPENAI_DESCRIPTION_MAX)
        lint_report(c, lint_tool_line(c),
                    "tool '" STR_FMT
                    "': the description that models see, use_when, avoid_when and rules included, has "
                    "%zu characters, and OpenAI's API allows %u: shorten it",
                    STR_ARG(c->tool->name), count, OPENAI_DESCRIPTION_MAX);
}

static void check_enum(struct lint_context *c, struct str path, const struct json *schema)
{
    const struct json *values = json_get_text(schema, "enum");
    size_t length = 0;
    if (!json_is(values, JSON_ARRAY))
        return;
    c->enum_values += values->len;
    for (uint32_t i = 0; i < values->len; i++)
        length += characters(json_str(&values->items[i]));
    if (values->len > OPENAI_ENUM_LONG && length > OPENAI_ENUM_CHARS_MAX)
        lint_report(c, lint_schema_line(c),
                    "tool '" STR_FMT "': the enum of '" STR_FMT
                    "' has %u values with %zu characters in total, and OpenAI's "
                    "strict mode allows %u: shorten them, or use a string with a check",
                    STR_ARG(c->tool->name), STR_ARG(path), values->len, length, OPENAI_ENUM_CHARS_MAX);
}

void lint_many_values(struct lint_context *c)
{
    c->enum_values = 0;
    lint_walk(c, shown_schema(c), check_enum);
    if (c->enum_values > OPENAI_ENUM_VALUES_MAX)
        lint_report(c, lint_schema_line(c),
                    "tool '" STR_FMT
                    "': its enums have %zu values in total, and OpenAI's strict mode allows %u: use a "
                    "string with a check, or split the tool",
                    STR_ARG(c->tool->name), c->enum_values, OPENAI_ENUM_VALUES_MAX);
}

void lint_many_tools(struct lint_context *c)
{
    size_t shown = 0;
    for (size_t i = 0; i < c->generation->tool_count; i++)
        shown += tool_is_described(c->generation->tools[i]);
    if (shown > OPENAI_TOOLS_MAX)
        lint_report(
            c, 0,
            "%zu tools are shown, and OpenAI's API allows %u: hide some with prepare_tools in a gateway "
            "file, or "
            "serve them by several daemons",
            shown, OPENAI_TOOLS_MAX);
}

void lint_first_letter(struct lint_context *c)
{
    struct str name = c->tool->name;
    char first = name.len ? name.at[0] : '_';
    if (c->shown && ((first >= '0' && first <= '9') || first == '-'))
        lint_report(c, lint_tool_line(c),
                    "tool '" STR_FMT
                    "': Gemini's API requires names that begin with a letter or '_': rename it, with "
                    "the old name in aliases",
                    STR_ARG(name));
}

static void check_enum_type(struct lint_context *c, struct str path, const struct json *schema)
{
    const struct json *values = json_get_text(schema, "enum");
    for (uint32_t i = 0; json_is(values, JSON_ARRAY) && i < values->len; i++)
        if (!json_is(&values->items[i], JSON_STRING) && !json_is(&values->items[i], JSON_NULL)) {
            lint_report(c, lint_schema_line(c),
                        "tool '" STR_FMT "': the enum of '" STR_FMT
                        "' has values other than strings, which Gemini's API "
                        "may refuse: use strings, or min and max",
                        STR_ARG(c->tool->name), STR_ARG(path));
            return;
        }
}

void lint_enum_type(struct lint_context *c)
{
    lint_walk(c, shown_schema(c), check_enum_type);
}

void lint_strict(struct lint_context *c)
{
    const struct json *schema = shown_schema(c);
    struct json closed;
    struct why why;
    if (schema && openai_strict_schema(c->arena, schema, &closed, NULL, &why) != OK)
        lint_report(c, lint_schema_line(c), "tool '" STR_FMT "': not possible in OpenAI's strict mode: %s",
                    STR_ARG(c->tool->name), why.text);
}
