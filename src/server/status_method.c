/* toolgate/status: the daemon about itself. Tools are named only to peers for whom they exist. */
#include "base/arena.h"
#include "base/clock.h"
#include "base/version.h"
#include "server/listener.h"
#include "server/method_table.h"
#include "server/permission.h"
#include "server/quarantine.h"
#include "server/reload.h"
#include "upstream/upstream.h"

#include <unistd.h>

static void put_number(struct json_out *out, const char *key, int64_t n)
{
    json_key(out, key);
    json_put_int(out, n);
}

static void put_line(struct json_out *out, const char *key, const char *text)
{
    json_key(out, key);
    json_put_text(out, text);
}

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
    put_number(out, "tools", tools);
    put_number(out, "policies", judged);
}

static void put_generation(struct json_out *out, const struct client *client)
{
    const struct generation *g = client->server->gate.generation;
    size_t count;
    const struct str *warnings = generation_warnings(g, &count);
    json_key(out, "generation");
    json_open(out, '{');
    put_number(out, "number", (int64_t)generation_number(g));
    json_key(out, "hash");
    json_put_str(out, generation_hash(g));
    put_counts(out, client);
    json_key(out, "warnings");
    json_open(out, '[');
    for (size_t i = 0; i < count && permission_granted(client); i++)
        json_put_str(out, warnings[i]);
    json_close(out, ']');
    json_close(out, '}');
}

/* Its address without user and password. */
static void put_redis(struct json_out *out, const struct ledger *ledger, const struct ledger_status *s)
{
    struct arena *arena = arena_new();
    json_key(out, "address");
    json_put_str(out, ledger_address(ledger, arena));
    json_key(out, "connected");
    json_put_bool(out, s->connected);
    json_key(out, "server");
    json_put_str(out, s->server);
    put_line(out, "on_outage", s->on_outage);
    if (!s->connected)
        put_line(out, "why_away", s->why_away);
    if (!s->connected)
        put_number(out, "away_since_ms", s->away_since_ms);
    put_number(out, "connects", (int64_t)s->connects);
    put_number(out, "outages", (int64_t)s->outages);
    put_number(out, "median_us", s->median_us);
    put_number(out, "worst_us", s->worst_us);
    put_number(out, "by_redis", (int64_t)s->by_redis);
    put_number(out, "by_stand_in", (int64_t)s->by_stand_in);
    put_number(out, "uncounted", (int64_t)s->uncounted);
    put_number(out, "refused", (int64_t)s->refused);
    put_number(out, "waiting", (int64_t)s->waiting);
    put_number(out, "merged", (int64_t)s->merged);
    put_number(out, "lost", (int64_t)s->lost);
    if (s->keys >= 0)
        put_number(out, "keys_at_connect", s->keys);
    json_key(out, "warnings");
    json_open(out, '[');
    for (size_t i = 0; i < s->warning_count; i++)
        json_put_text(out, s->warnings[i]);
    json_close(out, ']');
    arena_free(arena);
}

static void put_ledger(struct json_out *out, const struct ledger *ledger)
{
    struct ledger_status s;
    ledger_status(ledger, &s);
    json_key(out, "ledger");
    json_open(out, '{');
    put_line(out, "engine", s.engine);
    if (s.on_outage)
        put_redis(out, ledger, &s);
    put_number(out, "sessions", (int64_t)s.sessions);
    put_number(out, "bytes", (int64_t)s.bytes);
    put_number(out, "forgotten", (int64_t)s.forgotten);
    json_close(out, '}');
}

static void put_connections(struct json_out *out, const struct server *server)
{
    json_key(out, "connections");
    json_open(out, '{');
    put_number(out, "open", (int64_t)server->client_count);
    put_number(out, "most", (int64_t)server->connections_max);
    put_number(out, "accepted", (int64_t)server->accepted);
    put_number(out, "refused", (int64_t)server->refused);
    put_number(out, "calls_in_flight", (int64_t)server->pending);
    put_number(out, "buffered_bytes", (int64_t)loop_bytes(server->loop));
    json_close(out, '}');
}

static void put_policy(struct json_out *out, const struct policy *policy)
{
    const uint64_t *hits = policy_rule_hits(policy);
    json_open(out, '{');
    json_key(out, "tool");
    json_put_str(out, policy->name);
    json_key(out, "rules");
    json_open(out, '[');
    for (size_t i = 0; i < policy->rule_count; i++) {
        json_open(out, '{');
        json_key(out, "says");
        json_put_str(out, policy->rule_words[i]);
        put_number(out, "hits", (int64_t)hits[i]);
        json_close(out, '}');
    }
    json_close(out, ']');
    json_close(out, '}');
}

static void put_policies(struct json_out *out, const struct client *client)
{
    const struct generation *g = client->server->gate.generation;
    const struct policy_set *policies = generation_policies(g);
    json_key(out, "rules");
    json_open(out, '[');
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
    json_key(out, key);
    json_put_str(out, name);
    put_number(out, "count", (int64_t)fault->count);
    json_key(out, "last");
    json_put_text(out, fault->last.text);
    json_close(out, '}');
}

/* Policies that broke, for whom their tools exist; the gateway's is for whoever may reload. */
static void put_faults(struct json_out *out, const struct client *client)
{
    const struct generation *g = client->server->gate.generation;
    const struct policy_set *policies = generation_policies(g);
    json_key(out, "policy_faults");
    json_open(out, '[');
    for (size_t i = 0; i < policy_set_count(policies); i++) {
        const struct policy *policy = policy_set_at(policies, i);
        if (policy_failures(policy) && peer_may_call(generation_config(g), &client->peer, policy->name))
            put_fault(out, "tool", policy->name, policy_failures(policy));
    }
    if (policy_set_gateway_failures(policies) && permission_granted(client))
        put_fault(out, "gateway", policy_set_gateway_file(policies), policy_set_gateway_failures(policies));
    json_close(out, ']');
}

static void put_stall(struct json_out *out, const struct server *server, const struct policy_stall *stall)
{
    const struct policy_set *policies = generation_policies(server->gate.generation);
    json_open(out, '{');
    for (size_t i = 0; i < policy_set_count(policies); i++)
        if (str_eq(policy_set_at(policies, i)->file, stall->file)) {
            json_key(out, "tool");
            json_put_str(out, policy_set_at(policies, i)->name);
        }
    json_key(out, "file");
    json_put_str(out, stall->file);
    put_line(out, "why", "it stalled the process, so it does not run, and its tool's calls fail");
    put_line(out, "mend",
             "change the file, and it is tried again; or take its line out of the list and restart");
    put_line(out, "list", quarantine_path(server->quarantine));
    json_close(out, '}');
}

/* Names files, so it is for whoever may reload; the others find the tool among the faults. */
static void put_quarantined(struct json_out *out, const struct client *client)
{
    size_t count;
    const struct generation *g = client->server->gate.generation;
    const struct policy_stall *stalls = policy_set_stalls(generation_policies(g), &count);
    if (!count || !permission_granted(client))
        return;
    json_key(out, "quarantined");
    json_open(out, '[');
    for (size_t i = 0; i < count; i++)
        put_stall(out, client->server, &stalls[i]);
    json_close(out, ']');
}

/* Errors of theirs may tell more than everybody should know. */
static void put_upstreams(struct json_out *out, const struct client *client)
{
    const struct server *server = client->server;
    if (!server->gate.upstreams || !permission_granted(client) || !server_config(server)->upstream_count)
        return;
    json_key(out, "upstreams");
    upstreams_write_status(out, server->gate.upstreams);
}

enum handled status_method(struct request *r)
{
    const struct server *server = r->client->server;
    struct json_out *out = reply_open(r);
    json_key(out, "version");
    json_put_text(out, TOOLGATE_VERSION);
    put_number(out, "pid", getpid());
    put_number(out, "started_ms", server->started_ms);
    put_number(out, "uptime_s", (clock_wall_ms() - server->started_ms) / 1000);
    json_key(out, "socket");
    json_put_text(out, server->listener ? listener_path(server->listener) : "");
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
