/*
 * What waits for an operator. toolgate/approvals, toolgate/approve and toolgate/deny: what a policy has asked
 * in the call of an agent that cannot ask its user; never answered by the process that made the call.
 * toolgate/pins: definitions of tools that have changed; who accepts one decides what agents read.
 */
#include "server/method_table.h"

#include "base/arena.h"
#include "base/log.h"
#include "catalog/pins.h"
#include "gate/decision_log.h"
#include "ledger/approvals.h"
#include "server/reload.h"
#include "server/served.h"
#include "server/state_dir.h"

/* An answer in the form of a reload that failed. `state`: of an approval; NULL: none. */
static enum request_status reply_refused(struct request *r, const char *state, struct str why)
{
    struct json_out *out = reply_open(r);
    json_fields(out, FIELD_BOOL("ok", false), FIELD_OPTIONAL("state", str_of(state)));
    json_field_strs(out, "errors", &why, 1);
    return reply_close(r);
}

/* ---- approvals ---- */

static const char *const state_names[] = {[APPROVAL_NONE] = "unknown",
                                          [APPROVAL_PENDING] = "pending",
                                          [APPROVAL_APPROVED] = "approved",
                                          [APPROVAL_DENIED] = "denied",
                                          [APPROVAL_SPENT] = "spent"};

static void put_approval(struct json_out *out, const struct approval *a, int64_t now_ms)
{
    char id[APPROVAL_ID_CHARS + 1];
    approvals_write_id(a->id, id);
    bool answered = a->answered_by.len > 0;
    json_fields(out, FIELD_TEXT("id", id), FIELD_TEXT("state", state_names[a->state]),
                FIELD_STR("tool", a->tool), FIELD_STR("arguments", a->arguments),
                FIELD_IF(a->is_cut, FIELD_BOOL("arguments_cut", true)), FIELD_STR("question", a->question),
                FIELD_STR("session", a->session), FIELD_STR("user", a->user), FIELD_NUM("uid", a->uid),
                FIELD_NUM("pid", a->process.pid), FIELD_NUM("asked_s", (now_ms - a->made_ms) / 1000),
                FIELD_NUM("expires_s", (a->expires_ms - now_ms + 999) / 1000),
                FIELD_OPTIONAL("answered_by", a->answered_by),
                FIELD_IF(answered, FIELD_NUM("answered_uid", a->answered_uid)));
}

static enum request_status reply_list(struct request *r)
{
    const struct approval_request *work = r->work;
    int64_t now_ms = approvals_now_ms(r->client->server->gate.approvals);
    struct json_out *out = reply_open(r);
    json_field_open(out, "approvals", '[');
    for (unsigned i = 0; i < work->list_count; i++) {
        json_open(out, '{');
        put_approval(out, &work->list[i], now_ms);
        json_close(out, '}');
    }
    json_close(out, ']');
    return reply_close(r);
}

/* The agent may never make the call again: then this record alone says what the operator has decided. */
static void record_answer(const struct request *r, const struct approval *a, const char *id)
{
    const struct server *server = r->client->server;
    const char *slash = a->session.len ? memchr(a->session.at, '/', a->session.len) : NULL;
    const struct decision_read read = {
        .peer = &r->client->peer,
        .generation = server->gate.generation->hash,
        .session = slash ? str_from(a->session, (size_t)(slash - a->session.at) + 1) : a->session,
        .method = r->method_name,
        .name = a->tool,
        .class = CLASS_OK,
        .code = str_of(state_names[a->state]),
        .approval = str_of(id)};
    if (server->gate.decisions)
        decision_log_read(server->gate.decisions, r->arena, &read);
}

static enum request_status reply_decided(struct request *r)
{
    const struct approval_request *work = r->work;
    const char *state = state_names[work->found];
    if (work->found == APPROVAL_NONE)
        return reply_refused(r, state,
                             arena_printf(r->arena,
                                          "no question has this id, or its %u minutes are over: when the "
                                          "call comes again, it asks again",
                                          APPROVAL_MS / 60000u));
    if (work->found != APPROVAL_PENDING)
        return reply_refused(r, state,
                             arena_printf(r->arena, STR_FMT " (uid %u) has answered this already: it is %s",
                                          STR_ARG(work->entry.answered_by),
                                          (unsigned)work->entry.answered_uid, state));
    if (work->is_own)
        return reply_refused(r, state,
                             STR_LIT("the process that made this call cannot answer for its user: run "
                                     "`toolgate approve` or `toolgate deny` yourself"));
    char id[APPROVAL_ID_CHARS + 1];
    approvals_write_id(work->entry.id, id);
    log_event(LOG_INFO, work->given ? "approval_given" : "approval_denied", LOG_TEXT("approval", id),
              LOG_STR("tool", work->entry.tool), LOG_STR("session", work->entry.session),
              LOG_TEXT("user", r->client->peer.user), LOG_NUM("uid", r->client->peer.uid));
    record_answer(r, &work->entry, id);
    struct json_out *out = reply_open(r);
    json_field_bool(out, "ok", true);
    put_approval(out, &work->entry, approvals_now_ms(r->client->server->gate.approvals));
    return reply_close(r);
}

static enum request_status reply(struct request *r)
{
    const struct approval_request *work = r->work;
    if (work->unavailable)
        return reply_error(r, RPC_UNAVAILABLE, "approvals cannot be read or changed now: %s",
                           work->unavailable);
    return work->kind == APPROVAL_LIST ? reply_list(r) : reply_decided(r);
}

static void cancel(struct request *r)
{
    approvals_cancel(r->client->server->gate.approvals, r);
}

static enum request_status begin(struct request *r, struct approval_request *work)
{
    work->arena = r->arena;
    work->done = request_answer;
    work->owner = r;
    r->work = work;
    r->answer = reply;
    r->cancel = cancel;
    return request_wait(r, !approvals_do(r->client->server->gate.approvals, work));
}

enum request_status approvals_method(struct request *r)
{
    struct approval_request *work = ARENA_NEW(r->arena, struct approval_request);
    work->kind = APPROVAL_LIST;
    return begin(r, work);
}

enum request_status approval_answer_method(struct request *r)
{
    struct approval_request *work = ARENA_NEW(r->arena, struct approval_request);
    const struct peer *peer = &r->client->peer;
    struct str id;
    if (param_string(r, r->params, "id", &id))
        return REQUEST_DONE;
    work->kind = APPROVAL_DECIDE;
    work->given = strcmp(r->method->name, "toolgate/approve") == 0;
    work->asked = (struct approval){
        .id = approvals_read_id(id),
        .process = approvals_process((uint32_t)peer->pid),
        .answered_uid = peer->uid,
        .answered_by = str_of(peer->user),
    };
    if (!work->asked.id)
        return reply_error(r, RPC_INVALID_PARAMS,
                           "params.id: expected the %u hexadecimal digits of an approval, as `toolgate "
                           "approvals` lists them",
                           APPROVAL_ID_CHARS);
    return begin(r, work);
}

/* ---- pins ---- */

static const char *const mode_names[] = {
    [PINS_WARN] = "warn", [PINS_OFF] = "off", [PINS_CHANGES] = "changes", [PINS_ALL] = "all"};

struct pins *pin_methods_pins(struct server *server, const struct config *config)
{
    if (config->pins == PINS_OFF)
        return NULL;
    if (!server->pins) {
        server->pins_arena = arena_new();
        server->pins = pins_new(server->loop, state_dir_path(server->pins_arena, config, "pins.json"),
                                state_dir_beside_socket(server->pins_arena, config, "pinned"));
    }
    return server->pins;
}

static struct pins_review *review_all(struct arena *arena, struct server *server)
{
    return pins_review_join(arena, server->gate.generation->pins, served_pins(server));
}

void pin_methods_write_status(struct json_out *out, struct server *server)
{
    struct arena *arena = arena_new();
    const struct pins_review *review = review_all(arena, server);
    json_field_open(out, "pins", '{');
    json_field_text(out, "mode", mode_names[server_config(server)->pins]);
    if (review) {
        json_fields(out, FIELD_TEXT("file", pins_path(server->pins)), FIELD_NUM("pending", review->pending),
                    FIELD_NUM("held", review->held));
        json_field_strs(out, "lost", review->lost, review->lost_count);
    }
    json_close(out, '}');
    arena_free(arena);
}

static void put_side(struct json_out *out, const char *key, const char *digest, struct str tool,
                     struct str text)
{
    json_field_object(out, key, FIELD_TEXT("digest", digest), FIELD_STR("tool", tool),
                      FIELD_IF(text.len, FIELD_RAW("definition", text)));
}

static enum request_status show(struct request *r)
{
    struct server *server = r->client->server;
    const struct pins_review *review = review_all(r->arena, server);
    struct json_out *out = reply_open(r);
    size_t left = PINS_SHOWN_MAX_BYTES;
    bool complete = true; /* false: the texts found no room */
    json_field_text(out, "mode", mode_names[server_config(server)->pins]);
    if (!review)
        return reply_close(r);
    json_fields(out, FIELD_TEXT("file", pins_path(server->pins)), FIELD_NUM("tools", review->count));
    json_field_strs(out, "lost", review->lost, review->lost_count);
    json_field_open(out, "waiting", '[');
    for (size_t i = 0; i < review->count; i++) {
        const struct pin_entry *entry = review->entries[i];
        if (!pin_is_pending(entry))
            continue;
        struct arena *arena = arena_new();
        struct str text = pin_definition_text(arena, entry->definition);
        bool fits = text.len + entry->was_text.len <= left;
        left -= fits ? text.len + entry->was_text.len : left;
        complete &= fits;
        json_open(out, '{');
        json_fields(out, FIELD_STR("upstream", entry->upstream), FIELD_STR("tool", entry->tool),
                    FIELD_OPTIONAL("name", entry->published),
                    FIELD_TEXT("state", pin_state_name(entry->state)), FIELD_BOOL("held", entry->held));
        if (entry->was_tool.len)
            put_side(out, "was", entry->was_digest.hex, entry->was_tool, fits ? entry->was_text : STR_NONE);
        put_side(out, "now", entry->digest.hex, entry->tool, fits ? text : STR_NONE);
        json_close(out, '}');
        arena_free(arena);
    }
    json_close(out, ']');
    json_fields(out, FIELD_BOOL("complete", complete), FIELD_TEXT("digest", pins_review_digest(review).hex));
    return reply_close(r);
}

static enum request_status accept_pin(struct request *r, const struct json *accept)
{
    struct server *server = r->client->server;
    const struct pins_review *review = review_all(r->arena, server);
    struct str tool, digest;
    struct why why = {0};
    size_t count;
    if (!json_is(accept, JSON_OBJECT))
        return reply_error(r, RPC_INVALID_PARAMS, "params.accept: expected {\"tool\",\"digest\"}, got %s",
                           param_kind(accept));
    if (param_string(r, accept, "tool", &tool) || param_string(r, accept, "digest", &digest))
        return REQUEST_DONE;
    if (!review)
        return reply_error(r, RPC_UNAVAILABLE, "pins are off: set pins = \"warn\", \"changes\" or \"all\"");
    enum err err = pins_accept(server->pins, review, tool, digest, &count, &why);
    if (err)
        return reply_refused(r, NULL, str_of(why.text));
    log_event(LOG_INFO, "pins_accepted", LOG_NUM("tools", count), LOG_TEXT("user", r->client->peer.user),
              LOG_NUM("uid", r->client->peer.uid));
    passing_lists_renew(server);
    return reload_wait(r, RELOAD_CAUSE_PINS);
}

enum request_status pins_method(struct request *r)
{
    const struct json *accept = json_get_text(r->params, "accept");
    return accept ? accept_pin(r, accept) : show(r);
}
