/* The connection: attempts with growing pauses, sending, reading, and what its end means for each message. */
#include "base/clock.h"
#include "cli/daemon_client.h"
#include "cli/term.h"
#include "connect/bridge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BYTES 65536u

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
    greeting_begin(bridge);
}

/* ---- sending ---- */

/* Bytes taken; 0: none now; -1: the connection has ended. */
static ssize_t send_some(const struct bridge *bridge, const char *at, size_t len)
{
    ssize_t n = send(bridge->socket, at, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    return n >= 0 ? n : errno == EAGAIN || errno == EINTR ? 0 : -1;
}

static void was_sent(struct bridge *bridge, struct tracked *t)
{
    requests_drop_waiting(&bridge->requests, t);
    if (t->kind == TRACKED_NOTICE) {
        tracked_free(t);
        return;
    }
    if (!t->repeats && !t->lists && !t->initializes) {
        free(t->line);
        t->line = NULL;
        t->line_len = 0;
    }
    requests_sent(&bridge->requests, t);
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
    if (t->sent == t->line_len)
        was_sent(bridge, t);
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
            requests_drop_sent(r, t);
            requests_wait_first(r, t);
        }
    }
    while ((t = TAILQ_FIRST(&r->sent))) {
        requests_drop_sent(r, t);
        unavailable_answer(bridge, t, UNAVAILABLE_LOST);
        tracked_free(t);
    }
}

/* What had not been sent whole has not run: the next daemon gets it. */
static void keep_waiting(struct bridge *bridge)
{
    int64_t until = clock_mono_us() + bridge->wait_us;
    struct tracked *t, *next;
    for (t = TAILQ_FIRST(&bridge->requests.waiting); t; t = next) {
        next = TAILQ_NEXT(t, link);
        t->sent = 0;
        t->until_us = until;
        if (t->kind == TRACKED_NOTICE) {
            requests_drop_waiting(&bridge->requests, t);
            tracked_free(t);
        }
    }
}

static void cancel_questions(struct bridge *bridge)
{
    while (!TAILQ_EMPTY(&bridge->questions.sent))
        bridge_cancel_question(bridge, TAILQ_FIRST(&bridge->questions.sent), "the gateway was restarted");
}

void bridge_lost(struct bridge *bridge)
{
    bool was_open = bridge->state == BRIDGE_OPEN;
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
        keep_waiting(bridge);
        cancel_questions(bridge);
    }
    bridge->shut_down = false;
    try_later(bridge);
    if (!bridge->client_ended || bridge->requests.waiting_count)
        bridge_tell(
            bridge,
            "the daemon closed the connection; its log has the reason. Requests wait for the next one");
}

/* ---- reading ---- */

void bridge_read_daemon(struct bridge *bridge)
{
    struct buf *in = &bridge->from_daemon;
    ssize_t n = recv(bridge->socket, buf_reserve(in, READ_BYTES), READ_BYTES, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        in->len += (size_t)n;
    struct str rest = buf_view(in);
    const char *newline;
    while (rest.len > bridge->daemon_seen &&
           (newline = memchr(rest.at + bridge->daemon_seen, '\n', rest.len - bridge->daemon_seen))) {
        size_t length = (size_t)(newline - rest.at);
        bridge_daemon_line(bridge, (struct str){rest.at, length});
        rest = str_from(rest, length + 1);
        bridge->daemon_seen = 0;
    }
    buf_drop(in, in->len - rest.len);
    bridge->daemon_seen = in->len;
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
        if (t->until_us <= now) {
            requests_drop_waiting(&bridge->requests, t);
            if (t->kind == TRACKED_REQUEST)
                unavailable_answer(bridge, t, UNAVAILABLE_AWAY);
            tracked_free(t);
        }
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
