/* A connection of lua/cli to the daemon, for requests one after the other. Blocking, with a deadline. */
#include "cli/daemon_client.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/printable.h"
#include "cli/lua_cli.h"
#include "json/build.h"
#include "json/parse.h"
#include "sandbox/lua_json.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define CLIENT_READ_BYTES     65536u
#define CLIENT_ANSWER_NODES   10000000u  /* thousands of tools may be one reply */
#define CLIENT_TIMEOUT_MS     60000u     /* for one reply: a tool may be slow */
#define CLIENT_STATUS_MS      10000u     /* for the reply to toolgate/status, which waits for nothing */
#define CLIENT_LINE_MAX_BYTES 134217728u /* of a reply */

struct daemon_client {
    int fd;                      /* -1: closed */
    int64_t last_id, error_code; /* error_code: of the JSON-RPC error that came last; 0: none */
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

/* The socket of a client that names none: the user's own daemon ($XDG_RUNTIME_DIR), else that of the system
 * (/run/toolgate) if only that exists. */
static const char *client_socket(struct arena *arena)
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
        if (seen > CLIENT_LINE_MAX_BYTES)
            return err_set(why, ERR_LIMIT, "%s: a reply of more than %u bytes", client->path,
                           CLIENT_LINE_MAX_BYTES);
        enum err err = read_more(client, until, why);
        if (err != OK)
            return err;
    }
}

/* `params`: an object as JSON. */
static enum err send_request(struct daemon_client *client, const char *method, struct str params,
                             struct why *why)
{
    struct buf line = {0};
    bool waits_for_nothing = strcmp(method, "toolgate/status") == 0;
    client->timeout_ms = waits_for_nothing ? CLIENT_STATUS_MS : CLIENT_TIMEOUT_MS;
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

/* Notifications that come before the answer are skipped. `result` lives in the arena. A JSON-RPC error is
 * ERR_PARSE with the daemon's message; ERR_CONFIG: what listens there is no daemon. */
static enum err read_reply(struct daemon_client *client, struct arena *arena, struct json *result,
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

/* ---- for lua/cli ---- */

/* For a terminal: no character that it would obey or hide; lines stay lines. */
static struct str printable_lines(struct arena *arena, struct str text)
{
    struct buf out = buf_in(arena);
    if (printable_is_plain(text))
        return text;
    printable_write_lines(&out, text);
    return buf_view(&out);
}

/* As they are in each string and key. Keys are not numbered, as json_map_strings would. */
static const struct json *printable_child(void *arena, const struct json *parent, uint32_t i, struct str *key)
{
    const struct json *child = json_child(parent, i);
    struct str text = json_str(child), shown = printable_lines(arena, text);
    *key = printable_lines(arena, *key);
    if (shown.at != text.at)
        return json_keep(arena, json_string(shown));
    return json_map(arena, child, printable_child, arena);
}

/* The forms of an answer: its texts as a terminal may show them; "raw": its own texts, and the whole follows
 * as a line of JSON; "exact": the same, with each null and number as it was written; "parts": its own texts,
 * and the JSON of each member follows as it was sent; "shown parts": the same, of the answer that may be
 * shown; "members": see lua_cli_push_members. Returns how many values it has pushed. */
static int push_answer(lua_State *L, struct arena *arena, const struct json *answer, int form_at)
{
    enum { SHOWN, SHOWN_PARTS, RAW, EXACT, PARTS, MEMBERS };
    static const char *const forms[] = {"shown", "shown parts", "raw", "exact", "parts", "members", NULL};
    int form = luaL_checkoption(L, form_at, "shown", forms), top = lua_gettop(L);
    if (form == MEMBERS)
        return lua_cli_push_members(L, answer);
    if (form == SHOWN || form == SHOWN_PARTS)
        answer = json_map(arena, json_keep(arena, json_array(answer, 1)), printable_child, arena)->items;
    if (form == PARTS || form == SHOWN_PARTS)
        lua_cli_push_answer(L, answer);
    else
        lua_json_push(L, answer, form == EXACT ? LUA_JSON_EXACT : LUA_JSON_ANSWER);
    if (form == RAW) {
        struct buf line = {0};
        printable_write_json(&line, json_to_str(arena, answer));
        lua_cli_push_buf(L, &line);
    }
    return lua_gettop(L) - top;
}

#define CLIENT "toolgate.client"

static struct daemon_client *check_client(lua_State *L)
{
    return luaL_checkudata(L, 1, CLIENT);
}

/* Pushes nil, why, and what is wrong: the code of the daemon's error; true: it is no daemon, or forbidden;
 * false: it does not answer. */
static int fail_client(lua_State *L, const struct daemon_client *client, enum err err, const struct why *why)
{
    lua_cli_fail(L, why->text);
    if (err == ERR_PARSE)
        lua_pushnumber(L, (lua_Number)client->error_code);
    else
        lua_pushboolean(L, err == ERR_CONFIG);
    return 3;
}

/* client:close(), once or several times. */
static int client_close(lua_State *L)
{
    struct daemon_client *client = check_client(L);
    if (client->fd >= 0)
        close(client->fd);
    client->fd = -1;
    buf_clear(&client->in);
    return 0;
}

/* client:ask(method, params): true, or a failure. `params`: JSON. */
static int client_ask(lua_State *L)
{
    struct why why;
    struct daemon_client *client = check_client(L);
    enum err err = send_request(client, luaL_checkstring(L, 2), str_of(luaL_optstring(L, 3, "{}")), &why);
    lua_pushboolean(L, true);
    return err == OK ? 1 : fail_client(L, client, err, &why);
}

/* client:answer(form): the answer, or a failure. */
static int client_answer(lua_State *L)
{
    struct why why;
    struct json answer;
    struct arena *arena = arena_new();
    struct daemon_client *client = check_client(L);
    enum err err = read_reply(client, arena, &answer, &why);
    int pushed = err == OK ? push_answer(L, arena, &answer, 2) : fail_client(L, client, err, &why);
    arena_free(arena);
    return pushed;
}

/* client:descriptor(): readable when an answer has begun to arrive. */
static int client_descriptor(lua_State *L)
{
    lua_pushinteger(L, check_client(L)->fd);
    return 1;
}

/* cli.client(socket): a connection to the daemon, which is asked in two steps, as a command may wait for
 * other things in between; or a failure. */
static int client_connect(lua_State *L)
{
    static const luaL_Reg methods[] = {{"close", client_close},   {"ask", client_ask},
                                       {"answer", client_answer}, {"descriptor", client_descriptor},
                                       {"__gc", client_close},    {0}};
    const char *named = luaL_optstring(L, 1, NULL);
    struct why why;
    struct daemon_client *client = lua_cli_object(L, sizeof(*client), CLIENT, methods);
    struct arena *arena = arena_new();
    const char *path = named ? named : client_socket(arena);
    client->fd = daemon_client_socket(path, &why);
    if (client->fd >= 0)
        memcpy(client->path, path, strlen(path) + 1);
    arena_free(arena);
    return client->fd >= 0 ? 1 : fail_client(L, client, (enum err)client->fd, &why);
}

/* cli.default_socket(): that of a command that names none; and that of a daemon. */
static int default_socket(lua_State *L)
{
    struct arena *arena = arena_new();
    lua_pushstring(L, client_socket(arena));
    lua_pushstring(L, config_default_socket(arena));
    arena_free(arena);
    return 2;
}

const luaL_Reg lua_client_functions[] = {{"client", client_connect}, {"default_socket", default_socket}, {0}};
