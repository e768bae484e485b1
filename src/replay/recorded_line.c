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

static enum recorded_kind kind_of(struct str method)
{
    if (str_is(method, "toolgate/check"))
        return RECORDED_CHECK;
    return str_is(method, "toolgate/report") ? RECORDED_REPORT : RECORDED_CALL;
}

bool decision_record_read(struct recorded_reader *reader, const struct recording_line *line)
{
    const struct json *field[FIELDS];
    if (!json_is(line->value, JSON_OBJECT))
        return false;
    find_fields(line->value, field);
    struct recorded_call call = {
        .kind = kind_of(json_str(field[FIELD_METHOD])),
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
    read_result(&call, field[FIELD_RESULT]);
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
    call.arguments = recorded_arguments(line->arena, called(record, &call.tool));
    call.arguments_unknown = !call.arguments;
    if (!call.tool.len)
        return false;
    if (!call.session.len)
        call.session = recorded_file_name(line->file);
    recorded_set_result(&call, recorded_member(record, result_names), recorded_member(record, error_names));
    reader->seen(reader->owner, &call);
    return true;
}
