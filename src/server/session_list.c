/*
 * toolgate/sessions. The ledger lists what it remembers, which is bounded; here it is filtered, sorted and
 * written.
 */
#include "server/session_list.h"

#include "base/arena.h"
#include "server/method_table.h"

#include <stdlib.h>

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
    json_field_int(out, "last_ms", s->last_ms);
    json_field_int(out, "turn", s->turn);
    json_field_int(out, "calls", s->calls);
    json_field_int(out, "calls_in_turn", s->calls_in_turn);
    json_field_int(out, "refusals", s->refusals);
    json_field_int(out, "no_progress", s->no_progress);
    json_field_int(out, "waiting", s->waiting);
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
    json_field_int(out, "known", (int64_t)known);
    json_field_int(out, "in_loop", (int64_t)in_loop);
    json_field_int(out, "refusals", refusals);
    json_field_int(out, "most", LEDGER_SESSIONS_MAX);
    json_field_text(out, "engine", status.engine);
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

enum request_status session_list_method(struct request *r)
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
