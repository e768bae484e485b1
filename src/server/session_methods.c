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
    struct ledger_turned turned;
    struct ledger_view view;
    enum err reset_error;
    struct str reset_tool;
};

static void cancel(struct request *r)
{
    ledger_cancel(r->client->server->gate.ledger, r);
}

static struct ledger_work *begin(struct request *r, struct str session, const struct peer *peer)
{
    struct ledger_work *work = ARENA_NEW(r->arena, struct ledger_work);
    work->session =
        call_session_key(r->arena, server_config(r->client->server), peer, session, str_of(r->client->name));
    r->work = work;
    r->cancel = cancel;
    return work;
}

static enum request_status answer_turn(struct request *r)
{
    const struct ledger_work *work = r->work;
    if (work->turned.error)
        return reply_error(r, RPC_UNAVAILABLE, "the ledger did not take the turn: %s", work->turned.why.text);
    struct json_out *out = reply_open(r);
    json_fields(out, FIELD_NUM("turn", work->turned.turn), FIELD_NUM("gaveUp", work->turned.gave_up));
    enum request_status status = reply_close(r);
    if (catalog_has_hooks(r->client->server->gate.generation)) /* the list may depend on the goal */
        subscriptions_client_list_changed(r->client);
    return status;
}

enum request_status session_methods_turn(struct request *r)
{
    struct str session, goal;
    uint32_t turn, turn_text;
    bool end, compacted, by_person;
    if (param_session(r, &session) || param_flag(r, "end", &end) || param_flag(r, "compacted", &compacted) ||
        param_by(r, r->params, "params.", "by", &by_person) ||
        param_goal(r, r->params, "params.", "goal", &goal) ||
        param_turn(r, r->params, "params.", "turn", &turn, &turn_text))
        return REQUEST_DONE;
    struct ledger_work *work = begin(r, session, &r->client->peer);
    r->answer = answer_turn;
    struct ledger_turn *request = ARENA_NEW(r->arena, struct ledger_turn);
    *request = (struct ledger_turn){.session = work->session,
                                    .uid = (uint32_t)r->client->peer.uid,
                                    .turn = turn,
                                    .turn_text = turn_text,
                                    .goal = goal,
                                    .end = end,
                                    .by_person = by_person,
                                    .compacted = compacted};
    return ledger_turn(r->client->server->gate.ledger, request, r->arena, &work->turned, request_answer, r) ==
                   LEDGER_DONE
               ? r->answer(r)
               : REQUEST_PENDING;
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

/* In a shared namespace a session may hold calls of tools that this user may not see. */
static struct json entries_allowed(const struct request *r, const struct json *entries)
{
    struct json *kept = ARENA_ARRAY(r->arena, struct json, entries->len + 1);
    size_t count = 0;
    for (uint32_t i = 0; i < entries->len; i++)
        if (client_may_call(r->client, json_str(json_get_text(&entries->items[i], "tool"))))
            kept[count++] = entries->items[i];
    return json_array(kept, count);
}

static void hide_forbidden(const struct request *r, struct json *session)
{
    const struct json *history = json_get_text(session, "history");
    const struct json *budgets = json_get_text(session, "budgets");
    const struct json *chains = json_get_text(budgets, "chains");
    const struct json *tools = json_get_text(budgets, "tools");
    struct json allowed = *budgets;
    if (json_is(chains, JSON_ARRAY))
        allowed = json_with(r->arena, &allowed, STR_LIT("chains"), entries_allowed(r, chains));
    if (json_is(tools, JSON_ARRAY))
        allowed = json_with(r->arena, &allowed, STR_LIT("tools"), entries_allowed(r, tools));
    *session = json_with(r->arena, session, STR_LIT("budgets"), allowed);
    if (json_is(history, JSON_ARRAY))
        *session = json_with(r->arena, session, STR_LIT("history"), entries_allowed(r, history));
}

static enum request_status answer_view(struct request *r)
{
    struct ledger_work *work = r->work;
    if (work->view.error == ERR_NOT_FOUND)
        return not_found(r);
    if (work->view.error)
        return reply_error(r, RPC_UNAVAILABLE, "the ledger did not answer: %s", work->view.why.text);
    struct buf text = buf_in(r->arena);
    hide_forbidden(r, &work->view.session);
    if (work->view.stand_in)
        work->view.session = json_with(r->arena, &work->view.session, STR_LIT("stand_in"), json_bool(true));
    json_write(&text, &work->view.session);
    reply_open(r);
    reply_members(r, buf_view(&text));
    return reply_close(r);
}

static enum request_status answer_reset(struct request *r)
{
    const struct ledger_work *work = r->work;
    struct ledger_status status;
    if (work->reset_error == ERR_NOT_FOUND)
        return not_found(r);
    if (work->reset_error) {
        ledger_status(r->client->server->gate.ledger, &status);
        bool outage = status.why_away[0] != '\0';
        return reply_error(r, RPC_UNAVAILABLE, "the ledger did not reset it: %s%s",
                           outage ? "Redis is down: " : "",
                           outage ? status.why_away : err_name(work->reset_error));
    }
    struct json_out *out = reply_open(r);
    if (work->reset_tool.len)
        json_field_str(out, "reset", work->reset_tool);
    else
        json_field_bool(out, "forgotten", true);
    return reply_close(r);
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
    reply_error(r, RPC_NOT_FOUND, "nothing was reset: there is no tool '" STR_FMT "'%s" STR_FMT "%s",
                STR_ARG(str_cut(name, 128)), closest.len ? "; did you mean '" : "", STR_ARG(closest),
                closest.len ? "'?" : " here");
    return ERR_NOT_FOUND;
}

/* Users see their own sessions; root and the daemon's user see another's with {"uid":1000}. */
static enum err read_owner(struct request *r, struct peer *owner)
{
    const struct json *uid = json_get_text(r->params, "uid");
    int64_t n;
    *owner = r->client->peer;
    if (!uid)
        return OK;
    if (!json_int(uid, &n) || n < 0 || n > UINT32_MAX) {
        reply_error(r, RPC_INVALID_PARAMS, "params.uid: expected a user's number, got %s", param_kind(uid));
        return ERR_PARSE;
    }
    if ((uid_t)n == owner->uid)
        return OK;
    if (param_require_operator(r, "params.uid"))
        return ERR_PARSE;
    peer_init(owner, (uid_t)n, owner->groups[0], owner->pid);
    return OK;
}

enum request_status session_methods_session(struct request *r)
{
    struct str session, given, tool;
    struct peer owner;
    bool forget;
    if (param_session(r, &session) || param_string(r, r->params, "params.", "session", &given) ||
        param_string(r, r->params, "params.", "reset", &tool) || param_flag(r, "forget", &forget) ||
        read_owner(r, &owner) || check_tool(r, tool))
        return REQUEST_DONE;
    struct ledger_work *work = begin(r, given.len ? given : session, &owner);
    if (tool.len || forget) {
        work->reset_tool = tool;
        r->answer = answer_reset;
        return ledger_reset(r->client->server->gate.ledger, work->session, tool, r->arena, &work->reset_error,
                            request_answer, r) == LEDGER_DONE
                   ? r->answer(r)
                   : REQUEST_PENDING;
    }
    r->answer = answer_view;
    return ledger_view(r->client->server->gate.ledger, work->session, r->arena, &work->view, request_answer,
                       r) == LEDGER_DONE
               ? r->answer(r)
               : REQUEST_PENDING;
}

/* ---- toolgate/sessions ---- */

#define UID_PREFIX "uid:"

static const char *const orders[] = {
    [SESSION_LIST_RECENT] = "recent", [SESSION_LIST_REFUSALS] = "refusals", [SESSION_LIST_CALLS] = "calls"};
#define ORDER_COUNT (sizeof(orders) / sizeof(orders[0]))

static int by_recency(const void *a, const void *b)
{
    const struct ledger_session *x = a, *y = b;
    return (x->last_ms < y->last_ms) - (x->last_ms > y->last_ms);
}

static int by_refusals(const void *a, const void *b)
{
    const struct ledger_session *x = a, *y = b;
    return x->refusals != y->refusals ? (x->refusals < y->refusals) - (x->refusals > y->refusals)
                                      : by_recency(a, b);
}

static int by_calls(const void *a, const void *b)
{
    const struct ledger_session *x = a, *y = b;
    return x->calls != y->calls ? (x->calls < y->calls) - (x->calls > y->calls) : by_recency(a, b);
}

/* "uid:1000/chat-7", "shared/chat-7" or "anonymous/…": call_session_key. */
static void put_name(struct json_out *out, struct str key)
{
    const char *slash = memchr(key.at, '/', key.len);
    struct str owner = {key.at, slash ? (size_t)(slash - key.at) : 0};
    json_field_str(out, "session", slash ? str_from(key, owner.len + 1) : key);
    if (str_starts(owner, UID_PREFIX))
        json_field_raw(out, "uid", str_from(owner, sizeof(UID_PREFIX) - 1));
    if (str_is(owner, "anonymous"))
        json_field_bool(out, "anonymous", true);
}

static void put_cost(struct json_out *out, const char *key, uint64_t cost)
{
    json_key(out, key);
    json_put_double(out, (double)cost / LEDGER_COST_UNIT);
}

static void put_session(struct json_out *out, const struct ledger_session *s)
{
    json_open(out, '{');
    put_name(out, s->name);
    json_fields(out, FIELD_NUM("last_ms", s->last_ms), FIELD_NUM("turn", s->turn),
                FIELD_NUM("calls", s->calls), FIELD_NUM("calls_in_turn", s->calls_in_turn),
                FIELD_NUM("refusals", s->refusals), FIELD_NUM("no_progress", s->no_progress),
                FIELD_NUM("waiting", s->waiting));
    put_cost(out, "cost", s->cost);
    put_cost(out, "cost_in_turn", s->cost_in_turn);
    if (s->loop_times) {
        json_field_open(out, "loop", '{');
        if (s->loop_tool.len)
            json_field_str(out, "tool", s->loop_tool);
        json_field_int(out, "times", s->loop_times);
        if (s->loop_code.len)
            json_field_str(out, "code", s->loop_code);
        json_close(out, '}');
    }
    json_close(out, '}');
}

void session_list_write(struct json_out *out, const struct server *server,
                        const struct session_list_query *query)
{
    static int (*const compare[])(const void *, const void *) = {
        [SESSION_LIST_RECENT] = by_recency,
        [SESSION_LIST_REFUSALS] = by_refusals,
        [SESSION_LIST_CALLS] = by_calls,
    };
    struct arena *arena = arena_new();
    struct ledger_session *list = ARENA_ARRAY(arena, struct ledger_session, LEDGER_SESSIONS_MAX);
    struct ledger_status status;
    ledger_status(server->gate.ledger, &status);
    size_t known = ledger_sessions(server->gate.ledger, list), in_loop = 0;
    size_t left = query->limit ? query->limit : SESSION_LIST_DEFAULT;
    int64_t refusals = 0;
    qsort(list, known, sizeof(*list), compare[query->order]);
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

static enum err read_order(struct request *r, enum session_list_order *order)
{
    struct str name;
    *order = SESSION_LIST_RECENT;
    if (param_string(r, r->params, "params.", "sort", &name))
        return ERR_PARSE;
    for (size_t i = 0; name.len && i < ORDER_COUNT; i++)
        if (str_is(name, orders[i])) {
            *order = (enum session_list_order)i;
            return OK;
        }
    if (!name.len)
        return OK;
    reply_error(r, RPC_INVALID_PARAMS, "params.sort: expected recent, refusals or calls, got '" STR_FMT "'",
                STR_ARG(str_cut(name, 64)));
    return ERR_PARSE;
}

enum request_status session_methods_sessions(struct request *r)
{
    struct session_list_query query = {0};
    uint32_t limit;
    if (param_require_operator(r, "toolgate/sessions") || read_order(r, &query.order) ||
        param_flag(r, "loops", &query.loops) || param_count(r, r->params, "params.", "limit", &limit))
        return REQUEST_DONE;
    query.limit = limit > SESSION_LIST_MAX ? SESSION_LIST_MAX : limit;
    session_list_write(reply_open(r), r->client->server, &query);
    return reply_close(r);
}
