/*
 * What a recording says of one call, by a table of formats: lines of toolgate's decision log, of other
 * systems and of MCP's JSON-RPC are read here, the messages of models' APIs in conversation.c.
 */
#include "replay/recorded_call.h"

#include "base/arena.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"
#include "replay/timestamp.h"

#include <math.h>

#define MS_FROM                                                                                              \
    100000000000.0 /* a larger number counts milliseconds: in seconds it would be the year 5138              \
                    */

#define SESSION_KEY "dev.toolgate/session"
#define TURN_KEY    "dev.toolgate/turn"
#define STEP_KEY    "dev.toolgate/step"

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

/* 0 of a time that the ledger cannot keep: it counts seconds since 1970 in 32 bits. */
int64_t recorded_time(const struct json *value)
{
    struct str text = json_str(value);
    double number;
    int64_t us, ms = 0;
    if (json_is(value, JSON_STRING))
        ms = timestamp_read(&text, &us) ? us / 1000 : 0;
    else if (json_double(value, &number) && number > 0 && number <= 1e15)
        ms = llround(number < MS_FROM ? number * 1000 : number);
    return ms > 0 && ms < (int64_t)UINT32_MAX * 1000 ? ms : 0;
}

/* ---- the decision log ---- */

/* The members that are read, in the order in which the log writes them. */
enum field {
    FIELD_TS,
    FIELD_ID,
    FIELD_USER,
    FIELD_UID,
    FIELD_SESSION,
    FIELD_TURN,
    FIELD_STEP,
    FIELD_LABEL,
    FIELD_EXT,
    FIELD_TOOL,
    FIELD_METHOD,
    FIELD_ARGUMENTS,
    FIELD_MASKED,
    FIELD_VERDICT,
    FIELD_REPEATS,
    FIELD_RESULT,
    FIELDS
};

/* One pass over the members instead of a search for each field: most records have them in this order. */
static void find_fields(const struct json *record, const struct json *found[FIELDS])
{
    static const struct str names[FIELDS] = {
        [FIELD_TS] = STR("ts"),           [FIELD_ID] = STR("decision_id"),
        [FIELD_USER] = STR("user"),       [FIELD_UID] = STR("uid"),
        [FIELD_SESSION] = STR("session"), [FIELD_TURN] = STR("turn"),
        [FIELD_STEP] = STR("step"),       [FIELD_LABEL] = STR("label"),
        [FIELD_EXT] = STR("ext"),         [FIELD_TOOL] = STR("tool"),
        [FIELD_METHOD] = STR("method"),   [FIELD_ARGUMENTS] = STR("arguments"),
        [FIELD_MASKED] = STR("masked"),   [FIELD_VERDICT] = STR("verdict"),
        [FIELD_REPEATS] = STR("repeats"), [FIELD_RESULT] = STR("result")};
    size_t next = 0;
    memset(found, 0, FIELDS * sizeof(*found));
    for (uint32_t i = 0; i < record->len; i++)
        for (size_t k = 0; k < FIELDS; k++) {
            size_t field = next + k < FIELDS ? next + k : next + k - FIELDS;
            if (!str_eq(record->members[i].key, names[field]))
                continue;
            found[field] = &record->members[i].value;
            next = field + 1;
            break;
        }
}

static bool read_decision(struct recorded_reader *reader, const struct json *record,
                          const struct recording_line *line)
{
    const struct json *field[FIELDS];
    find_fields(record, field);
    struct str method = json_str(field[FIELD_METHOD]);
    struct recorded_call call = {
        .kind = str_is(method, "toolgate/check")    ? RECORDED_CHECK
                : str_is(method, "toolgate/report") ? RECORDED_REPORT
                                                    : RECORDED_CALL,
        .id = json_str(field[FIELD_ID]),
        .session = json_str(field[FIELD_SESSION]),
        .user = json_str(field[FIELD_USER]),
        .step = recorded_text(field[FIELD_STEP]),
        .label = json_str(field[FIELD_LABEL]),
        .ext = json_str(field[FIELD_EXT]),
        .turn = recorded_number(field[FIELD_TURN]),
        .has_uid = json_is(field[FIELD_UID], JSON_NUMBER),
        .uid = recorded_number(field[FIELD_UID]),
        .tool = json_str(field[FIELD_TOOL]),
        .arguments = field[FIELD_ARGUMENTS],
        .masked = field[FIELD_MASKED],
        .repeated = recorded_number(field[FIELD_REPEATS]) > 0,
        .at_ms = recorded_time(field[FIELD_TS]),
        .line = line,
    };
    if (!call.id.len || !call.tool.len)
        return false;
    call.arguments_unknown = !call.arguments && call.kind != RECORDED_REPORT;
    /* A result whose value was not recorded is known by its class and hash. */
    const struct json *result = field[FIELD_RESULT], *value = json_get_text(result, "value");
    call.ran = json_is(result, JSON_OBJECT);
    if (!call.ran || error_class_named(json_str(json_get_text(result, "class")), &call.result_class) != OK)
        call.result_class = CLASS_OK;
    call.failed = call.ran && error_class_info(call.result_class)->is_error;
    call.result_hash = json_str(json_get_text(result, "hash"));
    call.by_class = call.ran && !value;
    if (value)
        call.result = recorded_result(line->arena, value);
    struct str verdict = json_str(field[FIELD_VERDICT]);
    call.refused = !call.ran && !str_is(verdict, "pass");
    reader->seen(reader->owner, &call);
    return true;
}

/* ---- other systems ---- */

static const char *const tool_names[] = {"tool", "tool_name", "toolName", "name", "function", NULL};
static const char *const argument_names[] = {"arguments", "args",       "input",    "parameters",
                                             "params",    "tool_input", "toolArgs", NULL};
static const char *const result_names[] = {"result",      "output",     "response",    "tool_output",
                                           "tool_result", "toolResult", "observation", NULL};
static const char *const session_names[] = {"session",      "session_id", "sessionId", "conversation_id",
                                            "conversation", "thread_id",  "chat_id",   "run_id",
                                            "trace_id",     NULL};
static const char *const turn_names[] = {"turn", "turn_id", NULL};
static const char *const step_names[] = {"step", "step_id", "message_id", NULL};
static const char *const error_names[] = {"is_error", "isError", "error", NULL};
static const char *const time_names[] = {"ts",        "timestamp",  "time",       "at", "created_at",
                                         "createdAt", "started_at", "start_time", NULL};

static bool read_plain(struct recorded_reader *reader, const struct json *record,
                       const struct recording_line *line)
{
    /* {name, arguments} may be inside, as in {"function":{"name":…,"arguments":…}}. */
    const struct json *named = recorded_member(record, tool_names);
    const struct json *inner = json_is(named, JSON_OBJECT) ? named : NULL;
    struct recorded_call call = {
        .kind = RECORDED_CALL,
        .session = recorded_text(recorded_member(record, session_names)),
        .user = json_str(json_get_text(record, "user")),
        .step = recorded_text(recorded_member(record, step_names)),
        .turn = recorded_number(recorded_member(record, turn_names)),
        .toolset = json_str(json_get_text(record, "toolset")),
        .masked = json_get_text(record, "masked"),
        .at_ms = recorded_time(recorded_member(record, time_names)),
        .line = line,
    };
    call.tool = json_str(inner ? recorded_member(inner, tool_names) : named);
    call.arguments = recorded_arguments(line->arena, recorded_member(inner ? inner : record, argument_names));
    call.arguments_unknown = !call.arguments;
    if (!call.tool.len)
        return false;
    if (!call.session.len)
        call.session = recorded_file_name(line->file);
    recorded_set_result(&call, recorded_member(record, result_names), recorded_member(record, error_names));
    reader->seen(reader->owner, &call);
    return true;
}

/* ---- JSON-RPC of MCP ---- */

/* One message a line in both directions, perhaps inside of {ts, session, message}. tools/call and its reply
 * are one call; a tools/list reply gives the tools of what follows in the file. */
static bool read_mcp(struct recorded_reader *reader, const struct json *value,
                     const struct recording_line *line)
{
    static const char *const sessions[] = {"session", "session_id", "sessionId", "mcp-session-id", NULL};
    static const char *const times[] = {"ts", "timestamp", "time", NULL};
    const struct json *inner = json_get_text(value, "message");
    const struct json *message = json_get_text(inner, "jsonrpc") ? inner : value;
    const struct json *id = json_get_text(message, "id"), *params = json_get_text(message, "params");
    const struct json *result = json_get_text(message, "result"), *tools = json_get_text(result, "tools");
    struct str method = json_str(json_get_text(message, "method"));
    struct str file = recorded_file_name(line->file),
               session = recorded_text(recorded_member(value, sessions));
    if (!json_get_text(message, "jsonrpc"))
        return false;
    struct recorded_call call = {.kind = RECORDED_CHECK,
                                 .session = session.len ? session : file,
                                 .at_ms = recorded_time(recorded_member(value, times)),
                                 .tools = reader->tools,
                                 .line = line};
    call.id = arena_printf(line->arena, "%s " STR_FMT " " STR_FMT, json_is(id, JSON_STRING) ? "s" : "n",
                           STR_ARG(file), STR_ARG(recorded_text(id)));
    if (str_is(method, "tools/call") && id) {
        const struct json *meta = json_get_text(params, "_meta");
        /* The reply names no session: it is found by the file's and the request's id. */
        session = json_str(json_get_text(meta, SESSION_KEY));
        call.session = session.len ? session : call.session;
        call.tool = json_str(json_get_text(params, "name"));
        call.arguments = json_get_text(params, "arguments");
        call.turn = recorded_number(json_get_text(meta, TURN_KEY));
        call.step = recorded_text(json_get_text(meta, STEP_KEY));
        if (call.tool.len)
            reader->seen(reader->owner, &call);
    } else if (!method.len && id && json_is(tools, JSON_ARRAY)) {
        arena_free(reader->file_arena); /* of the list before */
        reader->file_arena = arena_new();
        reader->tools = json_keep(reader->file_arena, json_copy(reader->file_arena, tools));
    } else if (!method.len && id) {
        call.kind = RECORDED_REPORT;
        call.perhaps = true;
        recorded_set_result(&call, result, json_get_text(message, "error"));
        call.failed |= json_is_true(json_get_text(result, "isError"));
        reader->seen(reader->owner, &call);
    }
    return true;
}

/* ---- the formats ---- */

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

/* A conversation, or a message of the one that the file is. */
static bool read_messages(struct recorded_reader *reader, const struct json *value,
                          const struct recording_line *line)
{
    return is_conversation(value) ? conversation_read(reader, value, line)
                                  : message_line_read(reader, value, line);
}

static const struct {
    const char *name;
    bool (*read)(struct recorded_reader *reader, const struct json *value, const struct recording_line *line);
    const char *expected; /* what a line lacks that is none */
} formats[] = {
    [RECORDED_ANY] = {"", NULL,
                      "it has none of: decision_id and verdict, tool and arguments, messages, jsonrpc"},
    [RECORDED_DECISIONS] = {"decisions", read_decision, "it has no tool and no decision_id"},
    [RECORDED_NDJSON] = {"ndjson", read_plain, "it has no tool"},
    [RECORDED_OPENAI] = {"openai", read_messages, "it has no messages"},
    [RECORDED_ANTHROPIC] = {"anthropic", read_messages, "it has no messages"},
    [RECORDED_MCP] = {"mcp", read_mcp, "it is no JSON-RPC message"},
};

bool recorded_format_named(struct str name, enum recorded_format *out)
{
    for (size_t i = RECORDED_ANY + 1; i < sizeof(formats) / sizeof(formats[0]); i++)
        if (str_is(name, formats[i].name)) {
            *out = (enum recorded_format)i;
            return true;
        }
    return false;
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
    return format && formats[format].read(reader, value, line);
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
    if (reader->file != line->file) { /* a new file is a new conversation */
        recorded_reader_clear(reader);
        reader->file = line->file;
    }
    *why = formats[reader->format].expected;
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
