/* toolgate/status: the daemon about itself. Tools are named only to peers for whom they exist. */
#include "base/arena.h"
#include "base/clock.h"
#include "base/version.h"
#include "server/listener.h"
#include "server/method_table.h"
#include "server/quarantine.h"
#include "server/reload.h"
#include "upstream/upstream.h"

#include <unistd.h>

/* Of tools and policies that exist for this peer. */
static void put_counts(struct json_out *out, const struct client *client)
{
    const struct generation *g = client->server->gate.generation;
    const struct policy_set *policies = generation_policies(g);
    int64_t tools = 0, judged = 0;
    for (size_t i = 0; i < generation_tool_count(g); i++)
        tools += peer_may_call(generation_config(g), &client->peer, generation_tool_at(g, i)->name);
    for (size_t i = 0; i < policy_set_count(policies); i++)
        judged += peer_may_call(generation_config(g), &client->peer, policy_set_at(policies, i)->name);
    json_field_int(out, "tools", tools);
    json_field_int(out, "policies", judged);
}

static void put_generation(struct json_out *out, const struct client *client)
{
    const struct generation *g = client->server->gate.generation;
    size_t count;
    const struct str *warnings = generation_warnings(g, &count);
    json_field_open(out, "generation", '{');
    json_field_int(out, "number", (int64_t)generation_number(g));
    json_field_str(out, "hash", generation_hash(g));
    put_counts(out, client);
    json_field_open(out, "warnings", '[');
    for (size_t i = 0; i < count && client_is_operator(client); i++)
        json_put_str(out, warnings[i]);
    json_close(out, ']');
    json_close(out, '}');
}

/* Its address without user and password. */
static void put_redis(struct json_out *out, const struct ledger *ledger, const struct ledger_status *s)
{
    struct arena *arena = arena_new();
    json_field_str(out, "address", ledger_address(ledger, arena));
    json_field_bool(out, "connected", s->connected);
    json_field_str(out, "server", s->server);
    json_field_text(out, "on_outage", s->on_outage);
    if (!s->connected)
        json_field_text(out, "why_away", s->why_away);
    if (!s->connected)
        json_field_int(out, "away_since_ms", s->away_since_ms);
    json_field_int(out, "connects", (int64_t)s->connects);
    json_field_int(out, "outages", (int64_t)s->outages);
    json_field_int(out, "median_us", s->median_us);
    json_field_int(out, "worst_us", s->worst_us);
    json_field_int(out, "by_redis", (int64_t)s->by_redis);
    json_field_int(out, "by_stand_in", (int64_t)s->by_stand_in);
    json_field_int(out, "uncounted", (int64_t)s->uncounted);
    json_field_int(out, "refused", (int64_t)s->refused);
    json_field_int(out, "waiting", (int64_t)s->waiting);
    json_field_int(out, "merged", (int64_t)s->merged);
    json_field_int(out, "lost", (int64_t)s->lost);
    if (s->keys >= 0)
        json_field_int(out, "keys_at_connect", s->keys);
    json_field_open(out, "warnings", '[');
    for (size_t i = 0; i < s->warning_count; i++)
        json_put_text(out, s->warnings[i]);
    json_close(out, ']');
    arena_free(arena);
}

static void put_ledger(struct json_out *out, const struct ledger *ledger)
{
    struct ledger_status s;
    ledger_status(ledger, &s);
    json_field_open(out, "ledger", '{');
    json_field_text(out, "engine", s.engine);
    if (s.on_outage)
        put_redis(out, ledger, &s);
    json_field_int(out, "sessions", (int64_t)s.sessions);
    json_field_int(out, "bytes", (int64_t)s.bytes);
    json_field_int(out, "forgotten", (int64_t)s.forgotten);
    json_close(out, '}');
}

static void put_connections(struct json_out *out, const struct server *server)
{
    json_field_open(out, "connections", '{');
    json_field_int(out, "open", (int64_t)server->client_count);
    json_field_int(out, "most", (int64_t)server->connections_max);
    json_field_int(out, "accepted", (int64_t)server->accepted);
    json_field_int(out, "refused", (int64_t)server->refused);
    json_field_int(out, "calls_in_flight", (int64_t)server->pending);
    json_field_int(out, "buffered_bytes", (int64_t)loop_bytes(server->loop));
    json_close(out, '}');
}

static void put_policy(struct json_out *out, const struct policy *policy)
{
    const uint64_t *hits = policy_rule_hits(policy);
    json_open(out, '{');
    json_field_str(out, "tool", policy->name);
    json_field_open(out, "rules", '[');
    for (size_t i = 0; i < policy->rule_count; i++) {
        json_open(out, '{');
        json_field_str(out, "says", policy->rule_words[i]);
        json_field_int(out, "hits", (int64_t)hits[i]);
        json_close(out, '}');
    }
    json_close(out, ']');
    json_close(out, '}');
}

static void put_policies(struct json_out *out, const struct client *client)
{
    const struct generation *g = client->server->gate.generation;
    const struct policy_set *policies = generation_policies(g);
    json_field_open(out, "rules", '[');
    for (size_t i = 0; i < policy_set_count(policies); i++) {
        const struct policy *policy = policy_set_at(policies, i);
        if (policy->rule_count && peer_may_call(generation_config(g), &client->peer, policy->name))
            put_policy(out, policy);
    }
    json_close(out, ']');
}

static void put_fault(struct json_out *out, const char *key, struct str name,
                      const struct policy_failures *fault)
{
    json_open(out, '{');
    json_field_str(out, key, name);
    json_field_int(out, "count", (int64_t)fault->count);
    json_field_text(out, "last", fault->last.text);
    json_close(out, '}');
}

/* Policies that broke, for whom their tools exist; the gateway's is for whoever may reload. */
static void put_faults(struct json_out *out, const struct client *client)
{
    const struct generation *g = client->server->gate.generation;
    const struct policy_set *policies = generation_policies(g);
    json_field_open(out, "policy_faults", '[');
    for (size_t i = 0; i < policy_set_count(policies); i++) {
        const struct policy *policy = policy_set_at(policies, i);
        if (policy_failures(policy) && peer_may_call(generation_config(g), &client->peer, policy->name))
            put_fault(out, "tool", policy->name, policy_failures(policy));
    }
    if (policy_set_gateway_failures(policies) && client_is_operator(client))
        put_fault(out, "gateway", policy_set_gateway_file(policies), policy_set_gateway_failures(policies));
    json_close(out, ']');
}

static void put_stall(struct json_out *out, const struct server *server, const struct policy_stall *stall)
{
    const struct policy_set *policies = generation_policies(server->gate.generation);
    json_open(out, '{');
    for (size_t i = 0; i < policy_set_count(policies); i++)
        if (str_eq(policy_set_at(policies, i)->file, stall->file)) {
            json_field_str(out, "tool", policy_set_at(policies, i)->name);
        }
    json_field_str(out, "file", stall->file);
    json_field_text(out, "why", "it stalled the process, so it does not run, and its tool's calls fail");
    json_field_text(out, "mend",
                    "change the file, and it is tried again; or take its line out of the list and restart");
    json_field_text(out, "list", quarantine_path(server->quarantine));
    json_close(out, '}');
}

/* Names files, so it is for whoever may reload; the others find the tool among the faults. */
static void put_quarantined(struct json_out *out, const struct client *client)
{
    size_t count;
    const struct generation *g = client->server->gate.generation;
    const struct policy_stall *stalls = policy_set_stalls(generation_policies(g), &count);
    if (!count || !client_is_operator(client))
        return;
    json_field_open(out, "quarantined", '[');
    for (size_t i = 0; i < count; i++)
        put_stall(out, client->server, &stalls[i]);
    json_close(out, ']');
}

/* Errors of theirs may tell more than everybody should know. */
static void put_upstreams(struct json_out *out, const struct client *client)
{
    const struct server *server = client->server;
    if (!server->gate.upstreams || !client_is_operator(client) || !server_config(server)->upstream_count)
        return;
    json_key(out, "upstreams");
    upstreams_write_status(out, server->gate.upstreams);
}

enum request_status status_method(struct request *r)
{
    const struct server *server = r->client->server;
    struct json_out *out = reply_open(r);
    json_field_text(out, "version", TOOLGATE_VERSION);
    json_field_int(out, "pid", getpid());
    json_field_int(out, "started_ms", server->started_ms);
    json_field_int(out, "uptime_s", (clock_wall_ms() - server->started_ms) / 1000);
    json_field_text(out, "socket", server->listener ? listener_path(server->listener) : "");
    put_generation(out, r->client);
    reload_write_status(r->client, out);
    put_upstreams(out, r->client);
    put_ledger(out, server->gate.ledger);
    put_connections(out, server);
    json_key(out, "counters");
    metrics_write(out, &server->metrics);
    put_policies(out, r->client);
    put_faults(out, r->client);
    put_quarantined(out, r->client);
    return reply_close(r);
}
