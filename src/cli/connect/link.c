/* The connection: attempts with growing pauses, sending, reading, and what its end means for each message. */
#include "base/clock.h"
#include "cli/daemon_client.h"
#include "cli/term.h"
#include "cli/connect/bridge.h"
#include "json/write.h"
#include "server/jsonrpc.h"
#include "server/mcp_keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BYTES 65536u
#define AFTER_S    2 /* a daemon that restarts is back by then */

/* ---- the bridge's own answers: to a call as a result, which the model reads, in the form of the gate's own
 * refusals; to any other request as a JSON-RPC error ---- */

struct answer {
    const char *code, *detail, *hint;
    bool retry;
};

static const struct answer lost_read = {"gateway_restarted",
                                        "the connection to the gateway ended before its answer arrived; the "
                                        "call only reads, so it has changed nothing",
                                        "wait 2 s, then repeat the call.", true};
static const struct answer lost_write = {
    "gateway_restarted",
    "the connection to the gateway ended before its answer arrived; the call may have run",
    "look whether it was carried out before you repeat it.", false};
static const struct answer away = {"gateway_away", "no gateway answered in time; the call was not sent",
                                   "wait 2 s, then repeat the call; if it fails again, tell the user.", true};

static void write_call(struct buf *to, const struct tracked *request, const struct answer *a)
{
    struct json_out out = json_out(to);
    struct buf text = {0};
    buf_printf(&text, STR_FMT " is unavailable (%s): %s.\nNext: %s", STR_ARG(request->tool), a->code,
               a->detail, a->hint);
    json_open(&out, '{');
    json_field_text(&out, "jsonrpc", "2.0");
    json_field_raw(&out, "id", request->id);
    json_field_open(&out, "result", '{');
    if (request->modern)
        json_field_text(&out, "resultType", "complete");
    json_field_open(&out, "content", '[');
    json_open(&out, '{');
    json_field_text(&out, "type", "text");
    json_field_str(&out, "text", buf_view(&text));
    json_close(&out, '}');
    json_close(&out, ']');
    json_field_bool(&out, "isError", true);
    json_field_open(&out, "_meta", '{');
    json_field_open(&out, GATE_VERDICT_KEY, '{');
    json_field_text(&out, "verdict", a->retry ? "wait" : "refuse");
    json_field_bool(&out, "valid", true);
    json_field_text(&out, "error_class", "unavailable");
    json_field_text(&out, "code", a->code);
    json_field_text(&out, "detail", a->detail);
    json_field_text(&out, "hint", a->hint);
    if (a->retry)
        json_field_int(&out, "after_s", AFTER_S);
    json_close(&out, '}');
    json_close(&out, '}');
    json_close(&out, '}');
    json_close(&out, '}');
    buf_byte(to, '\n');
    buf_clear(&text);
}

void bridge_answer(struct bridge *bridge, const struct tracked *request, enum unavailable why)
{
    struct buf *to = &bridge->to_client;
    bridge->has_failed = true;
    if (request->is_call)
        write_call(to, request, why == UNAVAILABLE_AWAY ? &away : request->reads ? &lost_read : &lost_write);
    else if (why == UNAVAILABLE_AWAY)
        jsonrpc_write_error(to, request->id, RPC_UNAVAILABLE,
                            STR_LIT("no gateway answered in time; the request was not sent: repeat it later"),
                            STR_LIT("{\"name\":\"unavailable\",\"sent\":false,\"after_s\":2}"));
    else
        jsonrpc_write_error(
            to, request->id, RPC_UNAVAILABLE,
            STR_LIT("the connection to the gateway ended before its answer arrived: the request "
                    "may have taken effect, so look before you repeat it"),
            STR_LIT("{\"name\":\"unavailable\",\"sent\":true}"));
}

/* ---- connecting ---- */

static void try_later(struct bridge *bridge)
{
    bridge->retry_ms = bridge->retry_ms ? bridge->retry_ms * 2 : BRIDGE_RETRY_FIRST_MS;
    if (bridge->retry_ms > BRIDGE_RETRY_MAX_MS)
        bridge->retry_ms = BRIDGE_RETRY_MAX_MS;
    bridge->retry_at_us = clock_mono_us() + (int64_t)bridge->retry_ms * 1000;
}

/* Once an outage, on stderr, which clients show as the server's log. */
void bridge_tell(struct bridge *bridge, const char *text)
{
    if (!bridge->outage_told)
        term_error("connect", "%s", text);
    bridge->outage_told = true;
}

void bridge_connect(struct bridge *bridge)
{
    struct why why;
    if (bridge->state != BRIDGE_AWAY || clock_mono_us() < bridge->retry_at_us)
        return;
    bridge->socket = daemon_client_socket(bridge->path, &why);
    if (bridge->socket < 0) {
        bridge_tell(bridge, why.text);
        try_later(bridge);
        return;
    }
    bridge->state = BRIDGE_GREETING;
    bridge_greet(bridge);
}

/* ---- sending ---- */

/* Bytes taken; 0: none now; -1: the connection has ended. */
static ssize_t send_some(const struct bridge *bridge, const char *at, size_t len)
{
    ssize_t n = send(bridge->socket, at, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    return n >= 0 ? n : errno == EAGAIN || errno == EINTR ? 0 : -1;
}

/* False: the daemon takes no more now. An end of the connection shows when reading, after its last answers.
 */
static bool send_next(struct bridge *bridge)
{
    struct tracked *t = TAILQ_FIRST(&bridge->requests.waiting);
    ssize_t n = send_some(bridge, t->line + t->sent, t->line_len - t->sent);
    if (n <= 0)
        return false;
    t->sent += (size_t)n;
    if (t->sent < t->line_len)
        return true;
    requests_remove(&bridge->requests, t);
    if (t->kind == TRACKED_NOTICE) {
        tracked_free(t);
        return true;
    }
    if (!t->repeats && !t->lists && !t->initializes) {
        free(t->line);
        t->line = NULL;
        t->line_len = 0;
    }
    requests_sent(&bridge->requests, t);
    return true;
}

void bridge_write_daemon(struct bridge *bridge)
{
    while (bridge->greeting.len && bridge->state != BRIDGE_AWAY) {
        ssize_t n = send_some(bridge, bridge->greeting.at, bridge->greeting.len);
        if (n <= 0)
            return;
        buf_drop(&bridge->greeting, (size_t)n);
    }
    while (bridge->state == BRIDGE_OPEN && !TAILQ_EMPTY(&bridge->requests.waiting))
        if (!send_next(bridge))
            return;
    if (bridge->state == BRIDGE_OPEN && bridge->client_ended && !bridge->shut_down) {
        shutdown(bridge->socket, SHUT_WR);
        bridge->shut_down = true;
    }
}

/* ---- the end ---- */

static void answer_in_flight(struct bridge *bridge)
{
    struct requests *r = &bridge->requests;
    struct tracked *t, *previous;
    for (t = TAILQ_LAST(&r->sent, tracked_list); t; t = previous) {
        previous = TAILQ_PREV(t, tracked_list, link);
        if (t->repeats && !(bridge->client_ended && bridge->shut_down)) {
            t->repeats--;
            requests_remove(r, t);
            requests_wait(r, t, true);
        }
    }
    while ((t = TAILQ_FIRST(&r->sent))) {
        bridge_answer(bridge, t, UNAVAILABLE_LOST);
        requests_end(r, t);
    }
}

void bridge_lost(struct bridge *bridge)
{
    bool was_open = bridge->state == BRIDGE_OPEN;
    struct tracked *t, *next;
    close(bridge->socket);
    bridge->socket = -1;
    bridge->state = BRIDGE_AWAY;
    bridge->epoch++;
    buf_clear(&bridge->from_daemon);
    buf_clear(&bridge->greeting);
    bridge->daemon_seen = 0;
    if (was_open) {
        bridge->outage_told = false;
        answer_in_flight(bridge);
        /* What had not been sent whole has not run: the next daemon gets it. */
        for (t = TAILQ_FIRST(&bridge->requests.waiting); t; t = next) {
            next = TAILQ_NEXT(t, link);
            t->sent = 0;
            t->until_us = clock_mono_us() + bridge->wait_us;
            if (t->kind == TRACKED_NOTICE)
                requests_end(&bridge->requests, t);
        }
        while (!TAILQ_EMPTY(&bridge->questions.sent))
            bridge_cancel_question(bridge, TAILQ_FIRST(&bridge->questions.sent), "the gateway was restarted");
    }
    bridge->shut_down = false;
    try_later(bridge);
    if (!bridge->client_ended || bridge->requests.waiting_count)
        bridge_tell(
            bridge,
            "the daemon closed the connection; its log has the reason. Requests wait for the next one");
}

/* ---- reading ---- */

void bridge_take_lines(struct bridge *bridge, struct buf *in, size_t *seen,
                       void (*take)(struct bridge *bridge, struct str line))
{
    struct str rest = buf_view(in);
    size_t from = *seen;
    const char *newline;
    while (rest.len > from && (newline = memchr(rest.at + from, '\n', rest.len - from))) {
        size_t length = (size_t)(newline - rest.at);
        take(bridge, (struct str){rest.at, length});
        rest = str_from(rest, length + 1);
        from = 0;
    }
    buf_drop(in, in->len - rest.len);
    *seen = in->len;
}

void bridge_read_daemon(struct bridge *bridge)
{
    struct buf *in = &bridge->from_daemon;
    ssize_t n = recv(bridge->socket, buf_reserve(in, READ_BYTES), READ_BYTES, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        in->len += (size_t)n;
    bridge_take_lines(bridge, in, &bridge->daemon_seen, bridge_daemon_line);
    if (bridge->state == BRIDGE_OPEN && bridge->outage_told && bridge->was_open) {
        bridge->outage_told = false;
        term_error("connect", "connected to the daemon at %s", bridge->path);
    }
    if (n <= 0 || in->len > BRIDGE_LINE_MAX_BYTES)
        bridge_lost(bridge);
}

void bridge_expire(struct bridge *bridge)
{
    int64_t now = clock_mono_us();
    struct tracked *t, *next;
    if (bridge->state == BRIDGE_OPEN)
        return;
    for (t = TAILQ_FIRST(&bridge->requests.waiting); t; t = next) {
        next = TAILQ_NEXT(t, link);
        if (t->until_us > now)
            continue;
        if (t->kind == TRACKED_REQUEST)
            bridge_answer(bridge, t, UNAVAILABLE_AWAY);
        requests_end(&bridge->requests, t);
    }
}

bool bridge_is_full(const struct bridge *bridge, size_t more)
{
    const struct requests *r = &bridge->requests;
    return r->waiting_count >= BRIDGE_WAITING_MAX || r->waiting_bytes + more > BRIDGE_WAITING_BYTES;
}

int64_t bridge_next_us(const struct bridge *bridge)
{
    int64_t next = bridge->state == BRIDGE_AWAY ? bridge->retry_at_us : -1;
    const struct tracked *t;
    if (bridge->state != BRIDGE_OPEN)
        TAILQ_FOREACH (t, &bridge->requests.waiting, link)
            if (next < 0 || t->until_us < next)
                next = t->until_us;
    return next;
}
