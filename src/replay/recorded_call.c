/*
 * What a recording says of one call, by a table of formats: lines of toolgate's decision log, of other
 * systems and of MCP's JSON-RPC, and the messages of models' APIs.
 */
#include "replay/recorded_call.h"

#include "base/arena.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"

#include <math.h>

#define MS_FROM                                                                                              \
    100000000000.0 /* a larger number counts milliseconds: in seconds it would be the year 5138              \
                    */

#define SESSION_KEY "dev.toolgate/session"
#define TURN_KEY    "dev.toolgate/turn"
#define STEP_KEY    "dev.toolgate/step"

/* ---- members ---- */

/* The first member of these names that is there. */
static const struct json *member_of(const struct json *object, const char *const *names)
{
    for (; *names; names++) {
        const struct json *value = json_get_text(object, *names);
        if (value && value->type != JSON_NULL)
            return value;
    }
    return NULL;
}

/* A string as it is, a number as its digits. */
static struct str text_of(const struct json *value)
{
    if (json_is(value, JSON_NUMBER))
        return (struct str){value->text, value->len};
    return json_str(value);
}

/* Whole and positive; 0: it is not. */
static uint32_t number_of(const struct json *value)
{
    int64_t n;
    return json_int(value, &n) && n > 0 && n <= UINT32_MAX ? (uint32_t)n : 0;
}

/* "run.json" of its path: the session of what names none. */
static struct str file_name_of(const char *file)
{
    const char *slash = strrchr(file, '/');
    return str_of(slash ? slash + 1 : file);
}

/* APIs carry the arguments as a string that holds an object, which is no fault of the model: the object. A
 * string that holds none, of a call that was cut off, stays one. */
static const struct json *arguments_of(struct arena *arena, const struct json *value)
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
    struct str message = json_str(json_is(error, JSON_OBJECT) ? member_of(error, names) : NULL);
    return message.len || !error || error->type == JSON_BOOL ? message : json_to_str(arena, error);
}

/* From what the recording has of the call. `failed` may be NULL. */
static void set_result(struct recorded_call *call, const struct json *result, const struct json *failed)
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

/* Milliseconds since 1970 of an RFC 3339 time (UTC if it names no zone), or of seconds or milliseconds. 0: it
 * is no time, or one that the ledger cannot keep, which counts seconds since 1970 in 32 bits. */
static int64_t time_of(const struct json *value)
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
        .kind = str_eq(method, STR_LIT("toolgate/check"))    ? RECORDED_CHECK
                : str_eq(method, STR_LIT("toolgate/report")) ? RECORDED_REPORT
                                                             : RECORDED_CALL,
        .id = json_str(field[FIELD_ID]),
        .session = json_str(field[FIELD_SESSION]),
        .user = json_str(field[FIELD_USER]),
        .step = text_of(field[FIELD_STEP]),
        .label = json_str(field[FIELD_LABEL]),
        .ext = json_str(field[FIELD_EXT]),
        .turn = number_of(field[FIELD_TURN]),
        .has_uid = json_is(field[FIELD_UID], JSON_NUMBER),
        .uid = number_of(field[FIELD_UID]),
        .tool = json_str(field[FIELD_TOOL]),
        .arguments = field[FIELD_ARGUMENTS],
        .masked = field[FIELD_MASKED],
        .repeated = number_of(field[FIELD_REPEATS]) > 0,
        .at_ms = time_of(field[FIELD_TS]),
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
    const struct json *named = member_of(record, tool_names);
    const struct json *inner = json_is(named, JSON_OBJECT) ? named : NULL;
    struct recorded_call call = {
        .kind = RECORDED_CALL,
        .session = text_of(member_of(record, session_names)),
        .user = json_str(json_get_text(record, "user")),
        .step = text_of(member_of(record, step_names)),
        .turn = number_of(member_of(record, turn_names)),
        .toolset = json_str(json_get_text(record, "toolset")),
        .masked = json_get_text(record, "masked"),
        .at_ms = time_of(member_of(record, time_names)),
        .line = line,
    };
    call.tool = json_str(inner ? member_of(inner, tool_names) : named);
    call.arguments = arguments_of(line->arena, member_of(inner ? inner : record, argument_names));
    call.arguments_unknown = !call.arguments;
    if (!call.tool.len)
        return false;
    if (!call.session.len)
        call.session = file_name_of(line->file);
    set_result(&call, member_of(record, result_names), member_of(record, error_names));
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
    struct str file = file_name_of(line->file), session = text_of(member_of(value, sessions));
    if (!json_get_text(message, "jsonrpc"))
        return false;
    struct recorded_call call = {.kind = RECORDED_CHECK,
                                 .session = session.len ? session : file,
                                 .at_ms = time_of(member_of(value, times)),
                                 .tools = reader->tools,
                                 .line = line};
    call.id = arena_printf(line->arena, "%s " STR_FMT " " STR_FMT, json_is(id, JSON_STRING) ? "s" : "n",
                           STR_ARG(file), STR_ARG(text_of(id)));
    if (str_is(method, "tools/call") && id) {
        const struct json *meta = json_get_text(params, "_meta");
        /* The reply names no session: it is found by the file's and the request's id. */
        session = json_str(json_get_text(meta, SESSION_KEY));
        call.session = session.len ? session : call.session;
        call.tool = json_str(json_get_text(params, "name"));
        call.arguments = json_get_text(params, "arguments");
        call.turn = number_of(json_get_text(meta, TURN_KEY));
        call.step = text_of(json_get_text(meta, STEP_KEY));
        if (call.tool.len)
            reader->seen(reader->owner, &call);
    } else if (!method.len && id && json_is(tools, JSON_ARRAY)) {
        arena_free(reader->file_arena); /* of the list before */
        reader->file_arena = arena_new();
        reader->tools = json_keep(reader->file_arena, json_copy(reader->file_arena, tools));
    } else if (!method.len && id) {
        call.kind = RECORDED_REPORT;
        call.perhaps = true;
        set_result(&call, result, json_get_text(message, "error"));
        call.failed |= json_is_true(json_get_text(result, "isError"));
        reader->seen(reader->owner, &call);
    }
    return true;
}

/* ---- conversations, as they are sent to and come from a model's API ----
 * One walk reads what OpenAI's and Anthropic's messages have in common, and each item is read by what it is:
 *
 *   OpenAI chat       {role: assistant, tool_calls: [{id, function: {name, arguments}}]},
 *                     {role: tool, tool_call_id}
 *   OpenAI responses  {type: function_call, call_id, name, arguments},
 *                     {type: function_call_output, call_id, output}
 *   Anthropic         content blocks {type: tool_use, id, name, input}, {type: tool_result, tool_use_id,
 * content}
 *
 * A user's message begins a turn; the calls of one message of the model are one step.
 */

struct conversation {
    struct recorded_reader *reader;
    const struct recording_line *line;
    struct str session;
    const struct json *tools;
    uint32_t turn;
    uint64_t messages; /* so far: names the step */
    bool in_calls;     /* the last item was a function_call: the next one is in the same step */
    int64_t at_ms;
};

static struct recorded_call call_of(const struct conversation *c, enum recorded_kind kind,
                                    const struct json *id)
{
    return (struct recorded_call){
        .kind = kind,
        .id = text_of(id),
        .session = c->session,
        .turn = c->turn,
        .step = arena_printf(c->line->arena, "message %llu", (unsigned long long)c->messages),
        .at_ms = c->at_ms,
        .tools = c->tools,
        .line = c->line,
    };
}

static void see_call(const struct conversation *c, const struct json *id, const struct json *name,
                     const struct json *arguments)
{
    struct recorded_call call = call_of(c, RECORDED_CHECK, id);
    call.tool = json_str(name);
    call.arguments = arguments_of(c->line->arena, arguments);
    call.arguments_unknown = !arguments;
    if (call.tool.len)
        c->reader->seen(c->reader->owner, &call);
}

static void see_result(const struct conversation *c, const struct json *id, const struct json *result,
                       const struct json *failed)
{
    static const struct json nothing = {.type = JSON_STRING, .text = ""};
    struct recorded_call call = call_of(c, RECORDED_REPORT, id);
    set_result(&call, result ? result : &nothing, failed);
    c->reader->seen(c->reader->owner, &call);
}

/* An item of the Responses API that is no message; false: it is not one. */
static bool read_item(struct conversation *c, const struct json *item)
{
    struct str type = json_str(json_get_text(item, "type"));
    const struct json *id = json_get_text(item, "call_id"), *output = json_get_text(item, "output");
    bool calls = str_is(type, "function_call"), answers = str_is(type, "function_call_output");
    if (calls && !c->in_calls)
        c->messages++;
    c->in_calls = calls;
    if (calls)
        see_call(c, id ? id : json_get_text(item, "id"), json_get_text(item, "name"),
                 json_get_text(item, "arguments"));
    else if (answers)
        see_result(c, id, output, NULL);
    else if (str_is(type, "mcp_call")) { /* the API has run it */
        struct recorded_call call = call_of(c, RECORDED_CALL, json_get_text(item, "id"));
        call.tool = json_str(json_get_text(item, "name"));
        call.arguments = arguments_of(c->line->arena, json_get_text(item, "arguments"));
        set_result(&call, output && output->type != JSON_NULL ? output : NULL, json_get_text(item, "error"));
        if (call.tool.len)
            c->reader->seen(c->reader->owner, &call);
    } else
        return !str_is(type, "message") && !json_get_text(item, "role");
    return true;
}

/* True: the blocks hold results, so that the message is not one of the user's. */
static bool read_blocks(const struct conversation *c, const struct json *content)
{
    bool answers = false;
    for (uint32_t i = 0; json_is(content, JSON_ARRAY) && i < content->len; i++) {
        const struct json *block = &content->items[i];
        struct str type = json_str(json_get_text(block, "type"));
        if (str_is(type, "tool_use")) {
            see_call(c, json_get_text(block, "id"), json_get_text(block, "name"),
                     json_get_text(block, "input"));
        } else if (str_is(type, "tool_result")) {
            see_result(c, json_get_text(block, "tool_use_id"), json_get_text(block, "content"),
                       json_get_text(block, "is_error"));
            answers = true;
        }
    }
    return answers;
}

static void read_message(struct conversation *c, const struct json *message)
{
    static const char *const times[] = {"timestamp", "ts", "created_at", NULL};
    const struct json *content = json_get_text(message, "content");
    struct str role = json_str(json_get_text(message, "role"));
    int64_t at_ms = time_of(member_of(message, times));
    if (at_ms)
        c->at_ms = at_ms;
    if (!json_is(message, JSON_OBJECT) || read_item(c, message))
        return;
    c->messages++;
    if (str_is(role, "tool")) {
        see_result(c, json_get_text(message, "tool_call_id"), content, NULL);
    } else if (str_is(role, "function")) {
        see_result(c, json_get_text(message, "name"), content, NULL);
    } else if (str_is(role, "assistant")) {
        const struct json *calls = json_get_text(message, "tool_calls");
        const struct json *older = json_get_text(message, "function_call"),
                          *name = json_get_text(older, "name");
        for (uint32_t i = 0; json_is(calls, JSON_ARRAY) && i < calls->len; i++) {
            const struct json *function = json_get_text(&calls->items[i], "function");
            see_call(c, json_get_text(&calls->items[i], "id"), json_get_text(function, "name"),
                     json_get_text(function, "arguments"));
        }
        if (json_is(older, JSON_OBJECT)) /* it has no ids: the name joins the call to its result */
            see_call(c, name, name, json_get_text(older, "arguments"));
        read_blocks(c, content);
    } else if (!read_blocks(c, content) && str_is(role, "user")) {
        c->turn++;
    }
}

static void read_messages(struct conversation *c, const struct json *messages)
{
    for (uint32_t i = 0; json_is(messages, JSON_ARRAY) && i < messages->len; i++)
        read_message(c, &messages->items[i]);
}

/* The first choice of a reply of OpenAI's chat API; NULL: it is not one. */
static const struct json *first_choice(const struct json *value)
{
    const struct json *choices = json_get_text(value, "choices");
    return json_is(choices, JSON_ARRAY) && choices->len ? &choices->items[0] : NULL;
}

static struct str session_of(const struct json *conversation, const struct recording_line *line,
                             const char *part)
{
    static const char *const names[] = {"session",  "session_id", "conversation_id", "thread_id", "chat_id",
                                        "trace_id", "run_id",     "task_id",         "id",        NULL};
    struct str named = text_of(json_is(conversation, JSON_OBJECT) ? member_of(conversation, names) : NULL);
    struct str file = file_name_of(line->file);
    if (named.len)
        return named;
    return arena_printf(line->arena, STR_FMT ":%llu%s", STR_ARG(file), (unsigned long long)line->number,
                        part);
}

/* A conversation: an object with messages (or input and output), or an array of messages. */
static bool read_conversation(struct recorded_reader *reader, const struct json *conversation,
                              const struct recording_line *line)
{
    static const char *const times[] = {"ts", "timestamp", "created_at", "created", NULL};
    static const char *const lists[] = {"messages", "items", "input", "output"};
    bool is_list = json_is(conversation, JSON_ARRAY);
    const struct json *request = is_list ? NULL : json_get_text(conversation, "request");
    const struct json *tools = is_list ? NULL : json_get_text(conversation, "tools");
    struct conversation c = {
        .reader = reader,
        .line = line,
        .session = session_of(conversation, line, ""),
        .tools = json_is(tools, JSON_ARRAY) ? tools : reader->tools,
        .at_ms = is_list ? 0 : time_of(member_of(conversation, times)),
    };
    if (json_is(line->value, JSON_ARRAY) && conversation != line->value) /* one of several in the line */
        c.session = session_of(conversation, line,
                               arena_printf(line->arena, ".%llu", (unsigned long long)++reader->messages).at);
    if (is_list) {
        read_messages(&c, conversation);
        return true;
    }
    if (json_is(request, JSON_OBJECT) && json_is(json_get_text(request, "tools"), JSON_ARRAY))
        c.tools = json_get_text(request, "tools");
    read_messages(&c, json_get_text(request, "messages"));
    read_messages(&c, json_get_text(request, "input"));
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        read_messages(&c, json_get_text(conversation, lists[i]));
    /* The reply beside a request, as proxies record it: a choice, items, or a message. */
    const struct json *reply =
        json_get_text(conversation, "choices") ? conversation : json_get_text(conversation, "response");
    if (first_choice(reply))
        read_message(&c, json_get_text(first_choice(reply), "message"));
    else if (json_get_text(reply, "output"))
        read_messages(&c, json_get_text(reply, "output"));
    else if (json_get_text(reply, "role"))
        read_message(&c, reply);
    return true;
}

/* A file of messages, one a line, is one conversation unless the messages name theirs. */
static bool read_message_line(struct recorded_reader *reader, const struct json *message,
                              const struct recording_line *line)
{
    static const char *const names[] = {"session", "session_id", "conversation_id", "thread_id", NULL};
    struct str named = text_of(member_of(message, names));
    struct conversation c = {
        .reader = reader,
        .line = line,
        .session = named.len ? named : file_name_of(line->file),
        .tools = reader->tools,
        .turn = reader->turn,
        .messages = reader->messages,
    };
    if (!json_get_text(message, "role") && !json_get_text(message, "type"))
        return false;
    read_message(&c, message);
    reader->turn = c.turn;
    reader->messages = c.messages;
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
    if (has(value, "tool") || has(value, "tool_name") || (member_of(value, tools) && !is_message(value)))
        return RECORDED_NDJSON;
    return is_message(value) ? RECORDED_OPENAI : RECORDED_ANY;
}

/* A conversation, or a message of the one that the file is. */
static bool read_api(struct recorded_reader *reader, const struct json *value,
                     const struct recording_line *line)
{
    return is_conversation(value) ? read_conversation(reader, value, line)
                                  : read_message_line(reader, value, line);
}

static const struct {
    const char *name;
    bool (*read)(struct recorded_reader *reader, const struct json *value, const struct recording_line *line);
    const char *expected; /* what a line lacks that is no call */
} formats[] = {
    [RECORDED_ANY] = {"", NULL,
                      "it has none of: decision_id and verdict, tool and arguments, messages, jsonrpc"},
    [RECORDED_DECISIONS] = {"decisions", read_decision, "it has no tool and no decision_id"},
    [RECORDED_NDJSON] = {"ndjson", read_plain, "it has no tool"},
    [RECORDED_OPENAI] = {"openai", read_api, "it has no messages"},
    [RECORDED_ANTHROPIC] = {"anthropic", read_api, "it has no messages"},
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
        return read_conversation(reader, array, line);
    for (uint32_t i = 0; i < array->len; i++) {
        const struct json *item = &array->items[i];
        if (json_is(item, JSON_OBJECT))
            any |= read_object(reader, item, line);
        else if (json_is(item, JSON_ARRAY))
            any |= read_conversation(reader, item, line);
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
