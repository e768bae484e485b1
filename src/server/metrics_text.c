/*
 * The route /metrics: Prometheus' text format 0.0.4. One function for each group of metrics; each metric is
 * named once, where it is written. buf_printf only where it does not matter: a scrape may have tens of
 * thousands of lines.
 */
#include "server/http_endpoint.h"

#include "base/arena.h"
#include "base/version.h"
#include "gate/decision_log.h"
#include "policy/policy_hooks.h"
#include "policy/policy_set.h"
#include "base/log.h"
#include "server/reload.h"
#include "server/server_internal.h"
#include "upstream/upstream.h"

#include <stdio.h>
#include <sys/resource.h>

#define NS_PER_S  1000000000LL
#define NS_PER_MS 1000000LL
#define NS_PER_US 1000LL

#define COUNT_OF(list) (sizeof(list) / sizeof(*(list)))

/* ---- the format ---- */

struct label {
    const char *key; /* NULL ends the list */
    struct str value;
};

/* Of a counter, whose name ends with "_total", or of a gauge. `help` is one line without a backslash. */
static void put_head(struct buf *out, const char *name, const char *help)
{
    const char *type = strcmp(name + strlen(name) - strlen("_total"), "_total") == 0 ? "counter" : "gauge";
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Bytes that are no UTF-8 would make the whole scrape unreadable: they become U+FFFD. */
static void put_escaped(struct buf *out, struct str value)
{
    const char *end = value.at + value.len;
    for (const char *at = value.at; at < end;) {
        size_t len = str_utf8_length(at, end);
        if (!len)
            buf_text(out, "\xef\xbf\xbd");
        else if (*at == '\\' || *at == '"')
            buf_byte(out, '\\'), buf_byte(out, *at);
        else if (*at == '\n')
            buf_text(out, "\\n");
        else
            buf_add(out, at, len);
        at += len ? len : 1;
    }
}

static void put_labels(struct buf *out, const struct label *labels)
{
    for (const struct label *l = labels; l->key; l++) {
        buf_byte(out, l == labels ? '{' : ',');
        buf_text(out, l->key);
        buf_text(out, "=\"");
        put_escaped(out, l->value);
        buf_byte(out, '"');
    }
    if (labels->key)
        buf_byte(out, '}');
}

static void put_value(struct buf *out, uint64_t value)
{
    buf_byte(out, ' ');
    buf_int(out, (int64_t)value);
    buf_byte(out, '\n');
}

static void put_seconds(struct buf *out, int64_t ns)
{
    buf_printf(out, " %lld.%09lld\n", (long long)(ns / NS_PER_S), (long long)(ns % NS_PER_S));
}

static void write_sample(struct buf *out, const char *name, uint64_t value, const struct label *labels)
{
    buf_text(out, name);
    put_labels(out, labels);
    put_value(out, value);
}

/* put_sample(out, "x_total", 5, {"tool", name}) */
#define put_sample(out, name, value, ...)                                                                    \
    write_sample((out), (name), (value), (const struct label[]){__VA_ARGS__, {.key = NULL}})

/* A metric with one sample and no label. */
struct metric {
    const char *name, *help; /* name: NULL ends the list */
    uint64_t value;
};

static void write_metrics(struct buf *out, const struct metric *list)
{
    for (; list->name; list++) {
        put_head(out, list->name, list->help);
        buf_text(out, list->name);
        put_value(out, list->value);
    }
}

/* put_metrics(out, {"x_total", "What x is.", 5}) */
#define put_metrics(out, ...) write_metrics((out), (const struct metric[]){__VA_ARGS__, {.name = NULL}})

static void put_time(struct buf *out, const char *name, const char *help, int64_t ns)
{
    put_head(out, name, help);
    buf_text(out, name);
    put_seconds(out, ns);
}

/* A metric with a sample for each row: the uint64_t at `offset` of each. */
struct column {
    const char *name, *help;
    size_t offset;
};

struct row {
    struct label label;
    const void *at;
};

static void put_columns(struct buf *out, const struct column *columns, size_t count, const struct row *rows,
                        size_t row_count)
{
    for (size_t i = 0; i < count; i++) {
        put_head(out, columns[i].name, columns[i].help);
        for (size_t n = 0; n < row_count; n++) {
            uint64_t value;
            memcpy(&value, (const char *)rows[n].at + columns[i].offset, sizeof(value));
            put_sample(out, columns[i].name, value, rows[n].label);
        }
    }
}

static void put_histogram_head(struct buf *out, const char *name, const char *help)
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s histogram\n", name, help, name);
}

static void put_histogram(struct buf *out, const char *name, const struct label *labels,
                          const struct histogram *h, const struct histogram_bounds *bounds)
{
    struct buf text = {0}; /* of the labels, which most lines repeat */
    uint64_t count = 0;
    put_labels(&text, labels);
    struct str all = buf_view(&text), open = all.len ? str_cut(all, all.len - 1) : STR_LIT("{");
    for (size_t i = 0; i <= bounds->count; i++) {
        buf_text(out, name);
        buf_text(out, "_bucket");
        buf_str(out, open);
        buf_text(out, all.len ? ",le=\"" : "le=\"");
        buf_text(out, i < bounds->count ? bounds->list[i].seconds : "+Inf");
        buf_text(out, "\"}");
        put_value(out, count += h->buckets[i]);
    }
    buf_text(out, name);
    buf_text(out, "_sum");
    buf_str(out, all);
    put_seconds(out, (int64_t)h->sum_ns);
    buf_text(out, name);
    buf_text(out, "_count");
    buf_str(out, all);
    put_value(out, count);
    buf_clear(&text);
}

/* ---- calls ---- */

static void put_calls(struct buf *out, const struct metrics *m)
{
    static const char calls[] = "toolgate_calls_total", problems[] = "toolgate_problems_total",
                      chains[] = "toolgate_repair_chains_total";
    put_head(out, calls,
             "Calls that ended, by tool, method, verdict and class. A call that the agent runs ends twice: "
             "its toolgate/check and its toolgate/report.");
    for (size_t t = 0; t < m->tool_count; t++)
        for (size_t i = 0; i < m->tools[t]->outcome_count; i++) {
            const struct metrics_outcome *o = &m->tools[t]->outcomes[i];
            put_sample(out, calls, o->count, {"tool", m->tools[t]->name}, {"method", call_method(o->mode)},
                       {"verdict", str_of(verdict_name(o->verdict))},
                       {"class", str_of(error_class_info(o->class)->name)});
        }
    put_head(out, problems,
             "Why calls did not pass: each problem of the arguments or the result by its code, else the "
             "code of the verdict.");
    for (size_t t = 0; t < m->tool_count; t++)
        for (size_t i = 0; i < m->tools[t]->code_count; i++)
            put_sample(out, problems, m->tools[t]->codes[i].count, {"tool", m->tools[t]->name},
                       {"code", m->tools[t]->codes[i].code});
    put_head(out, chains,
             "Repair chains that ended: a model's attempts to correct a call's arguments, by how they "
             "ended.");
    for (size_t t = 0; t < m->tool_count; t++)
        for (int i = 0; i < METRICS_CHAINS; i++)
            if (m->tools[t]->chains[i])
                put_sample(out, chains, m->tools[t]->chains[i], {"tool", m->tools[t]->name},
                           {"outcome", str_of(metrics_chain_name(i))});
}

/* Every tool has a sample of each, so that a first loop is an increase. */
static void put_by_tool(struct buf *out, struct arena *arena, const struct metrics *m)
{
    static const struct column columns[] = {
        {"toolgate_loops_total",
         "Loops that began: first calls that were refused as a repetition without progress, or would be in "
         "mode "
         "shadow.",
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
    struct row *rows = ARENA_ARRAY(arena, struct row, m->tool_count + 1);
    for (size_t t = 0; t < m->tool_count; t++)
        rows[t] = (struct row){{"tool", m->tools[t]->name}, m->tools[t]};
    put_columns(out, columns, COUNT_OF(columns), rows, m->tool_count);
}

static void put_times(struct buf *out, const struct metrics *m)
{
    static const char stages[] = "toolgate_stage_seconds", whole[] = "toolgate_call_seconds",
                      operations[] = "mcp_server_operation_duration_seconds";
    put_histogram_head(
        out, stages, "Time of a call in each stage that it passed: queue, schema, policy, ledger, upstream.");
    for (int i = 0; i < CALL_PARTS; i++) {
        const struct label labels[] = {{"stage", str_of(call_part_name((enum call_part)i))}, {.key = NULL}};
        put_histogram(out, stages, labels, &m->parts[i], &histogram_fine_bounds);
    }
    put_histogram_head(out, whole,
                       "Whole time of a call, check or report, from the read of its message to its verdict.");
    put_histogram(out, whole, &(struct label){.key = NULL}, &m->total, &histogram_fine_bounds);
    /* OpenTelemetry's semantic conventions for MCP: mcp.server.operation.duration with its attributes. */
    put_histogram_head(out, operations, "Time of tools/call, as OpenTelemetry names it.");
    for (size_t t = 0; t < m->tool_count; t++) {
        const struct metrics_tool *tool = m->tools[t];
        struct label labels[] = {{"mcp_method_name", STR_LIT("tools/call")},
                                 {"gen_ai_operation_name", STR_LIT("execute_tool")},
                                 {"gen_ai_tool_name", tool->name},
                                 {.key = NULL},
                                 {.key = NULL}};
        if (histogram_count(&tool->passed))
            put_histogram(out, operations, labels, &tool->passed, &histogram_mcp_bounds);
        labels[3] = (struct label){"error_type", STR_LIT("tool_error")};
        if (histogram_count(&tool->failed))
            put_histogram(out, operations, labels, &tool->failed, &histogram_mcp_bounds);
    }
}

/* ---- upstreams ---- */

static void put_upstreams(struct buf *out, struct arena *arena, const struct upstreams *set)
{
    static const struct column columns[] = {
        {"toolgate_upstream_up", "1: it takes calls, or starts with the next one; 0: it is down or starting.",
         offsetof(struct upstream_figures, up)},
        {"toolgate_upstream_circuit_open", "1: its circuit breaker lets no call through, or only a probe.",
         offsetof(struct upstream_figures, circuit_open)},
        {"toolgate_upstream_calls_total", "Calls that it was sent.",
         offsetof(struct upstream_figures, calls)},
        {"toolgate_upstream_errors_total", "Calls that it failed: crash, timeout, 429, 5xx, no tool result.",
         offsetof(struct upstream_figures, failures)},
        {"toolgate_upstream_starts_total", "Starts of its process or connection; the first one included.",
         offsetof(struct upstream_figures, starts)},
        {"toolgate_upstream_in_flight", "Calls under way.", offsetof(struct upstream_figures, in_flight)},
        {"toolgate_upstream_queued", "Calls that wait for it.", offsetof(struct upstream_figures, queued)},
    };
    struct upstream_figures *list;
    size_t count = set ? upstreams_figures(set, arena, &list) : 0;
    struct row *rows = ARENA_ARRAY(arena, struct row, count + 1);
    for (size_t i = 0; i < count; i++)
        rows[i] = (struct row){{"upstream", list[i].name}, &list[i]};
    put_columns(out, columns, COUNT_OF(columns), rows, count);
}

/* ---- the ledger ---- */

static void put_ledger(struct buf *out, const struct server *server)
{
    static const char up[] = "toolgate_ledger_up", requests[] = "toolgate_ledger_requests_total",
                      times[] = "toolgate_ledger_redis_seconds";
    struct ledger_status s;
    ledger_status(server->gate.ledger, &s);
    put_head(out, up, "1: the configured ledger answers; 0: Redis is away.");
    put_sample(out, up, s.on_outage ? s.connected : 1, {"engine", str_of(s.engine)});
    put_head(out, requests, "Calls by the engine that judged their budgets and loops; none: nobody did.");
    for (int i = 0; i < METRICS_ENGINES; i++)
        put_sample(out, requests, server->metrics.engines[i], {"engine", str_of(metrics_engine_name(i))});
    put_metrics(out, {"toolgate_ledger_sessions", "Sessions in the local ledger.", s.sessions},
                {"toolgate_ledger_bytes", "Memory of the local ledger.", s.bytes},
                {"toolgate_ledger_evicted_total", "Sessions that the local ledger forgot for want of memory.",
                 s.forgotten},
                {"toolgate_ledger_loads_total",
                 "Sessions that were read from the store, as they were not in this daemon's cache.",
                 s.loads});
    if (!s.on_outage)
        return;
    put_metrics(
        out, {"toolgate_ledger_connects_total", "Connections to Redis.", s.connects},
        {"toolgate_ledger_outages_total", "Outages of Redis.", s.outages},
        {"toolgate_ledger_uncounted_total", "Requests that passed uncounted during an outage.", s.uncounted},
        {"toolgate_ledger_refused_total", "Requests that were refused during an outage.", s.refused},
        {"toolgate_ledger_conflicts_total", "Commits that another daemon came before; they were made again.",
         s.conflicts},
        {"toolgate_ledger_merged_total", "Requests of an outage that Redis was given afterwards.", s.merged},
        {"toolgate_ledger_lost_total", "Requests of an outage that found no place to wait for Redis.",
         s.lost},
        {"toolgate_ledger_waiting", "Sessions with requests that Redis has not been given yet.", s.waiting});
    put_histogram_head(out, times, "Time from a command to Redis to its answer.");
    put_histogram(out, times, &(struct label){.key = NULL}, s.redis_times, &histogram_fine_bounds);
}

/* ---- policies and reloads ---- */

static void put_policies(struct buf *out, const struct server *server)
{
    static const char failed[] = "toolgate_policy_failures_total", info[] = "toolgate_generation_info";
    const struct generation *g = server->gate.generation;
    size_t quarantined, unmatched = 0;
    policy_set_stalls(g->policies, &quarantined);
    for (size_t i = 0; i < g->unmatched_count; i++)
        unmatched += g->unmatched[i].why != NULL;
    put_metrics(out,
                {"toolgate_policy_errors_total", "Calls that were refused because a policy failed.",
                 server->metrics.classes[CLASS_POLICY_ERROR]},
                {"toolgate_tools_busy_total",
                 "Times that a tool became busy to a user, as its policy used up its time.",
                 server->busy[0].times});
    put_head(out, failed,
             "Errors and exceeded deadlines of a policy's hooks, since its generation was loaded.");
    for (size_t i = 0; i < policy_set_count(g->policies); i++) {
        const struct policy *policy = policy_set_at(g->policies, i);
        const struct policy_failures *failures = policy->failures;
        put_sample(out, failed, failures ? failures->count : 0, {"policy", policy->file});
    }
    put_metrics(
        out,
        {"toolgate_policies_quarantined",
         "Policies that stalled the daemon and no longer run; their tools' calls fail.", quarantined},
        {"toolgate_policies_unmatched", "Policies whose tool does not exist.", unmatched},
        {"toolgate_shadow_expired",
         "Modes shadow whose shadow_until has come, and that still enforce nothing.",
         shadow_watch_count(server)},
        {"toolgate_policies", "Policies of the generation that is served.", policy_set_count(g->policies)},
        {"toolgate_tools", "Tools of the generation that is served.", g->tool_count});
    put_head(out, info, "The generation that is served.");
    put_sample(out, info, 1, {"hash", g->hash});
    put_metrics(out, {"toolgate_generation", "Its number since the start.", g->number});
}

static void put_reloads(struct buf *out, const struct server *server)
{
    static const char *const results[RELOAD_RESULTS] = {"ok", "unchanged", "failed"};
    static const char reloads[] = "toolgate_reloads_total";
    const struct reload_figures *figures = reload_figures(server->reloader);
    put_head(out, reloads, "Reloads, by their result.");
    for (int i = 0; i < RELOAD_RESULTS; i++)
        put_sample(out, reloads, figures->counts[i], {"result", str_of(results[i])});
    put_metrics(out, {"toolgate_last_reload_successful",
                      "0: the last reload failed, and the generation before it is served.",
                      figures->last != RELOAD_FAILED});
    put_time(out, "toolgate_last_reload_timestamp_seconds",
             "When the last reload ended, or the daemon started.",
             (figures->at_ms ? figures->at_ms : server->started_ms) * NS_PER_MS);
}

/* ---- the daemon ---- */

static void put_connections(struct buf *out, const struct server *server)
{
    uint32_t sinks_down;
    uint64_t records_dropped = decision_log_dropped(server->gate.decisions, &sinks_down);
    const struct http_listener_counts *http = http_endpoint_counts(server->http_endpoint);
    put_metrics(
        out, {"toolgate_connections", "Open connections of clients.", server->client_count},
        {"toolgate_connections_max", "Connections that may be open.", server->connections_max},
        {"toolgate_connections_accepted_total", "Connections since the start.", server->accepted},
        {"toolgate_connections_refused_total",
         "Connections that were refused: limits, or a user who is not allowed.", server->refused},
        {"toolgate_requests_in_flight", "Requests without a reply yet.", server->pending},
        {"toolgate_buffered_bytes", "Bytes in the buffers of all connections.", loop_bytes(server->loop)},
        {"toolgate_calls_cancelled_total", "Calls whose client cancelled them or left.",
         server->metrics.cancelled},
        {"toolgate_sessions_looping", "Sessions whose last call was refused as a loop.",
         server->metrics.looping_count},
        {"toolgate_decisions_dropped_total", "Records that the decision log could not write.",
         records_dropped},
        {"toolgate_decision_sinks_down", "Places of the decision log that cannot be written now.",
         sinks_down},
        {"toolgate_log_lines_dropped_total", "Lines that the log could not write.", log_lines_dropped()},
        {"toolgate_http_connections_total", "Connections to this endpoint.", http->accepted},
        {"toolgate_http_refused_total", "Requests to it that got a status from 400 on.", http->refused},
        {"toolgate_http_timed_out_total",
         "Requests that did not arrive, and replies that were not read, in time.", http->timed_out});
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
    put_metrics(
        out, {"process_resident_memory_bytes", "Resident memory.", pages * (uint64_t)sysconf(_SC_PAGESIZE)});
    put_time(out, "process_cpu_seconds_total", "User and system time.", us * NS_PER_US);
    put_time(out, "process_start_time_seconds", "When the daemon started.", server->started_ms * NS_PER_MS);
    put_head(out, "toolgate_build_info", "The version that runs.");
    put_sample(out, "toolgate_build_info", 1, {"version", STR_LIT(TOOLGATE_VERSION)});
}

unsigned metrics_text_route(struct server *server, const struct http_request *request, struct arena *arena,
                            struct buf *body)
{
    (void)request;
    put_process(body, server);
    put_calls(body, &server->metrics);
    put_by_tool(body, arena, &server->metrics);
    put_times(body, &server->metrics);
    put_upstreams(body, arena, server->gate.upstreams);
    put_ledger(body, server);
    put_policies(body, server);
    put_reloads(body, server);
    put_connections(body, server);
    return 200;
}
