/* Build, then swap or keep. Calls in flight hold the generation they began with. */
#include "server/reload.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "gate/load.h"
#include "server/listen.h"
#include "server/methods.h"
#include "server/notify.h"
#include "server/permission.h"
#include "server/subscriptions.h"

#include <inttypes.h>

/* What a running daemon cannot change under its clients' feet. */
static void say_what_stays(const struct server *server, const struct config *now, const struct config *before)
{
    if (server->listener && !listener_is_inherited(server->listener) &&
        (strcmp(now->socket, before->socket) != 0 || now->socket_mode != before->socket_mode))
        log_event(LOG_WARN, "restart_needed", LOG_TEXT("key", "socket, socket_mode"));
    if (now->ledger_ttl_s != before->ledger_ttl_s || now->ledger_history != before->ledger_history)
        log_event(LOG_WARN, "restart_needed", LOG_TEXT("key", "ledger"));
}

static void swap(struct server *server, struct generation *fresh)
{
    struct generation *old = server->gate.generation;
    const struct config *config = generation_config(fresh);
    bool list_changed = generation_list_hash(fresh) != generation_list_hash(old);
    struct why why;
    say_what_stays(server, config, generation_config(old));
    if (log_open(config->log_level, config->log_format, config->log_file, &why))
        log_event(LOG_ERROR, "log_unchanged", LOG_TEXT("why", why.text));
    server->gate.generation = fresh;
    generation_unref(old);
    loop_limit_bytes(server->loop, config->limits.memory);
    for (struct client *client = server->clients; client; client = client->next)
        client_new_rules(client);
    if (list_changed)
        subscriptions_list_changed(server);
}

static void remember(struct server *server, enum err err, const struct generation_report *report)
{
    struct reload_memory *memory = &server->reload;
    memory->at_ms = clock_wall_ms();
    memory->failed = err != OK;
    buf_clear(&memory->errors);
    for (size_t i = 0; i < report->error_count; i++) {
        buf_str(&memory->errors, report->errors[i]);
        buf_byte(&memory->errors, '\n');
    }
}

static void say_how(const struct server *server, enum err err, const struct generation_report *report)
{
    for (size_t i = 0; i < report->error_count; i++)
        log_event(LOG_ERROR, "generation_error", LOG_STR("why", report->errors[i]));
    for (size_t i = 0; i < report->warning_count && !err; i++)
        log_event(LOG_WARN, "generation_warning", LOG_STR("why", report->warnings[i]));
    if (err)
        log_event(LOG_ERROR, "reload_failed", LOG_NUM("errors", report->error_count),
                  LOG_NUM("generation", generation_number(server->gate.generation)));
    else
        log_event(LOG_INFO, "reloaded", LOG_NUM("generation", generation_number(server->gate.generation)),
                  LOG_STR("hash", generation_hash(server->gate.generation)),
                  LOG_NUM("tools", generation_tool_count(server->gate.generation)),
                  LOG_NUM("examples", report->example_count));
}

enum err reload(struct server *server, struct generation_report *report)
{
    struct generation *fresh;
    notify_reloading();
    enum err err = load_generation(&server->options->sources, generation_number(server->gate.generation) + 1,
                                   &fresh, report);
    if (!err)
        swap(server, fresh);
    remember(server, err, report);
    say_how(server, err, report);
    notify("READY=1\nSTATUS=%s generation %" PRIu64, err ? "the last reload failed; serving" : "serving",
           generation_number(server->gate.generation));
    return err;
}

/* ---- toolgate/reload: {ok:true, …}, or the errors -------------------------- */

static void put_lines(struct json_out *out, const char *key, const struct str *lines, size_t count)
{
    json_key(out, key);
    json_open(out, '[');
    for (size_t i = 0; i < count; i++)
        json_put_str(out, lines[i]);
    json_close(out, ']');
}

enum handled reload_asked(struct request *r)
{
    struct generation_report report;
    if (permission_needed(r, "toolgate/reload"))
        return HANDLED_DONE;
    generation_report_init(&report, r->arena);
    enum err err = reload(r->client->server, &report);
    const struct generation *serving = r->client->server->gate.generation;
    struct json_out *out = reply_open(r);
    json_key(out, "ok");
    json_put_bool(out, !err);
    json_key(out, "generation");
    json_put_int(out, (int64_t)generation_number(serving));
    json_key(out, "hash");
    json_put_str(out, generation_hash(serving));
    put_lines(out, "errors", report.errors, report.error_count);
    put_lines(out, "warnings", report.warnings, report.warning_count);
    return reply_close(r);
}
