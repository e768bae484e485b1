/*
 * What the providers' APIs refuse, as their documentation and their error
 * messages had it in 2026: Anthropic (Messages API, tools.input_schema),
 * OpenAI (function calling, and Structured Outputs' "supported schemas" for
 * strict mode), Google (Gemini API, FunctionDeclaration and Schema).
 */
#include "lint/lint_internal.h"

#include "base/arena.h"
#include "catalog/openai_strict.h"

#define OPENAI_TOOLS_MAX         128u   /* "Expected an array with maximum length 128" */
#define OPENAI_DESCRIPTION_MAX   1024u  /* characters; "Expected a string with maximum length 1024" */
#define OPENAI_ENUM_VALUES_MAX   1000u  /* in all of a schema */
#define OPENAI_ENUM_LONG         250u   /* values of one enum, from which on their length counts */
#define OPENAI_ENUM_CHARS_MAX    15000u /* of such an enum */
#define ANTHROPIC_PROPERTY_BYTES 64u    /* ^[a-zA-Z0-9_.-]{1,64}$ */

/* ---- walking a schema --------------------------------------------------------------- */

static struct str join(struct looking *look, struct str path, struct str name)
{
    return arena_printf(look->arena, STR_FMT "%s" STR_FMT, STR_ARG(path), path.len ? "." : "", STR_ARG(name));
}

static void walk(struct looking *look, struct str path, const struct json *schema, lint_visit *visit,
                 int depth);

static void walk_branches(struct looking *look, struct str path, const struct json *schema, lint_visit *visit,
                          int depth)
{
    static const char *const lists[] = {"anyOf", "oneOf", "allOf"};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        const struct json *list = json_get_text(schema, lists[i]);
        for (uint32_t n = 0; json_is(list, JSON_ARRAY) && n < list->len; n++)
            walk(look, path, &list->items[n], visit, depth);
    }
}

/* Branches are the same place again, so they are not visited themselves. */
static void walk(struct looking *look, struct str path, const struct json *schema, lint_visit *visit,
                 int depth)
{
    const struct json *properties = json_get_text(schema, "properties"),
                      *items = json_get_text(schema, "items");
    if (!json_is(schema, JSON_OBJECT) || depth > 64)
        return;
    for (uint32_t i = 0; json_is(properties, JSON_OBJECT) && i < properties->len; i++) {
        struct str below = join(look, path, properties->members[i].key);
        visit(look, below, &properties->members[i].value);
        walk(look, below, &properties->members[i].value, visit, depth + 1);
    }
    if (json_is(items, JSON_OBJECT)) {
        struct str below = arena_printf(look->arena, STR_FMT "[]", STR_ARG(path));
        visit(look, below, items);
        walk(look, below, items, visit, depth + 1);
    }
    if (depth > 0)
        walk_branches(look, path, schema, visit, depth + 1);
}

void lint_walk(struct looking *look, const struct json *schema, lint_visit *visit)
{
    walk(look, STR_NONE, schema, visit, 0);
}

int lint_schema_line(const struct looking *look)
{
    if (!look->policy)
        return 0;
    int line = introspection_line(&look->survey, NULL, STR_LIT("schema"));
    return line ? line : introspection_tool_line(&look->survey);
}

static const struct json *shown_schema(const struct looking *look)
{
    return look->shown ? json_get_text(look->shown, "inputSchema") : NULL;
}

/* ---- what all calls of that tool list would fail by ------------------------------------ */

void lint_root_choice(struct looking *look)
{
    static const char *const refused[] = {"oneOf", "anyOf", "allOf"};
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (json_get_text(shown_schema(look), refused[i]))
            lint_report(
                look, lint_schema_line(look),
                "tool '" STR_FMT
                "': %s at the root of the schema, which Anthropic's API refuses, and OpenAI's "
                "in strict mode: say it as rules (needs_one_of, exclusive, when), or inside a property",
                STR_ARG(look->tool->name), refused[i]);
}

static bool fits_anthropic(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        if (!((c | 32) >= 'a' && (c | 32) <= 'z') && !(c >= '0' && c <= '9') && c != '_' && c != '.' &&
            c != '-')
            return false;
    }
    return name.len >= 1 && name.len <= ANTHROPIC_PROPERTY_BYTES;
}

static void look_at_properties(struct looking *look, struct str path, const struct json *schema)
{
    const struct json *properties = json_get_text(schema, "properties");
    for (uint32_t i = 0; json_is(properties, JSON_OBJECT) && i < properties->len; i++)
        if (!fits_anthropic(properties->members[i].key))
            lint_report(look, lint_schema_line(look),
                        "tool '" STR_FMT "': the argument '" STR_FMT
                        "' has a name that Anthropic's API refuses: take 1 "
                        "to 64 letters, digits, '_', '.' and '-'",
                        STR_ARG(look->tool->name), STR_ARG(join(look, path, properties->members[i].key)));
}

void lint_property_name(struct looking *look)
{
    look_at_properties(look, STR_NONE, shown_schema(look));
    lint_walk(look, shown_schema(look), look_at_properties);
}

static bool is_list(const struct json *schema)
{
    const struct json *type = json_get_text(schema, "type");
    bool list = str_is(json_str(type), "array");
    for (uint32_t i = 0; json_is(type, JSON_ARRAY) && i < type->len; i++)
        list |= str_is(json_str(&type->items[i]), "array");
    return list;
}

static void look_at_list(struct looking *look, struct str path, const struct json *schema)
{
    if (is_list(schema) && !json_get_text(schema, "items"))
        lint_report(look, lint_schema_line(look),
                    "tool '" STR_FMT "': the list '" STR_FMT
                    "' does not say what its items are, which OpenAI's and "
                    "Gemini's APIs refuse: add items, as in list(str, \"…\")",
                    STR_ARG(look->tool->name), STR_ARG(path));
}

void lint_list_items(struct looking *look)
{
    lint_walk(look, shown_schema(look), look_at_list);
}

static size_t characters(struct str text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += (text.at[i] & 0xc0) != 0x80;
    return count;
}

void lint_long_description(struct looking *look)
{
    struct str text = look->shown ? json_str(json_get_text(look->shown, "description")) : STR_NONE;
    size_t count = characters(text);
    if (count > OPENAI_DESCRIPTION_MAX)
        lint_report(look, look->policy ? introspection_tool_line(&look->survey) : 0,
                    "tool '" STR_FMT
                    "': the description that models see, use_when, avoid_when and rules included, has "
                    "%zu characters, and OpenAI's API takes %u: shorten it",
                    STR_ARG(look->tool->name), count, OPENAI_DESCRIPTION_MAX);
}

static void look_at_enum(struct looking *look, struct str path, const struct json *schema)
{
    const struct json *values = json_get_text(schema, "enum");
    size_t length = 0;
    if (!json_is(values, JSON_ARRAY))
        return;
    look->counted += values->len;
    for (uint32_t i = 0; i < values->len; i++)
        length += characters(json_str(&values->items[i]));
    if (values->len > OPENAI_ENUM_LONG && length > OPENAI_ENUM_CHARS_MAX)
        lint_report(look, lint_schema_line(look),
                    "tool '" STR_FMT "': the enum of '" STR_FMT
                    "' has %u values of %zu characters together, and OpenAI's "
                    "strict mode takes %u: shorten them, or take a text and check it",
                    STR_ARG(look->tool->name), STR_ARG(path), values->len, length, OPENAI_ENUM_CHARS_MAX);
}

void lint_many_values(struct looking *look)
{
    look->counted = 0;
    lint_walk(look, shown_schema(look), look_at_enum);
    if (look->counted > OPENAI_ENUM_VALUES_MAX)
        lint_report(look, lint_schema_line(look),
                    "tool '" STR_FMT
                    "': its enums have %zu values together, and OpenAI's strict mode takes %u: take a "
                    "text and check it, or split the tool",
                    STR_ARG(look->tool->name), look->counted, OPENAI_ENUM_VALUES_MAX);
}

void lint_many_tools(struct looking *look)
{
    size_t shown = 0;
    for (size_t i = 0; i < generation_tool_count(look->generation); i++)
        shown += tool_is_described(generation_tool_at(look->generation, i));
    if (shown > OPENAI_TOOLS_MAX)
        lint_report(look, 0,
                    "%zu tools, and OpenAI's API takes %u at a time: hide some by prepare_tools in a gateway "
                    "file, or "
                    "serve them by several daemons",
                    shown, OPENAI_TOOLS_MAX);
}

/* ---- notes ----------------------------------------------------------------------------- */

void lint_first_letter(struct looking *look)
{
    struct str name = look->tool->name;
    char c = name.len ? name.at[0] : '_';
    if (look->shown && ((c >= '0' && c <= '9') || c == '-'))
        lint_report(look, look->policy ? introspection_tool_line(&look->survey) : 0,
                    "tool '" STR_FMT
                    "': Gemini's API takes names that begin with a letter or '_' only: rename it, with "
                    "the old name in aliases",
                    STR_ARG(name));
}

static void look_at_enum_type(struct looking *look, struct str path, const struct json *schema)
{
    const struct json *values = json_get_text(schema, "enum");
    for (uint32_t i = 0; json_is(values, JSON_ARRAY) && i < values->len; i++)
        if (!json_is(&values->items[i], JSON_STRING) && !json_is(&values->items[i], JSON_NULL)) {
            lint_report(look, lint_schema_line(look),
                        "tool '" STR_FMT "': the enum of '" STR_FMT
                        "' holds values that are no texts, which Gemini's API "
                        "may refuse: use texts, or min and max",
                        STR_ARG(look->tool->name), STR_ARG(path));
            return;
        }
}

void lint_enum_type(struct looking *look)
{
    lint_walk(look, shown_schema(look), look_at_enum_type);
}

void lint_strict(struct looking *look)
{
    const struct json *schema = shown_schema(look);
    struct json closed;
    struct why why;
    if (schema && openai_strict_schema(look->arena, schema, &closed, &why) != OK)
        lint_report(look, lint_schema_line(look), "tool '" STR_FMT "': not for OpenAI's strict mode: %s",
                    STR_ARG(look->tool->name), why.text);
}
