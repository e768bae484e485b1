/*
 * toolgate/status. A peer sees only the tools that it may call; files, warnings
 * and errors of upstreams are for the operator.
 */
#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/version.h"
#include "policy/config.h"
#include "gate/decision_log.h"
#include "server/method_table.h"
#include "server/http_endpoint.h"
#include "server/listener.h"
#include "server/reload.h"
#include "server/state_dir.h"
#include "traces/span_exporter.h"
#include "upstream/upstream.h"
#include "policy/policy_hooks.h"
#include "policy/policy_set.h"

#include <limits.h>
#include <stdlib.h>
#include <inttypes.h>
#include <unistd.h>

/* Users see the policies of tools that they may call; those of several tools are the operator's. */
static bool may_see(const struct client *client, const struct policy *policy)
{
    return policy_is_overlay(policy) ? client_is_operator(client) : client_may_call(client, policy->name);
}

const char *status_mode_name(enum policy_mode mode)
{
    static const char *const names[] = {
        [POLICY_ENFORCE] = "enforce", [POLICY_SHADOW] = "shadow", [POLICY_OFF] = "off"};
    return names[mode];
}

/* Absolute: an operator reads it in another folder than the daemon's. A path that does not exist is completed
 * all the same. Empty for NULL. */
static struct str absolute(struct arena *arena, const char *path)
{
    char full[PATH_MAX], here[PATH_MAX];
    if (path && realpath(path, full))
        return arena_dup(arena, str_of(full));
    if (!path || path[0] == '/' || !getcwd(here, sizeof(here)))
        return str_of(path);
    return arena_printf(arena, "%s/%s", here, path);
}

/* Policies that guard no tool: those that wait for a server, and those whose server lacks the tool. */
static void put_unmatched(struct json_out *out, const struct generation *g, size_t most)
{
    json_field_open(out, "unmatched", '[');
    for (size_t i = 0; i < g->unmatched_count && i < most; i++) {
        const struct unmatched_policy *u = &g->unmatched[i];
        json_put_object(out, FIELD_STR("file", u->file), FIELD_STR("tool", u->name),
                        FIELD_TEXT("state", u->why ? "error" : "waiting"),
                        FIELD_OPTIONAL("why", str_of(u->why)));
    }
    json_close(out, ']');
}

/* "shadow" names the lines that an operator changes, for `toolgate shadow`. */
static void put_shadow(struct json_out *out, struct arena *arena, const struct server *server)
{
    struct shadow_expiry *expired;
    struct shadow_place *places;
    size_t count = shadow_expired(server->gate.generation, clock_wall_ms(), arena, &expired);
    json_field_open(out, "shadow_expired", '[');
    for (size_t i = 0; i < count; i++)
        json_put_object(out, FIELD_STR("file", expired[i].file), FIELD_STR("why", expired[i].sentence));
    json_close(out, ']');
    count = shadow_places(server->gate.generation, arena, &places);
    json_field_open(out, "shadow", '[');
    for (size_t i = 0; i < count; i++) {
        const struct shadow_place *place = &places[i];
        json_open(out, '{');
        json_field_str(out, "file", absolute(arena, arena_dup(arena, place->file).at));
        if (place->line)
            json_field_int(out, "line", place->line);
        json_field_strs(out, place->is_default ? "except" : "tools", place->tools, place->tool_count);
        json_close(out, '}');
    }
    json_close(out, ']');
}

/* The policies for several tools: "over" are the tools that each lies over. */
static void put_overlays(struct json_out *out, const struct generation *g)
{
    json_field_open(out, "overlays", '[');
    for (size_t i = 0; i < policy_set_count(g->policies); i++) {
        const struct policy *policy = policy_set_at(g->policies, i);
        enum policy_mode mode = policy->mode_given ? policy->mode : g->config.defaults.mode;
        if (!policy_is_overlay(policy))
            continue;
        json_open(out, '{');
        json_fields(out, FIELD_STR("file", policy->file), FIELD_TEXT("mode", status_mode_name(mode)));
        json_field_open(out, "over", '[');
        for (size_t k = 0; k < g->tool_count; k++)
            if (tool_has_overlay(g->tools[k], policy))
                json_put_str(out, g->tools[k]->name);
        json_close(out, ']');
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void put_generation(struct json_out *out, struct arena *arena, const struct client *client, bool brief)
{
    const struct generation *g = client->server->gate.generation;
    const struct policy_set *policies = g->policies;
    size_t tools = 0, policy_count = 0, most = brief ? STATUS_BRIEF_MAX : SIZE_MAX;
    size_t warnings = client_is_operator(client) ? g->warning_count : 0;
    for (size_t i = 0; i < g->tool_count; i++)
        tools += client_may_call(client, g->tools[i]->name);
    for (size_t i = 0; i < policy_set_count(policies); i++)
        policy_count += may_see(client, policy_set_at(policies, i));
    json_field_open(out, "generation", '{');
    json_fields(out, FIELD_NUM("number", g->number), FIELD_STR("hash", g->hash),
                FIELD_NUM("since_ms", client->server->generation_ms), FIELD_NUM("tools", tools),
                FIELD_NUM("policies", policy_count));
    if (brief) {
        json_field_int(out, "warning_count", (int64_t)warnings);
    } else {
        json_field_open(out, "schemas", '[');
        for (size_t i = 0; i < g->schemas.count; i++)
            json_put_str(out, g->schemas.list[i].name);
        json_close(out, ']');
    }
    json_field_strs(out, "warnings", g->warnings, warnings < most ? warnings : most);
    if (client_is_operator(client) && !brief) { /* the hash of the files' content, for `toolgate doctor` */
        json_field_str(out, "config_hash", arena_printf(arena, "%016" PRIx64, g->config.hash));
        put_overlays(out, g);
    }
    if (client_is_operator(client))
        put_unmatched(out, g, most);
    if (client_is_operator(client) && !brief)
        put_shadow(out, arena, client->server);
    json_close(out, '}');
}

static void put_ledger(struct json_out *out, struct arena *arena, const struct ledger *ledger)
{
    struct ledger_status s;
    ledger_status(ledger, &s);
    json_field_open(out, "ledger", '{');
    json_field_text(out, "engine", s.engine);
    if (s.on_outage) { /* Redis. The address has no user and no password. */
        json_fields(out, FIELD_STR("address", ledger_address(ledger, arena)),
                    FIELD_BOOL("connected", s.connected), FIELD_STR("server", s.server),
                    FIELD_TEXT("on_outage", s.on_outage));
        if (!s.connected)
            json_fields(out, FIELD_TEXT("why_away", s.why_away), FIELD_NUM("away_since_ms", s.away_since_ms));
        if (s.master) /* named by the sentinels, followed at a failover */
            json_field_object(
                out, "master", FIELD_STR("name", s.master_name),
                FIELD_STR("address", arena_printf(arena, "%s:%u", s.master, (unsigned)s.master_port)),
                FIELD_NUM("since_ms", s.master_since_ms));
        json_fields(out, FIELD_NUM("connects", s.connects), FIELD_NUM("outages", s.outages),
                    FIELD_NUM("median_us", s.median_us), FIELD_NUM("clock_ahead_ms", s.clock_ahead_ms),
                    FIELD_NUM("worst_us", s.worst_us), FIELD_NUM("by_redis", s.by_redis),
                    FIELD_NUM("by_stand_in", s.by_stand_in), FIELD_NUM("uncounted", s.uncounted),
                    FIELD_NUM("refused", s.refused), FIELD_NUM("waiting", s.waiting),
                    FIELD_NUM("merged", s.merged), FIELD_NUM("lost", s.lost),
                    FIELD_NUM("conflicts", s.conflicts));
        if (s.keys >= 0)
            json_field_int(out, "keys_at_connect", s.keys);
        json_field_open(out, "warnings", '[');
        for (size_t i = 0; i < s.warning_count; i++)
            json_put_text(out, s.warnings[i]);
        json_close(out, ']');
    }
    json_fields(out, FIELD_NUM("sessions", s.sessions), FIELD_NUM("bytes", s.bytes),
                FIELD_NUM("forgotten", s.forgotten));
    json_close(out, '}');
}

/* What the fleet has learnt of schemas that are stricter than their servers, and the lines of a policy that
 * make it permanent or forbid it. */
static void put_schema_lax(struct json_out *out, struct arena *arena, const struct client *client)
{
    struct ledger_lax *list;
    size_t count = ledger_lax_list(client->server->gate.ledger, arena, &list);
    json_field_open(out, "schema_lax", '[');
    for (size_t i = 0; i < count; i++)
        if (client_may_call(client, list[i].tool))
            json_put_object(out, FIELD_STR("tool", list[i].tool), FIELD_STR("path", list[i].path),
                            FIELD_STR("code", list[i].code),
                            FIELD_NUM("until_ms", (int64_t)list[i].until_s * 1000),
                            FIELD_TEXT("permanent", "schema = \"advise\""),
                            FIELD_TEXT("forbidden", "schema = \"strict\""));
    json_close(out, ']');
}

/* Counts of the tools that were called, and hits of the policies' rules. The shared rows of unknown and of
 * further tools are the operator's. */
static void put_tools(struct json_out *out, const struct client *client)
{
    const struct metrics *m = &client->server->metrics;
    const struct generation *g = client->server->gate.generation;
    json_field_open(out, "tools", '[');
    for (size_t i = 0; i < m->tool_count; i++) {
        struct str name = m->tools[i]->name;
        bool is_known = generation_find(g, name) != NULL;
        if (client_is_operator(client) || (is_known && client_may_call(client, name)))
            metrics_write_tool(out, m->tools[i]);
    }
    json_close(out, ']');
    json_field_open(out, "rules", '[');
    for (size_t i = 0; i < policy_set_count(g->policies); i++) {
        const struct policy *policy = policy_set_at(g->policies, i);
        const uint64_t *hits = policy->rule_hits;
        if (!policy->rule_count || !may_see(client, policy))
            continue;
        json_open(out, '{');
        json_field_str(out, "tool", policy->name);
        json_field_open(out, "rules", '[');
        for (size_t n = 0; n < policy->rule_count; n++)
            json_put_object(out, FIELD_STR("says", policy_rule_words(policy, n)), FIELD_NUM("hits", hits[n]));
        json_close(out, ']');
        json_close(out, '}');
    }
    json_close(out, ']');
}

/* The text may quote the arguments of another user's call. */
static void put_failure(struct json_out *out, bool is_operator, const char *key, struct str name,
                        const struct policy_failures *failures)
{
    json_put_object(out, FIELD_STR(key, name), FIELD_NUM("count", failures->count),
                    FIELD_OPTIONAL("last", is_operator ? str_of(failures->last.text) : STR_NONE));
}

static void put_failures(struct json_out *out, const struct client *client)
{
    const struct policy_set *policies = client->server->gate.generation->policies;
    bool is_operator = client_is_operator(client);
    json_field_open(out, "policy_faults", '[');
    for (size_t i = 0; i < policy_set_count(policies); i++) {
        const struct policy *policy = policy_set_at(policies, i);
        if (policy->failures && may_see(client, policy))
            put_failure(out, is_operator, "tool", policy->name, policy->failures);
    }
    if (policy_set_gateway(policies)->failures && is_operator)
        put_failure(out, is_operator, "gateway", policy_set_gateway(policies)->file,
                    policy_set_gateway(policies)->failures);
    json_close(out, ']');
}

/* What the generation that is served was loaded from, so that `toolgate new` and `toolgate test` find it. */
static void put_paths(struct json_out *out, struct arena *arena, const struct config *config)
{
    const struct path_list *lists[] = {&config->tools, &config->mcp_configs};
    /* by default a folder that may be missing */
    const char *schemas = config->schemas && access(config->schemas, F_OK) == 0 ? config->schemas : NULL;
    json_field_open(out, "paths", '{');
    json_fields(out, FIELD_OPTIONAL("config", absolute(arena, config->file)),
                FIELD_OPTIONAL("policies", absolute(arena, config->policies)),
                FIELD_OPTIONAL("schemas", absolute(arena, schemas)));
    for (size_t i = 0; i < 2; i++) {
        json_field_open(out, i ? "mcp_configs" : "tools", '[');
        for (size_t n = 0; n < lists[i]->count; n++)
            json_put_str(out, absolute(arena, lists[i]->list[n]));
        json_close(out, ']');
    }
    json_fields(out, FIELD_OPTIONAL("log", absolute(arena, config->log_file)),
                FIELD_OPTIONAL("decisions", absolute(arena, state_dir_decisions(arena, config))),
                FIELD_OPTIONAL("state", absolute(arena, state_dir_folder(arena, config))));
    json_close(out, '}');
}

void status_write(struct json_out *out, struct arena *arena, const struct client *client, bool brief)
{
    struct server *server = client->server;
    const struct config *config = server_config(server);
    bool is_operator = client_is_operator(client);
    json_fields(out, FIELD_TEXT("version", TOOLGATE_VERSION),
                FIELD_TEXT("state", server->draining    ? "draining"
                                    : server->reloading ? "reloading"
                                                        : "serving"),
                FIELD_NUM("pid", getpid()), FIELD_NUM("started_ms", server->started_ms),
                FIELD_NUM("uptime_s", (clock_read_ns(CLOCK_BOOTTIME) - server->started_boot_ns) / 1000000000),
                FIELD_TEXT("socket", server->listener ? listener_path(server->listener) : ""));
    if (is_operator && !brief)
        put_paths(out, arena, config);
    put_generation(out, arena, client, brief);
    reload_write_status(client, out);
    if (is_operator && server->gate.upstreams && config->upstream_count) {
        json_key(out, "upstreams"); /* their errors may contain what not every peer may know */
        upstreams_write_status(out, server->gate.upstreams);
        passing_write_status(out, server);
    } else if (brief) {
        json_field_raw(out, "upstreams", STR_LIT("[]"));
    }
    put_ledger(out, arena, server->gate.ledger);
    if (!brief)
        put_schema_lax(out, arena, client);
    if (server->spans && is_operator)
        span_exporter_write_status(out, server->spans);
    json_field_object(out, "connections", FIELD_NUM("open", server->client_count),
                      FIELD_NUM("most", server->connections_max), FIELD_NUM("accepted", server->accepted),
                      FIELD_NUM("refused", server->refused), FIELD_NUM("calls_in_flight", server->pending),
                      FIELD_NUM("buffered_bytes", loop_bytes(server->loop)));
    if (log_lines_dropped())
        json_field_int(out, "log_lines_dropped", (int64_t)log_lines_dropped());
    http_endpoint_write_status(out, server->http_endpoint);
    json_key(out, "counters");
    metrics_write(out, &server->metrics);
    if (!brief)
        put_tools(out, client);
    put_failures(out, client);
    busy_write_status(out, &server->busy[0], is_operator, client->peer.uid, clock_mono_us() / 1000);
    if (is_operator) { /* these name files, servers and other clients */
        quarantine_write_status(server->quarantine, out, server->gate.generation->policies);
        decision_log_write_status(out, server->gate.decisions);
        pin_methods_write_status(out, server);
        exec_write_status(out, server->loop);
        problems_write(out, server);
    }
}

enum request_status status_method(struct request *r)
{
    status_write(reply_open(r), r->arena, r->client, false);
    return reply_close(r);
}
