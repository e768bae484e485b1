/*
 * JSON-RPC of MCP, one message a line in both directions, perhaps inside of {ts, session, message}.
 * tools/call and its reply are one call; a tools/list reply gives the tools of what follows in the file.
 */
#include "replay/recorded_call.h"

#include "base/arena.h"
#include "json/build.h"

#define SESSION_KEY "dev.toolgate/session"
#define TURN_KEY    "dev.toolgate/turn"
#define STEP_KEY    "dev.toolgate/step"

struct envelope {
    const struct json *message;
    struct recorded_call call; /* what the envelope says of it */
};

static struct envelope open_envelope(const struct recorded_reader *reader, const struct json *value,
                                     const struct recording_line *line)
{
    static const char *const sessions[] = {"session", "session_id", "sessionId", "mcp-session-id", NULL};
    static const char *const times[] = {"ts", "timestamp", "time", NULL};
    const struct json *inner = json_get_text(value, "message");
    struct envelope e = {.message = json_get_text(inner, "jsonrpc") ? inner : value, .call = {.line = line}};
    e.call.session = recorded_text(recorded_member(value, sessions));
    if (!e.call.session.len)
        e.call.session = recorded_file_name(line->file);
    e.call.at_ms = recorded_time(recorded_member(value, times));
    e.call.tools = reader->tools;
    return e;
}

static void read_call(struct recorded_reader *reader, struct envelope *e)
{
    const struct json *params = json_get_text(e->message, "params"), *meta = json_get_text(params, "_meta");
    struct str session = json_str(json_get_text(meta, SESSION_KEY));
    struct recorded_call *call = &e->call;
    call->kind = RECORDED_CHECK;
    call->tool = json_str(json_get_text(params, "name"));
    call->arguments = json_get_text(params, "arguments");
    call->turn = recorded_number(json_get_text(meta, TURN_KEY));
    call->step = recorded_text(json_get_text(meta, STEP_KEY));
    /* The reply names no session: it is found by the file's and the request's id. */
    if (session.len)
        call->session = session;
    if (call->tool.len)
        reader->seen(reader->owner, call);
}

static void read_reply(struct recorded_reader *reader, struct envelope *e)
{
    const struct json *result = json_get_text(e->message, "result"),
                      *error = json_get_text(e->message, "error");
    const struct json *tools = json_get_text(result, "tools");
    struct recorded_call *call = &e->call;
    if (json_is(tools, JSON_ARRAY)) {
        arena_free(reader->file_arena); /* of the list before */
        reader->file_arena = arena_new();
        reader->tools = json_keep(reader->file_arena, json_copy(reader->file_arena, tools));
        return;
    }
    call->kind = RECORDED_REPORT;
    call->perhaps = true;
    recorded_set_result(call, result, error);
    if (json_is_true(json_get_text(result, "isError")))
        call->failed = true;
    reader->seen(reader->owner, call);
}

bool mcp_message_read(struct recorded_reader *reader, const struct json *value,
                      const struct recording_line *line)
{
    struct envelope e = open_envelope(reader, value, line);
    const struct json *id = json_get_text(e.message, "id");
    struct str method = json_str(json_get_text(e.message, "method"));
    if (!json_is(e.message, JSON_OBJECT) || !json_get_text(e.message, "jsonrpc"))
        return false;
    e.call.id = arena_printf(line->arena, "%s " STR_FMT " " STR_FMT, json_is(id, JSON_STRING) ? "s" : "n",
                             STR_ARG(recorded_file_name(line->file)), STR_ARG(recorded_text(id)));
    if (str_is(method, "tools/call") && id)
        read_call(reader, &e);
    else if (!method.len && id)
        read_reply(reader, &e);
    return true;
}
