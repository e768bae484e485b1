/*
 * The fields that words read are checked in Lua, by names that come from
 * here (native.fields), so that what is documented and what is taken are one.
 */
#include "policy/vocabulary/field_tables.h"
#include "base/arena.h"
#include "policy/call_table.h"
#include "policy/declare/declare_internal.h"

#include <stdio.h>

/* ---- what words take ------------------------------------------------------------------ */

static const struct field problem_fields[] = {
    {.name = "path",
     .form = "\"items[0].id\"",
     .type = "string",
     .sentence = "The argument that is wrong; without it the model has to guess."},
    {.name = "message",
     .form = "\"must not be before 'start'\"",
     .type = "string",
     .required = true,
     .sentence = "What is wrong, and what would be right."},
    {.name = "code",
     .form = "\"before_start\"",
     .type = "string",
     .sentence = "The same for programs and logs."},
    {.name = "suggest",
     .form = "5  or  { start = …, [\"end\"] = … }",
     .type = "any",
     .sentence = "The value to send, or a table of arguments to change."},
    {.name = "expected", .form = "\"a day after start\"", .type = "any", .sentence = "What would be right."},
    {.name = "got", .form = "args.start", .type = "any", .sentence = "What was sent."},
};

static const struct field_table problem_table = {
    .of = "repair",
    .type = "toolgate.Problem",
    .sentence = "What `repair { … }` takes: one problem, or a list of them.",
    FIELD_TABLE(problem_fields)};

static const struct field ok_fields[] = {
    {.name = "coverage",
     .form = "\"SATISFIED\"",
     .type = "toolgate.Coverage",
     .sentence =
         "How far the user's question is answered: SATISFIED, NEEDS_MORE_TOOLS, NEED_USER_INPUT, FAILED."},
    {.name = "facts",
     .form = "{ orders = 3 }",
     .type = "table<string, any>",
     .sentence = "Remembered for the session; they come back as call.facts."},
    {.name = "follow_up",
     .form = "{ tool = \"get_order\", args = { id = \"o7\" } }",
     .type = "toolgate.FollowUp",
     .sentence = "The exact next call."},
    {.name = "cost",
     .form = "0.3",
     .type = "number",
     .sentence = "What this call really cost, instead of what the policy declares."},
};

static const struct field_table ok_table = {
    .of = "ok", .type = "toolgate.Ok", .sentence = "What `ok { … }` takes.", FIELD_TABLE(ok_fields)};

static const struct field follow_up_fields[] = {
    {.name = "tool",
     .form = "\"get_order\"",
     .type = "string",
     .required = true,
     .sentence = "The tool to call."},
    {.name = "args", .form = "{ id = \"o7\" }", .type = "table", .sentence = "All of its arguments."},
};

static const struct field_table follow_up_table = {.of = "ok.follow_up",
                                                   .type = "toolgate.FollowUp",
                                                   .sentence = "What `follow_up` of `ok { … }` holds.",
                                                   FIELD_TABLE(follow_up_fields)};

static const struct field tool_return_fields[] = {
    {.name = "value", .form = "{ saved = true }", .type = "any", .sentence = "The result."},
    {.name = "content",
     .form = "{ { type = \"text\", text = \"…\" } }",
     .type = "table[]",
     .sentence =
         "MCP content blocks (text, image, audio, resource_link, resource), instead of the value as a "
         "text."},
    {.name = "metadata",
     .form = "{ rows = 3 }",
     .type = "table",
     .sentence = "For the agent's program alone, as _meta; the model does not read it."},
};

static const struct field_table tool_return_table = {.of = "tool_return",
                                                     .type = "toolgate.ToolReturn",
                                                     .sentence = "What `tool_return { … }` takes.",
                                                     FIELD_TABLE(tool_return_fields)};

static const struct field seen_fields[] = {
    {.name = "look_up",
     .form = "\"lookup_contact, action search\"",
     .type = "string",
     .sentence = "Where the model finds the id; told when it sends one that nobody gave."},
    {.name = "shape",
     .form = "\"uuid\"",
     .type = "toolgate.ShapeName|toolgate.Id",
     .sentence = "What the id must look like besides."},
};

static const struct field_table seen_table = {.of = "seen",
                                              .type = "toolgate.SeenOptions",
                                              .sentence = "What `seen { … }` takes.",
                                              FIELD_TABLE(seen_fields)};

/* ---- what types take ---------------------------------------------------------------------- */

static const struct field params_fields[] = {
    {.name = "open",
     .form = "true",
     .type = "boolean",
     .sentence = "Fields that are not named are let in, too."},
};

static const struct field_table params_table = {.of = "params",
                                                .type = "toolgate.ParamsOptions",
                                                .sentence =
                                                    "What `params({ … }, { … })` takes after the fields.",
                                                FIELD_TABLE(params_fields)};

static const struct field type_fields[] = {
    {.name = "description",
     .form = "\"Task title\"",
     .type = "string",
     .sentence = "What it is, for the model; the same as the text that stands alone."},
    {.name = "title", .form = "\"Title\"", .type = "string", .sentence = "A short name, for people."},
    {.name = "default",
     .form = "1",
     .type = "any",
     .sentence = "What is told to be meant where it is left out."},
    {.name = "examples", .form = "{ \"Buy milk\" }", .type = "any[]", .sentence = "Values that would do."},
};

static const struct field_table type_table = {.of = "a type",
                                              .items = {"string"},
                                              .type = "toolgate.TypeOptions",
                                              .sentence = "What every type in `params { … }` takes.",
                                              FIELD_TABLE(type_fields)};

static const struct field text_fields[] = {
    {.name = "min", .form = "1", .type = "integer", .sentence = "The least length, in characters."},
    {.name = "max", .form = "120", .type = "integer", .sentence = "The greatest length."},
    {.name = "pattern",
     .form = "\"^[a-z]+$\"",
     .type = "string",
     .sentence = "A regular expression that must be found in it."},
};

static const struct field_table text_table = {.of = "str",
                                              .items = {"string"},
                                              .type = "toolgate.TextOptions: toolgate.TypeOptions",
                                              .sentence = "What `str { … }` takes besides.",
                                              FIELD_TABLE(text_fields)};

static const struct field number_fields[] = {
    {.name = "min", .form = "1", .type = "number", .sentence = "The least value."},
    {.name = "max", .form = "100", .type = "number", .sentence = "The greatest value."},
    {.name = "over", .form = "0", .type = "number", .sentence = "It must be greater than this."},
    {.name = "under", .form = "1", .type = "number", .sentence = "It must be less than this."},
    {.name = "step", .form = "0.5", .type = "number", .sentence = "It must be a multiple of this."},
};

static const struct field_table number_table = {.of = "int, num",
                                                .items = {"string"},
                                                .type = "toolgate.NumberOptions: toolgate.TypeOptions",
                                                .sentence = "What `int { … }` and `num { … }` take besides.",
                                                FIELD_TABLE(number_fields)};

static const struct field list_fields[] = {
    {.name = "min", .form = "1", .type = "integer", .sentence = "The least number of items."},
    {.name = "max", .form = "20", .type = "integer", .sentence = "The greatest number."},
    {.name = "unique", .form = "true", .type = "boolean", .sentence = "No item may be there twice."},
};

static const struct field_table list_table = {.of = "list",
                                              .items = {"toolgate.AnyType", "string"},
                                              .type = "toolgate.ListOptions: toolgate.TypeOptions",
                                              .sentence = "What `list { type, … }` takes besides.",
                                              FIELD_TABLE(list_fields)};

/* ---- what toolgate fills in ------------------------------------------------------------------ */

static const struct field peer_fields[] = {
    {.name = "user",
     .type = "string?",
     .sentence = "The user whose process it is; nil where it has no name."},
    {.name = "uid", .type = "integer", .sentence = "And their number."},
};

static const struct field_table peer_table = {.of = "call.peer",
                                              .type = "toolgate.Peer",
                                              .given = true,
                                              .sentence = "Who is calling, as the kernel tells it.",
                                              FIELD_TABLE(peer_fields)};

static const struct field past_fields[] = {
    {.name = "tool", .type = "string", .sentence = "The tool that was called."},
    {.name = "class",
     .type = "string",
     .sentence = "How it ended: success, invalid_arguments, tool_error, …"},
    {.name = "code", .type = "string?", .sentence = "The code beside the class, as fabricated_id."},
    {.name = "turn", .type = "integer?", .sentence = "The user's turn it was made in."},
    {.name = "step", .type = "integer?", .sentence = "The model's message in that turn, counted."},
    {.name = "at_ms", .type = "integer?", .sentence = "When, in milliseconds since 1970."},
    {.name = "retries", .type = "integer?", .sentence = "How often its arguments were mended."},
    {.name = "open", .type = "boolean?", .sentence = "true: its arguments are still wrong; it has not run."},
};

static const struct field_table past_table = {.of = "call.history[n]",
                                              .type = "toolgate.Past",
                                              .given = true,
                                              .sentence = "One call of the session's past.",
                                              FIELD_TABLE(past_fields)};

static const struct field url_fields[] = {
    {.name = "scheme", .type = "string", .sentence = "\"https\""},
    {.name = "host", .type = "string?", .sentence = "\"example.com\", in lower case"},
    {.name = "port", .type = "number?", .sentence = "8080; nil where it is not told"},
    {.name = "path", .type = "string?", .sentence = "\"/a\""},
    {.name = "query", .type = "string?", .sentence = "\"b=c\""},
    {.name = "fragment", .type = "string?", .sentence = "\"d\""},
    {.name = "user", .type = "string?", .sentence = "What stands before @"},
};

static const struct field_table url_table = {.of = "url(…)",
                                             .type = "toolgate.Url",
                                             .given = true,
                                             .sentence = "The parts of a URL.",
                                             FIELD_TABLE(url_fields)};

/* ---- all of them -------------------------------------------------------------------------------- */

static const struct field_table *const tables[] = {
    &declare_policy_table,
    &declare_retry_table,
    &declare_again_table,
    &declare_loop_table,
    &declare_poll_table,
    &declare_limits_table,
    &declare_exec_table,
    &declare_exec_group_table,
    &declare_http_table,
    &declare_compact_table,
    &declare_coerce_table,
    &declare_example_table,
    &declare_example_call_table,
    &declare_gateway_table,
    &problem_table,
    &ok_table,
    &follow_up_table,
    &tool_return_table,
    &seen_table,
    &params_table,
    &type_table,
    &text_table,
    &number_table,
    &list_table,
    &call_table,
    &peer_table,
    &past_table,
    &url_table,
};
#define TABLE_COUNT (sizeof(tables) / sizeof(tables[0]))

const struct field_table *vocabulary_table(struct str of)
{
    for (size_t i = 0; i < TABLE_COUNT; i++)
        if (str_is(of, tables[i]->of))
            return tables[i];
    return NULL;
}

static const struct vocabulary_type types[] = {
    {"toolgate.Declaration", NULL, "What a policy's file returns: made by tool or gateway."},
    {"toolgate.Outcome", NULL, "What a hook decided: made by repair, refuse, ask, retry, ok, partial, …"},
    {"toolgate.Id", NULL, "What is demanded of an id: made by seen or shape."},
    {"toolgate.Condition", NULL,
     "What an argument must be for a rule: made by above, between, none_of, is, …"},
    {"toolgate.Null", NULL, "JSON's null."},
    {"toolgate.Type", NULL, "The type of an argument: made by str, int, list, …"},
    {"toolgate.AnyType", "toolgate.Type|fun(...: any): toolgate.Type",
     "A type, or the word for one without anything behind it."},
    {"toolgate.Schema", "table|boolean", "A JSON Schema: made by json or params."},
    {"toolgate.Definition", "table", "A tool's definition as in MCP: name, description, inputSchema, …"},
    {"toolgate.Coverage", "\"SATISFIED\"|\"NEEDS_MORE_TOOLS\"|\"NEED_USER_INPUT\"|\"FAILED\"",
     "How far the user's question is answered."},
    {"toolgate.ShapeName", "\"uuid\"|\"integer\"|\"digits\"|\"hex\"|\"slug\"|\"email\"|\"url\"",
     "What an id may look like."},
    {"toolgate.LogLevel",
     "\"debug\"|\"info\"|\"notice\"|\"warning\"|\"error\"|\"critical\"|\"alert\"|\"emergency\"",
     "As in MCP."},
    {"toolgate.Class", "string", "How a call ended: \"ok\", \"tool_error\", \"partial_data\", …"},
};

const struct vocabulary_type *vocabulary_types(size_t *count)
{
    *count = sizeof(types) / sizeof(types[0]);
    return types;
}

/* ---- for the reference and for editors ------------------------------------------------------------ */

/* What a value of this kind is called in LuaCATS, and how it looks, where the row does not say. */
static const struct {
    const char *type, *form;
} kinds[] = {
    [FIELD_TEXT] = {"string", "\"…\""}, [FIELD_FLAG] = {"boolean", "true"},
    [FIELD_COUNT] = {"integer", "3"},   [FIELD_TEXTS] = {"string|string[]", "{ \"…\", \"…\" }"},
    [FIELD_ANY] = {"any", "…"},
};

/* "read write" as "read"|"write", or as "read", "write". */
static const char *quoted(struct arena *arena, const char *choices, const char *between)
{
    struct buf out = buf_in(arena);
    for (struct str rest = str_of(choices); rest.len;) {
        const char *space = memchr(rest.at, ' ', rest.len);
        size_t n = space ? (size_t)(space - rest.at) : rest.len;
        buf_printf(&out, "%s\"" STR_FMT "\"", out.len ? between : "", STR_ARG(((struct str){rest.at, n})));
        rest = str_from(rest, n + 1);
    }
    return arena_dup(arena, buf_view(&out)).at;
}

static struct vocabulary_field tell(struct arena *arena, const struct field *field)
{
    struct vocabulary_field told = {field->name, field->form, field->type, field->sentence, field->required};
    bool choice = field->kind == FIELD_CHOICE;
    if (!told.type)
        told.type = choice ? quoted(arena, field->choices, "|") : kinds[field->kind].type;
    if (!told.form)
        told.form = choice ? quoted(arena, field->choices, ", ") : kinds[field->kind].form;
    return told;
}

const struct vocabulary_tables *vocabulary_tables(struct arena *arena, size_t *count)
{
    struct vocabulary_tables *list = ARENA_ARRAY(arena, struct vocabulary_tables, TABLE_COUNT);
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        const struct field_table *table = tables[i];
        struct vocabulary_field *fields = ARENA_ARRAY(arena, struct vocabulary_field, table->count);
        list[i] = (struct vocabulary_tables){table->of,
                                             table->type,
                                             table->sentence,
                                             table->given,
                                             fields,
                                             0,
                                             {table->items[0], table->items[1]}};
        for (size_t n = 0; n < table->count; n++)
            if (table->fields[n].kind != FIELD_ABSENT)
                fields[list[i].count++] = tell(arena, &table->fields[n]);
    }
    *count = TABLE_COUNT;
    return list;
}
