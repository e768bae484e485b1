/* Finds out which format a line has, and reads what all formats have in common. */
#include "replay/recorded_call.h"

#include "base/arena.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"
#include "replay/timestamp.h"

#include <math.h>

static const struct {
    const char *name;
    enum recorded_format format;
} formats[] = {
    {"decisions", RECORDED_DECISIONS}, {"ndjson", RECORDED_NDJSON}, {"openai", RECORDED_OPENAI},
    {"anthropic", RECORDED_ANTHROPIC}, {"mcp", RECORDED_MCP},
};

bool recorded_format_named(struct str name, enum recorded_format *out)
{
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        if (str_is(name, formats[i].name)) {
            *out = formats[i].format;
            return true;
        }
    return false;
}

/* ---- members ---- */

const struct json *recorded_member(const struct json *object, const char *const *names)
{
    for (; *names; names++) {
        const struct json *value = json_get_text(object, *names);
        if (value && value->type != JSON_NULL)
            return value;
    }
    return NULL;
}

struct str recorded_text(const struct json *value)
{
    if (json_is(value, JSON_NUMBER))
        return (struct str){value->text, value->len};
    return json_str(value);
}

uint32_t recorded_number(const struct json *value)
{
    int64_t n;
    return json_int(value, &n) && n > 0 && n <= UINT32_MAX ? (uint32_t)n : 0;
}

struct str recorded_file_name(const char *file)
{
    const char *slash = strrchr(file, '/');
    return str_of(slash ? slash + 1 : file);
}

const struct json *recorded_arguments(struct arena *arena, const struct json *value)
{
    struct json parsed;
    struct json_error fault;
    if (!json_is(value, JSON_STRING) || json_parse(arena, json_str(value), NULL, &parsed, &fault) != OK ||
        parsed.type != JSON_OBJECT)
        return value;
    return json_keep(arena, parsed);
}

const struct json *recorded_result(struct arena *arena, const struct json *value)
{
    if (!json_is(value, JSON_STRING) && !json_is(value, JSON_ARRAY))
        return value;
    struct json_member block[] = {json_member(STR_LIT("type"), json_string(STR_LIT("text"))),
                                  json_member(STR_LIT("text"), *value)};
    struct json *items = ARENA_NEW(arena, struct json);
    bool blocks = json_is(value, JSON_ARRAY) && value->len && json_get_text(&value->items[0], "type");
    if (json_is(value, JSON_ARRAY) && !blocks)
        return value;
    if (!blocks)
        *items = json_object(arena, block, 2);
    struct json_member content = json_member(STR_LIT("content"), blocks ? *value : json_array(items, 1));
    return json_keep(arena, json_object(arena, &content, 1));
}

/* What a failed call says: a string, or the message in an object. */
static struct str error_text(struct arena *arena, const struct json *error)
{
    static const char *const names[] = {"message", "error", "detail", "text", NULL};
    if (json_is(error, JSON_STRING))
        return json_str(error);
    struct str message = json_str(json_is(error, JSON_OBJECT) ? recorded_member(error, names) : NULL);
    return message.len || !error || error->type == JSON_BOOL ? message : json_to_str(arena, error);
}

void recorded_set_result(struct recorded_call *call, const struct json *result, const struct json *failed)
{
    struct arena *arena = call->line->arena;
    bool says_so = failed && failed->type != JSON_NULL && !(failed->type == JSON_BOOL && !failed->truth);
    call->ran = result || says_so;
    call->failed = says_so;
    if (!says_so) {
        call->result = recorded_result(arena, result);
        return;
    }
    call->error = error_text(arena, failed);
    if (!call->error.len)
        call->error = error_text(arena, result);
}

/* ---- times ---- */

#define MS_FROM                                                                                              \
    100000000000.0 /* a larger number counts milliseconds: in seconds it would be the year 5138              \
                    */

/* 0 of a time that the ledger cannot keep: it counts seconds since 1970 in 32 bits. */
static int64_t between_our_times(int64_t ms)
{
    return ms > 0 && ms < (int64_t)UINT32_MAX * 1000 ? ms : 0;
}

static int64_t time_of_text(struct str text)
{
    int64_t us;
    return timestamp_read(&text, &us) ? between_our_times(us / 1000) : 0;
}

int64_t recorded_time(const struct json *value)
{
    double number;
    if (json_is(value, JSON_STRING))
        return time_of_text(json_str(value));
    if (!json_double(value, &number) || !(number > 0) || number > 1e15)
        return 0;
    return between_our_times(llround(number < MS_FROM ? number * 1000 : number));
}

/* ---- lines ---- */

static bool has(const struct json *object, const char *name)
{
    return json_get_text(object, name) != NULL;
}

static bool has_list(const struct json *object, const char *name)
{
    return json_is(json_get_text(object, name), JSON_ARRAY);
}

/* The first choice of a reply of OpenAI's chat API; NULL: it is none. */
static const struct json *first_choice(const struct json *value)
{
    const struct json *choices = json_get_text(value, "choices");
    return json_is(choices, JSON_ARRAY) && choices->len ? &choices->items[0] : NULL;
}

static bool is_conversation(const struct json *value)
{
    const struct json *request = json_get_text(value, "request");
    return has_list(value, "messages") || has_list(value, "input") || has_list(value, "output") ||
           has_list(value, "items") || has_list(request, "messages") || has_list(request, "input") ||
           has(first_choice(value), "message");
}

/* Pieces of calls are no calls: nothing says which arguments the model sent in the end. */
static bool is_piece_of_stream(const struct json *value)
{
    static const char *const types[] = {"message_start", "message_delta", "message_stop", "ping"};
    struct str type = json_str(json_get_text(value, "type"));
    bool is_piece = has(first_choice(value), "delta") || str_starts(type, "content_block_") ||
                    str_starts(type, "response.");
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        is_piece |= str_is(type, types[i]);
    return is_piece;
}

static bool is_message(const struct json *value)
{
    return json_is(json_get_text(value, "role"), JSON_STRING) ||
           json_is(json_get_text(value, "type"), JSON_STRING);
}

static enum recorded_format format_of(const struct json *value)
{
    static const char *const tools[] = {"tool", "tool_name", "name", "function", NULL};
    const struct json *inner = json_get_text(value, "message");
    if (has(value, "decision_id") && has(value, "verdict"))
        return RECORDED_DECISIONS;
    if (has(value, "jsonrpc") || has(inner, "jsonrpc"))
        return RECORDED_MCP;
    if (is_conversation(value))
        return RECORDED_OPENAI;
    if (has(value, "tool") || has(value, "tool_name") ||
        (recorded_member(value, tools) && !is_message(value)))
        return RECORDED_NDJSON;
    return is_message(value) ? RECORDED_OPENAI : RECORDED_ANY;
}

/* A new file is a new conversation. */
static void begin_file(struct recorded_reader *reader, const char *file)
{
    if (reader->file == file)
        return;
    recorded_reader_clear(reader);
    reader->file = file;
}

void recorded_reader_clear(struct recorded_reader *reader)
{
    arena_free(reader->file_arena);
    reader->file_arena = NULL;
    reader->tools = NULL;
    reader->file = NULL;
    reader->turn = 0;
    reader->messages = 0;
}

static bool read_object(struct recorded_reader *reader, const struct json *value,
                        const struct recording_line *line)
{
    enum recorded_format format = reader->format ? reader->format : format_of(value);
    struct recording_line part = *line;
    part.value = value;
    switch (format) {
    case RECORDED_DECISIONS:
        return decision_record_read(reader, &part);
    case RECORDED_NDJSON:
        return plain_record_read(reader, value, line);
    case RECORDED_OPENAI:
    case RECORDED_ANTHROPIC:
        return is_conversation(value) ? conversation_read(reader, value, line)
                                      : message_line_read(reader, &part);
    case RECORDED_MCP:
        return mcp_message_read(reader, value, line);
    case RECORDED_ANY:
        break;
    }
    return false;
}

/* Messages of one conversation, or several conversations, or several records. */
static bool read_array(struct recorded_reader *reader, const struct json *array,
                       const struct recording_line *line)
{
    const struct json *first = array->len ? &array->items[0] : NULL;
    enum recorded_format format = reader->format;
    bool any = false;
    if (!format)
        format = json_is(first, JSON_OBJECT) ? format_of(first) : RECORDED_OPENAI;
    bool messages = format == RECORDED_OPENAI || format == RECORDED_ANTHROPIC;
    if (messages && json_is(first, JSON_OBJECT) && !is_conversation(first))
        return conversation_read(reader, array, line);
    for (uint32_t i = 0; i < array->len; i++) {
        const struct json *item = &array->items[i];
        if (json_is(item, JSON_OBJECT))
            any |= read_object(reader, item, line);
        else if (json_is(item, JSON_ARRAY))
            any |= conversation_read(reader, item, line);
    }
    return any;
}

bool recorded_calls_read(struct recorded_reader *reader, const struct recording_line *line, const char **why)
{
    static const char *const expected[] = {
        [RECORDED_ANY] = "it has none of: decision_id and verdict, tool and arguments, messages, jsonrpc",
        [RECORDED_DECISIONS] = "it has no tool and no decision_id",
        [RECORDED_NDJSON] = "it has no tool",
        [RECORDED_OPENAI] = "it has no messages",
        [RECORDED_ANTHROPIC] = "it has no messages",
        [RECORDED_MCP] = "it is no JSON-RPC message",
    };
    begin_file(reader, line->file);
    *why = expected[reader->format];
    bool messages = reader->format == RECORDED_ANY || reader->format == RECORDED_OPENAI ||
                    reader->format == RECORDED_ANTHROPIC;
    if (messages && is_piece_of_stream(line->value)) {
        *why =
            "it is a piece of a streamed reply: record the whole message, as the SDK returns it at the end";
        return false;
    }
    if (json_is(line->value, JSON_ARRAY))
        return read_array(reader, line->value, line);
    return read_object(reader, line->value, line);
}
