/*
 * A session that the server no longer knows (it was restarted, it took too
 * long): a new one is begun with the words of the first, what was turned away
 * is sent again, since it surely did not run, and the tools are asked for
 * again, as it may be another server by now.
 */
#include "upstream/mcp/mcp_http_internal.h"

#include "base/arena.h"
#include "upstream/mcp/mcp_message.h"

#include <stdio.h>

#define INITIALIZED  "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"
#define LIST_CHANGED "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}"

static void ask(struct mcp_transport *t, uint64_t id, const char *method, struct str message)
{
    struct exchange *x = exchange_new(t, id, method, STR_NONE, message);
    x->ours = true;
    exchange_post(x);
}

void mcp_http_session_renew(struct exchange *x)
{
    struct mcp_transport *t = x->transport;
    if (x->renewed || !t->initialize.len) {
        exchange_fail(x, UPSTREAM_TRANSIENT, "session_lost", 1,
                      "its session has ended, and so has the one after it");
        if (!t->renewing)
            mcp_http_close_later(t, "its sessions end as soon as they begin", "");
        return;
    }
    x->renewed = true;
    if (t->renewing)
        return;
    t->renewing = true;
    t->session.len = 0;
    mcp_http_listen_stop(t);
    ask(t, t->initialize_id, "initialize", buf_view(&t->initialize));
}

/* Those that were turned away, and those that have come since. */
static void send_waiting(struct mcp_transport *t)
{
    for (struct exchange *x = t->exchanges, *next; x; x = next) {
        next = x->next;
        if (!x->fetch && !timer_is_set(&x->timer))
            exchange_post(x);
    }
}

void mcp_http_session_response(struct exchange *x, struct str text)
{
    struct mcp_transport *t = x->transport;
    struct mcp_message line = mcp_message_scan(text);
    bool greets = x->id != 0;
    if (greets && line.kind != MCP_MESSAGE_RESPONSE)
        return; /* a notice before the answer */
    if (greets && !line.result.len) {
        exchange_fail(x, UPSTREAM_TRANSIENT, "session_lost", 1, "it refuses a new session");
        return;
    }
    exchange_free(x);
    if (greets) {
        ask(t, 0, "notifications/initialized", STR_LIT(INITIALIZED));
        return;
    }
    t->renewing = false;
    send_waiting(t);
    mcp_http_deliver(t, 0, STR_LIT(LIST_CHANGED));
}

void mcp_http_session_failed(struct mcp_transport *t, const char *why, const char *says)
{
    char text[FETCH_WHY_MAX_BYTES];
    snprintf(text, sizeof(text), "its session ended, and a new one could not be begun: %.400s", why);
    mcp_http_close_later(t, text, says); /* whoever hears it fails what waits */
}
