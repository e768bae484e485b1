/*
 * toolgate connect: passes bytes between a client's stdio and the daemon's
 * socket; with --session each request gets its session. The socket does not
 * block: a daemon that stopped reading until its replies are read still gets
 * them read.
 */
#include "base/arena.h"
#include "base/buf.h"
#include "base/hash.h"
#include "cli/stdio_bridge.h"
#include "cli/daemon_client.h"
#include "cli/options.h"
#include "cli/term.h"
#include "config/config.h"
#include "json/write.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECT_READ_BYTES     65536u
#define CONNECT_PENDING_BYTES  262144u     /* above this, stdin is not read until the daemon has read some */
#define CONNECT_LINE_MAX_BYTES 1073741824u /* with a session: the maximum of limits.message */
#define CONNECT_LINGER_MS      2000        /* for pending replies after stdin ended */

struct bridge {
    int socket;
    struct str session; /* a JSON string; empty: bytes pass unchanged */
    struct buf line;    /* with a session: read from the client, without its newline yet */
    size_t seen;        /* bytes of it that hold no newline */
    struct buf out;     /* for the daemon */
    bool client_ended, shut_down;
    int status;
    const char *error; /* NULL: none */
};

static bool is_over(const struct bridge *bridge)
{
    return bridge->status >= 0;
}

static void end(struct bridge *bridge, int status, const char *error)
{
    bridge->status = status;
    bridge->error = error;
}

static void take_lines(struct bridge *bridge)
{
    struct str rest = buf_view(&bridge->line);
    size_t seen = bridge->seen;
    const char *newline;
    while (rest.len > seen && (newline = memchr(rest.at + seen, '\n', rest.len - seen))) {
        size_t length = (size_t)(newline - rest.at);
        stdio_bridge_line(&bridge->out, (struct str){rest.at, length}, bridge->session);
        buf_byte(&bridge->out, '\n');
        rest = str_from(rest, length + 1);
        seen = 0;
    }
    buf_drop(&bridge->line, bridge->line.len - rest.len);
    bridge->seen = rest.len;
    if (bridge->line.len > CONNECT_LINE_MAX_BYTES)
        end(bridge, CLI_ERROR, "a line of more than 1 GiB on stdin");
}

static void client_ended(struct bridge *bridge)
{
    bridge->client_ended = true;
    buf_str(&bridge->out, buf_view(&bridge->line)); /* a partial line: the daemon reports it */
    buf_clear(&bridge->line);
}

static void read_client(struct bridge *bridge)
{
    struct buf *into = bridge->session.len ? &bridge->line : &bridge->out;
    ssize_t n = read(STDIN_FILENO, buf_reserve(into, CONNECT_READ_BYTES), CONNECT_READ_BYTES);
    if (n > 0)
        into->len += (size_t)n;
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        client_ended(bridge);
    if (n > 0 && bridge->session.len)
        take_lines(bridge);
}

static void write_daemon(struct bridge *bridge)
{
    while (bridge->out.len) {
        ssize_t n = send(bridge->socket, bridge->out.at, bridge->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0) {
            end(bridge, CLI_ERROR, "the daemon closed the connection");
            return;
        }
        buf_drop(&bridge->out, (size_t)n);
    }
    if (bridge->client_ended && !bridge->shut_down) {
        shutdown(bridge->socket, SHUT_WR);
        bridge->shut_down = true;
    }
}

static bool write_client(const char *at, size_t len)
{
    while (len) {
        ssize_t n = write(STDOUT_FILENO, at, len);
        if (n < 0 && errno == EAGAIN) /* another process made this stdout non-blocking */
            poll(&(struct pollfd){.fd = STDOUT_FILENO, .events = POLLOUT}, 1, -1);
        else if (n < 0 && errno != EINTR)
            return false;
        if (n > 0) {
            at += n;
            len -= (size_t)n;
        }
    }
    return true;
}

static void read_daemon(struct bridge *bridge)
{
    char bytes[CONNECT_READ_BYTES];
    ssize_t n = recv(bridge->socket, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0)
        end(bridge, bridge->client_ended ? CLI_OK : CLI_ERROR,
            bridge->client_ended ? NULL : "the daemon closed the connection; its log has the reason");
    else if (!write_client(bytes, (size_t)n))
        end(bridge, CLI_ERROR, "stdout is closed");
}

static void turn(struct bridge *bridge)
{
    bool reads_client = !bridge->client_ended && bridge->out.len < CONNECT_PENDING_BYTES;
    struct pollfd fds[] = {
        {.fd = bridge->socket, .events = (short)(POLLIN | (bridge->out.len ? POLLOUT : 0))},
        {.fd = reads_client ? STDIN_FILENO : -1, .events = POLLIN},
    };
    int ready = poll(fds, 2, bridge->client_ended ? CONNECT_LINGER_MS : -1);
    if (ready == 0)
        end(bridge, CLI_OK, NULL);
    if (ready > 0 && fds[1].revents)
        read_client(bridge);
    if (ready > 0 && fds[0].revents)
        read_daemon(bridge);
    if (!is_over(bridge))
        write_daemon(bridge);
}

/* As a JSON string. "auto" is a new session. */
static struct str session_text(struct arena *arena, const char *session)
{
    if (!session)
        return STR_NONE;
    struct buf text = buf_in(arena);
    struct str name = str_of(session);
    if (str_is(name, "auto"))
        name = arena_printf(arena, "auto-%016llx", (unsigned long long)hash_random());
    json_write_string(&text, name);
    return buf_view(&text);
}

static int run(const struct command *command, int argc, char **argv)
{
    const char *session = NULL;
    int status;
    const struct cli_option table[] = {
        {"session", "ID", "the session of each request that has none; auto: a new one for this process", 0,
         OPTION_STRING, &session},
        {0},
    };
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    struct arena *arena = arena_new();
    struct why why;
    int socket = daemon_client_socket(argc ? argv[0] : daemon_client_default_socket(arena), &why);
    if (socket >= 0) {
        struct bridge bridge = {.socket = socket, .session = session_text(arena, session), .status = -1};
        while (!is_over(&bridge))
            turn(&bridge);
        if (bridge.error)
            term_error("connect", "%s", bridge.error);
        buf_clear(&bridge.line);
        buf_clear(&bridge.out);
        status = bridge.status;
        close(socket);
    } else {
        term_error(command->name, "%s", why.text);
        status = CLI_ERROR;
    }
    arena_free(arena);
    return status;
}

const struct command command_connect = {
    .name = "connect",
    .operands = "[SOCKET]",
    .summary = "connect an MCP client's stdio to the daemon",
    .about =
        "An MCP client starts this command as its stdio server. Bytes pass unchanged in both directions;\n"
        "with --session, each request that has no session gets one. Ends when stdin ends.",
    .exits = "  0  stdin ended, and the pending replies were delivered\n"
             "  2  usage, no daemon, or the daemon closed the connection",
    .example = "  claude mcp add gate -- toolgate connect /tmp/toolgate.sock --session auto\n"
               "  echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}' | toolgate connect "
               "/tmp/toolgate.sock",
    .least = 0,
    .most = 1,
    .run = run,
};
