/*
 * toolgate/approvals, toolgate/approve and toolgate/deny: an operator answers what a policy has asked in the
 * call of an agent that has nobody to ask. Never the process that made the call.
 */
#include "ledger/approvals.h"
#include "base/arena.h"
#include "base/log.h"
#include "server/method_table.h"

static const char *const state_names[] = {[APPROVAL_NONE] = "unknown",
                                          [APPROVAL_PENDING] = "pending",
                                          [APPROVAL_APPROVED] = "approved",
                                          [APPROVAL_DENIED] = "denied",
                                          [APPROVAL_SPENT] = "spent"};

static void put_approval(struct json_out *out, const struct approval *a, int64_t now_ms)
{
    char id[APPROVAL_ID_CHARS + 1];
    approvals_write_id(a->id, id);
    json_fields(out, FIELD_TEXT("id", id), FIELD_TEXT("state", state_names[a->state]),
                FIELD_STR("tool", a->tool), FIELD_STR("arguments", a->arguments));
    if (a->is_cut)
        json_field_bool(out, "arguments_cut", true);
    json_fields(out, FIELD_STR("question", a->question), FIELD_STR("session", a->session),
                FIELD_STR("user", a->user), FIELD_NUM("uid", a->uid), FIELD_NUM("pid", a->process.pid),
                FIELD_NUM("asked_s", (now_ms - a->made_ms) / 1000),
                FIELD_NUM("expires_s", (a->expires_ms - now_ms + 999) / 1000));
    if (a->answered_by.len)
        json_fields(out, FIELD_STR("answered_by", a->answered_by),
                    FIELD_NUM("answered_uid", a->answered_uid));
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

/* In the form of a reload that failed. */
static enum request_status reply_refused(struct request *r, struct str why)
{
    const struct approval_request *work = r->work;
    struct json_out *out = reply_open(r);
    json_fields(out, FIELD_BOOL("ok", false), FIELD_TEXT("state", state_names[work->found]));
    json_field_strs(out, "errors", &why, 1);
    return reply_close(r);
}

static struct str why_not(struct request *r)
{
    const struct approval_request *work = r->work;
    const struct approval *entry = &work->entry;
    if (work->found == APPROVAL_NONE)
        return arena_printf(r->arena,
                            "no question has this id, or its %u minutes are over: when the call comes again, "
                            "it asks again",
                            APPROVAL_MS / 60000u);
    if (work->found == APPROVAL_PENDING)
        return STR_LIT("the process that made this call cannot answer for its user: run `toolgate approve` "
                       "or `toolgate deny` yourself");
    return arena_printf(r->arena, STR_FMT " (uid %u) has answered this already: it is %s",
                        STR_ARG(entry->answered_by), (unsigned)entry->answered_uid, state_names[work->found]);
}

static enum request_status reply_decided(struct request *r)
{
    const struct approval_request *work = r->work;
    if (work->found != APPROVAL_PENDING || work->is_own)
        return reply_refused(r, why_not(r));
    char id[APPROVAL_ID_CHARS + 1];
    approvals_write_id(work->entry.id, id);
    log_event(LOG_INFO, work->given ? "approval_given" : "approval_denied", LOG_TEXT("approval", id),
              LOG_STR("tool", work->entry.tool), LOG_STR("session", work->entry.session),
              LOG_TEXT("user", r->client->peer.user), LOG_NUM("uid", r->client->peer.uid));
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
    return approvals_do(r->client->server->gate.approvals, work) ? reply(r) : REQUEST_PENDING;
}

enum request_status approval_methods_list(struct request *r)
{
    struct approval_request *work = ARENA_NEW(r->arena, struct approval_request);
    if (param_require_operator(r, "toolgate/approvals"))
        return REQUEST_DONE;
    work->kind = APPROVAL_LIST;
    return begin(r, work);
}

static enum request_status decide(struct request *r, const char *method, bool given)
{
    struct approval_request *work = ARENA_NEW(r->arena, struct approval_request);
    const struct peer *peer = &r->client->peer;
    struct str id;
    if (param_require_operator(r, method) || param_string(r, r->params, "params.", "id", &id))
        return REQUEST_DONE;
    work->kind = APPROVAL_DECIDE;
    work->given = given;
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

enum request_status approval_methods_approve(struct request *r)
{
    return decide(r, "toolgate/approve", true);
}

enum request_status approval_methods_deny(struct request *r)
{
    return decide(r, "toolgate/deny", false);
}
