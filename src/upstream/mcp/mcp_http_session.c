/*
 * Renewing a session that the server no longer knows (it restarted, or the
 * session expired): the first `initialize` is sent again, then the rejected
 * messages, which certainly did not run; and the tools are listed again, as
 * the server may have changed.
 */
#include "upstream/mcp/mcp_http_internal.h"

#include "base/arena.h"
#include "upstream/mcp/mcp_message.h"

#include <stdio.h>

#define INITIALIZED  "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"
#define LIST_CHANGED "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}"

static void post(struct mcp_transport *t, uint64_t id, const char *method, struct str message)
{
    struct exchange *x = exchange_new(t, id, method, STR_NONE, message);
    x->renews = true;
    exchange_post(x);
}

void mcp_http_session_renew(struct exchange *x)
{
    struct mcp_transport *t = x->transport;
    if (x->renewed || !t->initialize.len) {
        exchange_fail(x, UPSTREAM_TRANSIENT, "session_lost", 1, "its session ended, and so did the next one");
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
    post(t, t->initialize_id, "initialize", buf_view(&t->initialize));
}

void mcp_http_session_response(struct exchange *x, struct str text)
{
    struct mcp_transport *t = x->transport;
    struct mcp_message message = mcp_message_scan(text);
    if (x->id) { /* initialize */
        if (message.kind != MCP_MESSAGE_RESPONSE)
            return; /* a notification before the response */
        if (!message.result.len) {
            exchange_fail(x, UPSTREAM_TRANSIENT, "session_lost", 1, "it rejects a new session");
            return;
        }
        exchange_free(x);
        post(t, 0, "notifications/initialized", STR_LIT(INITIALIZED));
        return;
    }
    exchange_free(x);
    t->renewing = false;
    struct exchange *next;
    for (x = LIST_FIRST(&t->exchanges); x; x = next) {
        next = LIST_NEXT(x, entry);
        if (!x->fetch && !timer_is_set(&x->timer))
            exchange_post(x);
    }
    mcp_http_deliver(t, 0, STR_LIT(LIST_CHANGED));
}

void mcp_http_session_failed(struct mcp_transport *t, const char *why, const char *quoted)
{
    char text[FETCH_WHY_MAX_BYTES];
    snprintf(text, sizeof(text), "its session ended, and a new one could not be begun: %.400s", why);
    mcp_http_close_later(t, text, quoted);
}
