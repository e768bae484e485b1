/* One round trip to the ledger, then the list. */
#include "server/tools_list.h"

#include "base/arena.h"
#include "base/log.h"
#include "server/mcp_keys.h"

struct tools_list {
    struct catalog_request wanted;
    struct ledger_peek peek;
    tools_list_writer *write;
};

static enum request_status write_list(struct request *r)
{
    struct tools_list *list = r->work;
    if (list->peek.error)
        log_event(LOG_WARN, "ledger_peek_failed", LOG_TEXT("why", list->peek.why.text));
    if (!list->wanted.goal.len)
        list->wanted.goal = list->peek.goal;
    list->wanted.past = &list->peek;
    return list->write(r, &list->wanted);
}

static void on_peek(void *owner)
{
    write_list(owner);
    request_done(owner);
}

static void cancel(struct request *r)
{
    ledger_cancel(r->client->server->gate.ledger, r);
}

enum request_status tools_list_begin(struct request *r, const struct catalog_request *wanted,
                                     tools_list_writer *write)
{
    struct client *client = r->client;
    struct gate *gate = &client->server->gate;
    const struct config *config = server_config(client->server);
    struct ledger_place place = {.turn_idle_s = config->turn_idle_s};
    if (param_turn(r, r->meta, "params._meta.", GATE_TURN_KEY, &place.turn, &place.turn_text))
        return REQUEST_DONE;
    if (!catalog_has_hooks(gate->generation))
        return write(r, wanted);
    struct tools_list *list = ARENA_NEW(r->arena, struct tools_list);
    *list = (struct tools_list){.wanted = *wanted, .write = write};
    list->wanted.step = param_label(r->meta, GATE_STEP_KEY);
    r->work = list;
    r->cancel = cancel;
    place.session = call_session_key(r->arena, config, &client->peer, wanted->session, str_of(client->name));
    struct ledger_look *look = ARENA_NEW(r->arena, struct ledger_look);
    *look = (struct ledger_look){.place = place, .newest = true};
    catalog_wants(gate->generation, look);
    bool pending = ledger_peek(gate->ledger, look, r->arena, &list->peek, on_peek, r) == LEDGER_PENDING;
    return pending ? REQUEST_PENDING : write_list(r);
}
