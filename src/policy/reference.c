/* Every table of fields that policies meet, in the order of the reference; adding a table adds a row. */
#include "policy/reference.h"
#include "base/arena.h"
#include "base/buf.h"
#include "policy/call_table.h"
#include "policy/declare/declare_internal.h"
#include "policy/vocabulary/word_fields.h"

static const struct field_table *const tables[] = {
    &declare_tool_table,
    &declare_policy_table,
    &declare_retry_table,
    &declare_again_table,
    &declare_loop_table,
    &declare_poll_table,
    &declare_limits_table,
    &declare_rate_table,
    &declare_exec_table,
    &declare_exec_sandbox_table,
    &declare_exec_group_table,
    &declare_http_table,
    &declare_compact_table,
    &declare_coerce_table,
    &declare_example_table,
    &declare_example_call_table,
    &declare_gateway_table,
    &word_repair_table,
    &word_ok_table,
    &word_follow_up_table,
    &word_tool_return_table,
    &word_seen_table,
    &word_params_table,
    &word_type_table,
    &word_str_table,
    &word_number_table,
    &word_list_table,
    &call_table,
    &word_peer_table,
    &word_past_table,
    &word_url_table,
};

static const struct reference_type types[] = {
    {"toolgate.Declaration", NULL, "What a policy's file returns: made by tool, policy or gateway."},
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

const struct reference_type *reference_types(size_t *count)
{
    *count = sizeof(types) / sizeof(types[0]);
    return types;
}

/* The type and the form of a value, if the row does not give them. */
static const struct {
    const char *type, *form;
} kinds[] = {
    [FIELD_STRING] = {"string", "\"…\""}, [FIELD_BOOL] = {"boolean", "true"},
    [FIELD_COUNT] = {"integer", "3"},     [FIELD_STRINGS] = {"string|string[]", "{ \"…\", \"…\" }"},
    [FIELD_ANY] = {"any", "…"},
};

/* "read write" as "read"|"write", or as "read", "write". */
static const char *quote_choices(struct arena *arena, const char *choices, const char *between)
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

static struct reference_field describe_field(struct arena *arena, const struct field *field)
{
    struct reference_field out = {field->name, field->form, field->type, field->sentence, field->required};
    bool choice = field->kind == FIELD_CHOICE;
    if (!out.type)
        out.type = choice ? quote_choices(arena, field->choices, "|") : kinds[field->kind].type;
    if (!out.form)
        out.form = choice ? quote_choices(arena, field->choices, ", ") : kinds[field->kind].form;
    return out;
}

const struct reference_table *reference_tables(struct arena *arena, size_t *count)
{
    *count = sizeof(tables) / sizeof(tables[0]);
    struct reference_table *list = ARENA_ARRAY(arena, struct reference_table, *count);
    for (size_t i = 0; i < *count; i++) {
        const struct field_table *table = tables[i];
        size_t rows = field_table_rows(table);
        struct reference_field *fields = ARENA_ARRAY(arena, struct reference_field, rows);
        for (size_t n = 0; n < rows; n++)
            fields[n] = describe_field(arena, field_table_row(table, n));
        list[i] = (struct reference_table){table->name,
                                           table->type,
                                           table->sentence,
                                           table->read_only,
                                           fields,
                                           rows,
                                           {table->items[0], table->items[1]}};
    }
    return list;
}
