/*
 * Start, turn, drain: the daemon's life in order. What can be mended by a
 * person is said in `why`; once `ready` is logged, only a signal ends it.
 */
#include "server/server.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "config/config_ledger.h"
#include "io/timer.h"
#include "server/listener.h"
#include "server/systemd.h"
#include "server/upstream_manager.h"
#include "server/quarantine.h"
#include "server/reload.h"
#include "server/server_internal.h"
#include "server/config_watch.h"

#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>

/* ---- signals and timers --------------------------------------------------- */

/* Stop accepting, let calls in flight finish, flush, end. Asked twice, it ends at once. */
static void drain(struct server *server)
{
    struct timeval limit = {.tv_sec = SERVER_DRAIN_MS / 1000, .tv_usec = SERVER_DRAIN_MS % 1000 * 1000};
    server->finished = server->draining;
    if (server->draining)
        return;
    server->draining = true;
    log_event(LOG_INFO, "daemon_stopping", LOG_NUM("connections", server->client_count),
              LOG_NUM("calls_in_flight", server->pending));
    notify("STOPPING=1\nSTATUS=finishing %zu calls", server->pending);
    listener_free(server->listener);
    server->listener = NULL;
    event_add(server->drain_over, &limit);
    for (struct client *client = server->clients; client; client = client->next)
        client_drain(client);
}

static void on_stop_signal(evutil_socket_t number, short what, void *arg)
{
    (void)number, (void)what;
    drain(arg);
}

static void on_drain_over(evutil_socket_t fd, short what, void *arg)
{
    struct server *server = arg;
    (void)fd, (void)what;
    log_event(LOG_WARN, "drain_timed_out", LOG_NUM("after_ms", SERVER_DRAIN_MS),
              LOG_NUM("connections", server->client_count), LOG_NUM("calls_in_flight", server->pending));
    server->finished = true;
}

static void on_reload_signal(evutil_socket_t number, short what, void *arg)
{
    struct server *server = arg;
    (void)number, (void)what;
    if (!server->draining)
        reload_request(server, "SIGHUP");
}

static void on_files_changed(void *arg)
{
    struct server *server = arg;
    if (!server->draining)
        reload_request(server, "files");
}

static void on_watchdog(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    notify("WATCHDOG=1");
}

static struct event *on_signal(struct server *server, int number, event_callback_fn callback)
{
    struct event *event = evsignal_new(loop_base(server->loop), number, callback, server);
    event_add(event, NULL);
    return event;
}

/* Whoever started us may have left them blocked: then nothing but kill -9 would end us. */
static void unblock_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void watch_signals(struct server *server)
{
    struct event_base *base = loop_base(server->loop);
    unblock_signals();
    signal(SIGPIPE, SIG_IGN);
    server->on_term = on_signal(server, SIGTERM, on_stop_signal);
    server->on_int = on_signal(server, SIGINT, on_stop_signal);
    server->on_hup = on_signal(server, SIGHUP, on_reload_signal);
    server->drain_over = event_new(base, -1, 0, on_drain_over, server);
    server->watchdog = event_new(base, -1, EV_PERSIST, on_watchdog, server);
    int64_t every = systemd_watchdog_us();
    struct timeval interval = {.tv_sec = every / 1000000, .tv_usec = every % 1000000};
    if (every)
        event_add(server->watchdog, &interval);
}

/* ---- start ---------------------------------------------------------------- */

static void on_accepted(void *owner, int fd)
{
    client_accept(owner, fd);
}

static void on_no_files(void *owner, int fd)
{
    struct server *server = owner;
    server->refused++;
    client_refuse_no_files(fd);
    log_event(LOG_ERROR, "connection_refused", LOG_TEXT("why", "no file descriptor left"),
              LOG_NUM("open", server->client_count));
}

static const struct listener_hooks listener_hooks = {on_accepted, on_no_files};

static enum err open_ledger(struct server *server, struct why *why)
{
    enum err err = config_ledger_open(server_config(server), server->loop, &server->gate.ledger, why);
    int64_t until_ms = clock_mono_us() / 1000 + SERVER_LEDGER_MS;
    /* The first calls are to find it there; if it is not, that is an outage, which has its own rules. */
    while (!err && !ledger_is_settled(server->gate.ledger) && clock_mono_us() / 1000 < until_ms)
        loop_turn(server->loop, true);
    return err;
}

static enum err load(struct server *server, struct why *why)
{
    server->reloader = reloader_new(server);
    server->watcher = config_watch_new(loop_base(server->loop), on_files_changed, server);
    watch_signals(server); /* upstreams are waited for, and nobody should have to wait with them */
    enum err err = reload_initial(server, why);
    const struct config *config = err ? NULL : server_config(server);
    if (!err)
        err = log_open(config->log_level, config->log_format, config->log_file, why);
    if (!err)
        err = open_ledger(server, why);
    server->gate.metrics = &server->metrics;
    server->gate.admissions = hash_random();
    return err;
}

static void raise_files(struct server *server)
{
    size_t wanted = server_config(server)->limits.connections;
    server->connections_max = listener_raise_file_limit(wanted);
    if (server->connections_max < wanted)
        log_event(LOG_WARN, "connections_limited", LOG_NUM("limits.connections", wanted),
                  LOG_NUM("possible", server->connections_max),
                  LOG_TEXT("mend", "raise LimitNOFILE= of the service, or ulimit -Hn"));
}

static enum err start(struct server *server, struct why *why)
{
    server->started_ms = clock_wall_ms();
    if (!(server->loop = loop_new()))
        return err_set(why, ERR_IO, "the kernel gives no event queue (epoll): too many open files?");
    enum err err = load(server, why);
    if (err || server->draining) /* stopped before it began */
        return err;
    raise_files(server);
    loop_limit_bytes(server->loop, server_config(server)->limits.memory);
    return listener_new(loop_base(server->loop), server_config(server)->socket,
                        server_config(server)->socket_mode, &listener_hooks, server, &server->listener, why);
}

static void say_ready(const struct server *server)
{
    const struct generation *g = server->gate.generation;
    const char *path = listener_path(server->listener);
    log_event(LOG_INFO, "daemon_ready", LOG_TEXT("socket", path), LOG_NUM("generation", generation_number(g)),
              LOG_STR("hash", generation_hash(g)), LOG_NUM("tools", generation_tool_count(g)),
              LOG_NUM("policies", policy_set_count(generation_policies(g))));
    notify("READY=1\nSTATUS=serving generation %" PRIu64, generation_number(g));
}

/* ---- end ------------------------------------------------------------------ */

static void free_event(struct event *event)
{
    if (event)
        event_free(event);
}

static void on_offers_late(void *owner)
{
    *(bool *)owner = true;
}

/* Upstreams read their end of file, and then have a little time. */
static void end_upstreams(struct server *server)
{
    struct timer limit = {0};
    bool late = false;
    upstream_manager_stop(server->offers);
    timer_set(&limit, server->loop, UPSTREAM_MANAGER_STOP_MS, on_offers_late, &late);
    while (!late && !upstream_manager_is_stopped(server->offers))
        loop_turn(server->loop, true);
    timer_clear(&limit);
}

static void stop(struct server *server)
{
    listener_free(server->listener);
    config_watch_free(server->watcher);
    struct event *events[] = {server->on_term, server->on_int, server->on_hup, server->watchdog,
                              server->drain_over};
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        free_event(events[i]);
    upstream_manager_free(server->offers);
    loop_free(server->loop); /* clients go here, and with them their calls, which need the ledger */
    reloader_free(server->reloader);
    quarantine_free(server->quarantine, server->serving);
    if (server->gate.ledger)
        ledger_free(server->gate.ledger);
    generation_unref(server->gate.generation);
    libevent_global_shutdown();
}

enum err server_run(const struct config_sources *sources, struct why *why)
{
    struct server server = {.sources = sources};
    enum err err = start(&server, why);
    if (!err) {
        bool busy = false;
        server.serving = true;
        if (!server.draining)
            say_ready(&server);
        while (!server.finished && !(server.draining && !server.clients)) {
            loop_turn(server.loop, !busy);
            listener_accept(server.listener);
            busy = reload_turn(&server);
        }
        end_upstreams(&server);
        log_event(LOG_INFO, "daemon_stopped", LOG_NUM("connections", server.accepted));
    }
    stop(&server);
    return err;
}
