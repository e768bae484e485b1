/*
 * What dispatch.c, the runners and upstream.c share: the answer of a call, its
 * timeout, and what is logged about it. Starts and ends no call.
 */
#include "upstream/upstream_internal.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "upstream/http/http_tool.h"

#include <stdarg.h>

int64_t upstream_now_ms(void)
{
    return clock_mono_us() / 1000;
}

enum upstream_call_state upstream_call_answer(struct upstream_call *call, enum upstream_outcome outcome,
                                              const char *code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    call->answer->outcome = outcome;
    call->answer->code = arena_dup(call->arena, str_of(code));
    call->answer->detail = arena_vprintf(call->arena, format, args);
    va_end(args);
    return UPSTREAM_DONE;
}

const char *upstream_call_service(const struct upstream_call *call)
{
    return call->request->method ? "has this" : "runs this tool";
}

uint32_t upstream_call_timeout_ms(const struct upstream_call *call, uint32_t own_ms)
{
    uint32_t max_ms = call->request->max_ms;
    return max_ms && max_ms < own_ms ? max_ms : own_ms;
}

void upstream_remember_error(struct upstream *u, struct str why)
{
    struct str cut = str_cut(why, sizeof(u->last_error) - 1);
    memcpy(u->last_error, cut.at ? cut.at : "", cut.len);
    u->last_error[cut.len] = '\0';
    u->error_ms = upstream_now_ms();
}

void upstream_call_log_failure(struct upstream_call *call, struct str code, struct str why)
{
    log_event(LOG_WARN, "upstream_call_failed",
              LOG_STR("upstream", call->upstream ? call->upstream->spec->name : STR_NONE),
              LOG_STR("tool", call->request->target->tool), LOG_STR("code", code), LOG_STR("why", why));
    if (call->upstream) {
        call->upstream->failures++;
        upstream_remember_error(call->upstream, why);
    }
}

uint32_t target_timeout_ms(const struct target *target, const struct upstream_spec *spec)
{
    uint32_t own = target->timeout_ms;
    if (!own && target->kind == TARGET_EXEC)
        own = target->exec->timeout_ms ? target->exec->timeout_ms : EXEC_TIMEOUT_MS;
    else if (!own && target->kind == TARGET_HTTP)
        own = target->http->timeout_ms;
    if (own)
        return own;
    if (spec && spec->timeout_ms)
        return spec->timeout_ms;
    return target->kind == TARGET_HTTP ? HTTP_TIMEOUT_MS : UPSTREAM_TIMEOUT_MS;
}

struct upstream *upstream_find(const struct upstreams *set, struct str name)
{
    for (struct upstream *u = set->first; u; u = u->next)
        if (!u->leaving && str_eq(u->spec->name, name))
            return u;
    return NULL;
}

void upstream_schedule(struct upstream *u)
{
    timer_set(&u->turn, u->set->loop, 0, u->on_turn, u);
}
