/* Tools and schemas: tools/list, toolgate/tools, toolgate/register and toolgate/schemas. */
#include "base/arena.h"
#include "base/log.h"
#include "base/share.h"
#include "catalog/catalog.h"
#include "catalog/client_tools.h"
#include "catalog/provider_formats.h"
#include "catalog/response_schemas.h"
#include "gate/verdict.h"
#include "io/conn.h"
#include "io/turn.h"
#include "json/build.h"
#include "json/parse.h"
#include "sandbox/lua_json.h"
#include "server/method_table.h"
#include "server/problems.h"

/* ---- what the client registered ---- */

struct client_tools *client_tools_seen(struct request *r, struct str session, bool open)
{
    const struct client *client = r->client;
    const struct request *other;
    uint64_t since = UINT64_MAX;
    LIST_FOREACH (other, &client->pending, link)
        if (other != r && other->tools_seen && other->tools_seen < since)
            since = other->tools_seen;
    if (client->client_tools) { /* also what a reload has replaced */
        client_tools_free_unused(client->client_tools, since);
        r->tools_seen = client_tools_now(client->client_tools);
    }
    if (!session.len || !client->client_tools)
        return client->client_tools;
    struct str key = call_session_key(r->arena, server_config(client->server), &client->peer, session,
                                      str_of(client->name));
    return client_tools_of(client->client_tools, ledger_session_id(key), open);
}

/* ---- lists ---- */

struct tools_list {
    struct catalog_request wanted;
    struct ledger_answer peek;
    /* Set once it is written, which may take several turns of the loop. */
    struct catalog_writing *writing;
    struct generation *generation;
    struct buf text, details, warnings_text;
    struct json_out warnings;
    struct turn turn;
    struct request *of;
    TAILQ_ENTRY(tools_list) next; /* of server->tools_lists */
    bool waits;                   /* for the client's list that is written before it */
    bool is_queued;               /* for a tool of another list */
};

static enum request_status reply_list(struct request *r);

/* request_answer is called in another turn. */
static void ask_turn(struct request *r, struct turn *turn)
{
    if (!turn->queue)
        turn_join(turn, loop_queue(r->client->server->loop), r->client->peer.uid, TURN_LONG, request_answer,
                  r);
    turn_ask(turn);
}

/* Tools are written in part one at a time, since a large one takes much memory. False: the list's turn comes
 * once that of another list is whole. */
static bool may_write(struct server *server, struct tools_list *list)
{
    if (server->tools_list && server->tools_list != list) {
        if (!list->is_queued)
            TAILQ_INSERT_TAIL(&server->tools_lists, list, next);
        list->is_queued = true;
        return false;
    }
    server->tools_list = list;
    return true;
}

static void let_next_write(struct server *server, const struct tools_list *list)
{
    if (server->tools_list != list)
        return;
    struct tools_list *next = server->tools_list = TAILQ_FIRST(&server->tools_lists);
    if (!next)
        return;
    TAILQ_REMOVE(&server->tools_lists, next, next);
    next->is_queued = false;
    ask_turn(next->of, &next->turn);
}

/* The client's next one that waits, its oldest, begins. */
static void end_list(struct request *ended)
{
    struct tools_list *list = ended->work;
    struct server *server = ended->client->server;
    struct request *r, *next = NULL;
    if (list->writing)
        catalog_write_end(list->writing);
    if (list->is_queued)
        TAILQ_REMOVE(&server->tools_lists, list, next);
    list->is_queued = false;
    let_next_write(server, list);
    if (list->turn.queue)
        turn_leave(&list->turn);
    generation_unref(list->generation);
    list->generation = NULL;
    if (ended->client->list_writing != ended)
        return;
    list->waits = false; /* it may be cancelled before its turn */
    LIST_FOREACH (r, &ended->client->pending, link)
        if (r->answer == reply_list && ((struct tools_list *)r->work)->waits)
            next = r;
    ended->client->list_writing = next;
    if (next)
        ask_turn(next, &((struct tools_list *)next->work)->turn);
}

static void begin_writing(struct request *r, struct tools_list *list)
{
    struct catalog_request *wanted = &list->wanted;
    if (list->peek.error)
        log_event(LOG_WARN, "ledger_peek_failed", LOG_TEXT("why", list->peek.why.text));
    if (!wanted->goal.len)
        wanted->goal = list->peek.goal;
    list->text = list->details = list->warnings_text = buf_in(r->arena);
    list->warnings = json_out(&list->warnings_text);
    json_open(&list->warnings, '[');
    if (wanted->all) {
        wanted->provider.warn = provider_warn_collect;
        wanted->provider.owner = &list->warnings;
        wanted->details = &list->details;
        wanted->guards = client_is_operator(r->client); /* file names */
    }
    list->generation = generation_ref(r->client->server->gate.generation);
    list->writing = catalog_write_begin(r->arena, list->generation, wanted, &list->text);
}

/* One list of a client after the other, as each may take 8 MB. False: the rest in another turn. */
static bool write_list(struct request *r, struct tools_list *list)
{
    struct server *server = r->client->server;
    bool in_part = list->wanted.provider.format != PROVIDER_FORMAT_MCP;
    struct request **writing = &r->client->list_writing;
    list->waits = *writing && *writing != r;
    if (list->waits)
        return false;
    *writing = r;
    if (in_part && !may_write(server, list))
        return false;
    if (!list->writing)
        begin_writing(r, list);
    while (catalog_write_next(list->writing))
        if (turn_is_over(loop_queue(server->loop))) {
            if (!catalog_write_is_inside(list->writing))
                let_next_write(server, list);
            ask_turn(r, &list->turn);
            return false;
        }
    return true;
}

static enum request_status reply_list(struct request *r)
{
    struct tools_list *list = r->work;
    if (!write_list(r, list))
        return REQUEST_PENDING;
    end_list(r);
    struct json_out *out = reply_open(r);
    bool is_definitions = r->method->handle == tool_methods_tools; /* for models; the rest is for people */
    if (is_definitions)
        json_field_text(out, "format", provider_format_name(list->wanted.provider.format));
    json_field_raw(out, "tools", buf_view(&list->text));
    if (is_definitions) {
        json_close(&list->warnings, ']');
        json_field_raw(out, "warnings", buf_view(&list->warnings_text));
        buf_byte(out->buf, ',');
        buf_str(out->buf, buf_view(&list->details));
    } else if (r->modern) {
        json_fields(out, FIELD_NUM("ttlMs", MCP_TTL_MS), FIELD_TEXT("cacheScope", MCP_CACHE_SCOPE));
    }
    return reply_close(r);
}

static void cancel(struct request *r)
{
    request_cancel_ledger(r);
    end_list(r);
}

/* The list depends on the session's goal and on whether it is stuck: both are read from the ledger first,
 * unless no policy uses them. */
static enum request_status begin_list(struct request *r, struct tools_list *list)
{
    struct client *client = r->client;
    struct gate *gate = &client->server->gate;
    const struct config *config = server_config(client->server);
    struct ledger_place place = {.turn_idle_s = config->turn_idle_s};
    list->wanted.peer = &client->peer;
    list->of = r;
    upstreams_refresh(gate->upstreams, UPSTREAM_TOOLS);
    if (param_session(r, &list->wanted.session) ||
        param_goal(r, r->meta, GATE_GOAL_KEY, &list->wanted.goal) ||
        param_context(r, &list->wanted.context) ||
        param_turn(r, r->meta, GATE_TURN_KEY, &place.turn, &place.turn_text))
        return REQUEST_DONE;
    if (list->wanted.all)
        list->wanted.client_tools = client_tools_seen(r, list->wanted.session, false);
    if (!r->modern &&
        r->method->handle == mcp_tools_list) /* initialize is optional: this request stands for it */
        client->wants_list_changed = true;
    r->work = list;
    r->answer = reply_list;
    r->cancel = cancel;
    if (!catalog_has_hooks(gate->generation))
        return reply_list(r);
    list->wanted.step = param_label(r->meta, GATE_STEP_KEY);
    list->wanted.past = &list->peek;
    place.session =
        call_session_key(r->arena, config, &client->peer, list->wanted.session, str_of(client->name));
    struct ledger_call *look = ARENA_NEW(r->arena, struct ledger_call);
    *look = (struct ledger_call){.place = place, .newest = true};
    catalog_wants(gate->generation, look);
    return request_wait(r, ledger_ask(gate->ledger, LEDGER_LOOK, look, r->arena, &list->peek, request_answer,
                                      r) == LEDGER_PENDING);
}

enum request_status mcp_tools_list(struct request *r)
{
    struct tools_list *list = ARENA_NEW(r->arena, struct tools_list);
    struct str cursor;
    if (param_string(r, r->params, "cursor", &cursor))
        return REQUEST_DONE;
    if (json_get_text(r->params, "cursor"))
        return reply_error(
            r, RPC_INVALID_PARAMS,
            "params.cursor: expected none, as the list is one page, got one that was not issued here");
    list->wanted.provider.format = PROVIDER_FORMAT_MCP;
    list->wanted.provider.protocol = request_protocol(r);
    return begin_list(r, list);
}

enum request_status tool_methods_tools(struct request *r)
{
    struct tools_list *list = ARENA_NEW(r->arena, struct tools_list);
    struct str format;
    if (param_string(r, r->params, "format", &format))
        return REQUEST_DONE;
    if (provider_format_named(format.len ? format : STR_LIT("mcp"), &list->wanted.provider.format) != OK)
        return reply_error(
            r, RPC_INVALID_PARAMS,
            "params.format: expected one of mcp, openai, anthropic, gemini, mistral, bedrock, got '" STR_FMT
            "'",
            STR_ARG(str_cut(format, 64)));
    list->wanted.all = true;
    return param_flag(r, "strict", &list->wanted.provider.strict) ? REQUEST_DONE : begin_list(r, list);
}

/* ---- toolgate/register ---- */

/* Each user has a share of the memory that registered tools may take. */
static bool has_share(const struct client *client)
{
    const struct server *server = client->server;
    const struct client *other;
    uint64_t used = 0, held = 0;
    LIST_FOREACH (other, &server->clients, link) {
        size_t bytes = client_tools_bytes(other->client_tools);
        used += bytes;
        held += other->peer.uid == client->peer.uid ? bytes : 0;
    }
    return share_leaves_room(used, held, 1, server_config(server)->limits.memory);
}

/* Tools are registered in turns of the loop; until the last one the connection's next line waits. */
struct registering {
    struct client_tools *set;
    const struct json *definitions;
    uint32_t next; /* of them */
    struct buf tools_text, refused_text;
    struct json_out tools, refused;
    struct turn turn;
};

/* One bad definition does not prevent the others. */
static void register_tool(struct request *r, struct registering *g, const struct json *definition)
{
    const struct tool *tool;
    struct json_out *out = &g->tools;
    struct why why;
    if (client_tools_register(g->set, r->client->server->gate.generation, definition, &tool, &why) != OK) {
        json_put_object(&g->refused, FIELD_STR("name", json_str(json_get_text(definition, "name"))),
                        FIELD_TEXT("why", why.text));
        return;
    }
    json_open(out, '{');
    json_field_str(out, "name", tool->name);
    json_field_open(out, "parameters", '[');
    for (uint32_t i = 0; i < json_child_count(tool->parameters); i++)
        json_put_str(out, tool->parameters->members[i].key);
    json_close(out, ']');
    json_field_bool(out, "policy", tool->policy || tool->overlay_count);
    json_field_strs(out, "warnings", tool->warnings, tool->warning_count);
    json_close(out, '}');
}

static void end_registering(struct request *r)
{
    struct registering *g = r->work;
    if (!g->turn.queue)
        return;
    turn_leave(&g->turn);
    conn_hold(r->client->conn, false);
}

static enum request_status register_next(struct request *r)
{
    struct registering *g = r->work;
    while (g->next < g->definitions->len) {
        register_tool(r, g, &g->definitions->items[g->next++]);
        if (!turn_is_over(loop_queue(r->client->server->loop)) || r->client->in_batch)
            continue;
        if (!g->turn.queue)
            conn_hold(r->client->conn, true);
        ask_turn(r, &g->turn);
        return REQUEST_PENDING;
    }
    end_registering(r);
    json_close(&g->tools, ']');
    json_close(&g->refused, ']');
    return reply_fields(r, FIELD_RAW("tools", buf_view(&g->tools_text)),
                        FIELD_RAW("refused", buf_view(&g->refused_text)));
}

enum request_status tool_methods_register(struct request *r)
{
    struct client *client = r->client;
    struct registering *g = ARENA_NEW(r->arena, struct registering);
    struct str session;
    if (param_session(r, &session))
        return REQUEST_DONE;
    g->definitions = json_get_text(r->params, "tools");
    if (!json_is(g->definitions, JSON_ARRAY))
        return reply_error(r, RPC_INVALID_PARAMS,
                           "params.tools: expected an array of tool definitions, got %s",
                           param_kind(g->definitions));
    if (!has_share(client)) {
        problems_note(
            client, PROBLEM_SHARE,
            STR_LIT("the tools that this user has registered leave others their share of the memory"));
        return reply_error(r, RPC_UNAVAILABLE,
                           "this user's connections have registered tools of as much memory as leaves others "
                           "their share of limits.memory: close a connection");
    }
    if (!client->client_tools)
        client->client_tools = client_tools_new(&client->peer);
    g->set = client_tools_seen(r, session, true);
    if (!g->set)
        return reply_error(r, RPC_MEMORY,
                           "the tools of this connection's sessions take too much memory: try again once "
                           "fewer calls are in flight");
    g->tools_text = g->refused_text = buf_in(r->arena);
    g->tools = json_out(&g->tools_text);
    g->refused = json_out(&g->refused_text);
    json_open(&g->tools, '[');
    json_open(&g->refused, '[');
    r->work = g;
    r->answer = register_next;
    r->cancel = end_registering;
    return register_next(r);
}

/* ---- toolgate/schemas: toolgate's own and the operator's, as they are and as response formats ---- */

/* The member in which the provider's requests take it, and "warnings", behind those of an open object. */
static void put_response_format(struct request *r, struct str provider, struct str name,
                                const struct json *schema)
{
    struct json format = json_string(provider), named = json_string(name), more;
    const struct json *const arguments[] = {&format, &named, schema};
    struct str text = lua_embedded_call(r->arena, "response", arguments, 3, &more);
    buf_byte(r->out.buf, ',');
    buf_str(r->out.buf, str_cut(str_from(text, 1), text.len - 2)); /* its members */
}

/* For the rest of this connection only one file's servers exist: an agent of one project sees none of
 * another's. Not a guard against the client, which may connect again. */
enum request_status tool_methods_servers(struct request *r)
{
    struct peer *peer = &r->client->peer;
    const struct config *config = server_config(r->client->server);
    struct str name;
    size_t count = 0;
    if (param_string(r, r->params, "name", &name))
        return REQUEST_DONE;
    if (!str_is_name(name) || name.len >= PEER_SERVERS_BYTES)
        return reply_error(r, RPC_INVALID_PARAMS,
                           "params.name: expected the name of a file of mcp_config without .json, of at most "
                           "%u letters, digits, '_' and '-'",
                           PEER_SERVERS_BYTES - 1);
    memcpy(peer->servers, name.at, name.len);
    peer->servers[name.len] = '\0';
    for (size_t i = 0; i < config->upstream_count; i++)
        count += peer_sees_upstream(config, peer, config->upstreams[i]->name);
    return reply_fields(r, FIELD_NUM("upstreams", count));
}

enum request_status tool_methods_schemas(struct request *r)
{
    static const struct {
        const char *name;
        struct str (*text)(void);
    } own[] = {{RESPONSE_SCHEMA_VERDICT, verdict_schema}, {RESPONSE_SCHEMA_COVERAGE, coverage_schema}};
    const struct response_schemas *theirs = &r->client->server->gate.generation->schemas;
    const size_t own_count = sizeof(own) / sizeof(own[0]), count = own_count + theirs->count;
    static const char *const providers[] = {"openai", "anthropic", "gemini"};
    struct str name, provider;
    if (param_string(r, r->params, "name", &name) || param_string(r, r->params, "format", &provider))
        return REQUEST_DONE;
    if (provider.len && !STR_IS_ONE_OF(provider, providers))
        return reply_error(
            r, RPC_INVALID_PARAMS,
            "params.format: expected one of openai, anthropic, gemini, or nothing for the schema "
            "alone, got '" STR_FMT "'",
            STR_ARG(str_cut(provider, 64)));

    struct response_schema *all = ARENA_ARRAY(r->arena, struct response_schema, count), *found = NULL;
    struct buf names = buf_in(r->arena);
    for (size_t i = 0; i < count; i++) {
        all[i] = i < own_count ? (struct response_schema){.name = str_of(own[i].name)}
                               : theirs->list[i - own_count];
        buf_printf(&names, "%s" STR_FMT, i ? ", " : "", STR_ARG(all[i].name));
        if (str_eq(name, all[i].name))
            found = &all[i];
    }
    if (!json_get_text(r->params, "name")) {
        struct json_out *out = reply_open(r);
        json_field_open(out, "schemas", '[');
        for (size_t i = 0; i < count; i++)
            json_put_object(
                out, FIELD_STR("name", all[i].name),
                FIELD_TEXT("source", i < own_count ? "toolgate" : "operator"),
                FIELD_OPTIONAL("description", json_str(json_get_text(all[i].schema, "description"))));
        json_close(out, ']');
        return reply_close(r);
    }
    if (!found)
        return reply_error(r, RPC_INVALID_PARAMS,
                           "params.name: expected one of " STR_FMT ", got '" STR_FMT "'",
                           STR_ARG(str_cut(buf_view(&names), 1000)), STR_ARG(str_cut(name, 64)));
    if (!found->schema) {
        struct json *schema = ARENA_NEW(r->arena, struct json);
        json_parse(r->arena, own[found - all].text(), NULL, schema, NULL);
        found->schema = schema;
    }
    struct json_out *out = reply_open(r);
    json_field_str(out, "name", name);
    json_field(out, "schema", found->schema);
    if (provider.len)
        put_response_format(r, provider, name, found->schema);
    return reply_close(r);
}
