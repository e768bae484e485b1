/* The daemon's life in order: start, event loop, drain, end. */
#include "server/server.h"

#include "ledger/approvals.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "catalog/pins.h"
#include "gate/decision_log.h"
#include "server/http_endpoint.h"
#include "server/listener.h"
#include "server/method_table.h"
#include "server/reload.h"
#include "server/server_internal.h"
#include "server/state_dir.h"
#include "io/file.h"
#include "io/systemd.h"
#include "policy/policy_set.h"
#include "traces/span_exporter.h"

#include <event2/event.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>

static void on_drain_limit(void *owner)
{
    struct server *server = owner;
    log_event(LOG_WARN, "drain_timed_out", LOG_NUM("after_ms", SERVER_DRAIN_MS),
              LOG_NUM("connections", server->client_count), LOG_NUM("calls_in_flight", server->pending));
    struct client *client;
    LIST_FOREACH (client, &server->clients, link)
        client_give_up(client);
    server->finished = true;
}

/* A connection that was accepted just now is about to send its call: it is heard out before it is drained. */
static void drain_clients(struct server *server, bool also_new)
{
    struct client *client;
    LIST_FOREACH (client, &server->clients, link)
        if (client->heard || also_new)
            client_drain(client);
}

static void on_new_are_late(void *owner)
{
    drain_clients(owner, true);
}

/* Stops accepting and lets calls in flight finish. */
static void drain(struct server *server)
{
    if (server->draining)
        return;
    server->draining = true;
    timer_clear(&server->idle_timer);
    log_event(LOG_INFO, "daemon_stopping", LOG_NUM("connections", server->client_count),
              LOG_NUM("calls_in_flight", server->pending));
    systemd_notify("STOPPING=1\nSTATUS=finishing %zu calls", server->pending);
    if (server->listener)
        listener_accept_last(server->listener);
    listener_free(server->listener);
    server->listener = NULL;
    timer_set(&server->drain_new, server->loop, SERVER_DRAIN_NEW_MS, on_new_are_late, server);
    timer_set(&server->drain_limit, server->loop, SERVER_DRAIN_MS, on_drain_limit, server);
    drain_clients(server, false);
}

static void on_idle(void *owner)
{
    struct server *server = owner;
    log_event(LOG_INFO, "daemon_idle", LOG_NUM("after_s", server->sources->idle_s));
    drain(server);
}

/* The user's own daemon: the next client starts it again. */
static void watch_idle(struct server *server)
{
    if (!server->sources->idle_s || server->draining)
        return;
    if (server->client_count || server->pending)
        timer_clear(&server->idle_timer);
    else if (!timer_is_set(&server->idle_timer))
        timer_set(&server->idle_timer, server->loop, server->sources->idle_s * 1000, on_idle, server);
}

/* The second signal to stop ends the daemon at once. */
static void on_signal(evutil_socket_t number, short what, void *arg)
{
    struct server *server = arg;
    (void)what;
    if (number == SIGHUP && !server->draining) {
        reload_request(server, "SIGHUP");
    } else if (number == SIGUSR1 && server->gate.decisions) {
        decision_log_reopen(server->gate.decisions);
    } else if (number == SIGTERM || number == SIGINT) {
        server->finished = server->signalled;
        server->signalled = true;
        drain(server);
    }
}

static void on_watchdog(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    systemd_notify("WATCHDOG=1");
}

static void watch_signals(struct server *server)
{
    static const int numbers[SERVER_SIGNALS] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL); /* the parent may have left them blocked */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file at its limit (ulimit -f) is an error of write(2) */
    for (size_t i = 0; i < SERVER_SIGNALS; i++) {
        server->signals[i] = evsignal_new(loop_base(server->loop), numbers[i], on_signal, server);
        event_add(server->signals[i], NULL);
    }
    server->watchdog = event_new(loop_base(server->loop), -1, EV_PERSIST, on_watchdog, server);
    int64_t us = systemd_watchdog_us();
    struct timeval interval = {.tv_sec = us / 1000000, .tv_usec = us % 1000000};
    if (us)
        event_add(server->watchdog, &interval);
}

/* ---- the decision log and the exporter of spans ---- */

void server_time_calls(struct server *server)
{
    const struct decision_log *decisions = server->gate.decisions;
    server->gate.counts_times = server->http_endpoint != NULL; /* nothing else reads the histograms */
    server->gate.timed = server->http_endpoint || (decisions && decision_log_is_on(decisions));
    loop_time_reads(server->loop, server->gate.timed || server->gate.spans);
}

enum err server_apply_records(struct server *server, const struct config *config, struct why *why)
{
    struct arena *arena = arena_new();
    struct decision_log_files files = {.records = state_dir_path(arena, config, DECISIONS_FILE_NAME),
                                       .key = state_dir_path(arena, config, "decisions.key"),
                                       .beside_socket = !state_dir_is_given(config)};
    enum err err = OK;
    if (server->gate.decisions)
        decision_log_configure(server->gate.decisions, &config->decisions, &files);
    else
        err = decision_log_new(server->loop, &config->decisions, &files, &server->gate.decisions, why);
    arena_free(arena);
    struct why open;
    const char *named = config->decisions.to_file ? config->decisions.file : NULL;
    if (named && file_check_above(named, geteuid(), &open) == ERR_CONFIG)
        log_event(LOG_WARN, "decisions_folder_open", LOG_TEXT("file", named), LOG_TEXT("why", open.text));
    /* The exporter exists from the first configuration with an endpoint on; calls see it only while it is on.
     */
    if (!server->spans && config->traces.endpoint.len)
        server->spans = span_exporter_new(server->loop);
    if (server->spans) {
        span_exporter_configure(server->spans, &config->traces);
        server->gate.spans = span_exporter_is_on(server->spans) ? server->spans : NULL;
    }
    server_time_calls(server);
    return err;
}

/* ---- waiting, while the loop turns ---- */

static void on_limit(void *owner)
{
    *(bool *)owner = true;
}

bool server_turn_until(struct server *server, bool (*done)(struct server *server), uint32_t ms)
{
    struct timer limit = {0};
    bool late = false;
    timer_set(&limit, server->loop, ms, on_limit, &late);
    while (!late && !done(server))
        loop_turn(server->loop, true);
    timer_clear(&limit);
    return !late;
}

static bool spans_are_sent(struct server *server)
{
    return span_exporter_flush(server->spans);
}

static bool ledger_is_ready(struct server *server)
{
    return ledger_is_settled(server->gate.ledger);
}

/* ---- start and end ---- */

static void on_gave_up(void *owner, struct str tool)
{
    struct server *server = owner;
    metrics_count_chain(&server->metrics, tool, STR_LIT("llm_gave_up"));
}

static enum err start(struct server *server, struct why *why)
{
    server->started_ms = clock_wall_ms();
    server->started_boot_ns = clock_read_ns(CLOCK_BOOTTIME);
    if (!(server->loop = loop_new()))
        return err_set(why, ERR_IO, "epoll is not available: too many open files?");
    server->reloader = reloader_new(server);
    server->gate.metrics = &server->metrics;
    TAILQ_INIT(&server->tools_lists);
    server->gate.busy = server->busy;
    server->gate.admissions = hash_random();
    watch_signals(server); /* before the wait for upstreams, so that a signal can end it */
    enum err err = reload_initial(server, why);
    if (err)
        return err;
    const struct config *config = server_config(server);
    if ((err = log_open(config->log_level, config->log_format, config->log_file, why)))
        return err;
    struct arena *arena = arena_new();
    const char *key_file = state_dir_path(arena, config, "call-ids.key");
    err = config_ledger_open(config, server->loop, key_file, &server->gate.ledger, why);
    arena_free(arena);
    if (err)
        return err;
    server->gate.approvals = approvals_new(server->gate.ledger);
    /* So that the first calls find Redis. Without it the outage rules apply. */
    server_turn_until(server, ledger_is_ready, SERVER_LEDGER_MS);
    err = server_apply_records(server, config, why);
    if (err || server->draining)
        return err;
    ledger_on_gave_up(server->gate.ledger, on_gave_up, server);
    ledger_tell_policies(server->gate.ledger, policy_set_hash(server->gate.generation->policies));
    shadow_watch_begin(server);
    size_t connections = config->limits.connections;
    struct file_shares wanted = {connections, config_in_flight_all(config)};
    struct file_shares files = listener_raise_file_limit(wanted);
    server->connections_max = files.connections;
    upstreams_limit_files(server->gate.upstreams, (uint32_t)files.calls);
    if (server->connections_max < connections)
        log_event(LOG_WARN, "connections_limited", LOG_NUM("limits.connections", connections),
                  LOG_NUM("possible", server->connections_max),
                  LOG_TEXT("fix", "raise LimitNOFILE= of the service, or ulimit -Hn"));
    loop_limit_bytes(server->loop, config->limits.memory);
    err = http_endpoint_apply(server, config, why);
    return err ? err
               : listener_new(server->loop, config->socket, config->socket_mode, &client_listener_hooks,
                              server, &server->listener, why);
}

static void stop(struct server *server)
{
    sigset_t set; /* a second SIGTERM, as of systemd and an operator at once, must not kill a process that
                     ends well */
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    listener_free(server->listener);
    http_endpoint_free(server->http_endpoint);
    page_apply(server, false);
    timer_clear(&server->drain_new);
    timer_clear(&server->drain_limit);
    timer_clear(&server->memory_timer);
    timer_clear(&server->idle_timer);
    timer_clear(&server->shadow_timer);
    for (size_t i = 0; i < SERVER_SIGNALS; i++)
        if (server->signals[i])
            event_free(server->signals[i]);
    if (server->watchdog)
        event_free(server->watchdog);
    passing_free(server);
    reload_free_upstreams(server);
    if (server->gate.decisions) /* further records are written by decision_log_free */
        decision_log_leave_loop(server->gate.decisions);
    server->gate.spans = NULL;
    span_exporter_free(server->spans);
    if (server->loop)
        loop_close_connections(server->loop); /* frees clients and their calls, which need the ledger */
    if (server->gate.ledger)
        ledger_free(server->gate.ledger); /* its timers and connections need the loop */
    approvals_free(server->gate.approvals);
    reloader_free(server->reloader); /* its watch and its timer need the loop */
    pins_free(server->pins);
    arena_free(server->pins_arena);
    loop_free(server->loop);
    decision_log_free(server->gate.decisions);
    quarantine_free(server->quarantine, server->serving);
    generation_unref(server->gate.generation);
    metrics_clear(&server->metrics);
    libevent_global_shutdown();
}

#define MMAP_THRESHOLD_BYTES 1048576 /* blocks from here on go back to the system when they are freed */
#define LARGE_SPARES_MS      2000u   /* how long freed memory of large messages waits for the next one */

static void free_spare_memory(void *server)
{
    (void)server;
    arena_free_large_spares();
}

enum err server_run(const struct config_sources *sources, struct why *why)
{
    struct server server = {.sources = sources};
    /* Else glibc raises it to the largest block that was ever freed, and keeps what a reload frees. */
    mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES);
    log_never_wait();
    enum err err = start(&server, why);
    if (!err) {
        bool busy = false;
        server.serving = true;
        const struct generation *g = server.gate.generation;
        if (g && !server.draining) {
            log_event(LOG_INFO, "daemon_ready", LOG_TEXT("socket", listener_path(server.listener)),
                      LOG_NUM("generation", g->number), LOG_STR("hash", g->hash),
                      LOG_NUM("tools", g->tool_count), LOG_NUM("policies", policy_set_count(g->policies)));
            systemd_notify("READY=1\nSTATUS=serving generation %" PRIu64, g->number);
        }
        while (!server.finished && !(server.draining && LIST_EMPTY(&server.clients))) {
            loop_turn(server.loop, !busy);
            listener_accept(server.listener);
            watch_idle(&server);
            busy = reload_turn(&server);
            if (arena_large_spare_bytes() && !timer_is_set(&server.memory_timer))
                timer_set(&server.memory_timer, server.loop, LARGE_SPARES_MS, free_spare_memory, &server);
        }
        loop_turn(server.loop, false); /* sends what the drain's limit has answered */
        reload_stop_upstreams(&server);
        if (server.spans)
            server_turn_until(&server, spans_are_sent, SPANS_FLUSH_MS);
        log_event(LOG_INFO, "daemon_stopped", LOG_NUM("connections", server.accepted));
    }
    stop(&server);
    log_flush();
    return err;
}
