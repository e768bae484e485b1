/* Reads and fills the state of a call; decides nothing. */
#include "gate/call_state.h"

#include "json/build.h"
#include "json/canonical.h"

/* ---- for the stages ---- */

struct str call_goal(const struct call *c)
{
    return c->request.goal.len ? c->request.goal : c->answer->goal;
}

struct policy_call call_for_policy(struct call *c)
{
    const struct call_request *r = &c->request;
    const struct json *history = &c->answer->history, *facts = &c->answer->facts;
    return (struct policy_call){
        .tool = c->tool->name,
        .session = r->session,
        .goal = call_goal(c),
        .step = r->step,
        .user = r->peer ? str_of(r->peer->user) : STR_NONE,
        .uid = r->peer ? r->peer->uid : 0,
        .turn = c->answer->turn ? c->answer->turn : r->turn,
        .attempt = c->answer->attempt,
        .history = json_is(history, JSON_ARRAY) ? history : NULL,
        .facts = r->facts                      ? r->facts
                 : json_is(facts, JSON_OBJECT) ? facts
                                               : NULL,
        .owner = c->listener,
        .progress = c->progress,
        .log = c->log,
    };
}

void call_set_place(struct call *c)
{
    const struct call_request *r = &c->request;
    const struct config *config = &c->generation->config;
    c->place = (struct ledger_place){
        .session = call_session_key(c->arena, config, r->peer, r->session, r->connection),
        .anonymous = !r->session.len,
        .anonymous_repeats = config->anonymous_repeats,
        .turn = r->turn,
        .turn_idle_s = config->turn_idle_s,
        .step = r->step,
    };
}

void call_set_fingerprint(struct call *c)
{
    const struct policy *policy = c->tool ? c->tool->policy : NULL;
    const struct json *args = c->args.now ? c->args.now : c->request.arguments;
    c->fingerprint = json_fingerprint(c->arena, args, policy ? policy->volatiles : NULL,
                                      policy ? policy->volatile_count : 0);
}

void call_discard_unless_enforced(struct call *c)
{
    bool always = !c->tool || c->verdict.class == CLASS_AGENT_RUNS_THIS || c->args.unreadable;
    if (always || c->tool->mode == POLICY_ENFORCE)
        return;
    c->args.now = c->args.raw;
    verdict_discard(&c->verdict, c->arena, c->tool->mode == POLICY_SHADOW);
}

/* ---- for callers ---- */

const struct call_outcome *call_outcome(const struct call *c)
{
    return &c->outcome;
}

const struct tool *call_tool(const struct call *c)
{
    return c->tool;
}

struct str call_id(const struct call *c)
{
    struct buf id = buf_in(c->arena);
    buf_hex64(&id, c->admission);
    return buf_view(&id);
}

const struct json *call_visible_result(const struct call *c)
{
    const struct result *shown = &c->compacted.result;
    if (error_class_info(c->verdict.class)->is_error)
        return NULL;
    if (!c->compacted.done)
        return c->result.value;
    if (shown->structured)
        return shown->structured;
    struct result read;
    struct json_member content = json_member(STR_LIT("content"), *shown->content);
    struct json sent = json_object(c->arena, &content, 1);
    result_read(c->arena, &sent, &read);
    return read.value;
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
