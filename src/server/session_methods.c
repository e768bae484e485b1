/*
 * toolgate/turn, toolgate/session and toolgate/sessions: requests to the ledger. If it answers later, the
 * request is pending until then. Its list of sessions is bounded; here it is filtered, sorted and written.
 */
#include "server/method_table.h"

#include "base/arena.h"
#include "base/suggest.h"
#include "catalog/catalog.h"
#include "json/build.h"

#include <stdlib.h>

struct ledger_work {
    struct str session;
    struct ledger_answer answer;
    struct str reset_tool;
};

static struct ledger_work *begin(struct request *r, struct str session, const struct peer *peer)
{
    struct ledger_work *work = ARENA_NEW(r->arena, struct ledger_work);
    work->session =
        call_session_key(r->arena, server_config(r->client->server), peer, session, str_of(r->client->name));
    r->work = work;
    r->cancel = request_cancel_ledger;
    return work;
}

static enum request_status answer_turn(struct request *r)
{
    const struct ledger_work *work = r->work;
    if (work->answer.error)
        return reply_error(r, RPC_UNAVAILABLE, "the ledger did not take the turn: %s", work->answer.why.text);
    reply_fields(r, FIELD_NUM("turn", work->answer.turn), FIELD_NUM("gaveUp", work->answer.gave_up));
    if (catalog_has_hooks(r->client->server->gate.generation)) /* the list may depend on the goal */
        subscriptions_client_changed(r->client, LIST_CHANGED_TOOLS);
    return REQUEST_DONE;
}

enum request_status session_methods_turn(struct request *r)
{
    struct str session, goal;
    uint32_t turn, turn_text;
    bool end, compacted, by_person;
    if (param_session(r, &session) || param_flag(r, "end", &end) || param_flag(r, "compacted", &compacted) ||
        param_by(r, r->params, "by", &by_person) || param_goal(r, r->params, "goal", &goal) ||
        param_turn(r, r->params, "turn", &turn, &turn_text))
        return REQUEST_DONE;
    struct ledger_work *work = begin(r, session, &r->client->peer);
    r->answer = answer_turn;
    struct ledger_call *request = ARENA_NEW(r->arena, struct ledger_call);
    request->place = (struct ledger_place){.session = work->session,
                                           .uid = (uint32_t)r->client->peer.uid,
                                           .turn = turn,
                                           .turn_text = turn_text,
                                           .by_person = by_person};
    request->goal = goal;
    request->end = end;
    request->compacted = compacted;
    return request_wait(r, ledger_ask(r->client->server->gate.ledger, LEDGER_TURN, request, r->arena,
                                      &work->answer, request_answer, r) == LEDGER_PENDING);
}

static enum request_status not_found(struct request *r)
{
    struct str name = json_str(json_get_text(r->params, "session"));
    struct ledger_status status;
    ledger_status(r->client->server->gate.ledger, &status);
    bool outage = status.on_outage && !status.connected;
    return reply_error(r, RPC_NOT_FOUND, "no session '" STR_FMT "': %s", STR_ARG(str_cut(name, 128)),
                       outage ? "Redis is down, and this daemon has counted no call of it since"
                              : "it made no call yet, has expired, or belongs to another user");
}

static const struct json *if_allowed(void *client, const struct json *entries, uint32_t i, struct str *key)
{
    struct str tool = json_str(json_get_text(&entries->items[i], "tool"));
    (void)key;
    return client_may_call(client, tool) ? &entries->items[i] : NULL;
}

/* In a shared namespace a session may hold calls of tools that this user may not see: leaves those out of a
 * list of the object. */
static void hide_forbidden(const struct request *r, struct json *object, const char *list)
{
    const struct json *entries = json_get_text(object, list);
    if (json_is(entries, JSON_ARRAY))
        *object =
            json_with(r->arena, object, str_of(list), *json_map(r->arena, entries, if_allowed, r->client));
}

static enum request_status answer_view(struct request *r)
{
    struct ledger_work *work = r->work;
    if (work->answer.error == ERR_NOT_FOUND)
        return not_found(r);
    if (work->answer.error)
        return reply_error(r, RPC_UNAVAILABLE, "the ledger did not answer: %s", work->answer.why.text);
    struct json *session = &work->answer.session, budgets = *json_get_text(session, "budgets");
    hide_forbidden(r, &budgets, "chains");
    hide_forbidden(r, &budgets, "tools");
    *session = json_with(r->arena, session, STR_LIT("budgets"), budgets);
    hide_forbidden(r, session, "history");
    if (work->answer.stand_in)
        *session = json_with(r->arena, session, STR_LIT("stand_in"), json_bool(true));
    struct json_out *out = reply_open(r);
    for (uint32_t i = 0; i < session->len; i++) {
        json_key_str(out, session->members[i].key);
        json_put(out, &session->members[i].value);
    }
    return reply_close(r);
}

static enum request_status answer_reset(struct request *r)
{
    const struct ledger_work *work = r->work;
    struct ledger_status status;
    if (work->answer.error == ERR_NOT_FOUND)
        return not_found(r);
    if (work->answer.error) {
        ledger_status(r->client->server->gate.ledger, &status);
        bool outage = status.why_away[0] != '\0';
        return reply_error(r, RPC_UNAVAILABLE, "the ledger did not reset it: %s%s",
                           outage ? "Redis is down: " : "",
                           outage ? status.why_away : err_name(work->answer.error));
    }
    return work->reset_tool.len ? reply_fields(r, FIELD_STR("reset", work->reset_tool))
                                : reply_fields(r, FIELD_BOOL("forgotten", true));
}

/* Refuses a mistyped tool, with the closest name among those that exist for this peer. One that the peer may
 * not call is as if it did not exist. */
static enum err check_tool(struct request *r, struct str name)
{
    const struct generation *g = r->client->server->gate.generation;
    size_t count = 0, best[SUGGEST_MAX];
    if (!name.len || (generation_find(g, name) && client_may_call(r->client, name)))
        return OK;
    struct str *names = ARENA_ARRAY(r->arena, struct str, g->tool_count + 1);
    for (size_t i = 0; i < g->tool_count; i++)
        if (client_may_call(r->client, g->tools[i]->name))
            names[count++] = g->tools[i]->name;
    struct str closest = suggest_ranked(name, names, count, best) ? names[best[0]] : STR_NONE;
    return reply_refuse(r, RPC_NOT_FOUND, "nothing was reset: there is no tool '" STR_FMT "'%s" STR_FMT "%s",
                        STR_ARG(str_cut(name, 128)), closest.len ? "; did you mean '" : "", STR_ARG(closest),
                        closest.len ? "'?" : " here");
}

/* Users see their own sessions; root and the daemon's user see another's with {"uid":1000}. */
static enum err read_owner(struct request *r, struct peer *owner)
{
    const struct json *uid = json_get_text(r->params, "uid");
    int64_t n;
    *owner = r->client->peer;
    if (!uid)
        return OK;
    if (!json_int(uid, &n) || n < 0 || n > UINT32_MAX)
        return reply_refuse(r, RPC_INVALID_PARAMS, "params.uid: expected a user's number, got %s",
                            param_kind(uid));
    if ((uid_t)n == owner->uid)
        return OK;
    if (param_require_operator(r, "params.uid"))
        return ERR_PARSE;
    peer_init(owner, (uid_t)n, owner->groups[0], owner->pid);
    return OK;
}

/* {"forget_lax": "find_rows"}, or {…, "path": "rows[].id"}: the fleet asks about it again. */
static enum request_status forget_lax(struct request *r, struct str tool)
{
    struct str path;
    if (param_require_operator(r, "params.forget_lax") || param_string(r, r->params, "path", &path))
        return REQUEST_DONE;
    ledger_lax_forget(r->client->server->gate.ledger, tool, path);
    return reply_fields(r, FIELD_STR("forgotten_lax", tool));
}

enum request_status session_methods_session(struct request *r)
{
    struct str session, given, tool, lax;
    struct peer owner;
    bool forget;
    if (param_string(r, r->params, "forget_lax", &lax))
        return REQUEST_DONE;
    if (lax.len)
        return forget_lax(r, lax);
    if (param_session(r, &session) || param_string(r, r->params, "session", &given) ||
        param_string(r, r->params, "reset", &tool) || param_flag(r, "forget", &forget) ||
        read_owner(r, &owner) || check_tool(r, tool))
        return REQUEST_DONE;
    struct ledger *ledger = r->client->server->gate.ledger;
    struct ledger_work *work = begin(r, given.len ? given : session, &owner);
    struct ledger_call *request = ARENA_NEW(r->arena, struct ledger_call);
    bool views = !tool.len && !forget;
    request->place.session = work->session;
    request->tool = work->reset_tool = tool;
    r->answer = views ? answer_view : answer_reset;
    return request_wait(r, ledger_ask(ledger,
                                      views      ? LEDGER_VIEW
                                      : tool.len ? LEDGER_RESET
                                                 : LEDGER_FORGET,
                                      request, r->arena, &work->answer, request_answer, r) == LEDGER_PENDING);
}

/* ---- toolgate/sessions ---- */

#define UID_PREFIX "uid:"

/* The largest first; among equals, the latest. */
static int compare(const void *a, const void *b, void *order)
{
    const struct ledger_session *x = a, *y = b;
    enum session_list_order by = *(const enum session_list_order *)order;
    int64_t left = by == SESSION_LIST_REFUSALS ? x->refusals : by == SESSION_LIST_CALLS ? x->calls : 0;
    int64_t right = by == SESSION_LIST_REFUSALS ? y->refusals : by == SESSION_LIST_CALLS ? y->calls : 0;
    return left != right ? (left < right) - (left > right)
                         : (x->last_ms < y->last_ms) - (x->last_ms > y->last_ms);
}

static void put_session(struct json_out *out, const struct ledger_session *s)
{
    /* "uid:1000/chat-7", "shared/chat-7" or "anonymous/…": call_session_key. */
    const char *slash = memchr(s->name.at, '/', s->name.len);
    struct str owner = {s->name.at, slash ? (size_t)(slash - s->name.at) : 0};
    bool has_uid = str_starts(owner, UID_PREFIX);
    json_open(out, '{');
    json_fields(out, FIELD_STR("session", slash ? str_from(s->name, owner.len + 1) : s->name),
                FIELD_IF(has_uid, FIELD_RAW("uid", str_from(owner, sizeof(UID_PREFIX) - 1))),
                FIELD_IF(str_is(owner, "anonymous"), FIELD_BOOL("anonymous", true)),
                FIELD_NUM("last_ms", s->last_ms), FIELD_NUM("turn", s->turn), FIELD_NUM("calls", s->calls),
                FIELD_NUM("calls_in_turn", s->calls_in_turn), FIELD_NUM("refusals", s->refusals),
                FIELD_NUM("no_progress", s->no_progress), FIELD_NUM("waiting", s->waiting));
    json_key(out, "cost");
    json_put_double(out, (double)s->cost / LEDGER_COST_UNIT);
    json_key(out, "cost_in_turn");
    json_put_double(out, (double)s->cost_in_turn / LEDGER_COST_UNIT);
    if (s->loop_times)
        json_field_object(out, "loop", FIELD_OPTIONAL("tool", s->loop_tool),
                          FIELD_NUM("times", s->loop_times), FIELD_OPTIONAL("code", s->loop_code),
                          FIELD_IF(s->halted, FIELD_BOOL("halted", true)),
                          FIELD_IF(s->not_enforced, FIELD_BOOL("not_enforced", true)));
    json_close(out, '}');
}

void session_list_write(struct json_out *out, const struct server *server,
                        const struct session_list_query *query)
{
    struct arena *arena = arena_new();
    struct ledger_session *list = ARENA_ARRAY(arena, struct ledger_session, LEDGER_SESSIONS_MAX);
    struct ledger_status status;
    ledger_status(server->gate.ledger, &status);
    size_t known = ledger_sessions(server->gate.ledger, list), in_loop = 0;
    size_t left = query->limit ? query->limit : SESSION_LIST_DEFAULT;
    int64_t refusals = 0;
    enum session_list_order order = query->order;
    qsort_r(list, known, sizeof(*list), compare, &order);
    json_field_open(out, "sessions", '[');
    for (size_t i = 0; i < known; i++) {
        in_loop += list[i].loop_times > 0;
        refusals += list[i].refusals;
        if (!left || (query->loops && !list[i].loop_times))
            continue;
        put_session(out, &list[i]);
        left--;
    }
    json_close(out, ']');
    json_fields(out, FIELD_NUM("known", known), FIELD_NUM("in_loop", in_loop),
                FIELD_NUM("refusals", refusals), FIELD_NUM("most", LEDGER_SESSIONS_MAX),
                FIELD_TEXT("engine", status.engine));
    arena_free(arena);
}

enum request_status session_methods_sessions(struct request *r)
{
    static const char *const orders[] = {[SESSION_LIST_RECENT] = "recent",
                                         [SESSION_LIST_REFUSALS] = "refusals",
                                         [SESSION_LIST_CALLS] = "calls"};
    struct session_list_query query = {0};
    struct str sort;
    uint32_t limit;
    size_t order = 0;
    if (param_string(r, r->params, "sort", &sort))
        return REQUEST_DONE;
    while (order < sizeof(orders) / sizeof(*orders) && !str_is(sort, orders[order]))
        order++;
    if (sort.len && order == sizeof(orders) / sizeof(*orders))
        return reply_error(r, RPC_INVALID_PARAMS,
                           "params.sort: expected recent, refusals or calls, got '" STR_FMT "'",
                           STR_ARG(str_cut(sort, 64)));
    if (param_flag(r, "loops", &query.loops) || param_count(r, r->params, "limit", &limit))
        return REQUEST_DONE;
    query.order = sort.len ? (enum session_list_order)order : SESSION_LIST_RECENT;
    query.limit = limit > SESSION_LIST_MAX ? SESSION_LIST_MAX : limit;
    session_list_write(reply_open(r), r->client->server, &query);
    return reply_close(r);
}
