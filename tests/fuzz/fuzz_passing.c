/*
 * What the gate passes between two clients and an upstream that lies. The whole daemon runs in a thread;
 * this file plays the clients, the spawner and the server. Each line of the input is one step:
 *
 *   ac… bp… ar… bm… as… au…  client a or b calls a tool, gets a prompt, reads or completes or (un)subscribes;
 *                            both use the same ids and progress tokens. The rest goes into the text.
 *   xa                       the client cancels its latest request
 *   r0 p0 n0                 the server answers its latest request but 0, tells its progress, or says that
 *                            the resource has changed; also a request that it has answered before
 *   {…                       the server says this line; %0 is the id of its latest request but 0
 *   e                        the server ends
 *
 * Each request is answered exactly once, one that was cancelled at most once, and what was said of a
 * client's request reaches no other: a secret of each client is in its requests and in honest answers.
 */
#include "fuzzed_daemon.h"
#include "hand_over.h"

#include "base/hash.h"

#define CLIENTS   2u
#define STEPS_MAX 32u
#define OPEN_MAX  128u

static const struct fuzzed_file files[] = {
    {"toolgate.lua", "return { decisions = false, watch = false, log = { level = 'error' },\n"
                     "  limits = { message = 65536 }, spawner = 'HOME/spawner',\n"
                     "  upstreams = { lying = { spawned = true, timeout = 5 } } }\n"},
};

struct asked { /* by the daemon */
    char id[24], token[24], method[32], secret[24], uri[256];
};

static struct server_side {
    int listener, connection, from, to, errors;
    struct buf in;
    struct asked asked[OPEN_MAX];
    unsigned count, answered; /* of `asked` */
} server = {.listener = -1, .connection = -1};

struct client_side {
    int fd;
    struct buf in;
    unsigned sent, answers[STEPS_MAX + 1];
    bool cancelled[STEPS_MAX + 1];
    char secret[24], other[24];
};

static struct client_side clients[CLIENTS];

static void write_all(int fd, const void *bytes, size_t len)
{
    for (const char *at = bytes; len;) {
        ssize_t n = write(fd, at, len);
        if (n <= 0)
            return;
        at += n;
        len -= (size_t)n;
    }
}

static void write_line(int fd, struct buf *line)
{
    buf_byte(line, '\n');
    write_all(fd, line->at, line->len);
    buf_clear(line);
}

/* ---- the server ---- */

static void end_server(void)
{
    int *const fds[] = {&server.connection, &server.from, &server.to, &server.errors};
    for (size_t i = 0; server.connection >= 0 && i < sizeof(fds) / sizeof(*fds); i++)
        close(*fds[i]);
    server.connection = -1;
    server.in.len = 0;
    server.answered = server.count;
}

static void begin_server(void)
{
    int connection = accept4(server.listener, NULL, NULL, SOCK_CLOEXEC), pipes[PIPES][2];
    if (connection < 0)
        return;
    end_server();
    int theirs[PIPES];
    for (int i = 0; i < PIPES; i++) {
        REQUIRE(pipe(pipes[i]) == 0);
        theirs[i] = pipes[i][i == 0 ? 1 : 0];
    }
    hand_over(connection, theirs);
    for (int i = 0; i < PIPES; i++)
        close(theirs[i]);
    server.connection = connection;
    server.from = pipes[0][0];
    server.to = pipes[1][1];
    server.errors = pipes[2][1];
}

/* A number or a string, `quoted` as in JSON. */
static void copy_text(yajl_val message, const char **path, bool quoted, char *out, size_t size)
{
    yajl_val value = yajl_tree_get(message, path, yajl_t_any);
    const char *text = YAJL_IS_NUMBER(value) ? YAJL_GET_NUMBER(value) : YAJL_GET_STRING(value);
    snprintf(out, size, quoted && YAJL_IS_STRING(value) ? "\"%s\"" : "%s", text ? text : "");
}

static const char *own_answer(const char *method)
{
    static const char *const answers[][2] = {
        {"initialize", "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{},\"prompts\":{},"
                       "\"completions\":{},\"resources\":{\"subscribe\":true}},"
                       "\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}"},
        {"tools/list", "{\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"}}]}"},
        {"prompts/list", "{\"prompts\":[{\"name\":\"p\",\"arguments\":[{\"name\":\"text\"}]}]}"},
        {"resources/list", "{\"resources\":[{\"uri\":\"x:1\",\"name\":\"x\"}]}"},
        {"resources/templates/list", "{\"resourceTemplates\":[{\"uriTemplate\":\"x:{id}\",\"name\":\"x\"}]}"},
        {"ping", "{}"}};
    for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++)
        if (strcmp(answers[i][0], method) == 0)
            return answers[i][1];
    return NULL;
}

static void hear_daemon(struct str line)
{
    static const char *id_path[] = {"id", NULL}, *method_path[] = {"method", NULL},
                      *token_path[] = {"params", "_meta", "progressToken", NULL},
                      *uri_path[] = {"params", "uri", NULL};
    char *text = strndup(line.at, line.len), why[200];
    struct asked asked = {.id = ""};
    REQUIRE(text && strlen(text) == line.len);
    yajl_val message = yajl_tree_parse(text, why, sizeof(why));
    REQUIRE(YAJL_IS_OBJECT(message));
    copy_text(message, id_path, true, asked.id, sizeof(asked.id));
    copy_text(message, method_path, false, asked.method, sizeof(asked.method));
    copy_text(message, token_path, true, asked.token, sizeof(asked.token));
    copy_text(message, uri_path, false, asked.uri, sizeof(asked.uri));
    yajl_tree_free(message);
    bool of[CLIENTS];
    for (unsigned i = 0; i < CLIENTS; i++) {
        of[i] = clients[i].secret[0] && strstr(text, clients[i].secret);
        if (of[i])
            snprintf(asked.secret, sizeof(asked.secret), "%s", clients[i].secret);
    }
    REQUIRE(!of[0] || !of[1]);
    free(text);
    const char *answer = own_answer(asked.method);
    if (!asked.id[0] || !asked.method[0])
        return;
    if (asked.secret[0] && server.count < OPEN_MAX) {
        server.asked[server.count++] = asked;
        return;
    }
    struct buf out = {0};
    if (answer)
        buf_printf(&out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}", asked.id, answer);
    else
        buf_printf(&out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32601,\"message\":\"no\"}}",
                   asked.id);
    write_line(server.to, &out);
}

static void answer(const struct asked *a)
{
    struct buf out = {0};
    buf_printf(&out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{", a->id);
    if (strcmp(a->method, "tools/call") == 0)
        buf_printf(&out, "\"content\":[{\"type\":\"text\",\"text\":\"%s\"}]", a->secret);
    else if (strcmp(a->method, "prompts/get") == 0)
        buf_printf(&out, "\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"%s\"}}]",
                   a->secret);
    else if (strcmp(a->method, "resources/read") == 0)
        buf_printf(&out, "\"contents\":[{\"uri\":\"x:1\",\"text\":\"%s\"}]", a->secret);
    else if (strcmp(a->method, "completion/complete") == 0)
        buf_printf(&out, "\"completion\":{\"values\":[\"%s\"]}", a->secret);
    buf_text(&out, "}}");
    if (server.connection >= 0)
        write_line(server.to, &out);
    else
        buf_clear(&out);
}

/* ---- clients ---- */

static void hear_client(struct client_side *c, struct str line)
{
    static const char *id_path[] = {"id", NULL};
    char why[200], *text = strndup(line.at, line.len);
    bool answers = check_message(line);
    REQUIRE(!strstr(text, c->other)); /* what is another client's */
    yajl_val message = yajl_tree_parse(text, why, sizeof(why));
    yajl_val id = yajl_tree_get(message, id_path, yajl_t_any);
    if (answers) {
        REQUIRE(YAJL_IS_INTEGER(id));
        long long number = YAJL_GET_INTEGER(id);
        REQUIRE(number >= 1 && number <= (long long)c->sent);
        REQUIRE(c->answers[number]++ == 0);
    }
    yajl_tree_free(message);
    free(text);
}

static void begin_client(struct client_side *c, unsigned number, uint32_t turn)
{
    struct buf in = c->in;
    *c = (struct client_side){.fd = connect_to_daemon(), .in = in};
    c->in.len = 0;
    snprintf(c->secret, sizeof(c->secret), "secret-%c%08x", 'a' + (int)number, turn);
    snprintf(c->other, sizeof(c->other), "secret-%c%08x", 'b' - (int)number, turn);
}

static void send_request(struct client_side *c, char what, struct str rest)
{
    static const char *const methods[] = {"ctools/call",          "pprompts/get",
                                          "rresources/read",      "mcompletion/complete",
                                          "sresources/subscribe", "uresources/unsubscribe"};
    size_t at = 0, count = sizeof(methods) / sizeof(*methods);
    while (at < count && methods[at][0] != what)
        at++;
    if (at == count || c->sent == STEPS_MAX)
        return;
    char text[64];
    size_t len = 0;
    for (size_t i = 0; i < rest.len && len < sizeof(text) - 1; i++)
        if (rest.at[i] > ' ' && rest.at[i] < 0x7f && rest.at[i] != '"' && rest.at[i] != '\\')
            text[len++] = rest.at[i];
    text[len] = '\0';
    struct buf out = {0};
    buf_printf(&out, "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"%s\",\"params\":{", ++c->sent,
               methods[at] + 1);
    if (what == 'c' || what == 'p')
        buf_printf(&out, "\"name\":\"%c\",\"arguments\":{\"text\":\"%s %s\"}", what == 'c' ? 't' : 'p',
                   c->secret, text);
    else if (what == 'm')
        buf_printf(&out,
                   "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"p\"},\"argument\":{\"name\":\"text\","
                   "\"value\":\"%s %s\"}",
                   c->secret, text);
    else
        buf_printf(&out, "\"uri\":\"x:%s%s\"", c->secret, text);
    buf_text(&out, ",\"_meta\":{\"progressToken\":7}}}");
    write_line(c->fd, &out);
}

static void cancel(struct client_side *c)
{
    struct buf out = {0};
    if (!c->sent)
        return;
    c->cancelled[c->sent] = true;
    buf_printf(&out,
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":%u}}",
               c->sent);
    write_line(c->fd, &out);
}

/* ---- both ---- */

/* Reads what has come; false: the peer has closed. */
static bool hear(int fd, struct buf *in, struct client_side *c)
{
    char bytes[65536];
    ssize_t n = read(fd, bytes, sizeof(bytes));
    if (n <= 0)
        return false;
    buf_add(in, bytes, (size_t)n);
    size_t begun = 0;
    for (char *end; in->len > begun && (end = memchr(in->at + begun, '\n', in->len - begun));) {
        struct str line = {in->at + begun, (size_t)(end - in->at) - begun};
        begun += line.len + 1;
        if (c)
            hear_client(c, line);
        else
            hear_daemon(line);
    }
    memmove(in->at, in->at + begun, in->len - begun);
    in->len -= begun;
    return true;
}

static void pump(int ms)
{
    struct pollfd fds[] = {{.fd = clients[0].fd, .events = POLLIN},
                           {.fd = clients[1].fd, .events = POLLIN},
                           {.fd = server.listener, .events = POLLIN},
                           {.fd = server.connection >= 0 ? server.from : -1, .events = POLLIN}};
    if (poll(fds, sizeof(fds) / sizeof(*fds), ms) <= 0)
        return;
    for (unsigned i = 0; i < CLIENTS; i++)
        if (fds[i].revents)
            REQUIRE(hear(clients[i].fd, &clients[i].in, &clients[i]));
    if (fds[3].revents && !hear(server.from, &server.in, NULL))
        end_server();
    if (fds[2].revents)
        begin_server();
}

/* Until the server has the client's latest request, or it was answered. */
static void deliver(const struct client_side *c)
{
    unsigned before = server.count;
    for (int i = 0; i < 20 && server.count == before && !c->answers[c->sent]; i++)
        pump(5);
}

static const struct asked *asked_before(char digit)
{
    unsigned back = (unsigned)(digit - '0');
    return digit >= '0' && digit <= '9' && back < server.count ? &server.asked[server.count - 1 - back]
                                                               : NULL;
}

static void lie(struct str line)
{
    struct buf out = {0};
    for (size_t i = 0; i < line.len; i++) {
        const struct asked *a = line.at[i] == '%' && i + 1 < line.len ? asked_before(line.at[i + 1]) : NULL;
        if (a)
            buf_text(&out, a->id), i++;
        else
            buf_byte(&out, line.at[i]);
    }
    write_line(server.to, &out);
}

static void step(struct str line)
{
    char first = line.len ? line.at[0] : '\0', second = line.len > 1 ? line.at[1] : '\0';
    const struct asked *a = asked_before(second);
    struct buf out = {0};
    if (first == 'a' || first == 'b') {
        struct client_side *c = &clients[first - 'a'];
        send_request(c, second, str_from(line, 2));
        deliver(c);
    } else if (first == 'x') {
        cancel(&clients[second == 'b']);
    } else if (server.connection < 0) {
        pump(1);
    } else if (first == '{') {
        lie(line);
    } else if (first == 'e') {
        end_server();
    } else if (first == 'r' && a) {
        answer(a);
    } else if (first == 'p' && a && a->token[0]) {
        buf_printf(
            &out,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%s,"
            "\"progress\":1,\"message\":\"%s\"}}",
            a->token, a->secret);
        write_line(server.to, &out);
    } else if (first == 'n' && a && a->uri[0]) {
        buf_printf(&out,
                   "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/"
                   "updated\",\"params\":{\"uri\":\"%s\"}}",
                   a->uri);
        write_line(server.to, &out);
    }
    pump(0);
}

static bool is_answered(void)
{
    for (unsigned i = 0; i < CLIENTS; i++)
        for (unsigned id = 1; id <= clients[i].sent; id++)
            if (!clients[i].answers[id] && !clients[i].cancelled[id])
                return false;
    return true;
}

static void serve_lists(void)
{
    pump(1);
}

static void begin(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    make_home();
    snprintf(at.sun_path, sizeof(at.sun_path), "%s/spawner", home);
    server.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    REQUIRE(bind(server.listener, (struct sockaddr *)&at, sizeof(at)) == 0 &&
            listen(server.listener, 8) == 0);
    for (unsigned i = 0; i < CLIENTS; i++)
        clients[i].fd = -1;
    while_starting = serve_lists;
    start_daemon(files, sizeof(files) / sizeof(*files));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint32_t turn; /* no input can have the secrets that are made of it */
    struct str rest = {(const char *)data, size};
    if (server.listener < 0)
        begin();
    server.count = server.answered = 0;
    turn = turn * 747796405u + (uint32_t)hash_random();
    for (unsigned i = 0; i < CLIENTS; i++)
        begin_client(&clients[i], i, turn);
    for (unsigned i = 0; i < STEPS_MAX && rest.len; i++) {
        const char *end = memchr(rest.at, '\n', rest.len);
        struct str line = {rest.at, end ? (size_t)(end - rest.at) : rest.len};
        step(line);
        rest = str_from(rest, line.len + (end ? 1 : 0));
    }
    for (int waited = 0; !is_answered(); waited++) {
        REQUIRE(waited < PATIENCE_MS / 5);
        for (; server.answered < server.count; server.answered++)
            answer(&server.asked[server.answered]);
        pump(5);
    }
    for (unsigned i = 0; i < CLIENTS; i++)
        close(clients[i].fd);
    return 0;
}
