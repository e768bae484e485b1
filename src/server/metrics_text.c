/* One function for each group of metrics; each metric is named once, where it is written. */
#include "server/http_endpoint.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/version.h"
#include "gate/decision_log.h"
#include "policy/policy_hooks.h"
#include "policy/policy_set.h"
#include "base/log.h"
#include "base/histogram.h"
#include "server/reload.h"
#include "server/server_internal.h"
#include "upstream/upstream.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

#define NS_PER_S  1000000000LL
#define NS_PER_MS 1000000LL
#define NS_PER_US 1000LL

/* ---- calls ---- */

static const char *const methods[] = {
    [CALL_RUN] = "tools/call", [CALL_CHECK] = "toolgate/check", [CALL_REPORT] = "toolgate/report"};

static void put_calls(struct buf *out, const struct metrics *m)
{
    static const char name[] = "toolgate_calls_total";
    prometheus_head(
        out, name, "counter",
        "Calls that ended, by tool, method, verdict and class. A call that the agent runs ends twice: its "
        "toolgate/check and its toolgate/report.");
    for (size_t t = 0; t < m->tool_count; t++)
        for (size_t i = 0; i < m->tools[t]->outcome_count; i++) {
            const struct metrics_outcome *o = &m->tools[t]->outcomes[i];
            prometheus_name(out, name);
            prometheus_label(out, "tool", m->tools[t]->name);
            prometheus_label(out, "method", str_of(methods[o->mode]));
            prometheus_label(out, "verdict", str_of(verdict_name(o->verdict)));
            prometheus_label(out, "class", str_of(error_class_info(o->class)->name));
            prometheus_value(out, o->count);
        }
}

static void put_problems(struct buf *out, const struct metrics *m)
{
    static const char name[] = "toolgate_problems_total";
    prometheus_head(
        out, name, "counter",
        "Why calls did not pass: each problem of the arguments or the result by its code, else the code "
        "of the verdict.");
    for (size_t t = 0; t < m->tool_count; t++)
        for (size_t i = 0; i < m->tools[t]->code_count; i++) {
            prometheus_name(out, name);
            prometheus_label(out, "tool", m->tools[t]->name);
            prometheus_label(out, "code", m->tools[t]->codes[i].code);
            prometheus_value(out, m->tools[t]->codes[i].count);
        }
}

static void put_chains(struct buf *out, const struct metrics *m)
{
    static const char name[] = "toolgate_repair_chains_total";
    prometheus_head(
        out, name, "counter",
        "Repair chains that ended: a model's attempts to correct a call's arguments, by how they ended.");
    for (size_t t = 0; t < m->tool_count; t++)
        for (int i = 0; i < METRICS_CHAINS; i++) {
            if (!m->tools[t]->chains[i])
                continue;
            prometheus_name(out, name);
            prometheus_label(out, "tool", m->tools[t]->name);
            prometheus_label(out, "outcome", str_of(metrics_chain_name((enum metrics_chain)i)));
            prometheus_value(out, m->tools[t]->chains[i]);
        }
}

/* Counters with the tool as their only label; every tool has a sample, so that a first loop is an increase.
 */
static void put_by_tool(struct buf *out, const struct metrics *m)
{
    static const struct {
        const char *name, *help;
        size_t offset;
    } counters[] = {
        {"toolgate_loops_total",
         "Loops that began: first calls that were refused as a repetition without progress.",
         offsetof(struct metrics_tool, loops)},
        {"toolgate_calls_saved_total",
         "Calls that were refused or halted as a loop, and would have run otherwise.",
         offsetof(struct metrics_tool, saved)},
        {"toolgate_calls_not_run_total", "Calls whose tool did not run, for any reason.",
         offsetof(struct metrics_tool, refused)},
        {"toolgate_calls_rewritten_total", "Calls whose arguments were repaired or normalised.",
         offsetof(struct metrics_tool, rewritten)},
        {"toolgate_calls_not_enforced_total",
         "Verdicts that were only recorded: mode shadow, or a call without a session.",
         offsetof(struct metrics_tool, would)},
    };
    for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++) {
        prometheus_head(out, counters[i].name, "counter", counters[i].help);
        for (size_t t = 0; t < m->tool_count; t++) {
            uint64_t value;
            memcpy(&value, (const char *)m->tools[t] + counters[i].offset, sizeof(value));
            prometheus_name(out, counters[i].name);
            prometheus_label(out, "tool", m->tools[t]->name);
            prometheus_value(out, value);
        }
    }
}

/* ---- time ---- */

static void put_stages(struct buf *out, const struct metrics *m)
{
    static const char name[] = "toolgate_stage_seconds";
    struct buf labels = {0};
    prometheus_head(out, name, "histogram",
                    "Time of a call in each stage that it passed: queue, schema, policy, ledger, upstream.");
    for (int i = 0; i < CALL_PARTS; i++) {
        labels.len = 0;
        prometheus_label(&labels, "stage", str_of(call_part_name((enum call_part)i)));
        prometheus_histogram(out, name, buf_view(&labels), &m->parts[i], &histogram_fine_bounds);
    }
    buf_clear(&labels);
    prometheus_head(out, "toolgate_call_seconds", "histogram",
                    "Whole time of a call, check or report, from the read of its message to its verdict.");
    prometheus_histogram(out, "toolgate_call_seconds", STR_NONE, &m->total, &histogram_fine_bounds);
}

/* OpenTelemetry's semantic conventions for MCP: mcp.server.operation.duration with its attributes. */
static void put_durations(struct buf *out, const struct metrics *m)
{
    static const char name[] = "mcp_server_operation_duration_seconds";
    struct buf labels = {0};
    prometheus_head(out, name, "histogram", "Time of tools/call, as OpenTelemetry names it.");
    for (size_t t = 0; t < m->tool_count; t++) {
        const struct metrics_tool *tool = m->tools[t];
        labels.len = 0;
        prometheus_label(&labels, "mcp_method_name", STR_LIT("tools/call"));
        prometheus_label(&labels, "gen_ai_operation_name", STR_LIT("execute_tool"));
        prometheus_label(&labels, "gen_ai_tool_name", tool->name);
        if (histogram_count(&tool->passed))
            prometheus_histogram(out, name, buf_view(&labels), &tool->passed, &histogram_mcp_bounds);
        prometheus_label(&labels, "error_type", STR_LIT("tool_error"));
        if (histogram_count(&tool->failed))
            prometheus_histogram(out, name, buf_view(&labels), &tool->failed, &histogram_mcp_bounds);
    }
    buf_clear(&labels);
}

/* ---- upstreams ---- */

static void put_upstreams(struct buf *out, const struct upstreams *set)
{
    static const struct {
        const char *name, *type, *help;
        size_t offset;
    } metrics[] = {
        {"toolgate_upstream_up", "gauge",
         "1: it takes calls, or starts with the next one; 0: it is down or starting.",
         offsetof(struct upstream_figures, up)},
        {"toolgate_upstream_circuit_open", "gauge",
         "1: its circuit breaker lets no call through, or only a probe.",
         offsetof(struct upstream_figures, circuit_open)},
        {"toolgate_upstream_calls_total", "counter", "Calls that it was sent.",
         offsetof(struct upstream_figures, calls)},
        {"toolgate_upstream_errors_total", "counter",
         "Calls that it failed: crash, timeout, 429, 5xx, no tool result.",
         offsetof(struct upstream_figures, failures)},
        {"toolgate_upstream_starts_total", "counter",
         "Starts of its process or connection; the first one included.",
         offsetof(struct upstream_figures, starts)},
        {"toolgate_upstream_in_flight", "gauge", "Calls under way.",
         offsetof(struct upstream_figures, in_flight)},
        {"toolgate_upstream_queued", "gauge", "Calls that wait for it.",
         offsetof(struct upstream_figures, queued)},
    };
    struct arena *arena = arena_new();
    struct upstream_figures *list;
    size_t count = set ? upstreams_figures(set, arena, &list) : 0;
    for (size_t i = 0; i < sizeof(metrics) / sizeof(*metrics); i++) {
        prometheus_head(out, metrics[i].name, metrics[i].type, metrics[i].help);
        for (size_t u = 0; u < count; u++) {
            uint64_t value;
            memcpy(&value, (const char *)&list[u] + metrics[i].offset, sizeof(value));
            prometheus_name(out, metrics[i].name);
            prometheus_label(out, "upstream", list[u].name);
            prometheus_value(out, value);
        }
    }
    arena_free(arena);
}

/* ---- the ledger ---- */

static void put_redis(struct buf *out, const struct ledger_status *s)
{
    static const struct {
        const char *name, *type, *help;
        size_t offset;
    } metrics[] = {
        {"toolgate_ledger_connects_total", "counter", "Connections to Redis.",
         offsetof(struct ledger_status, connects)},
        {"toolgate_ledger_outages_total", "counter", "Outages of Redis.",
         offsetof(struct ledger_status, outages)},
        {"toolgate_ledger_uncounted_total", "counter", "Requests that passed uncounted during an outage.",
         offsetof(struct ledger_status, uncounted)},
        {"toolgate_ledger_refused_total", "counter", "Requests that were refused during an outage.",
         offsetof(struct ledger_status, refused)},
        {"toolgate_ledger_conflicts_total", "counter",
         "Commits that another daemon came before; they were made again.",
         offsetof(struct ledger_status, conflicts)},
        {"toolgate_ledger_merged_total", "counter", "Requests of an outage that Redis was given afterwards.",
         offsetof(struct ledger_status, merged)},
        {"toolgate_ledger_lost_total", "counter",
         "Requests of an outage that found no place to wait for Redis.",
         offsetof(struct ledger_status, lost)},
    };
    for (size_t i = 0; i < sizeof(metrics) / sizeof(*metrics); i++) {
        uint64_t value;
        memcpy(&value, (const char *)s + metrics[i].offset, sizeof(value));
        prometheus_metric(out, metrics[i].name, metrics[i].type, metrics[i].help, value);
    }
    prometheus_metric(out, "toolgate_ledger_waiting", "gauge",
                      "Sessions with requests that Redis has not been given yet.", s->waiting);
    prometheus_head(out, "toolgate_ledger_redis_seconds", "histogram",
                    "Time from a command to Redis to its answer.");
    prometheus_histogram(out, "toolgate_ledger_redis_seconds", STR_NONE, s->redis_times,
                         &histogram_fine_bounds);
}

static void put_ledger(struct buf *out, const struct server *server)
{
    struct ledger_status s;
    ledger_status(server->gate.ledger, &s);
    bool redis = s.on_outage != NULL;
    prometheus_head(out, "toolgate_ledger_up", "gauge",
                    "1: the configured ledger answers; 0: Redis is away.");
    prometheus_name(out, "toolgate_ledger_up");
    prometheus_label(out, "engine", str_of(s.engine));
    prometheus_value(out, redis ? s.connected : 1);
    prometheus_head(out, "toolgate_ledger_requests_total", "counter",
                    "Calls by the engine that judged their budgets and loops; none: nobody did.");
    for (int i = 0; i < METRICS_ENGINES; i++) {
        prometheus_name(out, "toolgate_ledger_requests_total");
        prometheus_label(out, "engine", str_of(metrics_engine_name(i)));
        prometheus_value(out, server->metrics.engines[i]);
    }
    prometheus_metric(out, "toolgate_ledger_sessions", "gauge", "Sessions in the local ledger.", s.sessions);
    prometheus_metric(out, "toolgate_ledger_bytes", "gauge", "Memory of the local ledger.", s.bytes);
    prometheus_metric(out, "toolgate_ledger_evicted_total", "counter",
                      "Sessions that the local ledger forgot for want of memory.", s.forgotten);
    prometheus_metric(out, "toolgate_ledger_loads_total", "counter",
                      "Sessions that were read from the store, as they were not in this daemon's cache.",
                      s.loads);
    if (redis)
        put_redis(out, &s);
}

/* ---- policies ---- */

static void put_policy_failures(struct buf *out, const struct policy_set *policies)
{
    static const char name[] = "toolgate_policy_failures_total";
    prometheus_head(out, name, "counter",
                    "Errors and exceeded deadlines of a policy's hooks, since its generation was loaded.");
    for (size_t i = 0; i < policy_set_count(policies); i++) {
        const struct policy *policy = policy_set_at(policies, i);
        const struct policy_failures *failures = policy->failures;
        prometheus_name(out, name);
        prometheus_label(out, "policy", policy->file);
        prometheus_value(out, failures ? failures->count : 0);
    }
}

static void put_policies(struct buf *out, const struct server *server)
{
    const struct generation *g = server->gate.generation;
    size_t quarantined, unmatched = 0;
    policy_set_stalls(g->policies, &quarantined);
    for (size_t i = 0; i < g->unmatched_count; i++)
        unmatched += g->unmatched[i].why != NULL;
    prometheus_metric(out, "toolgate_policy_errors_total", "counter",
                      "Calls that were refused because a policy failed.", server->metrics.policy_errors);
    prometheus_metric(out, "toolgate_tools_busy_total", "counter",
                      "Times that a tool became busy to a user, as its policy used up its time.",
                      server->busy.times);
    put_policy_failures(out, g->policies);
    prometheus_metric(out, "toolgate_policies_quarantined", "gauge",
                      "Policies that stalled the daemon and no longer run; their tools' calls fail.",
                      quarantined);
    prometheus_metric(out, "toolgate_policies_unmatched", "gauge", "Policies whose tool does not exist.",
                      unmatched);
    prometheus_metric(out, "toolgate_shadow_expired", "gauge",
                      "Modes shadow whose shadow_until has come, and that still enforce nothing.",
                      shadow_watch_count(server));
    prometheus_metric(out, "toolgate_policies", "gauge", "Policies of the generation that is served.",
                      policy_set_count(g->policies));
    prometheus_metric(out, "toolgate_tools", "gauge", "Tools of the generation that is served.",
                      g->tool_count);
    prometheus_head(out, "toolgate_generation_info", "gauge", "The generation that is served.");
    prometheus_name(out, "toolgate_generation_info");
    prometheus_label(out, "hash", g->hash);
    prometheus_value(out, 1);
    prometheus_metric(out, "toolgate_generation", "gauge", "Its number since the start.", g->number);
}

static void put_reloads(struct buf *out, const struct server *server)
{
    static const char *const results[RELOAD_RESULTS] = {"ok", "unchanged", "failed"};
    struct reload_figures figures;
    reload_figures(server->reloader, &figures);
    prometheus_head(out, "toolgate_reloads_total", "counter", "Reloads, by their result.");
    for (int i = 0; i < RELOAD_RESULTS; i++) {
        prometheus_name(out, "toolgate_reloads_total");
        prometheus_label(out, "result", str_of(results[i]));
        prometheus_value(out, figures.counts[i]);
    }
    prometheus_metric(out, "toolgate_last_reload_successful", "gauge",
                      "0: the last reload failed, and the generation before it is served.", !figures.failed);
    prometheus_head(out, "toolgate_last_reload_timestamp_seconds", "gauge",
                    "When the last reload ended, or the daemon started.");
    prometheus_name(out, "toolgate_last_reload_timestamp_seconds");
    prometheus_seconds(out, (figures.at_ms ? figures.at_ms : server->started_ms) * NS_PER_MS);
}

/* ---- the daemon ---- */

static void put_connections(struct buf *out, const struct server *server)
{
    prometheus_metric(out, "toolgate_connections", "gauge", "Open connections of clients.",
                      server->client_count);
    prometheus_metric(out, "toolgate_connections_max", "gauge", "Connections that may be open.",
                      server->connections_max);
    prometheus_metric(out, "toolgate_connections_accepted_total", "counter", "Connections since the start.",
                      server->accepted);
    prometheus_metric(out, "toolgate_connections_refused_total", "counter",
                      "Connections that were refused: limits, or a user who is not allowed.",
                      server->refused);
    prometheus_metric(out, "toolgate_requests_in_flight", "gauge", "Requests without a reply yet.",
                      server->pending);
    prometheus_metric(out, "toolgate_buffered_bytes", "gauge", "Bytes in the buffers of all connections.",
                      loop_bytes(server->loop));
    prometheus_metric(out, "toolgate_calls_cancelled_total", "counter",
                      "Calls whose client cancelled them or left.", server->metrics.cancelled);
    prometheus_metric(out, "toolgate_sessions_looping", "gauge",
                      "Sessions whose last call was refused as a loop.", server->metrics.looping_count);
    prometheus_metric(out, "toolgate_decisions_dropped_total", "counter",
                      "Records that the decision log could not write.",
                      server->gate.decisions ? decision_log_dropped(server->gate.decisions) : 0);
    prometheus_metric(out, "toolgate_decision_sinks_down", "gauge",
                      "Places of the decision log that cannot be written now.",
                      decision_log_sinks_down(server->gate.decisions));
    prometheus_metric(out, "toolgate_log_lines_dropped_total", "counter",
                      "Lines that the log could not write.", log_lines_dropped());
}

/* The names that Prometheus' own client libraries use. */
static void put_process(struct buf *out, const struct server *server)
{
    struct rusage usage;
    unsigned long long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "re");
    if (statm && fscanf(statm, "%*u %llu", &pages) != 1)
        pages = 0;
    if (statm)
        fclose(statm);
    getrusage(RUSAGE_SELF, &usage);
    int64_t us = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * (NS_PER_S / NS_PER_US) +
                 usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
    prometheus_metric(out, "process_resident_memory_bytes", "gauge", "Resident memory.",
                      pages * (uint64_t)sysconf(_SC_PAGESIZE));
    prometheus_head(out, "process_cpu_seconds_total", "counter", "User and system time.");
    prometheus_name(out, "process_cpu_seconds_total");
    prometheus_seconds(out, us * NS_PER_US);
    prometheus_head(out, "process_start_time_seconds", "gauge", "When the daemon started.");
    prometheus_name(out, "process_start_time_seconds");
    prometheus_seconds(out, server->started_ms * NS_PER_MS);
    prometheus_head(out, "toolgate_build_info", "gauge", "The version that runs.");
    prometheus_name(out, "toolgate_build_info");
    prometheus_label(out, "version", STR_LIT(TOOLGATE_VERSION));
    prometheus_value(out, 1);
}

unsigned metrics_text_route(struct server *server, const struct http_request *request, struct buf *body)
{
    (void)request;
    const struct metrics *m = &server->metrics;
    put_process(body, server);
    put_calls(body, m);
    put_problems(body, m);
    put_chains(body, m);
    put_by_tool(body, m);
    put_stages(body, m);
    put_durations(body, m);
    put_upstreams(body, server->gate.upstreams);
    put_ledger(body, server);
    put_policies(body, server);
    put_reloads(body, server);
    put_connections(body, server);
    const struct http_listener_counts *http = http_endpoint_counts(server->http_endpoint);
    prometheus_metric(body, "toolgate_http_connections_total", "counter", "Connections to this endpoint.",
                      http->accepted);
    prometheus_metric(body, "toolgate_http_refused_total", "counter",
                      "Requests to it that got a status from 400 on.", http->refused);
    prometheus_metric(body, "toolgate_http_timed_out_total", "counter",
                      "Requests that did not arrive, and replies that were not read, in time.",
                      http->timed_out);
    return 200;
}
