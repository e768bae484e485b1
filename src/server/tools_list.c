/* One round trip to the ledger, then the list. */
#include "server/tools_list.h"

#include "base/arena.h"
#include "base/log.h"

struct listing {
    struct catalog_request wanted;
    struct ledger_peek peek;
    tools_list_writer *tell;
};

static enum request_status told(struct request *r)
{
    struct listing *listing = r->work;
    if (listing->peek.error)
        log_event(LOG_WARN, "ledger_peek_failed", LOG_TEXT("why", listing->peek.why.text));
    if (!listing->wanted.goal.len)
        listing->wanted.goal = listing->peek.goal;
    listing->wanted.session_stuck = listing->peek.stuck;
    return listing->tell(r, &listing->wanted);
}

static void answered(void *owner)
{
    told(owner);
    request_done(owner);
}

static void stop_waiting(struct request *r)
{
    ledger_cancel(r->client->server->gate.ledger, r);
}

enum request_status tools_list_begin(struct request *r, const struct catalog_request *wanted,
                                     tools_list_writer *tell)
{
    struct gate *gate = &r->client->server->gate;
    if (!catalog_has_hooks(gate->generation))
        return tell(r, wanted);
    struct listing *listing = ARENA_NEW(r->arena, struct listing);
    *listing = (struct listing){.wanted = *wanted, .tell = tell};
    r->work = listing;
    r->cancel = stop_waiting;
    struct str key = call_session_key(r->arena, server_config(r->client->server), &r->client->peer,
                                      wanted->session, str_of(r->client->name));
    if (ledger_peek(gate->ledger, key, r->arena, &listing->peek, answered, r) == LEDGER_PENDING)
        return REQUEST_PENDING;
    return told(r);
}
