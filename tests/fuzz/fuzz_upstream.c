/*
 * What a hostile server says. The first byte selects where the rest comes from:
 *
 *   0  the stdout of an MCP server over stdio, through the real client (upstream/mcp)
 *   1  its stderr
 *   2  the spawner that starts it (io/spawned_child.c)
 *   3  a stream of server-sent events, cut at places that the second byte selects
 *
 * Two calls are under way meanwhile. Each gets exactly one answer, and the client ends in order.
 */
#include "base/arena.h"
#include "base/log.h"
#include "io/child.h"
#include "io/conn.h"
#include "upstream/http/sse.h"
#include "upstream/upstream.h"
#include "hand_over.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CALLS       2u
#define TURNS       40u
#define EVENT_BYTES 2048u

enum source { SOURCE_STDOUT, SOURCE_STDERR, SOURCE_SPAWNER, SOURCE_EVENTS, SOURCES };

/* ---- server-sent events ---- */

static void stream_events(const uint8_t *data, size_t size)
{
    struct sse sse;
    struct sse_event event;
    size_t step = size ? data[0] % 16u + 1 : 1;
    sse_init(&sse, EVENT_BYTES);
    for (size_t at = 1; at < size; at += step) {
        struct str bytes = {(const char *)data + at, at + step < size ? step : size - at};
        enum sse_result result;
        while ((result = sse_next(&sse, &bytes, &event)) == SSE_EVENT)
            REQUIRE(event.data.len <= EVENT_BYTES && event.type.len <= SSE_TYPE_MAX_BYTES);
        REQUIRE(sse_last_id(&sse).len <= SSE_ID_MAX_BYTES && sse.retry_ms <= SSE_RETRY_MAX_MS);
        if (result == SSE_TOO_LONG)
            break;
        REQUIRE(!bytes.len);
    }
    sse_clear(&sse);
}

/* ---- a server that the spawner of this file starts ---- */

static int listen_as_spawner(struct sockaddr_un *address)
{
    static char home[] = "/tmp/toolgate-fuzz-upstream-XXXXXX";
    static int fd = -1;
    static struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (fd < 0) {
        REQUIRE(mkdtemp(home));
        snprintf(at.sun_path, sizeof(at.sun_path), "%s/s", home);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        REQUIRE(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 8) == 0);
    }
    *address = at;
    return fd;
}

struct said {
    struct upstream_request request;
    struct target target;
    struct json arguments;
    struct upstream_answer answer;
    unsigned done;
};

static void on_done(void *owner)
{
    struct said *said = owner;
    said->done++;
}

static void write_all(int fd, const uint8_t *data, size_t size)
{
    while (size) { /* the pipe of a fuzzer's input is large enough */
        ssize_t n = write(fd, data, size);
        if (n <= 0)
            return;
        data += n;
        size -= (size_t)n;
    }
}

static void serve(enum source source, const uint8_t *data, size_t size)
{
    struct sockaddr_un address;
    int listener = listen_as_spawner(&address), ours[PIPES], theirs[PIPES];
    struct arena *arena = arena_new();
    struct loop *loop = loop_new();
    const struct upstreams_hooks hooks = {NULL};
    struct upstreams *set = upstreams_new(loop, NULL, &hooks, NULL);
    const struct upstream_spec spec = {.name = STR_LIT("fuzzed"),
                                       .kind = UPSTREAM_STDIO,
                                       .spawner = str_of(address.sun_path),
                                       .timeout_ms = 1000,
                                       .start_ms = 1000};
    const struct upstream_spec *specs = &spec;
    struct said said[CALLS];
    memset(said, 0, sizeof(said));
    upstreams_apply(set, &specs, 1);
    int connection = -1;
    for (unsigned turn = 0; connection < 0; turn++) {
        REQUIRE(turn < TURNS);
        loop_turn(loop, false);
        connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    }
    for (int i = 0; i < PIPES; i++) { /* stdin of the server is read by nobody */
        int pair[2];
        REQUIRE(pipe(pair) == 0);
        ours[i] = pair[i == 0 ? 0 : 1];
        theirs[i] = pair[i == 0 ? 1 : 0];
    }
    if (source == SOURCE_SPAWNER)
        write_all(connection, data, size);
    else
        REQUIRE(hand_over(connection, theirs));
    for (int i = 0; i < PIPES; i++)
        close(theirs[i]);
    for (unsigned turn = 0; turn < TURNS; turn++) {
        loop_turn(loop, false);
        if (turn == 2 && source == SOURCE_STDOUT)
            write_all(ours[1], data, size / 2);
        for (unsigned i = 0; turn == 6 && i < CALLS; i++) {
            said[i].target = (struct target){.kind = TARGET_MCP, .upstream = spec.name, .tool = STR_LIT("t")};
            said[i].arguments = (struct json){.type = JSON_OBJECT};
            said[i].request = (struct upstream_request){.target = &said[i].target,
                                                        .arguments = &said[i].arguments,
                                                        .can_elicit = i == 0,
                                                        .caller = i};
            if (upstream_start(set, &said[i].request, arena, &said[i].answer, on_done, &said[i]) ==
                UPSTREAM_DONE)
                said[i].done++;
        }
        if (turn == 8 && source == SOURCE_STDOUT)
            write_all(ours[1], data + size / 2, size - size / 2);
        if (turn == 8 && source == SOURCE_STDERR)
            write_all(ours[2], data, size);
        if (turn == 30) { /* the server ends */
            for (int i = 0; i < PIPES; i++)
                close(ours[i]);
            close(connection);
        }
        for (unsigned i = 0; i < CALLS; i++)
            REQUIRE(said[i].done <= 1);
    }
    for (unsigned i = 0; i < CALLS; i++)
        if (!said[i].done)
            upstream_cancel(set, &said[i]);
    upstreams_free(set);
    loop_free(loop);
    arena_free(arena);
    for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0;) /* a restart */
        close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    log_quiet();
    signal(SIGPIPE, SIG_IGN);
    if (!size)
        return 0;
    enum source source = (enum source)(data[0] % SOURCES);
    if (source == SOURCE_EVENTS)
        stream_events(data + 1, size - 1);
    else
        serve(source, data + 1, size - 1);
    return 0;
}
