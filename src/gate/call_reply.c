/* Writes what a finished check, report or call answers. */
#include "gate/call_reply.h"

#include "catalog/mcp_version.h"
#include "catalog/tool.h"
#include "gate/verdict.h"
#include "json/write.h"

static void write_trace(struct json_out *out, const struct call *call)
{
    const struct call_trace *traces = call_outcome(call)->traces;
    json_field_open(out, "trace", '[');
    for (size_t i = 0; i < call_outcome(call)->trace_count; i++) {
        json_open(out, '{');
        json_field_text(out, "stage", traces[i].stage);
        json_field_str(out, "decision", traces[i].decision);
        json_key(out, "us");
        json_put_double(out, (double)traces[i].ns / 1000.0);
        json_close(out, '}');
    }
    json_close(out, ']');
}

void call_reply_check(struct json_out *out, struct call *call)
{
    const struct call_outcome *outcome = call_outcome(call);
    json_field_str(out, "callId", call_id(call));
    if (outcome->alias.len) /* the agent runs the tool by its present name */
        json_field_str(out, "tool", call_tool(call)->name);
    json_field_optional(out, "arguments", outcome->arguments);
    json_field_optional_str(out, "text", outcome->feedback.len ? outcome->feedback : outcome->advice);
    json_field_optional_str(out, "advice", outcome->advice);
    if (outcome->traces)
        write_trace(out, call);
}

void call_reply_text_block(struct json_out *out, struct str text)
{
    if (!text.len)
        return;
    json_open(out, '{');
    json_field_text(out, "type", "text");
    json_field_str(out, "text", text);
    json_close(out, '}');
}

void call_reply_content(struct arena *arena, struct json_out *out, const struct call *call,
                        struct str protocol, const struct json *unsent)
{
    const struct call_outcome *outcome = call_outcome(call);
    const struct json *content = outcome->content;
    bool is_error = verdict_replaces_result(outcome->verdict);
    uint32_t count = !is_error && json_is(content, JSON_ARRAY) ? content->len : 0;
    json_field_open(out, "content", '[');
    for (uint32_t i = 0; i < count; i++)
        json_put(out, mcp_version_content(arena, protocol, &content->items[i]));
    if (unsent && !count)
        call_reply_text_block(out, json_to_str(arena, unsent));
    if (!is_error)
        call_reply_text_block(out, outcome->advice);
    else
        call_reply_text_block(out, outcome->feedback.len ? outcome->feedback : outcome->verdict->detail);
    json_close(out, ']');
}

void call_reply_report(struct json_out *out, const struct call *call)
{
    json_field_optional_str(out, "text", call_outcome(call)->feedback);
    json_field_optional_str(out, "advice", call_outcome(call)->advice);
    call_reply_content(NULL, out, call, STR_NONE, NULL);
}
