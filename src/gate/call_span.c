/* Times are kept by the monotonic clock, and moved to the wall clock when the spans are written. */
#include "gate/call_state.h"

#include "base/arena.h"
#include "base/clock.h"
#include "traces/span_exporter.h"

#include <stdio.h>

struct stage_span {
    const char *name;
    int64_t began_ns, ended_ns;
    struct span_id upstream; /* of a run in an upstream; else none */
    struct str error;        /* of such a run */
};

struct call_span {
    struct trace_context forwarded;
    char trace_id[TRACE_ID_DIGITS];
    char traceparent[TRACE_PARENT_BYTES + 1];
    struct span_id check;        /* of a report: its check's span; else none */
    struct span_id id, upstream; /* upstream: of the run under way; empty: nothing runs */
    int64_t began_ns;
    uint8_t flags;
    struct stage_span stages[CALL_SPAN_STAGES_MAX];
    size_t stage_count;
};

/* The client's, if it is valid. */
static struct str given(const struct call *c, enum trace_key key)
{
    return c->request.trace_context ? c->request.trace_context->values[key] : STR_NONE;
}

struct call_span *call_span_begin(struct call *c)
{
    struct span_exporter *exporter = c->gate->spans;
    struct str parent = given(c, TRACE_PARENT);
    if (c->request.dry_run || !span_exporter_samples(exporter, parent, c->admission))
        return NULL;
    struct call_span *span = ARENA_NEW(c->arena, struct call_span);
    span_ids_of_call(c->admission, span->trace_id, &span->id);
    if (c->request.mode == CALL_REPORT) {
        span->check = span->id;
        span->id = span_exporter_new_id(exporter);
    }
    span->began_ns = c->request.received_ns ? c->request.received_ns : clock_mono_ns();
    span->flags = TRACE_FLAG_SAMPLED;
    if (parent.len) {
        memcpy(span->trace_id, trace_parent_trace_id(parent).at, sizeof(span->trace_id));
        span->flags |= trace_parent_flags(parent);
    }
    c->request.trace_id = (struct str){span->trace_id, sizeof(span->trace_id)};
    return span;
}

const struct trace_context *call_span_for_upstream(struct call *c)
{
    struct call_span *span = c->span;
    if (!c->gate->spans) /* a reload has switched them off since */
        return c->request.trace_context;
    span->upstream = span_exporter_new_id(c->gate->spans);
    snprintf(span->traceparent, sizeof(span->traceparent), "00-%.*s-%.*s-%02x", (int)sizeof(span->trace_id),
             span->trace_id, (int)sizeof(span->upstream.digits), span->upstream.digits, span->flags);
    if (c->request.trace_context)
        span->forwarded = *c->request.trace_context;
    span->forwarded.values[TRACE_PARENT] = str_of(span->traceparent);
    return &span->forwarded;
}

void call_span_stage(struct call *c, const char *name)
{
    struct call_span *span = c->span;
    if (span->stage_count == CALL_SPAN_STAGES_MAX)
        return;
    struct stage_span *stage = &span->stages[span->stage_count++];
    *stage = (struct stage_span){.name = name, .began_ns = c->stage_began_ns, .ended_ns = clock_mono_ns()};
    if (!span->upstream.digits[0])
        return;
    stage->upstream = span->upstream;
    /* What the upstream did with the call, not what the gate makes of it. */
    const struct upstream_answer *answer = c->upstream ? &c->upstream->answer : NULL;
    if (answer && c->cancelled)
        stage->error = str_of(error_class_info(CLASS_CANCELLED)->name);
    else if (answer && answer->outcome == UPSTREAM_RESULT && c->result.is_error)
        stage->error = STR_LIT("tool_error");
    else if (answer && answer->outcome != UPSTREAM_RESULT && answer->outcome != UPSTREAM_INPUT_REQUIRED)
        stage->error = answer->code.len ? answer->code : STR_LIT("_OTHER");
    span->upstream.digits[0] = '\0';
}

/* ---- writing ---- */

/* Opens the span of the call itself, with its attributes. to_wall_ns: added to monotonic times. */
static void write_call(struct call *c, struct json_out *out, int64_t to_wall_ns)
{
    const struct call_request *r = &c->request;
    const struct verdict *v = &c->verdict;
    const struct error_class_info *class = error_class_info(c->cancelled ? CLASS_CANCELLED : v->class);
    struct str method = call_method(r->mode), parent = given(c, TRACE_PARENT);
    struct span span = {
        .trace_id = {c->span->trace_id, TRACE_ID_DIGITS},
        .id = c->span->id,
        .parent = parent.len               ? trace_parent_span_id(parent)
                  : r->mode == CALL_REPORT ? span_id_str(&c->span->check)
                                           : STR_NONE,
        .parent_is_remote = parent.len > 0,
        .trace_state = given(c, TRACE_STATE),
        .flags = c->span->flags,
        /* The name of a tool that does not exist is the client's invention: no name of a span. */
        .name = c->tool ? ARENA_JOIN(c->arena, method, STR_LIT(" "), c->tool->name) : method,
        .kind = SPAN_SERVER,
        .start_ns = c->span->began_ns + to_wall_ns,
        .end_ns = clock_mono_ns() + to_wall_ns,
        /* as the model sees it: the tool's own failure, or the class of the verdict */
        .error = class->is_error      ? str_of(class->name)
                 : c->result.is_error ? STR_LIT("tool_error")
                                      : STR_NONE,
    };
    span_open(out, &span);
    span_put_str(out, "mcp.method.name", method);
    span_put_str(out, "mcp.protocol.version", r->protocol);
    span_put_str(out, "mcp.session.id", r->session);
    span_put_str(out, "gen_ai.operation.name", STR_LIT("execute_tool"));
    span_put_str(out, "gen_ai.tool.name", r->tool);
    span_put_str(out, "network.transport", STR_LIT("unix"));
    if (!c->cancelled) {
        span_put_str(out, "toolgate.verdict", str_of(verdict_name(v->kind)));
        span_put_str(out, "toolgate.error_class", str_of(class->name));
    }
    span_put_str(out, "toolgate.code", v->code);
    span_put_str(out, "toolgate.would", v->would);
    span_put_str(out, "toolgate.stage", str_of(v->stage));
    span_put_str(out, "toolgate.generation", c->generation->hash);
    if (v->attempt)
        span_put_int(out, "toolgate.attempt", v->attempt);
    if (v->tries > 1)
        span_put_int(out, "toolgate.tries", v->tries);
    /* What the call has cost; before that is known, what its check has reserved. */
    if (v->cost >= 0)
        span_put_double(out, "toolgate.cost", v->cost);
    else if (c->tool && c->tool->limits->cost && (c->admitted || c->ran))
        span_put_double(out, "toolgate.cost", (double)c->tool->limits->cost / LEDGER_COST_UNIT);
    span_close(out, &span);
}

/* A run in an upstream has the attributes that OpenTelemetry names for MCP, HTTP or a command. URLs and
 * command lines may hold arguments: of those only what the policy's author wrote, without its parameters. */
static void write_stage(struct call *c, struct json_out *out, int64_t to_wall_ns,
                        const struct stage_span *stage)
{
    bool runs = stage->upstream.digits[0] && c->tool;
    struct span span = {
        .trace_id = {c->span->trace_id, TRACE_ID_DIGITS},
        .id = runs ? stage->upstream : span_exporter_new_id(c->gate->spans),
        .parent = span_id_str(&c->span->id),
        .flags = c->span->flags,
        .kind = runs ? SPAN_CLIENT : SPAN_INTERNAL,
        .start_ns = stage->began_ns + to_wall_ns,
        .end_ns = stage->ended_ns + to_wall_ns,
        .error = stage->error,
    };
    if (!runs) {
        span.name = ARENA_JOIN(c->arena, STR_LIT("stage "), str_of(stage->name));
        span_open(out, &span);
        span_close(out, &span);
        return;
    }
    const struct target *target = &c->tool->target;
    const struct config *config = &c->generation->config;
    const struct upstream_spec *spec = config_find_upstream(config, target->upstream);
    span.name = target->kind == TARGET_MCP    ? ARENA_JOIN(c->arena, STR_LIT("tools/call "), target->tool)
                : target->kind == TARGET_HTTP ? target->http->method
                                              : c->tool->name;
    span_open(out, &span);
    span_put_str(out, "toolgate.upstream", target->upstream);
    if (target->kind == TARGET_MCP) {
        span_put_str(out, "mcp.method.name", STR_LIT("tools/call"));
        span_put_str(out, "gen_ai.operation.name", STR_LIT("execute_tool"));
        span_put_str(out, "gen_ai.tool.name", target->tool);
    } else if (target->kind == TARGET_HTTP) {
        span_put_str(out, "http.request.method", target->http->method);
    }
    bool is_piped =
        target->kind == TARGET_EXEC || (target->kind == TARGET_MCP && spec && spec->kind == UPSTREAM_STDIO);
    span_put_str(out, "network.transport", is_piped ? STR_LIT("pipe") : STR_LIT("tcp"));
    span_close(out, &span);
}

void call_span_end(struct call *c, const char *stage)
{
    struct span_exporter *exporter = c->gate->spans;
    int64_t to_wall_ns = clock_wall_ns() - clock_mono_ns();
    if (stage)
        call_span_stage(c, stage);
    struct json_out *out = exporter ? span_exporter_begin(exporter, c->span->stage_count + 1) : NULL;
    if (!out)
        return;
    write_call(c, out, to_wall_ns);
    for (size_t i = 0; i < c->span->stage_count; i++)
        write_stage(c, out, to_wall_ns, &c->span->stages[i]);
    span_exporter_end(exporter);
}
