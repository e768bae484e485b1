/* Writing what a check or a report answers. */
#include "gate/call_reply.h"

#include "catalog/tool.h"
#include "gate/verdict.h"
#include "json/write.h"

static void put_text(struct json_out *out, const char *key, struct str text)
{
    if (!text.len)
        return;
    json_key(out, key);
    json_put_str(out, text);
}

static void put_value(struct json_out *out, const char *key, const struct json *value)
{
    if (!value)
        return;
    json_key(out, key);
    json_put(out, value);
}

static void put_trace(struct json_out *out, const struct call *call)
{
    const struct call_trace *traces;
    size_t count = call_traces(call, &traces);
    json_key(out, "trace");
    json_open(out, '[');
    for (size_t i = 0; i < count; i++) {
        json_open(out, '{');
        json_key(out, "stage");
        json_put_text(out, traces[i].stage);
        json_key(out, "decision");
        json_put_str(out, traces[i].decision);
        json_key(out, "us");
        json_put_double(out, (double)traces[i].ns / 1000.0);
        json_close(out, '}');
    }
    json_close(out, ']');
}

void call_reply_check(struct json_out *out, const struct call *call, bool trace)
{
    put_text(out, "callId", call_id(call));
    if (call_alias(call).len) /* whoever runs it needs the name that it has now */
        put_text(out, "tool", call_tool(call)->name);
    put_value(out, "arguments", call_arguments(call));
    put_text(out, "text", call_feedback(call));
    put_text(out, "advice", call_advice(call));
    if (trace)
        put_trace(out, call);
}

void call_reply_text_block(struct json_out *out, struct str text)
{
    if (!text.len)
        return;
    json_open(out, '{');
    json_key(out, "type");
    json_put_text(out, "text");
    json_key(out, "text");
    json_put_str(out, text);
    json_close(out, '}');
}

static void put_result_blocks(struct json_out *out, const struct json *content)
{
    for (uint32_t i = 0; json_is(content, JSON_ARRAY) && i < content->len; i++)
        json_put(out, &content->items[i]);
}

void call_reply_content(struct json_out *out, const struct call *call)
{
    const struct verdict *verdict = call_verdict(call);
    json_key(out, "content");
    json_open(out, '[');
    if (error_class_info(verdict->class)->is_error) {
        call_reply_text_block(out, call_feedback(call).len ? call_feedback(call) : verdict->detail);
    } else {
        put_result_blocks(out, call_content(call));
        call_reply_text_block(out, call_advice(call));
    }
    json_close(out, ']');
}

void call_reply_report(struct json_out *out, const struct call *call)
{
    put_text(out, "text", call_feedback(call));
    put_text(out, "advice", call_advice(call));
    call_reply_content(out, call);
}
