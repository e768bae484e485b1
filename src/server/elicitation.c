/* The question waits as a part of its request: who cancels or loses the request takes the question back. */
#include "server/elicitation.h"

#include "base/arena.h"
#include "base/log.h"
#include "gate/call_reply.h"
#include "gate/verdict.h"
#include "server/method_table.h"

#include <inttypes.h>

struct elicitation {
    struct call_request call;
    struct consent consents[CONSENTS_MAX]; /* so far; the last one is being asked about */
    size_t count;
    struct timer deadline;
    uint64_t id; /* of the request to the client; 0: none is on its way */
};

static struct str id_text(struct arena *arena, uint64_t id)
{
    return arena_printf(arena, "toolgate/ask/%" PRIu64, id);
}

void elicitation_keep(struct request *r, const struct call_request *call)
{
    struct elicitation *e = ARENA_NEW(r->arena, struct elicitation);
    e->call = *call;
    r->work = e;
}

/* ---- the question ---- */

static bool can_ask(const struct request *r)
{
    const struct elicitation *e = r->work;
    const struct verdict *v = call_outcome(r->call)->verdict;
    bool of_check = v->stage && strcmp(v->stage, "check") == 0;
    return e && e->call.asks == CALL_ASKS_CONNECTION && v->kind == VERDICT_ASK && of_check &&
           e->count < CONSENTS_MAX && consent_fits_form(v->detail, v->choices);
}

static void send_question(struct request *r, const struct elicitation *e)
{
    const struct verdict *v = call_outcome(r->call)->verdict;
    struct json_out out = json_out(conn_out(r->client->conn));
    json_open(&out, '{');
    json_fields(&out, FIELD_TEXT("jsonrpc", "2.0"), FIELD_STR("id", id_text(r->arena, e->id)),
                FIELD_TEXT("method", "elicitation/create"));
    json_field_open(&out, "params", '{');
    consent_write_form(&out, r->arena, v->detail, v->choices);
    json_close(&out, '}');
    json_close(&out, '}');
    buf_byte(out.buf, '\n');
}

/* ---- without an answer ---- */

static struct elicitation *waiting(const struct request *r)
{
    bool asks = r->method->handle == call_methods_call || r->method->handle == call_methods_check;
    struct elicitation *e = asks ? r->work : NULL;
    return e && e->id ? e : NULL;
}

void elicitation_take_back(struct request *r)
{
    struct elicitation *e = waiting(r);
    struct buf params = buf_in(r->arena);
    if (!e)
        return;
    buf_printf(&params, "{\"requestId\":\"" STR_FMT "\",\"reason\":\"the call has ended\"}",
               STR_ARG(id_text(r->arena, e->id)));
    reply_notification(r->client, "notifications/cancelled", buf_view(&params));
    timer_clear(&e->deadline);
    e->id = 0;
}

/* The connection may be gone: nothing is sent. */
static void cancel(struct request *r)
{
    struct elicitation *e = r->work;
    timer_clear(&e->deadline);
    call_free(r->call);
}

static void again(struct request *r)
{
    struct elicitation *e = r->work;
    call_free(r->call);
    e->call.consents = e->consents;
    e->call.consent_count = e->count;
    if (call_methods_call_again(r, &e->call) == REQUEST_DONE)
        request_done(r);
}

/* As for a client that cannot ask its user. */
static void give_up(struct request *r, const char *why)
{
    struct elicitation *e = r->work;
    log_event(LOG_INFO, "question_unanswered", LOG_TEXT("connection", r->client->name), LOG_TEXT("why", why));
    e->call.asks = CALL_ASKS_NOBODY;
    e->count--; /* the question that was not answered */
    again(r);
}

static void on_deadline(void *owner)
{
    struct request *r = owner;
    elicitation_take_back(r);
    give_up(r, "nobody answered in time");
}

bool elicitation_begin(struct request *r)
{
    static uint64_t questions;
    struct elicitation *e = r->work;
    const struct verdict *v;
    if (!can_ask(r))
        return false;
    v = call_outcome(r->call)->verdict;
    e->id = ++questions;
    e->consents[e->count++] = (struct consent){.question = arena_dup(r->arena, v->detail)};
    r->cancel = cancel;
    timer_set(&e->deadline, r->client->server->loop, ELICITATION_MS, on_deadline, r);
    send_question(r, e);
    return true;
}

/* ---- the answer ---- */

static struct request *find(struct client *client, const struct json *id)
{
    struct request *r;
    LIST_FOREACH (r, &client->pending, link) {
        const struct elicitation *e = waiting(r);
        if (e && str_eq(id_text(r->arena, e->id), json_str(id)))
            return r;
    }
    return NULL;
}

bool elicitation_answer(struct client *client, const struct json *message)
{
    const struct json *id = json_get_text(message, "id"), *result = json_get_text(message, "result");
    struct request *r = json_is(id, JSON_STRING) ? find(client, id) : NULL;
    if (!r)
        return false;
    struct elicitation *e = r->work;
    struct consent *consent = &e->consents[e->count - 1];
    timer_clear(&e->deadline);
    e->id = 0;
    if (!consent_read(r->arena, result, call_outcome(r->call)->verdict->choices, consent)) {
        give_up(r, result ? "the answer fits no schema that was sent" : "the client answered with an error");
        return true;
    }
    log_event(LOG_INFO, "question_answered", LOG_TEXT("connection", client->name),
              LOG_TEXT("answer", consent->given ? "given" : "declined"));
    again(r);
    return true;
}
