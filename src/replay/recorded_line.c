/* Records with one call a line: toolgate's decision log, and what other systems write. */
#include "replay/recorded_call.h"

#include "base/arena.h"

/* ---- the decision log ---- */

/* A call whose value was not recorded is known by its class and hash. */
static void read_result(struct recorded_call *call, const struct json *result)
{
    const struct json *value = json_get_text(result, "value");
    call->ran = json_is(result, JSON_OBJECT);
    if (!call->ran || error_class_named(json_str(json_get_text(result, "class")), &call->result_class) != OK)
        call->result_class = CLASS_OK;
    call->failed = call->ran && error_class_info(call->result_class)->is_error;
    call->result_hash = json_str(json_get_text(result, "hash"));
    call->by_class = call->ran && !value;
    if (value)
        call->result = recorded_result(call->line->arena, value);
}

/* What the call came to: it ran, or it was refused in a mode that enforces. */
static void read_verdict(struct recorded_call *call, const struct json *record)
{
    struct str verdict = json_str(json_get_text(record, "verdict"));
    call->refused = !call->ran && !str_is(verdict, "pass") && !str_is(verdict, "partial");
}

bool decision_record_read(struct recorded_reader *reader, const struct recording_line *line)
{
    const struct json *record = line->value, *uid = json_get_text(record, "uid");
    struct str method = json_str(json_get_text(record, "method"));
    struct recorded_call call = {
        .kind = str_is(method, "toolgate/check")    ? RECORDED_CHECK
                : str_is(method, "toolgate/report") ? RECORDED_REPORT
                                                    : RECORDED_CALL,
        .id = json_str(json_get_text(record, "decision_id")),
        .session = json_str(json_get_text(record, "session")),
        .user = json_str(json_get_text(record, "user")),
        .step = recorded_text(json_get_text(record, "step")),
        .label = json_str(json_get_text(record, "label")),
        .ext = json_str(json_get_text(record, "ext")),
        .turn = recorded_number(json_get_text(record, "turn")),
        .has_uid = uid && uid->type == JSON_NUMBER,
        .uid = recorded_number(uid),
        .tool = json_str(json_get_text(record, "tool")),
        .arguments = json_get_text(record, "arguments"),
        .masked = json_get_text(record, "masked"),
        .at_ms = recorded_time(json_get_text(record, "ts")),
        .line = line,
    };
    if (!call.id.len || !call.tool.len)
        return false;
    call.arguments_unknown = !call.arguments && call.kind != RECORDED_REPORT;
    read_result(&call, json_get_text(record, "result"));
    read_verdict(&call, record);
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

/* {name, arguments} inside of the record, as in {"function":{"name":…,"arguments":…}}. */
static const struct json *called(const struct json *record, struct str *tool)
{
    const struct json *named = recorded_member(record, tool_names);
    bool nested = json_is(named, JSON_OBJECT);
    const struct json *holder = nested ? named : record;
    *tool = json_str(nested ? recorded_member(named, tool_names) : named);
    return recorded_member(holder, argument_names);
}

bool plain_record_read(struct recorded_reader *reader, const struct json *record,
                       const struct recording_line *line)
{
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
    call.arguments = called(record, &call.tool);
    if (!call.tool.len)
        return false;
    if (!call.session.len)
        call.session = recorded_file_name(line->file);
    recorded_set_result(&call, recorded_member(record, result_names), recorded_member(record, error_names));
    reader->seen(reader->owner, &call);
    return true;
}
