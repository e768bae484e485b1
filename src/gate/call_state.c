/* What others may ask of a call, before and after its end. */
#include "gate/call_state.h"

#include "json/build.h"

const struct verdict *call_verdict(const struct call *c)
{
    return &c->verdict;
}

const struct tool *call_tool(const struct call *c)
{
    return c->tool;
}

struct str call_alias(const struct call *c)
{
    return c->called;
}

struct str call_id(const struct call *c)
{
    struct buf id = buf_in(c->arena);
    buf_hex64(&id, c->admission);
    return buf_view(&id);
}

const struct json *call_arguments(const struct call *c)
{
    return c->args.now;
}

struct str call_feedback(const struct call *c)
{
    return c->text;
}

struct str call_advice(const struct call *c)
{
    return c->advice;
}

const struct json *call_content(const struct call *c)
{
    return c->shown.done ? c->shown.result.content : c->result.content;
}

const struct json *call_input_requests(const struct call *c)
{
    bool asked = c->verdict.class == CLASS_NEED_USER_INPUT && c->outside && c->request.supports_elicitation;
    return asked ? c->outside->answer.input : NULL;
}

const struct json *call_structured(const struct call *c)
{
    return c->shown.done ? c->shown.result.structured : c->result.structured;
}

const struct json *call_visible_result(const struct call *c)
{
    struct result shown = c->result;
    if (error_class_info(c->verdict.class)->is_error)
        return NULL;
    if (c->shown.done && c->shown.result.structured)
        return c->shown.result.structured;
    if (c->shown.done) {
        struct json_member content = json_member(STR_LIT("content"), *c->shown.result.content);
        struct json sent = json_object(c->arena, &content, 1);
        result_read(c->arena, &sent, &shown);
    }
    return shown.value;
}

const struct json *call_metadata(const struct call *c)
{
    return c->result.metadata;
}

const struct json *call_result(const struct call *c)
{
    return c->result.value;
}

size_t call_traces(const struct call *c, const struct call_trace **out)
{
    *out = c->traces;
    return c->trace_count;
}

struct str call_session_key(struct arena *arena, const struct config *config, const struct peer *peer,
                            struct str session, struct str connection)
{
    struct buf key = buf_in(arena);
    if (!session.len) {
        buf_text(&key, "anonymous/");
        session = connection;
    } else if (config->shared_namespace || !peer) {
        buf_text(&key, "shared/");
    } else {
        buf_text(&key, "uid:");
        buf_int(&key, (int64_t)peer->uid);
        buf_byte(&key, '/');
    }
    buf_str(&key, session);
    return buf_view(&key);
}
