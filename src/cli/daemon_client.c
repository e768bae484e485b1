/* Blocking requests over the daemon's socket. */
#include "cli/daemon_client.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "policy/config.h"
#include "json/parse.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define CLIENT_READ_BYTES   65536u
#define CLIENT_ANSWER_NODES 10000000u /* thousands of tools may be one reply */

struct daemon_client {
    int fd;
    int64_t last_id, error_code;
    struct buf in;
    size_t taken;        /* bytes of the line that was returned last */
    unsigned timeout_ms; /* for the reply to the request that was sent last */
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

static enum err no_daemon(const char *path, int error, struct why *why)
{
    if (error == ENOENT)
        return err_set(why, ERR_UNAVAILABLE,
                       "no daemon at %s: there is no such socket; start one with"
                       " `toolgate serve --socket %s`",
                       path, path);
    struct stat st;
    if (error == ECONNREFUSED && stat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
        return err_set(why, ERR_CONFIG,
                       "no daemon at %s: the file is not a socket; name the daemon's (--socket)", path);
    if (error == ECONNREFUSED)
        return err_set(why, ERR_UNAVAILABLE,
                       "no daemon at %s: the socket exists, but nothing listens; start one"
                       " with `toolgate serve --socket %s`",
                       path, path);
    if (error == EACCES)
        return err_set(why, ERR_CONFIG,
                       "%s: permission denied; check the daemon's socket_mode and the groups of this user",
                       path);
    return err_set(why, ERR_IO, "%s: %s", path, strerror(error));
}

const char *daemon_client_default_socket(struct arena *arena)
{
    const char *own = config_default_socket(arena), *system = CONFIG_SYSTEM_FOLDER "/" CONFIG_SOCKET_NAME;
    const char *named = getenv("TOOLGATE_SOCKET");
    return !(named && *named) && access(own, F_OK) != 0 && access(system, F_OK) == 0 ? system : own;
}

int daemon_client_socket(const char *path, struct why *why)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path))
        return err_set(why, ERR_CONFIG, "%s: expected a socket path of at most %zu bytes", path,
                       sizeof(address.sun_path) - 1);
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    enum err err = no_daemon(path, errno, why);
    if (fd >= 0)
        close(fd);
    return err;
}

enum err daemon_client_connect(const char *path, struct daemon_client **out, struct why *why)
{
    struct arena *arena = arena_new();
    if (!path)
        path = daemon_client_default_socket(arena);
    int fd = daemon_client_socket(path, why);
    *out = NULL;
    if (fd >= 0) {
        struct daemon_client *client = alloc_zeroed(sizeof(*client));
        client->fd = fd;
        client->timeout_ms = DAEMON_CLIENT_TIMEOUT_MS;
        memcpy(client->path, path, strlen(path) + 1);
        *out = client;
    }
    arena_free(arena);
    return fd >= 0 ? OK : (enum err)fd;
}

void daemon_client_close(struct daemon_client *client)
{
    if (!client)
        return;
    close(client->fd);
    buf_clear(&client->in);
    free(client);
}

static enum err gone(const struct daemon_client *client, struct why *why)
{
    return err_set(why, ERR_CLOSED,
                   "%s: the daemon closed the connection; its log has the reason (an allow list"
                   " without this user, a limit, a stop)",
                   client->path);
}

static enum err send_all(const struct daemon_client *client, struct str bytes, struct why *why)
{
    for (size_t sent = 0; sent < bytes.len;) {
        ssize_t n = send(client->fd, bytes.at + sent, bytes.len - sent, MSG_NOSIGNAL);
        if (n >= 0)
            sent += (size_t)n;
        else if (errno == EPIPE || errno == ECONNRESET)
            return gone(client, why);
        else if (errno != EINTR)
            return err_set(why, ERR_IO, "%s: %s", client->path, strerror(errno));
    }
    return OK;
}

static enum err read_more(struct daemon_client *client, int64_t until_us, struct why *why)
{
    struct pollfd wait = {.fd = client->fd, .events = POLLIN};
    int64_t left = (until_us - clock_mono_us()) / 1000;
    int ready = poll(&wait, 1, left > 0 ? (int)left : 0);
    if (ready == 0)
        return err_set(why, ERR_TIMEOUT,
                       "%s: no reply within %u s; the daemon hangs or is stopped (its state: ps -C toolgate)",
                       client->path, client->timeout_ms / 1000);
    if (ready < 0)
        return errno == EINTR ? OK : err_set(why, ERR_IO, "%s: %s", client->path, strerror(errno));
    ssize_t n = read(client->fd, buf_reserve(&client->in, CLIENT_READ_BYTES), CLIENT_READ_BYTES);
    if (n == 0 || (n < 0 && errno == ECONNRESET))
        return gone(client, why);
    if (n < 0)
        return errno == EINTR ? OK : err_set(why, ERR_IO, "%s: %s", client->path, strerror(errno));
    client->in.len += (size_t)n;
    return OK;
}

/* The next line, without its newline; valid until the next read. */
static enum err read_line(struct daemon_client *client, struct str *line, struct why *why)
{
    int64_t until = clock_mono_us() + (int64_t)client->timeout_ms * 1000;
    buf_drop(&client->in, client->taken);
    client->taken = 0;
    for (size_t seen = 0;;) {
        const char *end =
            client->in.len > seen ? memchr(client->in.at + seen, '\n', client->in.len - seen) : NULL;
        if (end) {
            *line = (struct str){client->in.at, (size_t)(end - client->in.at)};
            client->taken = line->len + 1;
            return OK;
        }
        seen = client->in.len;
        if (seen > DAEMON_CLIENT_LINE_MAX_BYTES)
            return err_set(why, ERR_LIMIT, "%s: a reply of more than %u bytes", client->path,
                           DAEMON_CLIENT_LINE_MAX_BYTES);
        enum err err = read_more(client, until, why);
        if (err != OK)
            return err;
    }
}

int daemon_client_descriptor(const struct daemon_client *client)
{
    return client->fd;
}

enum err daemon_client_ask(struct daemon_client *client, const char *method, struct str params,
                           struct why *why)
{
    struct buf line = {0};
    bool waits_for_nothing = strcmp(method, "toolgate/status") == 0;
    client->timeout_ms = waits_for_nothing ? DAEMON_CLIENT_STATUS_MS : DAEMON_CLIENT_TIMEOUT_MS;
    buf_printf(&line,
               "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"method\":\"%s\",\"params\":", (long long)++client->last_id,
               method);
    buf_str(&line, params);
    buf_text(&line, "}\n");
    enum err err = send_all(client, buf_view(&line), why);
    /* The daemon that accepted the connection stops, and has not read the line, as its newline comes last:
     * the daemon that takes its place gets it. */
    int fd = err == ERR_CLOSED && client->last_id == 1 ? daemon_client_socket(client->path, why) : -1;
    if (err == ERR_CLOSED && client->last_id == 1 && fd < 0)
        err = ERR_UNAVAILABLE;
    if (fd >= 0) {
        close(client->fd);
        client->fd = fd;
        err = send_all(client, buf_view(&line), why);
    }
    buf_clear(&line);
    return err;
}

enum err daemon_client_answer(struct daemon_client *client, struct arena *arena, struct json *result,
                              struct why *why)
{
    static const struct json_limits limits = {.nodes = CLIENT_ANSWER_NODES};
    struct json message;
    struct json_error fault;
    int64_t id;
    do {
        struct str line = STR_NONE;
        enum err err = read_line(client, &line, why);
        if (err != OK)
            return err;
        if (json_parse(arena, arena_dup(arena, line), &limits, &message, &fault) != OK && !fault.soft)
            return err_set(why, ERR_CONFIG, "%s: the reply is not JSON: %s", client->path, fault.text);
    } while (!json_int(json_get_text(&message, "id"), &id) || id != client->last_id);
    const struct json *answer = json_get_text(&message, "result"), *error = json_get_text(&message, "error");
    client->error_code = 0;
    if (error) {
        json_int(json_get_text(error, "code"), &client->error_code);
        return err_set(why, ERR_PARSE, "the daemon replied: " STR_FMT,
                       STR_ARG(json_str(json_get_text(error, "message"))));
    }
    if (!json_is(answer, JSON_OBJECT))
        return err_set(why, ERR_CONFIG, "%s: a reply with neither an object as its result nor an error",
                       client->path);
    *result = *answer;
    return OK;
}

int64_t daemon_client_error_code(const struct daemon_client *client)
{
    return client->error_code;
}
