/* See upstream_result.h. Their words are data (`quoted`), ours say what happened and what to do. */
#include "gate/upstream_result.h"

#include "base/arena.h"
#include "gate/verdict_from.h"

/* A server of MCP says itself what is content; what a command or an endpoint gives is a value, unless it has
 * that form. */
static void take_result(struct arena *arena, const struct tool *tool, const struct upstream_answer *a,
                        struct result *result)
{
    static void (*const readers[])(struct arena *, const struct json *, struct result *) = {
        [TARGET_MCP] = result_read_mcp, [TARGET_HTTP] = result_read, [TARGET_EXEC] = result_read_command};
    readers[tool->target.kind](arena, a->result, result);
}

/* What cannot even be handed over is the model's to mend, like any wrong argument. */
static void refused(struct verdict *v, const struct upstream_answer *a)
{
    verdict_set(v, a->reached ? CLASS_TOOL_ERROR : CLASS_INVALID_ARGUMENTS, a->code, a->detail, STR_NONE);
    v->quoted = a->quoted;
    v->valid = a->reached;
}

/* A model must know when it cannot be known whether anything has happened. */
static void passing(struct verdict *v, struct arena *arena, const struct tool *tool,
                    const struct upstream_answer *a)
{
    struct str detail = a->detail, hint = STR_NONE;
    if (a->reached && !tool->idempotent) {
        detail = ARENA_JOIN(arena, detail, STR_LIT("; it may or may not have been carried out"));
        hint = STR_LIT("First look whether it has been carried out; only if not, make the same call again.");
    }
    verdict_set(v, CLASS_TRANSIENT, a->code, detail, hint);
    v->quoted = a->quoted;
    v->after_s = a->after_s;
}

static void unavailable(struct verdict *v, struct arena *arena, const struct upstream_answer *a)
{
    struct str hint = STR_NONE;
    if (a->after_s >= 0)
        hint = arena_printf(
            arena,
            "Use another tool, or tell the user. It is asked again in %lld s; before that the same "
            "call can only fail.",
            (long long)(a->after_s > 0 ? a->after_s : 1));
    verdict_set(v, CLASS_UNAVAILABLE, a->code, a->detail, hint);
    v->quoted = a->quoted;
    v->after_s = a->after_s;
}

static void broken(struct verdict *v, const struct upstream_answer *a)
{
    verdict_set(v, CLASS_SCHEMA_MISMATCH, a->code, a->detail, STR_NONE);
    v->quoted = a->quoted;
}

/* The question is the server's: quoted, for the model to pass on. */
static void asks(struct verdict *v, const struct upstream_answer *a)
{
    verdict_set(v, CLASS_NEED_USER_INPUT, a->code.len ? a->code : STR_LIT("input_required"), STR_NONE,
                STR_NONE);
    v->quoted = a->question;
    v->coverage = STR_LIT("NEED_USER_INPUT");
}

void upstream_result_read(struct verdict *v, struct arena *arena, const struct tool *tool,
                          const struct upstream_answer *a, struct result *result)
{
    switch (a->outcome) {
    case UPSTREAM_RESULT:
        take_result(arena, tool, a, result);
        break;
    case UPSTREAM_REFUSED:
        refused(v, a);
        break;
    case UPSTREAM_TRANSIENT:
        passing(v, arena, tool, a);
        break;
    case UPSTREAM_UNAVAILABLE:
        unavailable(v, arena, a);
        break;
    case UPSTREAM_BROKEN:
        broken(v, a);
        break;
    case UPSTREAM_INPUT_REQUIRED:
        asks(v, a);
        break;
    }
}

void upstream_result_unavailable_here(struct verdict *v, struct arena *arena, const struct tool *tool)
{
    static const char *const kinds[] = {
        [TARGET_MCP] = "a server", [TARGET_HTTP] = "an HTTP endpoint", [TARGET_EXEC] = "a command"};
    verdict_set(v, CLASS_UNAVAILABLE, STR_LIT("not_run_here"),
                arena_printf(
                    arena,
                    "%s runs it, and nothing outside is asked here: only a daemon (toolgate serve) does that",
                    kinds[tool->target.kind]),
                STR_LIT("Give the example a result, or make the call through a running daemon."));
}
