/* Builds, then swaps or keeps. Calls in flight keep the generation that they began with. Starts, adjusts and
 * stops the upstreams, whose tools are a part of it. */
#include "server/reload.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "catalog/generation.h"
#include "catalog/pins.h"
#include "gate/generation_load.h"
#include "server/listener.h"
#include "server/method_table.h"
#include "io/descriptor.h"
#include "io/file_watch.h"
#include "io/systemd.h"
#include "io/child.h"
#include "server/http_endpoint.h"
#include "server/state_dir.h"
#include "policy/policy_set.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>

#define RELOAD_SLICE_US          1000u /* of loading, between turns of the connections */
#define UPSTREAMS_START_MS       5000u /* at the start, for upstreams to list their tools */
#define UPSTREAMS_STOP_MS        4000u /* at the end, for processes to end by themselves … */
#define UPSTREAMS_KILL_MS        1000u /* … and after SIGTERM, before they are killed */
#define RELOAD_TOOLS_DELAY_MS    20u   /* from a change of an upstream's tools to the reload */
#define RELOAD_TOOLS_INTERVAL_MS 1000u /* between two such reloads */

struct waiter { /* a toolgate/reload without its reply */
    LIST_ENTRY(waiter) link;
    struct request *request;
};

LIST_HEAD(waiters, waiter);

struct reloader {
    struct server *server;
    struct generation_load *load; /* NULL: none is running */
    struct arena *arena;          /* of the running reload */
    struct generation_report report;
    const char *cause, *next_cause; /* next_cause NULL: no further reload is requested */
    struct waiters waiting, next_waiting;
    int64_t began_us, longest_us; /* of the running reload; the longest of its slices */
    uint32_t slices;              /* turns of the loop that it took */
    struct reload_figures figures;
    struct buf errors; /* of the last reload, one a line */
    bool trim;         /* the old generation's memory is free, but still the process's */

    struct file_watch *watch; /* NULL: nothing is watched */
    struct descriptor *watch_readable;
    struct buf watched; /* names of files, each with its NUL */
    struct timer quiet; /* set: files have changed, and a reload will be requested */
    int64_t changed_ms; /* the first change for which none was requested yet; 0: none */

    struct arena *upstreams_arena; /* NULL: they are not made yet */
    struct tool_list_source tool_lists;
    struct timer tools_due; /* set: an upstream's tools have changed, and a reload will be requested */
    int64_t tools_ms;       /* of the last such request */
    bool upstreams_waited;  /* for the tools of all upstreams, once */
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
static void on_watch_readable(void *owner, int fd, bool readable, bool writable)
{
    struct reloader *r = owner;
    (void)fd, (void)readable, (void)writable;
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
    descriptor_free(r->watch_readable);
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

static void log_unwatched(const struct why *why)
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
        log_unwatched(&why);
        return;
    }
    for (struct str rest = buf_view(&files); rest.len; rest = str_from(rest, strlen(rest.at) + 1))
        if (file_watch_add(r->watch, rest.at, &why) != OK)
            log_unwatched(&why);
    r->watch_readable = descriptor_new(r->server->loop, file_watch_fd(r->watch), on_watch_readable, r);
    descriptor_watch(r->watch_readable, true, false);
}

struct reloader *reloader_new(struct server *server)
{
    struct reloader *r = alloc_zeroed(sizeof(*r));
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
    arena_free(r->upstreams_arena);
    buf_clear(&r->errors);
    free(r);
}

/* ---- modes "shadow" that are past their date ---- */

#define SHADOW_WATCH_MOST_MS 3600000 /* between two looks at the clock, which may be set in between */

/* Dates begin at 00:00 UTC, so one look at that time finds each. */
static void look_at_dates(void *owner)
{
    struct server *server = owner;
    struct shadow_expiry *list;
    int64_t now = clock_wall_ms(), left = SHADOW_EXPIRY_DAY_MS - now % SHADOW_EXPIRY_DAY_MS;
    struct arena *arena = arena_new();
    bool new_day = now / SHADOW_EXPIRY_DAY_MS != server->shadow_day;
    size_t count = new_day ? shadow_expired(server->gate.generation, now, arena, &list) : 0;
    for (size_t i = 0; i < count; i++)
        log_event(LOG_WARN, "shadow_expired", LOG_STR("file", list[i].file),
                  LOG_STR("why", list[i].sentence));
    arena_free(arena);
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

/* ---- the upstreams: they start with the first configuration, and follow each that goes live ---- */

static void on_tools_due(void *owner)
{
    struct reloader *r = owner;
    r->tools_ms = clock_mono_us() / 1000;
    if (!r->server->draining)
        reload_request(r->server, RELOAD_CAUSE_UPSTREAM);
}

static void on_tools_changed(void *owner, struct str name)
{
    struct reloader *r = owner;
    struct server *server = r->server;
    if (server->draining || !server->gate.generation || timer_is_set(&r->tools_due))
        return;
    /* An upstream that restarted usually has the same tools. */
    struct tool_list *now = upstreams_list(server->gate.upstreams, name, UPSTREAM_TOOLS);
    const struct tool_list *before = generation_tool_list(server->gate.generation, name);
    bool differs = now && (!before || tool_list_hash(now) != tool_list_hash(before));
    tool_list_unref(now);
    if (!differs && !server->reloading)
        return;
    int64_t delay = r->tools_ms + (int64_t)RELOAD_TOOLS_INTERVAL_MS - clock_mono_us() / 1000;
    if (delay < (int64_t)RELOAD_TOOLS_DELAY_MS)
        delay = RELOAD_TOOLS_DELAY_MS;
    timer_set(&r->tools_due, server->loop, (uint32_t)delay, on_tools_due, r);
}

static void on_listed(void *owner, struct str name, enum upstream_list list)
{
    (void)name, (void)list;
    passing_lists_changed(((struct reloader *)owner)->server);
}

static void on_updated(void *owner, struct str name, struct str uri)
{
    subscriptions_resource_updated(((struct reloader *)owner)->server, name, uri);
}

static bool upstreams_have_listed(struct server *server)
{
    return server->draining || upstreams_are_ready(server->gate.upstreams);
}

static bool upstreams_have_stopped(struct server *server)
{
    return upstreams_are_stopped(server->gate.upstreams);
}

/* The tools of an upstream, for the loader. The first use waits until all upstreams have listed theirs. One
 * that has no tools yet counts with those of the serving generation. */
static struct tool_list *find_tools(void *owner, struct str name)
{
    struct reloader *r = owner;
    struct server *server = r->server;
    struct buf names = {0};
    if (!r->upstreams_waited && !server_turn_until(server, upstreams_have_listed, UPSTREAMS_START_MS)) {
        upstreams_list_starting(server->gate.upstreams, &names);
        log_event(LOG_WARN, "upstreams_not_ready", LOG_STR("upstreams", buf_view(&names)),
                  LOG_NUM("after_ms", UPSTREAMS_START_MS),
                  LOG_TEXT("effect", "their tools are missing until they have listed them"));
        buf_clear(&names);
    }
    r->upstreams_waited = true;
    struct tool_list *tools = upstreams_list(server->gate.upstreams, name, UPSTREAM_TOOLS);
    const struct tool_list *before =
        server->gate.generation ? generation_tool_list(server->gate.generation, name) : NULL;
    return tools || !before ? tools : tool_list_ref((struct tool_list *)before);
}

static void apply_upstreams(struct server *server, const struct config *config)
{
    hidden_paths_apply(server->loop, config, NULL, 0);
    upstreams_apply(server->gate.upstreams, config->upstreams, config->upstream_count);
}

static void start_upstreams(struct reloader *r, const struct config *config)
{
    static const struct upstreams_hooks hooks = {on_tools_changed, on_listed, on_updated};
    struct server *server = r->server;
    struct buf names = {0};
    r->upstreams_arena = arena_new();
    r->tool_lists = (struct tool_list_source){find_tools, r};
    server->gate.upstreams =
        upstreams_new(server->loop, state_dir_path(r->upstreams_arena, config, "upstreams"), &hooks, r);
    for (size_t i = 0; i < config->upstream_count; i++)
        buf_printf(&names, "%s" STR_FMT, i ? ", " : "", STR_ARG(config->upstreams[i]->name));
    if (names.len)
        systemd_notify("STATUS=starting upstreams: " STR_FMT, STR_ARG(buf_view(&names)));
    buf_clear(&names);
    apply_upstreams(server, config);
}

void reload_stop_upstreams(struct server *server)
{
    if (!server->gate.upstreams)
        return;
    upstreams_apply(server->gate.upstreams, NULL, 0);
    server_turn_until(server, upstreams_have_stopped, UPSTREAMS_STOP_MS);
}

void reload_free_upstreams(struct server *server)
{
    if (!server->gate.upstreams)
        return;
    timer_clear(&server->reloader->tools_due);
    upstreams_free(server->gate.upstreams);
    server->gate.upstreams = NULL;
    child_terminate_all(server->loop, UPSTREAMS_KILL_MS);
}

/* ---- the reload ---- */

/* The configuration and the policies are those that serve. */
static bool is_for_tools(const char *cause)
{
    return strcmp(cause, RELOAD_CAUSE_UPSTREAM) == 0 || strcmp(cause, RELOAD_CAUSE_PINS) == 0;
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
    if (!server->gate.upstreams)
        start_upstreams(r, config);
    if (server->gate.generation) {
        options->guarded = server->gate.generation->guarded;
        options->guarded_count = server->gate.generation->guarded_count;
    } else {
        options->guarded = guarded_file_read(r->arena, config, &options->guarded_count);
    }
    options->tools_changed = is_for_tools(r->cause);
    options->pins = pin_methods_pins(server, config);
    options->tool_lists = &r->tool_lists;
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
    r->slices = 0;
    r->longest_us = 0;
    r->load = generation_load_begin(&request, &r->report);
    r->server->reloading = true;
}

/* After a generation went live: status says since when; its examples are no longer needed, and the quarantine
 * keeps only policies that it stopped. */
static void clean_up(struct server *server)
{
    const struct generation *g = server->gate.generation;
    server->generation_ms = clock_wall_ms();
    policy_set_free_examples(g->policies);
    /* The guard is missing in what is served: an error, though the generation is live. */
    for (size_t i = 0; i < g->unmatched_count; i++)
        if (g->unmatched[i].why)
            log_event(LOG_ERROR, "policy_without_tool", LOG_STR("file", g->unmatched[i].file),
                      LOG_STR("names", g->unmatched[i].name), LOG_TEXT("why", g->unmatched[i].why));
    guarded_file_write(&g->config, g->guarded, g->guarded_count);
    quarantine_keep(server->quarantine, g->policies);
}

static void log_report(const struct generation_report *report, size_t first_error, bool warnings)
{
    for (size_t i = first_error; i < report->error_count; i++)
        log_event(LOG_ERROR, "generation_error", LOG_STR("why", report->errors[i]));
    for (size_t i = 0; warnings && i < report->warning_count; i++)
        log_event(LOG_WARN, "generation_warning", LOG_STR("why", report->warnings[i]));
}

/* A load leaves a generation's worth of freed memory, in the spare blocks of arenas and with malloc. */
static void give_back_memory(void)
{
    arena_free_large_spares();
    malloc_trim(0);
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
        pins_commit(server->pins, server->gate.generation->pins, NULL);
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
    give_back_memory();
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
    ledger_tell_policies(server->gate.ledger, policy_set_hash(next->policies));
    pins_commit(server->pins, next->pins, old->pins);
    server_apply_records(server, config, NULL);
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
    int64_t ms = (clock_mono_us() - r->began_us) / 1000;
    bool unchanged = r->figures.last == RELOAD_UNCHANGED, failed = r->figures.last == RELOAD_FAILED;
    r->figures.at_ms = clock_wall_ms();
    r->figures.took_ms = ms;
    r->figures.counts[r->figures.last]++;
    buf_clear(&r->errors);
    for (size_t i = 0; i < report->error_count; i++)
        buf_printf(&r->errors, STR_FMT "\n", STR_ARG(report->errors[i]));
    log_report(report, 0, !failed && !unchanged);
    if (failed)
        log_event(LOG_ERROR, "reload_failed", LOG_NUM("errors", report->error_count),
                  LOG_TEXT("cause", r->cause), LOG_NUM("generation", serving->number), LOG_NUM("ms", ms));
    else
        log_event(LOG_INFO, unchanged ? "reload_unchanged" : "reload_done",
                  LOG_NUM("generation", serving->number), LOG_STR("hash", serving->hash),
                  LOG_NUM("tools", serving->tool_count), LOG_NUM("examples", report->example_count),
                  LOG_TEXT("cause", r->cause), LOG_NUM("ms", ms), LOG_NUM("slices", r->slices),
                  LOG_NUM("longest_us", r->longest_us));
}

static void finish(struct reloader *r)
{
    struct server *server = r->server;
    struct generation *next;
    struct why why;
    bool failed = generation_load_end(r->load, &next) != OK;
    r->figures.last = failed ? RELOAD_FAILED : next ? RELOAD_OK : RELOAD_UNCHANGED;
    r->load = NULL;
    server->reloading = false;
    bool reconfigured = next && next->config.hash != server_config(server)->hash;
    if (next)
        swap(server, next);
    const struct config *config = server_config(server);
    if (!failed && (reconfigured || !is_for_tools(r->cause))) {
        apply_upstreams(server, config);
        /* The token may be new although the configuration is not. */
        if (http_endpoint_apply(server, config, &why)) {
            generation_report_warning(&r->report, "%s; metrics are served as before", why.text);
            log_event(LOG_ERROR, "metrics_not_changed", LOG_TEXT("why", why.text));
        }
    }
    /* Also if nothing has changed: SIGHUP releases a log file that was rotated. */
    if (!failed && log_open(config->log_level, config->log_format, config->log_file, &why))
        log_event(LOG_ERROR, "log_reopen_failed", LOG_TEXT("why", why.text));
    report_result(r);
    systemd_notify("READY=1\nSTATUS=%s generation %" PRIu64,
                   failed ? "the last reload failed; serving" : "serving", server->gate.generation->number);
}

static void answer(const struct reloader *r, struct request *request)
{
    const struct generation *serving = r->server->gate.generation;
    const struct generation_report *report = &r->report;
    struct json_out *out = reply_open(request);
    json_fields(out, FIELD_BOOL("ok", r->figures.last != RELOAD_FAILED),
                FIELD_BOOL("unchanged", r->figures.last == RELOAD_UNCHANGED),
                FIELD_NUM("generation", serving->number), FIELD_STR("hash", serving->hash),
                FIELD_NUM("tools", serving->tool_count),
                FIELD_NUM("policies", policy_set_count(serving->policies)),
                FIELD_NUM("examples", report->example_count), FIELD_NUM("ms", r->figures.took_ms));
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
    return reload_wait(request, "asked");
}

void reload_request(struct server *server, const char *cause)
{
    struct reloader *r = server->reloader;
    if (!r->next_cause || !is_for_tools(cause))
        r->next_cause = cause;
}

bool reload_turn(struct server *server)
{
    struct reloader *r = server->reloader;
    struct waiter *waiter;
    if (r && r->trim) { /* two generations were in memory; the replies went out with the last turn */
        give_back_memory();
        r->trim = false;
        return true;
    }
    if (!r || (!r->load && !r->next_cause))
        return false;
    if (!r->load) {
        systemd_notify("RELOADING=1\nMONOTONIC_USEC=%" PRId64, clock_mono_us()); /* the time is required */
        while ((waiter = LIST_FIRST(&r->next_waiting))) {
            LIST_REMOVE(waiter, link);
            LIST_INSERT_HEAD(&r->waiting, waiter, link);
        }
        begin(r, r->next_cause);
        r->next_cause = NULL;
    }
    int64_t slice_us = clock_mono_us(), now_us = slice_us;
    bool more = true;
    while (more && now_us - slice_us < (int64_t)RELOAD_SLICE_US) {
        more = generation_load_step(r->load);
        now_us = clock_mono_us();
    }
    r->slices++;
    if (now_us - slice_us > r->longest_us)
        r->longest_us = now_us - slice_us;
    if (more)
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

const struct reload_figures *reload_figures(const struct reloader *r)
{
    return &r->figures;
}

void reload_write_status(const struct client *client, struct json_out *out)
{
    const struct reloader *r = client->server->reloader;
    const struct reload_figures *f = &r->figures;
    bool failed = f->last == RELOAD_FAILED;
    if (f->at_ms)
        json_field_object(out, "reload", FIELD_NUM("at_ms", f->at_ms), FIELD_BOOL("ok", !failed),
                          FIELD_NUM("ms", f->took_ms),
                          FIELD_OPTIONAL("errors", failed && client_is_operator(client)
                                                       ? str_trim(buf_view(&r->errors))
                                                       : STR_NONE));
}
