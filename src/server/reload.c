/* Build, then swap or keep. Calls in flight hold the generation they began with. */
#include "server/reload.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "config/config_ledger.h"
#include "gate/generation_load.h"
#include "server/listener.h"
#include "server/method_table.h"
#include "server/systemd.h"
#include "server/upstream_manager.h"
#include "server/quarantine.h"
#include "server/subscriptions.h"
#include "server/config_watch.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>

/* A client that is to hear what came of it. */
struct waiter {
    struct waiter *next;
    struct request *request;
};

/* How one went. */
struct outcome {
    enum err err;
    bool unchanged;
    int64_t at_ms;               /* 0: there was none */
    int64_t took_us, longest_us; /* from its beginning to its end; of its slices */
};

struct reloader {
    struct server *server;
    struct generation_load *load; /* NULL: none is under way */
    struct arena *arena;
    struct generation_report report;
    const char *cause, *next_cause; /* next_cause NULL: nobody has asked for one more */
    struct waiter *waiting, *next_waiting;
    int64_t began_us;
    struct outcome outcome; /* of the one under way, then kept as the last */
    struct outcome last;
    struct buf errors; /* of the last one that ended, one a line */
    bool untidy;       /* the old generation's memory is free, but still ours */
};

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
    if (r->load)
        generation_load_end(r->load, &unfinished);
    generation_unref(unfinished);
    arena_free(r->arena);
    buf_clear(&r->errors);
    free(r);
}

/* ---- loading ---------------------------------------------------------------- */

/* Before the configuration is used: watches its files, and provides the quarantine and the upstreams' tools.
 */
static void on_config(void *owner, const struct config *config, struct generation_build_options *options)
{
    struct server *server = ((struct reloader *)owner)->server;
    if (!server->quarantine)
        server->quarantine = quarantine_new(config);
    options->stalls = quarantine_stalls(server->quarantine, &options->stall_count);
    config_watch_apply(server->config_watch, config);
    if (!server->upstream_manager)
        server->upstream_manager = upstream_manager_new(server, config);
    options->tool_lists = upstream_manager_source(server->upstream_manager);
}

static void begin(struct reloader *r, const char *cause)
{
    struct generation *serving = r->server->gate.generation;
    struct generation_load_request request = {.sources = r->server->sources,
                                              .number = serving ? generation_number(serving) + 1 : 1,
                                              .serving = serving,
                                              .on_config = on_config,
                                              .owner = r};
    r->arena = arena_new();
    generation_report_init(&r->report, r->arena);
    r->cause = cause;
    r->began_us = clock_mono_us();
    r->outcome = (struct outcome){.err = OK};
    r->load = generation_load_begin(&request, &r->report);
}

static void release(struct reloader *r)
{
    arena_free(r->arena);
    r->arena = NULL;
}

/* Of what is served only the list of what must not run is looked at again. */
static void settle_in(struct server *server)
{
    policy_set_free_examples(generation_policies(server->gate.generation));
    size_t count;
    const struct policy_stall *holding =
        policy_set_stalls(generation_policies(server->gate.generation), &count);
    quarantine_keep(server->quarantine, holding, count);
}

/* ---- the first --------------------------------------------------------------- */

/* Every error in the log; the first, and how many there are, for the one line that ends the start. */
static void say_errors(const struct generation_report *report, enum err err, struct why *why)
{
    if (!report->error_count) {
        err_set(why, err, "nothing could be loaded (%s)", err_name(err));
        return;
    }
    for (size_t i = 1; i < report->error_count; i++)
        log_event(LOG_ERROR, "generation_error", LOG_STR("why", report->errors[i]));
    err_set(why, err, STR_FMT, STR_ARG(report->errors[0]));
    if (report->error_count > 1)
        err_set(why, err, STR_FMT "\n(and %zu more, logged above)", STR_ARG(report->errors[0]),
                report->error_count - 1);
}

enum err reload_initial(struct server *server, struct why *why)
{
    struct reloader *r = server->reloader;
    begin(r, "start");
    while (generation_load_step(r->load))
        continue;
    enum err err = generation_load_end(r->load, &server->gate.generation);
    r->load = NULL;
    for (size_t i = 0; i < r->report.warning_count; i++)
        log_event(LOG_WARN, "generation_warning", LOG_STR("why", r->report.warnings[i]));
    if (err)
        say_errors(&r->report, err, why);
    else
        settle_in(server);
    release(r);
    malloc_trim(0);
    return err;
}

/* ---- swapping ----------------------------------------------------------------- */

/* What a running daemon cannot change under its clients' feet. */
static void say_what_stays(const struct server *server, const struct config *now, const struct config *before)
{
    if (server->listener && !listener_is_inherited(server->listener) &&
        (strcmp(now->socket, before->socket) != 0 || now->socket_mode != before->socket_mode))
        log_event(LOG_WARN, "restart_required", LOG_TEXT("key", "socket, socket_mode"));
    if (!config_ledger_equal(now, before))
        log_event(LOG_WARN, "restart_required", LOG_TEXT("key", "ledger"));
    if (!now->state != !before->state || (now->state && strcmp(now->state, before->state) != 0))
        log_event(LOG_WARN, "restart_required", LOG_TEXT("key", "state"));
}

/* Also where nothing has changed: SIGHUP is how a log that was rotated is let go of. */
static void reopen_log(const struct config *config)
{
    struct why why;
    if (log_open(config->log_level, config->log_format, config->log_file, &why))
        log_event(LOG_ERROR, "log_reopen_failed", LOG_TEXT("why", why.text));
}

static void swap(struct server *server, struct generation *fresh)
{
    struct generation *old = server->gate.generation;
    const struct config *config = generation_config(fresh);
    bool list_changed = generation_list_hash(fresh) != generation_list_hash(old);
    say_what_stays(server, config, generation_config(old));
    server->gate.generation = fresh;
    generation_unref(old);
    loop_limit_bytes(server->loop, config->limits.memory);
    struct client *client;
    LIST_FOREACH (client, &server->clients, link)
        client_apply_config(client);
    if (list_changed)
        subscriptions_list_changed(server);
    settle_in(server);
}

static void remember(struct reloader *r)
{
    r->outcome.at_ms = clock_wall_ms();
    r->outcome.took_us = clock_mono_us() - r->began_us;
    r->last = r->outcome;
    buf_clear(&r->errors);
    for (size_t i = 0; i < r->report.error_count; i++) {
        buf_str(&r->errors, r->report.errors[i]);
        buf_byte(&r->errors, '\n');
    }
}

static void say_how(const struct reloader *r)
{
    const struct generation *serving = r->server->gate.generation;
    const struct generation_report *report = &r->report;
    const struct outcome *o = &r->outcome;
    for (size_t i = 0; i < report->error_count; i++)
        log_event(LOG_ERROR, "generation_error", LOG_STR("why", report->errors[i]));
    for (size_t i = 0; i < report->warning_count && !o->err && !o->unchanged; i++)
        log_event(LOG_WARN, "generation_warning", LOG_STR("why", report->warnings[i]));
    if (o->err)
        log_event(LOG_ERROR, "reload_failed", LOG_NUM("errors", report->error_count),
                  LOG_TEXT("cause", r->cause), LOG_NUM("generation", generation_number(serving)),
                  LOG_NUM("ms", o->took_us / 1000));
    else
        log_event(LOG_INFO, o->unchanged ? "reload_unchanged" : "reload_done",
                  LOG_NUM("generation", generation_number(serving)),
                  LOG_STR("hash", generation_hash(serving)), LOG_NUM("tools", generation_tool_count(serving)),
                  LOG_NUM("examples", report->example_count), LOG_TEXT("cause", r->cause),
                  LOG_NUM("ms", o->took_us / 1000), LOG_NUM("longest_us", o->longest_us));
}

/* ---- answering ----------------------------------------------------------------- */

static void put_lines(struct json_out *out, const char *key, const struct str *lines, size_t count)
{
    json_field_open(out, key, '[');
    for (size_t i = 0; i < count; i++)
        json_put_str(out, lines[i]);
    json_close(out, ']');
}

/* {ok:true, …}, or the errors */
static void answer(const struct reloader *r, struct request *request)
{
    const struct generation *serving = r->server->gate.generation;
    const struct generation_report *report = &r->report;
    struct json_out *out = reply_open(request);
    json_field_bool(out, "ok", !r->outcome.err);
    json_field_bool(out, "unchanged", r->outcome.unchanged);
    json_field_int(out, "generation", generation_number(serving));
    json_field_str(out, "hash", generation_hash(serving));
    json_field_int(out, "tools", generation_tool_count(serving));
    json_field_int(out, "policies", policy_set_count(generation_policies(serving)));
    json_field_int(out, "examples", report->example_count);
    json_field_int(out, "ms", (size_t)r->outcome.took_us / 1000);
    put_lines(out, "errors", report->errors, report->error_count);
    put_lines(out, "warnings", report->warnings, report->warning_count);
    reply_close(request);
    request_done(request);
}

static void answer_all(struct reloader *r)
{
    while (r->waiting) {
        struct request *request = r->waiting->request;
        r->waiting = r->waiting->next; /* it goes with its request */
        answer(r, request);
    }
}

static void cancel(struct request *request)
{
    struct reloader *r = request->client->server->reloader;
    struct waiter *waiter = request->work, **lists[] = {&r->waiting, &r->next_waiting};
    for (size_t i = 0; i < 2; i++)
        for (struct waiter **at = lists[i]; *at; at = &(*at)->next)
            if (*at == waiter) {
                *at = waiter->next;
                return;
            }
}

enum request_status reload_method(struct request *request)
{
    struct reloader *r = request->client->server->reloader;
    if (param_require_operator(request, "toolgate/reload"))
        return REQUEST_DONE;
    struct waiter *waiter = ARENA_NEW(request->arena, struct waiter);
    *waiter = (struct waiter){r->next_waiting, request};
    r->next_waiting = waiter;
    request->work = waiter;
    request->cancel = cancel;
    reload_request(r->server, "asked");
    return REQUEST_PENDING;
}

/* ---- turn by turn ---------------------------------------------------------------- */

void reload_request(struct server *server, const char *cause)
{
    struct reloader *r = server->reloader;
    if (!r->next_cause || strcmp(cause, RELOAD_CAUSE_UPSTREAM) != 0)
        r->next_cause = cause;
}

bool reload_is_running(const struct server *server)
{
    return server->reloader->load != NULL;
}

static void begin_next(struct reloader *r)
{
    systemd_notify_reloading();
    r->waiting = r->next_waiting;
    r->next_waiting = NULL;
    begin(r, r->next_cause);
    r->next_cause = NULL;
}

static void finish(struct reloader *r)
{
    struct server *server = r->server;
    struct generation *fresh;
    r->outcome.err = generation_load_end(r->load, &fresh);
    r->outcome.unchanged = !r->outcome.err && !fresh;
    r->load = NULL;
    bool reconfigured = fresh && generation_config(fresh)->hash != server_config(server)->hash;
    if (fresh)
        swap(server, fresh);
    if (!r->outcome.err && (reconfigured || strcmp(r->cause, RELOAD_CAUSE_UPSTREAM) != 0))
        upstream_manager_apply(server->upstream_manager, server_config(server));
    if (!r->outcome.err)
        reopen_log(server_config(server));
    remember(r);
    say_how(r);
    systemd_notify("READY=1\nSTATUS=%s generation %" PRIu64,
                   r->outcome.err ? "the last reload failed; serving" : "serving",
                   generation_number(server->gate.generation));
}

static bool slice(struct reloader *r)
{
    int64_t began = clock_mono_us(), now = began;
    bool more = true;
    while (more && now - began < (int64_t)RELOAD_SLICE_US) {
        more = generation_load_step(r->load);
        now = clock_mono_us();
    }
    if (now - began > r->outcome.longest_us)
        r->outcome.longest_us = now - began;
    return more;
}

/* Two generations lie side by side while one is built: without this the process would stay as large as both.
 */
static void tidy(struct reloader *r)
{
    malloc_trim(0);
    r->untidy = false;
}

/* After the end there is always one more turn, by which what was told to clients goes out. */
bool reload_turn(struct server *server)
{
    struct reloader *r = server->reloader;
    if (r && r->untidy) {
        tidy(r);
        return true;
    }
    if (!r || (!r->load && !r->next_cause))
        return false;
    if (!r->load)
        begin_next(r);
    if (slice(r))
        return true;
    finish(r);
    answer_all(r);
    release(r);
    r->untidy = true;
    return true;
}

/* ---- status ------------------------------------------------------------------------ */

void reload_write_status(const struct client *client, struct json_out *out)
{
    const struct reloader *r = client->server->reloader;
    if (!r->last.at_ms)
        return;
    json_field_open(out, "reload", '{');
    json_field_int(out, "at_ms", (size_t)r->last.at_ms);
    json_field_bool(out, "ok", !r->last.err);
    json_field_int(out, "ms", (size_t)r->last.took_us / 1000);
    if (r->last.err && client_is_operator(client)) {
        json_field_str(out, "errors", str_trim(buf_view(&r->errors)));
    }
    json_close(out, '}');
}
