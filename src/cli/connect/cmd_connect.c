/*
 * toolgate connect (lua/cli/connect.lua): an MCP client's stdio server, which passes messages to the daemon
 * and stays when daemons come and go (bridge.h). One loop of poll: no read or write waits, except for a
 * client that does not read its stdout.
 */
#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/term.h"
#include "cli/connect/bridge.h"
#include "json/write.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>
#include <unistd.h>

#define READ_BYTES 65536u
#define LINGER_MS  2000 /* for pending replies after stdin ended */

struct stdio {
    struct buf line; /* read from the client, without its newline yet */
    size_t seen;     /* bytes of it that hold no newline */
};

/* False: a line is too long. */
static bool read_client(struct bridge *bridge, struct stdio *stdio)
{
    ssize_t n = read(STDIN_FILENO, buf_reserve(&stdio->line, READ_BYTES), READ_BYTES);
    if (n > 0) {
        stdio->line.len += (size_t)n;
        bridge_take_lines(bridge, &stdio->line, &stdio->seen, bridge_client_line);
    } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
        if (stdio->line.len) /* the daemon reports a line without its end */
            bridge_client_line(bridge, buf_view(&stdio->line));
        bridge_client_ended(bridge);
        buf_clear(&stdio->line);
    }
    return stdio->line.len <= BRIDGE_LINE_MAX_BYTES;
}

/* False: stdout is closed. */
static bool write_client(struct bridge *bridge)
{
    struct str rest = buf_view(&bridge->to_client);
    while (rest.len) {
        ssize_t n = write(STDOUT_FILENO, rest.at, rest.len);
        if (n < 0 && errno == EAGAIN) /* another process made this stdout non-blocking */
            poll(&(struct pollfd){.fd = STDOUT_FILENO, .events = POLLOUT}, 1, -1);
        else if (n < 0 && errno != EINTR)
            return false;
        if (n > 0)
            rest = str_from(rest, (size_t)n);
    }
    buf_clear(&bridge->to_client);
    return true;
}

/* The exit code, or -1: it goes on. */
static int turn(struct bridge *bridge, struct stdio *stdio)
{
    bool sends = bridge->greeting.len || (bridge->state == BRIDGE_OPEN && bridge->requests.waiting_count);
    int64_t next = bridge_next_us(bridge), now = clock_mono_us();
    bool lingers = bridge->client_ended && next < 0;
    int pause_ms = next < 0 ? (lingers ? LINGER_MS : -1) : next > now ? (int)((next - now + 999) / 1000) : 0;
    /* Away, the client is read to its bounds and beyond them answered; else it is read as fast as the daemon
     * reads. */
    bool has_room = bridge->requests.waiting_bytes < BRIDGE_PENDING_BYTES &&
                    bridge->requests.sent_count < BRIDGE_IN_FLIGHT_MAX;
    if (bridge->state == BRIDGE_GREETING)
        has_room = !bridge_is_full(bridge, READ_BYTES);
    bool reads = !bridge->client_ended && (bridge->state == BRIDGE_AWAY || has_room);
    struct pollfd fds[] = {
        {.fd = bridge->state == BRIDGE_AWAY ? -1 : bridge->socket,
         .events = (short)(POLLIN | (sends ? POLLOUT : 0))},
        {.fd = reads ? STDIN_FILENO : -1, .events = POLLIN},
    };
    int ready = poll(fds, 2, pause_ms);
    if (ready == 0 && lingers)
        return CLI_OK;
    if (ready > 0 && fds[1].revents && !read_client(bridge, stdio)) {
        term_error("connect", "a line of more than 1 GiB on stdin");
        return CLI_ERROR;
    }
    if (ready > 0 && fds[0].revents)
        bridge_read_daemon(bridge);
    bridge_expire(bridge);
    bridge_connect(bridge);
    bridge_write_daemon(bridge);
    if (!write_client(bridge)) {
        term_error("connect", "stdout is closed");
        return CLI_ERROR;
    }
    if (bridge->client_ended && bridge->state == BRIDGE_AWAY && !bridge->requests.waiting_count)
        return bridge->was_open && !bridge->has_failed ? CLI_OK : CLI_ERROR;
    return -1;
}

static int run_bridge(const char *path, struct str session, bool owns_session, unsigned wait_s)
{
    struct bridge bridge = {.path = path,
                            .session = session,
                            .owns_session = owns_session,
                            .wait_us = (int64_t)wait_s * 1000000,
                            .socket = -1};
    struct requests *const all[] = {&bridge.requests, &bridge.subscriptions, &bridge.watched,
                                    &bridge.questions};
    struct stdio stdio = {0};
    int status;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        requests_init(all[i]);
    bridge_connect(&bridge);
    while ((status = turn(&bridge, &stdio)) < 0)
        ;
    if (bridge.socket >= 0)
        close(bridge.socket);
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        requests_clear(all[i]);
    buf_clear(&bridge.from_daemon);
    buf_clear(&bridge.to_client);
    buf_clear(&bridge.greeting);
    free(bridge.initialize);
    free(bridge.level);
    free(bridge.tools.request);
    arena_free(bridge.tools.arena);
    buf_clear(&stdio.line);
    return status;
}

int connect_start(char *const *given)
{
    const char *session = command_given(given, "session", 0), *wait = command_given(given, "wait", 0);
    const char *path = command_given(given, "", 0);
    unsigned wait_s = wait ? (unsigned)strtoul(wait, NULL, 10) : BRIDGE_WAIT_S;
    struct arena *arena = arena_new();
    struct buf session_text = buf_in(arena); /* a JSON string */
    bool is_auto = session && strcmp(session, "auto") == 0;
    int status = CLI_ERROR;
    if (session)
        json_write_string(&session_text,
                          is_auto ? arena_printf(arena, "auto-%016llx", (unsigned long long)hash_random())
                                  : str_of(session));
    if (!path)
        path = daemon_client_default_socket(arena);
    if (wait_s > BRIDGE_WAIT_MAX_S)
        term_error("connect", "--wait: expected at most %u seconds, got %u", BRIDGE_WAIT_MAX_S, wait_s);
    else if (strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
        term_error("connect", "%s: expected a socket path of at most %zu bytes", path,
                   sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
    else
        status = run_bridge(path, buf_view(&session_text), is_auto, wait_s);
    arena_free(arena);
    return status;
}
