/* toolgate connect (lua/cli/connect.lua): an MCP client's stdio server, which passes messages to the daemon
 * and stays when daemons come and go. One loop of poll: no read or write waits, except for a client that
 * does not read its stdout. */
#include "cli/connect.h"

#include "base/arena.h"
#include "base/clock.h"
#include "cli/daemon_client.h"
#include "cli/lua_cli.h"
#include "cli/term.h"
#include "json/write.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BYTES 65536u
#define LINGER_MS  2000 /* for pending replies after stdin ended */

/* ---- kept messages ---- */

/* Copies `s` to *at, and moves *at behind it. */
static struct str put(char **at, struct str s)
{
    struct str copy = {*at, s.len};
    if (s.len)
        memcpy(*at, s.at, s.len);
    *at += s.len;
    return copy;
}

struct tracked *tracked_new(struct str line, const struct json *id, struct str tool)
{
    struct buf text = {0}, key = {0};
    if (id) {
        json_write(&text, id);
        json_canonical(&key, id);
    }
    struct tracked *t = calloc(1, sizeof(*t) + text.len + key.len + tool.len);
    char *whole = line.len ? malloc(line.len + 1) : NULL;
    if (!t || (line.len && !whole))
        abort();
    char *at = (char *)(t + 1);
    t->id = put(&at, buf_view(&text));
    t->key = put(&at, buf_view(&key));
    t->tool = put(&at, tool);
    if (line.len) {
        t->line = whole;
        t->line_len = line.len + 1;
        memcpy(t->line, line.at, line.len);
        t->line[line.len] = '\n';
    }
    buf_clear(&text);
    buf_clear(&key);
    return t;
}

void tracked_add(struct tracked_list *list, struct tracked *t)
{
    TAILQ_INSERT_TAIL(&list->all, t, link);
    list->count++;
    list->bytes += t->line_len;
    t->list = list;
}

static void take_out(struct tracked *t)
{
    TAILQ_REMOVE(&t->list->all, t, link);
    t->list->count--;
    t->list->bytes -= t->line_len;
    t->list = NULL;
}

void tracked_end(struct tracked *t)
{
    if (t->list)
        take_out(t);
    free(t->line);
    free(t);
}

struct tracked *tracked_find(const struct tracked_list *list, const struct json *id)
{
    struct buf key = {0};
    struct tracked *t, *found = NULL;
    if (!id || TAILQ_EMPTY(&list->all))
        return NULL;
    json_canonical(&key, id);
    TAILQ_FOREACH (t, &list->all, link)
        if (str_eq(t->key, buf_view(&key))) {
            found = t;
            break;
        }
    buf_clear(&key);
    return found;
}

/* ---- connecting ---- */

static void try_later(struct bridge *bridge)
{
    bridge->retry_ms = bridge->retry_ms ? bridge->retry_ms * 2 : BRIDGE_RETRY_FIRST_MS;
    if (bridge->retry_ms > BRIDGE_RETRY_MAX_MS)
        bridge->retry_ms = BRIDGE_RETRY_MAX_MS;
    bridge->retry_at_us = clock_mono_us() + (int64_t)bridge->retry_ms * 1000;
}

/* Clients show stderr as the server's log. */
void bridge_tell(struct bridge *bridge, const char *text)
{
    if (!bridge->outage_told)
        term_error("%s", text);
    bridge->outage_told = true;
}

/* The option `start`, a function: it starts a daemon, and waits for nothing. */
static void start_daemon(struct bridge *bridge)
{
    lua_State *L = bridge->starter;
    bridge->started = true;
    lua_getfield(L, 1, "start");
    if (lua_pcall(L, 0, 0, 0)) {
        if (lua_isstring(L, -1))
            term_error("%s", lua_tostring(L, -1));
        lua_pop(L, 1);
    }
}

static void connect_daemon(struct bridge *bridge)
{
    struct why why;
    if (bridge->state != BRIDGE_AWAY || clock_mono_us() < bridge->retry_at_us)
        return;
    bridge->socket = daemon_client_socket(bridge->path, &why);
    if (bridge->socket < 0) {
        bridge_tell(bridge, why.text);
        if (bridge->starter && !bridge->started && bridge->waiting.count) /* it is not missed before */
            start_daemon(bridge);
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

/* As much as the daemon takes now. An end of the connection shows when reading, after its last answers. */
static void write_daemon(struct bridge *bridge)
{
    while (bridge->greeting.len && bridge->state != BRIDGE_AWAY) {
        ssize_t n = send_some(bridge, bridge->greeting.at, bridge->greeting.len);
        if (n <= 0)
            return;
        buf_drop(&bridge->greeting, (size_t)n);
    }
    for (struct tracked *t; bridge->state == BRIDGE_OPEN && (t = TAILQ_FIRST(&bridge->waiting.all));) {
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): one that was sent is taken out of the list */
        ssize_t n = send_some(bridge, t->line + t->sent, t->line_len - t->sent);
        if (n <= 0)
            return;
        t->sent += (size_t)n;
        if (t->sent < t->line_len)
            continue;
        if (!t->id.len) {
            tracked_end(t);
            continue;
        }
        take_out(t);
        if (!t->repeats && !t->lists && !t->initializes) {
            free(t->line);
            t->line = NULL;
            t->line_len = 0;
        }
        tracked_add(&bridge->sent, t);
    }
    if (bridge->state == BRIDGE_OPEN && bridge->client_ended && !bridge->shut_down) {
        shutdown(bridge->socket, SHUT_WR);
        bridge->shut_down = true;
    }
}

/* ---- the end of a connection ---- */

/* Those that repeat wait again before all others, in their order; the others get their answer. */
static void answer_in_flight(struct bridge *bridge)
{
    struct tracked *t, *previous;
    for (t = TAILQ_LAST(&bridge->sent.all, tracked_head); t; t = previous) {
        previous = TAILQ_PREV(t, tracked_head, link);
        if (!t->repeats || (bridge->client_ended && bridge->shut_down))
            continue;
        t->repeats--;
        take_out(t);
        tracked_add(&bridge->waiting, t);
        TAILQ_REMOVE(&bridge->waiting.all, t, link);
        TAILQ_INSERT_HEAD(&bridge->waiting.all, t, link);
    }
    while ((t = TAILQ_FIRST(&bridge->sent.all))) {
        bridge_answer(bridge, t, true);
        tracked_end(t);
    }
}

static void lose_connection(struct bridge *bridge)
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
        bridge->outage_told = bridge->started = false;
        answer_in_flight(bridge);
        /* What had not been sent whole has not run: the next daemon gets it. */
        for (t = TAILQ_FIRST(&bridge->waiting.all); t; t = next) {
            next = TAILQ_NEXT(t, link);
            t->sent = 0;
            t->until_us = clock_mono_us() + bridge->wait_us;
            if (!t->id.len)
                tracked_end(t);
        }
        while ((t = TAILQ_FIRST(&bridge->questions.all)))
            bridge_cancel_question(bridge, t, "the gateway was restarted");
    }
    bridge->shut_down = false;
    try_later(bridge);
    if (!bridge->client_ended || bridge->waiting.count)
        bridge_tell(
            bridge,
            "the daemon closed the connection; its log has the reason. Requests wait for the next one");
}

/* ---- reading ---- */

/* Gives each whole line of `in` to `take`. *seen: bytes of it that hold no newline. */
static void take_lines(struct bridge *bridge, struct buf *in, size_t *seen,
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

static void read_daemon(struct bridge *bridge)
{
    struct buf *in = &bridge->from_daemon;
    ssize_t n = recv(bridge->socket, buf_reserve(in, READ_BYTES), READ_BYTES, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        in->len += (size_t)n;
    take_lines(bridge, in, &bridge->daemon_seen, bridge_daemon_line);
    if (bridge->state == BRIDGE_OPEN && bridge->outage_told && bridge->was_open) {
        bridge->outage_told = false;
        term_error("connected to the daemon at %s", bridge->path);
    }
    if (n <= 0 || in->len > BRIDGE_LINE_MAX_BYTES)
        lose_connection(bridge);
}

/* False: a line is too long. */
static bool read_client(struct bridge *bridge)
{
    struct buf *in = &bridge->from_client;
    ssize_t n = read(STDIN_FILENO, buf_reserve(in, READ_BYTES), READ_BYTES);
    if (n > 0) {
        in->len += (size_t)n;
        take_lines(bridge, in, &bridge->client_seen, bridge_client_line);
    } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
        if (in->len) /* the daemon reports a line without its end */
            bridge_client_line(bridge, buf_view(in));
        bridge_client_ended(bridge);
        buf_clear(in);
    }
    return in->len <= BRIDGE_LINE_MAX_BYTES;
}

/* ---- the loop ---- */

/* Answers requests that have waited for too long. */
static void expire(struct bridge *bridge)
{
    int64_t now = clock_mono_us();
    struct tracked *t, *next;
    for (t = bridge->state == BRIDGE_OPEN ? NULL : TAILQ_FIRST(&bridge->waiting.all); t; t = next) {
        next = TAILQ_NEXT(t, link);
        if (t->until_us > now)
            continue;
        if (t->id.len)
            bridge_answer(bridge, t, false);
        tracked_end(t);
    }
}

bool bridge_is_full(const struct bridge *bridge, size_t more)
{
    return bridge->waiting.count >= BRIDGE_WAITING_MAX || bridge->waiting.bytes + more > BRIDGE_WAITING_BYTES;
}

/* When connect_daemon or expire has something to do, or -1. */
static int64_t next_us(const struct bridge *bridge)
{
    int64_t next = bridge->state == BRIDGE_AWAY ? bridge->retry_at_us : -1;
    const struct tracked *t;
    if (bridge->state != BRIDGE_OPEN)
        TAILQ_FOREACH (t, &bridge->waiting.all, link)
            if (next < 0 || t->until_us < next)
                next = t->until_us;
    return next;
}

/* The exit code, or -1: it goes on. */
static int turn(struct bridge *bridge)
{
    bool sends = bridge->greeting.len || (bridge->state == BRIDGE_OPEN && bridge->waiting.count);
    int64_t next = next_us(bridge), now = clock_mono_us();
    bool lingers = bridge->client_ended && next < 0;
    int pause_ms = next < 0 ? (lingers ? LINGER_MS : -1) : next > now ? (int)((next - now + 999) / 1000) : 0;
    /* Away, the client is read to its bounds and beyond them answered; else it is read as fast as the daemon
     * reads. */
    bool has_room = bridge->waiting.bytes < BRIDGE_PENDING_BYTES && bridge->sent.count < BRIDGE_IN_FLIGHT_MAX;
    if (bridge->state == BRIDGE_GREETING)
        has_room = !bridge_is_full(bridge, READ_BYTES);
    bool reads = !bridge->client_ended && (bridge->state == BRIDGE_AWAY || has_room);
    struct pollfd fds[] = {
        {.fd = bridge->state == BRIDGE_AWAY ? -1 : bridge->socket,
         .events = (short)(POLLIN | (sends ? POLLOUT : 0))},
        {.fd = reads ? STDIN_FILENO : -1, .events = POLLIN},
    };
    int ready = poll(fds, 2, pause_ms);
    if (ready == 0 && lingers) {
        if (bridge->sent.count)
            term_error("requests without an answer after stdin ended: %zu", bridge->sent.count);
        return bridge->sent.count || bridge->has_failed ? CLI_ERROR : CLI_OK;
    }
    if (ready > 0 && fds[1].revents && !read_client(bridge)) {
        term_error("a line of more than 1 GiB on stdin");
        return CLI_ERROR;
    }
    if (ready > 0 && fds[0].revents)
        read_daemon(bridge);
    expire(bridge);
    connect_daemon(bridge);
    write_daemon(bridge);
    bool written = term_write_all(buf_view(&bridge->to_client));
    buf_clear(&bridge->to_client);
    if (!written) {
        term_error("stdout is closed");
        return CLI_ERROR;
    }
    if (bridge->client_ended && bridge->state == BRIDGE_AWAY && !bridge->waiting.count)
        return bridge->was_open && !bridge->has_failed ? CLI_OK : CLI_ERROR;
    return -1;
}

static int run_bridge(struct bridge *bridge)
{
    struct tracked_list *const lists[] = {&bridge->waiting, &bridge->sent, &bridge->subscriptions,
                                          &bridge->watched, &bridge->questions};
    int status;
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
        TAILQ_INIT(&lists[i]->all);
    connect_daemon(bridge);
    while ((status = turn(bridge)) < 0)
        ;
    if (bridge->socket >= 0)
        close(bridge->socket);
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
        for (struct tracked *t; (t = TAILQ_FIRST(&lists[i]->all));)
            tracked_end(t); /* NOLINT(clang-analyzer-unix.Malloc): it is taken out of the list */
    buf_clear(&bridge->from_daemon);
    buf_clear(&bridge->from_client);
    buf_clear(&bridge->to_client);
    buf_clear(&bridge->greeting);
    free(bridge->initialize);
    free(bridge->level);
    free(bridge->tools_request);
    arena_free(bridge->tools_arena);
    return status;
}

int lua_connect(lua_State *L)
{
    struct arena *arena = arena_new();
    size_t count;
    const char **operands = lua_cli_list(L, NULL, arena, &count);
    lua_getfield(L, 1, "wait");
    struct bridge bridge = {.path = operands[0],
                            .session = str_of(lua_cli_option(L, "session")),
                            .owns_session = lua_cli_flag(L, "owns_session"),
                            .servers = lua_cli_option(L, "servers"),
                            .starter = lua_cli_flag(L, "start") ? L : NULL,
                            .wait_us = (int64_t)luaL_checkinteger(L, -1) * 1000000,
                            .socket = -1};
    int status = run_bridge(&bridge);
    arena_free(arena);
    lua_pushinteger(L, status);
    return 1;
}
