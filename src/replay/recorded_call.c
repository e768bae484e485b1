/*
 * What a recording says of one call, by a table of formats: lines of toolgate's decision log, of other
 * systems.
 */
#include "replay/recorded_call.h"

#include "base/arena.h"
#include "base/date.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"

#include <math.h>

/* A larger number counts milliseconds, and nanoseconds: in seconds it would be the year 5138. */
#define MS_FROM 1e11
#define NS_FROM 1e17
#define NS_MAX  1e19

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

const struct json *recorded_arguments(struct arena *arena, const struct json *value)
{
    struct json parsed;
    if (!json_is(value, JSON_STRING) || json_parse(arena, json_str(value), NULL, &parsed, NULL) != OK ||
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

void recorded_set_result(struct recorded_call *call, const struct json *result, const struct json *failed)
{
    struct arena *arena = call->line->arena;
    bool says_so = failed && failed->type != JSON_NULL && !json_is_false(failed);
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

int64_t recorded_time(const struct json *value)
{
    struct str text = text_of(value);
    struct json digits = {.type = JSON_NUMBER, .text = text.at, .len = (uint32_t)text.len};
    bool is_number = json_is(value, JSON_NUMBER);
    double number;
    int64_t us, ms = 0;
    if (!is_number && timestamp_read(&text, &us))
        ms = us / 1000;
    else if (!is_number)
        for (size_t i = 0; i < text.len && (is_number = ascii_is_digit(text.at[i])); i++)
            continue;
    if (is_number && json_double(&digits, &number) && number > 0 && number <= NS_MAX)
        ms = llround(number >= NS_FROM ? number / 1e6 : number < MS_FROM ? number * 1000 : number);
    return ms > 0 && ms < (int64_t)UINT32_MAX * 1000 ? ms : 0;
}

/* ---- the decision log ---- */

static bool read_decision(struct recorded_reader *reader, const struct json *record,
                          const struct recording_line *line)
{
    struct str method = json_str(json_get_text(record, "method"));
    if (str_starts(method, "prompts/") || str_starts(method, "resources/") ||
        str_is(method, "toolgate/approve") || str_is(method, "toolgate/deny")) /* no call of a tool */
        return true;
    struct recorded_call call = {
        .kind = str_eq(method, STR_LIT("toolgate/check"))    ? RECORDED_CHECK
                : str_eq(method, STR_LIT("toolgate/report")) ? RECORDED_REPORT
                                                             : RECORDED_CALL,
        .id = json_str(json_get_text(record, "decision_id")),
        .session = json_str(json_get_text(record, "session")),
        .user = json_str(json_get_text(record, "user")),
        .step = text_of(json_get_text(record, "step")),
        .label = json_str(json_get_text(record, "label")),
        .ext = json_str(json_get_text(record, "ext")),
        .turn = number_of(json_get_text(record, "turn")),
        .has_uid = json_is(json_get_text(record, "uid"), JSON_NUMBER),
        .uid = number_of(json_get_text(record, "uid")),
        .tool = json_str(json_get_text(record, "tool")),
        .arguments = json_get_text(record, "arguments"),
        .masked = json_get_text(record, "masked"),
        .repeated = number_of(json_get_text(record, "repeats")) > 0,
        .at_ms = recorded_time(json_get_text(record, "ts")),
        .line = line,
    };
    if (!call.id.len || !call.tool.len)
        return false;
    call.arguments_unknown = !call.arguments && call.kind != RECORDED_REPORT;
    /* A result whose value was not recorded is known by its class and hash. */
    const struct json *result = json_get_text(record, "result"), *value = json_get_text(result, "value");
    call.ran = json_is(result, JSON_OBJECT);
    if (!call.ran || error_class_named(json_str(json_get_text(result, "class")), &call.result_class) != OK)
        call.result_class = CLASS_OK;
    call.failed = call.ran && error_class_info(call.result_class)->is_error;
    call.result_hash = json_str(json_get_text(result, "hash"));
    call.by_class = call.ran && !value;
    if (value)
        call.result = recorded_result(line->arena, value);
    struct str verdict = json_str(json_get_text(record, "verdict"));
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
        .at_ms = recorded_time(member_of(record, time_names)),
        .line = line,
    };
    call.tool = json_str(inner ? member_of(inner, tool_names) : named);
    call.arguments = recorded_arguments(line->arena, member_of(inner ? inner : record, argument_names));
    call.arguments_unknown = !call.arguments;
    if (!call.tool.len)
        return false;
    const char *slash = strrchr(line->file, '/');
    if (!call.session.len) /* the file's name is the session of what names none */
        call.session = str_of(slash ? slash + 1 : line->file);
    recorded_set_result(&call, member_of(record, result_names), member_of(record, error_names));
    reader->seen(reader->owner, &call);
    return true;
}

/* ---- the formats ---- */

static bool has(const struct json *object, const char *name)
{
    return json_get_text(object, name) != NULL;
}

/* RECORDED_ANY: perhaps a transcript, else perhaps a line of another system. */
static enum recorded_format format_of(const struct json *value)
{
    const struct json *arguments = member_of(value, argument_names);
    if (has(value, "decision_id") && has(value, "verdict"))
        return RECORDED_DECISIONS;
    bool plain =
        (has(value, "tool") || has(value, "tool_name")) && arguments && arguments->type != JSON_ARRAY;
    return plain ? RECORDED_NDJSON : RECORDED_ANY;
}

static const struct {
    const char *name;
    bool (*read)(struct recorded_reader *reader, const struct json *value, const struct recording_line *line);
    const char *expected; /* what a line lacks that is no call */
} formats[] = {
    [RECORDED_ANY] = {"", read_plain, "it has no call in a format that is known"},
    [RECORDED_DECISIONS] = {"decisions", read_decision, "it has no tool and no decision_id"},
    [RECORDED_NDJSON] = {"ndjson", read_plain, "it has no tool"},
    [RECORDED_MCP] = {"mcp", NULL, "it is no JSON-RPC message"},
    [RECORDED_OPENAI] = {"openai", NULL, "it has no messages"},
    [RECORDED_ANTHROPIC] = {"anthropic", NULL, "it has no messages"},
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
}

/* An object, or an array of records. */
static bool read_records(struct recorded_reader *reader, const struct json *value,
                         const struct recording_line *line)
{
    bool any = false;
    if (json_is(value, JSON_OBJECT)) {
        enum recorded_format format = reader->format ? reader->format : format_of(value);
        return formats[format].read(reader, value, line);
    }
    for (uint32_t i = 0; i < value->len; i++)
        if (json_is(&value->items[i], JSON_OBJECT))
            any |= read_records(reader, &value->items[i], line);
    return any;
}

bool recorded_calls_read(struct recorded_reader *reader, const struct recording_line *line, const char **why)
{
    const struct json *value = line->value;
    const struct json *first = json_is(value, JSON_ARRAY) && value->len ? &value->items[0] : value;
    enum recorded_format format = reader->format ? reader->format : format_of(first);
    if (reader->file != line->file) { /* a new file is a new conversation */
        recorded_reader_clear(reader);
        reader->file = line->file;
    }
    *why = formats[reader->format].expected;
    bool transcript = format == RECORDED_ANY || format >= RECORDED_MCP;
    if (transcript && reader->transcript && reader->transcript(reader->transcripts, reader, line, why))
        return true;
    return format < RECORDED_MCP && read_records(reader, value, line);
}
