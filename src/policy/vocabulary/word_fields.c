/* Lua checks what a word is given by the names of these rows, so that the reference and the check agree. */
#include "policy/vocabulary/word_fields.h"

#define ROW(called, value, luacats, text)                                                                    \
    {                                                                                                        \
        .name = (called), .form = (value), .type = (luacats), .sentence = (text), .kind = FIELD_ANY          \
    }
#define REQUIRED_ROW(called, value, luacats, text)                                                           \
    {                                                                                                        \
        .name = (called), .form = (value), .type = (luacats), .sentence = (text), .kind = FIELD_ANY,         \
        .required = true                                                                                     \
    }

static const struct field repair_fields[] = {
    ROW("path", "\"items[0].id\"", "string",
        "The argument that is wrong; without it the model has to guess."),
    REQUIRED_ROW("message", "\"must not be before 'start'\"", "string",
                 "What is wrong, and what would be right."),
    ROW("code", "\"before_start\"", "string", "The same for programs and logs."),
    ROW("suggest", "5  or  { start = …, [\"end\"] = … }", "any",
        "The value to send, or a table of arguments to change."),
    ROW("expected", "\"a day after start\"", "any", "What would be right."),
    ROW("got", "args.start", "any", "What the model sent."),
};
const struct field_table word_repair_table =
    FIELD_TABLE("repair", "toolgate.Problem", "What `repair { … }` takes: one problem, or a list of them.",
                repair_fields);

static const struct field ok_fields[] = {
    ROW("coverage", "\"SATISFIED\"", "toolgate.Coverage",
        "How far the user's question is answered: SATISFIED, NEEDS_MORE_TOOLS, NEED_USER_INPUT, FAILED."),
    ROW("facts", "{ orders = 3 }", "table<string, any>",
        "The session remembers them; later calls read them as call.facts."),
    ROW("follow_up", "{ tool = \"get_order\", args = { id = \"o7\" } }", "toolgate.FollowUp",
        "The exact next call."),
    ROW("cost", "0.3", "number", "The actual cost of this call, instead of the declared one."),
};
const struct field_table word_ok_table =
    FIELD_TABLE("ok", "toolgate.Ok", "What `ok { … }` takes.", ok_fields);

static const struct field follow_up_fields[] = {
    REQUIRED_ROW("tool", "\"get_order\"", "string", "The tool to call."),
    ROW("args", "{ id = \"o7\" }", "table", "All of its arguments."),
};
const struct field_table word_follow_up_table = FIELD_TABLE(
    "ok.follow_up", "toolgate.FollowUp", "What `follow_up` of `ok { … }` holds.", follow_up_fields);

static const struct field tool_return_fields[] = {
    ROW("value", "{ saved = true }", "any", "The result."),
    ROW("content", "{ { type = \"text\", text = \"…\" } }", "table[]",
        "MCP content blocks (text, image, audio, resource_link, resource), instead of the value as text."),
    ROW("metadata", "{ rows = 3 }", "table",
        "_meta of the result, for the agent's program; the model does not read it."),
};
const struct field_table word_tool_return_table =
    FIELD_TABLE("tool_return", "toolgate.ToolReturn", "What `tool_return { … }` takes.", tool_return_fields);

static const struct field seen_fields[] = {
    ROW("look_up", "\"lookup_contact, action search\"", "string",
        "How the model finds an id; it reads this after sending an unknown one."),
    ROW("shape", "\"uuid\"", "toolgate.ShapeName|toolgate.Id", "The format of the id."),
    ROW("strict", "true", "boolean", "true: if the model insists on an unknown id, the user is asked."),
};
const struct field_table word_seen_table =
    FIELD_TABLE("seen", "toolgate.SeenOptions", "What `seen { … }` takes.", seen_fields);

static const struct field params_fields[] = {
    ROW("open", "true", "boolean", "true: arguments that are not named are allowed, too."),
};
const struct field_table word_params_table = FIELD_TABLE(
    "params", "toolgate.ParamsOptions", "What `params({ … }, { … })` takes after the fields.", params_fields);

static const struct field type_fields[] = {
    ROW("description", "\"Task title\"", "string",
        "What it is, for the model; the same as a string without a name."),
    ROW("title", "\"Title\"", "string", "A short name, for people."),
    ROW("default", "1", "any", "The default that the schema names; toolgate does not fill it in."),
    ROW("examples", "{ \"Buy milk\" }", "any[]", "Example values."),
};
const struct field_table word_type_table =
    FIELD_TABLE("a type", "toolgate.TypeOptions", "What every type in `params { … }` takes.", type_fields,
                ITEMS("string"));

static const struct field str_fields[] = {
    ROW("min", "1", "integer", "The least length, in characters."),
    ROW("max", "120", "integer", "The greatest length."),
    ROW("pattern", "\"^[a-z]+$\"", "string", "A regular expression that the string must match somewhere."),
};
const struct field_table word_str_table =
    FIELD_TABLE("str", "toolgate.TextOptions: toolgate.TypeOptions", "What `str { … }` takes besides.",
                str_fields, ITEMS("string"));

static const struct field number_fields[] = {
    ROW("min", "1", "number", "The least value."),
    ROW("max", "100", "number", "The greatest value."),
    ROW("over", "0", "number", "It must be greater than this."),
    ROW("under", "1", "number", "It must be less than this."),
    ROW("step", "0.5", "number", "It must be a multiple of this."),
};
const struct field_table word_number_table =
    FIELD_TABLE("int, num", "toolgate.NumberOptions: toolgate.TypeOptions",
                "What `int { … }` and `num { … }` take besides.", number_fields, ITEMS("string"));

static const struct field list_fields[] = {
    ROW("min", "1", "integer", "The least number of items."),
    ROW("max", "20", "integer", "The greatest number."),
    ROW("unique", "true", "boolean", "true: no item may occur twice."),
};
const struct field_table word_list_table =
    FIELD_TABLE("list", "toolgate.ListOptions: toolgate.TypeOptions",
                "What `list { type, … }` takes besides.", list_fields, ITEMS("toolgate.AnyType", "string"));

static const struct field peer_fields[] = {
    ROW("user", NULL, "string?", "The user of the calling process; nil if it has no name."),
    ROW("uid", NULL, "integer", "The user's number."),
};
const struct field_table word_peer_table = FIELD_TABLE(
    "call.peer", "toolgate.Peer", "The calling process, from the kernel.", peer_fields, .read_only = true);

static const struct field past_fields[] = {
    ROW("tool", NULL, "string", "The tool."),
    ROW("class", NULL, "string", "How the call ended: success, invalid_arguments, tool_error, …"),
    ROW("code", NULL, "string?", "The code of that class, as fabricated_id."),
    ROW("turn", NULL, "integer?", "The user's turn."),
    ROW("step", NULL, "integer?", "The number of the model's message in that turn."),
    ROW("at_ms", NULL, "integer?", "The time, in milliseconds since 1970."),
    ROW("retries", NULL, "integer?", "How often the model corrected its arguments."),
    ROW("open", NULL, "boolean?", "true: its arguments are still wrong; it has not run."),
};
const struct field_table word_past_table = FIELD_TABLE(
    "call.history[n]", "toolgate.Past", "One earlier call of the session.", past_fields, .read_only = true);

static const struct field url_fields[] = {
    ROW("scheme", NULL, "string", "\"https\""),
    ROW("host", NULL, "string?", "\"example.com\", in lower case"),
    ROW("port", NULL, "number?", "8080; nil if the URL has none"),
    ROW("path", NULL, "string?", "\"/a\""),
    ROW("query", NULL, "string?", "\"b=c\""),
    ROW("fragment", NULL, "string?", "\"d\""),
    ROW("user", NULL, "string?", "The part before @"),
};
const struct field_table word_url_table =
    FIELD_TABLE("url(…)", "toolgate.Url", "The parts of a URL.", url_fields, .read_only = true);

const struct field_table *word_table_named(struct str name)
{
    static const struct field_table *const checked[] = {&word_repair_table, &word_ok_table,
                                                        &word_follow_up_table, &word_tool_return_table};
    for (size_t i = 0; i < sizeof(checked) / sizeof(checked[0]); i++)
        if (str_is(name, checked[i]->name))
            return checked[i];
    return NULL;
}
