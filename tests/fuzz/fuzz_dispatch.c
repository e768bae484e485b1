/*
 * Any bytes on a connection to the whole daemon, which runs in a thread of this process: frames, JSON-RPC,
 * MCP and the methods of toolgate, policies and the ledger behind them. Each line that comes back is a
 * message of JSON-RPC, an answer names an id that was sent at most as often as it was sent, and the
 * connection is served to its end within a bound.
 */
#include "base/buf.h"
#include "server/server.h"
#include "require.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <yajl/yajl_tree.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PATIENCE_MS 10000

static const char *const files[][2] = {
    {"toolgate.lua", "return { decisions = false, watch = false, log = { level = 'error' }, "
                     "limits = { message = 65536 } }\n"},
    {"policies/echo.lua",
     "-- echo: returns its text. For the fuzzer.\n"
     "return tool 'echo' { description = 'Echo.', effects = 'read', schema = params { text = str 'Text', "
     "n = optional(int { min = 0, max = 9 }), kind = optional(enum { 'a', 'b' }) },\n"
     "  check = function(args) if args.text == 'no' then return "
     "refuse('no', 'Not this.', 'Say yes.') end end,\n"
     "  run = function(args) return { text = args.text } end }\n"},
    {"policies/told.lua",
     "-- told: the agent runs it. For the fuzzer.\n"
     "return tool 'told' { description = 'Tell.', effects = 'write', schema = params { id "
     "= str 'Id' }, normalise = function(args) args.id = args.id:lower() end,\n"
     "  result = function(result) if result.n == 0 then return broken('none', "
     "'nothing') end end }\n"},
};

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static char home[] = "/tmp/toolgate-fuzz-dispatch-XXXXXX";

static void *run_daemon(void *unused)
{
    char config[64];
    struct why why;
    (void)unused;
    snprintf(config, sizeof(config), "%s/toolgate.lua", home);
    char policies[64];
    snprintf(policies, sizeof(policies), "%s/policies", home);
    const struct config_sources sources = {
        .file = config, .socket = address.sun_path, .policies = policies, .no_watch = true};
    enum err err = server_run(&sources, &why);
    fprintf(stderr, "fuzz_dispatch: the daemon has ended: %s\n", err ? why.text : "a drain");
    abort();
}

static int connect_to_daemon(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(fd >= 0);
    for (int tries = 0; connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0; tries++) {
        REQUIRE(tries < PATIENCE_MS);
        poll(NULL, 0, 1);
    }
    return fd;
}

static void start_daemon(void)
{
    pthread_t thread;
    char path[128];
    signal(SIGPIPE, SIG_IGN);
    REQUIRE(mkdtemp(home));
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", home);
    snprintf(path, sizeof(path), "%s/policies", home);
    REQUIRE(mkdir(path, 0700) == 0);
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        snprintf(path, sizeof(path), "%s/%s", home, files[i][0]);
        FILE *file = fopen(path, "w");
        REQUIRE(file && fputs(files[i][1], file) >= 0 && fclose(file) == 0);
    }
    REQUIRE(pthread_create(&thread, NULL, run_daemon, NULL) == 0);
    sigset_t all; /* the deadlines of policies are signals, which are the daemon's */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    close(connect_to_daemon());
}

static size_t count_lines(const uint8_t *data, size_t size)
{
    size_t lines = 0;
    for (size_t i = 0; i < size; i++)
        lines += data[i] == '\n';
    return lines;
}

static bool has(yajl_val message, const char *key)
{
    const char *path[] = {key, NULL};
    return yajl_tree_get(message, path, yajl_t_any) != NULL;
}

/* True: an answer; false: a notification, or a request of the daemon. Arenas are the daemon's: they know no
 * threads. */
static bool check_message(struct str line)
{
    static const char *const version[] = {"jsonrpc", NULL};
    char why[200], *text = strndup(line.at, line.len);
    REQUIRE(text && strlen(text) == line.len);
    yajl_val message = yajl_tree_parse(text, why, sizeof(why));
    REQUIRE(YAJL_IS_OBJECT(message));
    const char *named = YAJL_GET_STRING(yajl_tree_get(message, (const char **)version, yajl_t_string));
    REQUIRE(named && strcmp(named, "2.0") == 0);
    bool result = has(message, "result"), answers = result || has(message, "error");
    REQUIRE(answers || has(message, "method"));
    REQUIRE(!result || has(message, "id"));
    yajl_tree_free(message);
    free(text);
    return answers;
}

/* To the end of the connection; returns the number of answers. */
static size_t read_answers(int fd)
{
    struct buf in = {0};
    size_t answers = 0;
    char bytes[65536];
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    for (ssize_t n = 1; n > 0;) {
        REQUIRE(poll(&readable, 1, PATIENCE_MS) == 1); /* else the loop stands still */
        n = recv(fd, bytes, sizeof(bytes), 0);
        if (n > 0)
            buf_add(&in, bytes, (size_t)n);
        size_t begun = 0;
        for (char *end; in.len > begun && (end = memchr(in.at + begun, '\n', in.len - begun));) {
            struct str line = {in.at + begun, (size_t)(end - in.at) - begun};
            answers += check_message(line);
            begun += line.len + 1;
        }
        if (begun)
            memmove(in.at, in.at + begun, in.len - begun);
        in.len -= begun;
    }
    REQUIRE(!in.len); /* half a line */
    buf_clear(&in);
    return answers;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!address.sun_path[0])
        start_daemon();
    int fd = connect_to_daemon();
    for (size_t sent = 0; sent < size;) {
        ssize_t n = send(fd, data + sent, size - sent, MSG_NOSIGNAL);
        if (n <= 0)
            break;
        sent += (size_t)n;
    }
    shutdown(fd, SHUT_WR);
    REQUIRE(read_answers(fd) <= count_lines(data, size) + 1);
    close(fd);
    return 0;
}
