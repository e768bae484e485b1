/* Builds, then swaps or keeps. Calls in flight keep the generation that they began with. */
#include "server/reload.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "catalog/shadow.h"
#include "gate/generation_load.h"
#include "server/listener.h"
#include "server/method_table.h"
#include "io/file_watch.h"
#include "io/systemd.h"
#include "server/upstream_manager.h"
#include "server/http_endpoint.h"
#include "server/state_dir.h"
#include "server/subscriptions.h"
#include "policy/policy_set.h"

#include <event2/event.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>

struct waiter { /* a toolgate/reload without its reply */
    LIST_ENTRY(waiter) link;
    struct request *request;
};

LIST_HEAD(waiters, waiter);

struct reload_result {
    enum err err;
    bool unchanged;
    int64_t at_ms;      /* 0: there was no reload */
    int64_t took_us;    /* from its beginning to its end */
    uint32_t slices;    /* turns of the loop that it took */
    int64_t longest_us; /* of its slices */
};

struct reloader {
    struct server *server;
    struct generation_load *load; /* NULL: none is running */
    struct arena *arena;
    struct generation_report report;
    const char *cause, *next_cause; /* next_cause NULL: no further reload is requested */
    struct waiters waiting, next_waiting;
    int64_t began_us;
    struct reload_result result; /* of the running reload */
    struct reload_result last;
    struct buf errors; /* of the last reload, one a line */
    uint64_t counts[RELOAD_RESULTS];
    bool trim;                    /* the old generation's memory is free, but still the process's */
    struct file_watch *watch;     /* NULL: nothing is watched */
    struct event *watch_readable; /* NULL: nothing is watched */
    struct buf watched;           /* names of files, each with its NUL */
    struct timer quiet;           /* set: files have changed, and a reload will be requested */
    int64_t changed_ms;           /* the first change for which none was requested yet; 0: none */
};

/* ---- watching the operator's files: their configuration, policies and tools. Once they have changed and no
 * further change follows, a reload is requested. If the system has no inotify watch left, the log has the
 * fix, and the daemon reloads only on request ---- */

#define WATCH_MAX_DELAY_MS 1000 /* files that keep changing are reported after this */

static void on_quiet(void *owner)
{
    struct reloader *r = owner;
    r->changed_ms = 0;
    if (!r->server->draining)
        reload_request(r->server, "files");
}

/* A save is several events and a checkout hundreds: each delays the report, up to a limit. */
static void on_watch_readable(evutil_socket_t fd, short what, void *arg)
{
    struct reloader *r = arg;
    (void)fd, (void)what;
    if (!file_watch_drain(r->watch))
        return;
    int64_t now = clock_mono_us() / 1000;
    if (!r->changed_ms)
        r->changed_ms = now;
    int64_t delay = FILE_WATCH_QUIET_MS, left = r->changed_ms + WATCH_MAX_DELAY_MS - now;
    if (left < delay)
        delay = left > 0 ? left : 0;
    timer_set(&r->quiet, r->server->loop, (uint32_t)delay, on_quiet, r);
}

static void stop_watch(struct reloader *r)
{
    if (r->watch_readable)
        event_free(r->watch_readable);
    r->watch_readable = NULL;
    file_watch_free(r->watch);
    r->watch = NULL;
    buf_clear(&r->watched);
}

static void add_name(struct buf *files, const char *path)
{
    if (path)
        buf_add(files, path, strlen(path) + 1);
}

static void report_unwatched(const struct why *why)
{
    log_event(LOG_WARN, "watch_disabled", LOG_TEXT("why", why->text),
              LOG_TEXT("fix",
                       "raise sysctl fs.inotify.max_user_instances or fs.inotify.max_user_watches; until "
                       "then request a reload after changes: toolgate reload, or SIGHUP"));
}

/* Watches the files of this configuration from now on; none if it says watch = false. To be called before
 * they are read, so that no change is missed. */
static void watch_files(struct reloader *r, const struct config *config)
{
    const struct path_list *lists[] = {&config->tools, &config->mcp_configs};
    struct buf files = {0};
    struct why why;
    if (config->watch) {
        add_name(&files, config->file);
        add_name(&files, config->policies ? config->policies : CONFIG_DEFAULT_FOLDER);
        add_name(&files, config->schemas);
        for (size_t i = 0; i < 2; i++)
            for (size_t n = 0; n < lists[i]->count; n++)
                add_name(&files, lists[i]->list[n]);
    }
    if (str_eq(buf_view(&files), buf_view(&r->watched))) {
        buf_clear(&files);
        return;
    }
    stop_watch(r);
    r->watched = files;
    if (!files.len)
        return;
    if (file_watch_new(&r->watch, &why) != OK) {
        report_unwatched(&why);
        return;
    }
    for (struct str rest = buf_view(&files); rest.len; rest = str_from(rest, strlen(rest.at) + 1))
        if (file_watch_add(r->watch, rest.at, &why) != OK)
            report_unwatched(&why);
    r->watch_readable = event_new(loop_base(r->server->loop), file_watch_fd(r->watch), EV_READ | EV_PERSIST,
                                  on_watch_readable, r);
    event_add(r->watch_readable, NULL);
}

struct reloader *reloader_new(struct server *server)
{
    struct reloader *r = calloc(1, sizeof(*r));
    if (!r)
        abort();
    r->server = server;
    return r;
}

void reloader_free(struct reloader *r)
{
    struct generation *unfinished = NULL;
    if (!r)
        return;
    stop_watch(r);
    timer_clear(&r->quiet);
    if (r->load)
        generation_load_end(r->load, &unfinished);
    generation_unref(unfinished);
    arena_free(r->arena);
    buf_clear(&r->errors);
    free(r);
}

/* ---- modes "shadow" that are past their date ---- */

#define SHADOW_WATCH_MOST_MS 3600000 /* between two looks at the clock, which may be set meanwhile */

static void log_expired(const struct server *server, int64_t now_ms)
{
    struct arena *arena = arena_new();
    struct shadow_expiry *list;
    size_t count = shadow_expired(server->gate.generation, now_ms, arena, &list);
    for (size_t i = 0; i < count; i++)
        log_event(LOG_WARN, "shadow_expired", LOG_STR("file", list[i].file),
                  LOG_STR("why", list[i].sentence));
    arena_free(arena);
}

/* Dates begin at 00:00 UTC, so one look at that time finds each. */
static void look_at_dates(void *owner)
{
    struct server *server = owner;
    int64_t now = clock_wall_ms(), left = SHADOW_EXPIRY_DAY_MS - now % SHADOW_EXPIRY_DAY_MS;
    if (now / SHADOW_EXPIRY_DAY_MS != server->shadow_day)
        log_expired(server, now);
    server->shadow_day = now / SHADOW_EXPIRY_DAY_MS;
    timer_set(&server->shadow_timer, server->loop,
              (uint32_t)(left < SHADOW_WATCH_MOST_MS ? left : SHADOW_WATCH_MOST_MS), look_at_dates, server);
}

void shadow_watch_begin(struct server *server)
{
    server->shadow_day = -1;
    look_at_dates(server);
}

size_t shadow_watch_count(const struct server *server)
{
    struct arena *arena = arena_new();
    struct shadow_expiry *list;
    size_t count = shadow_expired(server->gate.generation, clock_wall_ms(), arena, &list);
    arena_free(arena);
    return count;
}

/* ---- the reload ---- */

/* The configuration and the policies are those that serve. */
static bool is_for_tools(const char *cause)
{
    return strcmp(cause, RELOAD_CAUSE_UPSTREAM) == 0 || strcmp(cause, RELOAD_CAUSE_PINS) == 0;
}

static void on_tools_changed(struct server *server)
{
    reload_request(server, RELOAD_CAUSE_UPSTREAM);
}

/* Before the configuration is used: watches its files, and provides the quarantine and the upstreams' tools.
 */
static enum err on_config(void *owner, const struct config *config, struct generation_build_options *options)
{
    struct reloader *r = owner;
    struct server *server = r->server;
    struct why why;
    enum err err = server->quarantine ? OK : state_dir_prepare(r->arena, config, &why);
    if (err) {
        generation_report_error(&r->report, "%s", why.text);
        return err;
    }
    if (!server->quarantine)
        server->quarantine = quarantine_new(config);
    options->stalls = quarantine_stalls(server->quarantine, &options->stall_count);
    watch_files(r, config);
    if (!server->upstream_manager)
        server->upstream_manager = upstream_manager_new(server, config, on_tools_changed);
    if (server->gate.generation) {
        options->guarded = server->gate.generation->guarded;
        options->guarded_count = server->gate.generation->guarded_count;
    } else {
        options->guarded = guarded_file_read(r->arena, config, &options->guarded_count);
    }
    options->tools_changed = is_for_tools(r->cause);
    options->pins = pin_methods_pins(server, config);
    options->tool_lists = upstream_manager_source(server->upstream_manager);
    return OK;
}

static void begin(struct reloader *r, const char *cause)
{
    struct generation *serving = r->server->gate.generation;
    struct generation_load_request request = {.sources = r->server->sources,
                                              .number = serving ? serving->number + 1 : 1,
                                              .serving = serving,
                                              .on_config = on_config,
                                              .owner = r};
    r->arena = arena_new();
    generation_report_init(&r->report, r->arena);
    r->cause = cause;
    r->began_us = clock_mono_us();
    r->result = (struct reload_result){.err = OK};
    r->load = generation_load_begin(&request, &r->report);
    r->server->reloading = true;
}

/* The guard is missing in what is served: an error, though the generation is live. */
static void log_unmatched(const struct generation *g)
{
    for (size_t i = 0; i < g->unmatched_count; i++)
        if (g->unmatched[i].why)
            log_event(LOG_ERROR, "policy_without_tool", LOG_STR("file", g->unmatched[i].file),
                      LOG_STR("names", g->unmatched[i].name), LOG_TEXT("why", g->unmatched[i].why));
}

/* After a generation went live: status says since when; its examples are no longer needed, and the quarantine
 * keeps only policies that it stopped. */
static void clean_up(struct server *server)
{
    struct policy_set *policies = server->gate.generation->policies;
    server->generation_ms = clock_wall_ms();
    policy_set_free_examples(policies);
    log_unmatched(server->gate.generation);
    guarded_file_write(server_config(server), server->gate.generation->guarded,
                       server->gate.generation->guarded_count);
    quarantine_keep(server->quarantine, policies);
}

static void log_report(const struct generation_report *report, size_t first_error, bool warnings)
{
    for (size_t i = first_error; i < report->error_count; i++)
        log_event(LOG_ERROR, "generation_error", LOG_STR("why", report->errors[i]));
    for (size_t i = 0; warnings && i < report->warning_count; i++)
        log_event(LOG_WARN, "generation_warning", LOG_STR("why", report->warnings[i]));
}

/* `why` gets the first error, the log all others: the caller prints `why`. */
enum err reload_initial(struct server *server, struct why *why)
{
    struct reloader *r = server->reloader;
    const struct generation_report *report = &r->report;
    begin(r, "start");
    while (generation_load_step(r->load))
        continue;
    enum err err = generation_load_end(r->load, &server->gate.generation);
    r->load = NULL;
    server->reloading = false;
    log_report(report, 1, true);
    if (!err)
        pin_methods_commit(server, NULL);
    if (!err)
        clean_up(server);
    else if (report->error_count > 1)
        err_set(why, err, STR_FMT "\n(and %zu more, logged above)", STR_ARG(report->errors[0]),
                report->error_count - 1);
    else if (report->error_count)
        err_set(why, err, STR_FMT, STR_ARG(report->errors[0]));
    else
        err_set(why, err, "nothing could be loaded (%s)", err_name(err));
    arena_free(r->arena);
    r->arena = NULL;
    malloc_trim(0);
    return err;
}

static void swap(struct server *server, struct generation *next)
{
    struct generation *old = server->gate.generation;
    const struct config *config = &next->config, *before = &old->config;
    bool list_changed = next->list_hash != old->list_hash;
    struct client *client;
    /* These need a restart: clients are connected to the socket, and sessions are in the ledger. */
    if (server->listener && !listener_is_inherited(server->listener) &&
        (strcmp(config->socket, before->socket) != 0 || config->socket_mode != before->socket_mode))
        log_event(LOG_WARN, "restart_required", LOG_TEXT("key", "socket, socket_mode"));
    if (!config_ledger_equal(config, before))
        log_event(LOG_WARN, "restart_required", LOG_TEXT("key", "ledger"));
    if (!config->state != !before->state || (config->state && strcmp(config->state, before->state) != 0))
        log_event(LOG_WARN, "restart_required", LOG_TEXT("key", "state"));
    server->gate.generation = next;
    pin_methods_commit(server, old->pins);
    server_apply_records(server, config);
    generation_unref(old);
    loop_limit_bytes(server->loop, config->limits.memory);
    LIST_FOREACH (client, &server->clients, link)
        client_apply_config(client);
    if (list_changed)
        subscriptions_changed(server, LIST_CHANGED_TOOLS);
    passing_lists_changed(server);
    clean_up(server);
    shadow_watch_begin(server);
}

static void report_result(struct reloader *r)
{
    const struct generation *serving = r->server->gate.generation;
    const struct generation_report *report = &r->report;
    struct reload_result *result = &r->result;
    result->at_ms = clock_wall_ms();
    result->took_us = clock_mono_us() - r->began_us;
    r->last = *result;
    r->counts[result->err ? RELOAD_FAILED : result->unchanged ? RELOAD_UNCHANGED : RELOAD_OK]++;
    buf_clear(&r->errors);
    for (size_t i = 0; i < report->error_count; i++)
        buf_printf(&r->errors, STR_FMT "\n", STR_ARG(report->errors[i]));
    log_report(report, 0, !result->err && !result->unchanged);
    if (result->err)
        log_event(LOG_ERROR, "reload_failed", LOG_NUM("errors", report->error_count),
                  LOG_TEXT("cause", r->cause), LOG_NUM("generation", serving->number),
                  LOG_NUM("ms", result->took_us / 1000));
    else
        log_event(LOG_INFO, result->unchanged ? "reload_unchanged" : "reload_done",
                  LOG_NUM("generation", serving->number), LOG_STR("hash", serving->hash),
                  LOG_NUM("tools", serving->tool_count), LOG_NUM("examples", report->example_count),
                  LOG_TEXT("cause", r->cause), LOG_NUM("ms", result->took_us / 1000),
                  LOG_NUM("slices", result->slices), LOG_NUM("longest_us", result->longest_us));
}

/* The token may be new although the configuration is not. */
static void apply_endpoint(struct reloader *r, const struct config *config)
{
    struct why why;
    if (http_endpoint_apply(r->server, config, &why) == OK)
        return;
    generation_report_warning(&r->report, "%s; metrics are served as before", why.text);
    log_event(LOG_ERROR, "metrics_not_changed", LOG_TEXT("why", why.text));
}

static void finish(struct reloader *r)
{
    struct server *server = r->server;
    struct generation *next;
    struct why why;
    enum err err = generation_load_end(r->load, &next);
    r->load = NULL;
    server->reloading = false;
    r->result.err = err;
    r->result.unchanged = !err && !next;
    bool reconfigured = next && next->config.hash != server_config(server)->hash;
    if (next)
        swap(server, next);
    const struct config *config = server_config(server);
    if (!err && (reconfigured || !is_for_tools(r->cause)))
        upstream_manager_apply(server->upstream_manager, config);
    if (!err && (reconfigured || !is_for_tools(r->cause)))
        apply_endpoint(r, config);
    /* Also if nothing has changed: SIGHUP releases a log file that was rotated. */
    if (!err && log_open(config->log_level, config->log_format, config->log_file, &why))
        log_event(LOG_ERROR, "log_reopen_failed", LOG_TEXT("why", why.text));
    report_result(r);
    systemd_notify("READY=1\nSTATUS=%s generation %" PRIu64,
                   err ? "the last reload failed; serving" : "serving", server->gate.generation->number);
}

static void answer(const struct reloader *r, struct request *request)
{
    const struct generation *serving = r->server->gate.generation;
    const struct generation_report *report = &r->report;
    struct json_out *out = reply_open(request);
    json_fields(out, FIELD_BOOL("ok", !r->result.err), FIELD_BOOL("unchanged", r->result.unchanged),
                FIELD_NUM("generation", serving->number), FIELD_STR("hash", serving->hash),
                FIELD_NUM("tools", serving->tool_count),
                FIELD_NUM("policies", policy_set_count(serving->policies)),
                FIELD_NUM("examples", report->example_count), FIELD_NUM("ms", r->result.took_us / 1000));
    json_field_strs(out, "errors", report->errors, report->error_count);
    json_field_strs(out, "warnings", report->warnings, report->warning_count);
    reply_close(request);
    request_done(request);
}

static void cancel(struct request *request)
{
    struct waiter *waiter = request->work;
    LIST_REMOVE(waiter, link);
}

enum request_status reload_wait(struct request *request, const char *cause)
{
    struct reloader *r = request->client->server->reloader;
    struct waiter *waiter = ARENA_NEW(request->arena, struct waiter);
    waiter->request = request;
    LIST_INSERT_HEAD(&r->next_waiting, waiter, link);
    request->work = waiter;
    request->cancel = cancel;
    reload_request(r->server, cause);
    return REQUEST_PENDING;
}

enum request_status reload_method(struct request *request)
{
    if (param_require_operator(request, "toolgate/reload"))
        return REQUEST_DONE;
    return reload_wait(request, "asked");
}

void reload_request(struct server *server, const char *cause)
{
    struct reloader *r = server->reloader;
    if (!r->next_cause || !is_for_tools(cause))
        r->next_cause = cause;
}

static bool slice(struct reloader *r)
{
    int64_t began = clock_mono_us(), now = began;
    bool more = true;
    while (more && now - began < (int64_t)RELOAD_SLICE_US) {
        more = generation_load_step(r->load);
        now = clock_mono_us();
    }
    r->result.slices++;
    if (now - began > r->result.longest_us)
        r->result.longest_us = now - began;
    return more;
}

bool reload_turn(struct server *server)
{
    struct reloader *r = server->reloader;
    struct waiter *waiter;
    if (r && r->trim) { /* two generations were in memory; the replies went out with the last turn */
        malloc_trim(0);
        r->trim = false;
        return true;
    }
    if (!r || (!r->load && !r->next_cause))
        return false;
    if (!r->load) {
        systemd_notify_reloading();
        while ((waiter = LIST_FIRST(&r->next_waiting))) {
            LIST_REMOVE(waiter, link);
            LIST_INSERT_HEAD(&r->waiting, waiter, link);
        }
        begin(r, r->next_cause);
        r->next_cause = NULL;
    }
    if (slice(r))
        return true;
    finish(r);
    while ((waiter = LIST_FIRST(&r->waiting))) {
        LIST_REMOVE(waiter, link);
        answer(r, waiter->request); /* frees the waiter */
    }
    arena_free(r->arena);
    r->arena = NULL;
    r->trim = true;
    return true;
}

void reload_figures(const struct reloader *r, struct reload_figures *out)
{
    *out = (struct reload_figures){.failed = r->last.err != OK, .at_ms = r->last.at_ms};
    memcpy(out->counts, r->counts, sizeof(out->counts));
}

void reload_write_status(const struct client *client, struct json_out *out)
{
    const struct reloader *r = client->server->reloader;
    if (!r->last.at_ms)
        return;
    json_field_open(out, "reload", '{');
    json_fields(out, FIELD_NUM("at_ms", r->last.at_ms), FIELD_BOOL("ok", !r->last.err),
                FIELD_NUM("ms", r->last.took_us / 1000));
    if (r->last.err && client_is_operator(client))
        json_field_str(out, "errors", str_trim(buf_view(&r->errors)));
    json_close(out, '}');
}
