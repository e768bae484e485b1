/*
 * Requests that have to wait, with a pipeline that finishes when the test says
 * so: in flight, cancelled, with progress, over a limit, and abandoned by a
 * client that disconnects or a daemon that stops.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/log.h"
#include "gate/overlays.h"
#include "server/listener.h"
#include "server/request.h"
#include "server/server_internal.h"

/* ---- a pipeline that waits ------------------------------------------------ */

#define CALLS_MAX 512u

struct call {
    struct arena *arena;
    call_done *done;
    call_progress *progress;
    void *owner, *progress_owner;
    struct verdict verdict;
    struct call_outcome outcome;
    struct str arguments_fault;
    bool ended;
};

static struct call *waiting[CALLS_MAX];
static size_t waiting_count, cancelled_count, freed_count;

struct call *call_new(struct gate *gate, struct arena *arena, const struct call_request *request)
{
    struct call *call = ARENA_NEW(arena, struct call);
    (void)gate;
    call->arena = arena;
    call->arguments_fault = request->arguments_fault;
    problems_init(&call->verdict.problems, arena);
    call->verdict.after_s = -1;
    call->outcome = (struct call_outcome){.verdict = &call->verdict, .advice = STR_LIT("done")};
    return call;
}

void call_listen(struct call *call, call_progress *progress, call_log *log, void *owner)
{
    (void)log;
    call->progress = progress;
    call->progress_owner = owner;
}

bool call_start(struct call *call, call_done *done, void *owner)
{
    call->done = done;
    call->owner = owner;
    assert_true(waiting_count < CALLS_MAX);
    waiting[waiting_count++] = call;
    return false;
}

void call_cancel(struct call *call)
{
    assert_false(call->ended);
    call->ended = true;
    cancelled_count++;
}

void call_free(struct call *call)
{
    for (size_t i = 0; i < waiting_count; i++)
        if (waiting[i] == call)
            waiting[i] = NULL;
    freed_count++;
}

const struct call_outcome *call_outcome(const struct call *call)
{
    return &call->outcome;
}
const struct tool *call_tool(const struct call *call)
{
    (void)call;
    return NULL;
}
bool call_is_dry_run(const struct call *c)
{
    (void)c;
    return false;
}

struct str call_id(struct call *call)
{
    (void)call;
    return STR_LIT("0123456789abcdef");
}
enum err call_read_id(const struct gate *gate, struct arena *scratch, struct str id,
                      struct call_request *report, struct why *why)
{
    (void)gate, (void)scratch, (void)id, (void)report, (void)why;
    return OK;
}
void overlays_normalise(struct arguments *args, struct arena *arena, const struct tool *tool,
                        const struct policy_call *call)
{
    (void)args, (void)arena, (void)tool, (void)call;
}
const struct json *call_visible_result(const struct call *call)
{
    (void)call;
    return NULL;
}
struct str call_session_key(struct arena *arena, const struct config *config, const struct peer *peer,
                            struct str session, struct str connection)
{
    (void)config, (void)peer, (void)connection;
    return arena_dup(arena, session);
}

static void finish(size_t at)
{
    struct call *call = waiting[at];
    assert_non_null(call);
    call->ended = true;
    call->done(call->owner, call);
}

/* ---- a server with one client, whose other end the test holds --------------- */

struct fixture {
    struct server server;
    int peer;
    char heard[65536];
};

/* A generation without tools and policies. */
static struct generation *empty_generation(void)
{
    char folder[] = "/tmp/toolgate-requests-XXXXXX";
    struct config_sources sources = {.policies = mkdtemp(folder)};
    struct arena *arena = arena_new();
    struct generation_report report;
    struct generation *generation;
    struct config config;
    struct why why;
    generation_report_init(&report, arena);
    assert_int_equal(config_load(&sources, &config, &why), OK);
    config.limits.message = 1000000;
    config.limits.depth = 64;
    config.limits.in_flight = 4;
    config.limits.connections = 10;
    config.limits.memory = 10000000;
    assert_int_equal(generation_build(&config, 1, &generation, &report), OK);
    rmdir(folder);
    arena_free(arena);
    return generation;
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct server *server = &fixture->server;
    int pair[2];
    log_open(LOG_OFF, LOG_FORMAT_TEXT, NULL, NULL);
    waiting_count = cancelled_count = freed_count = 0;
    server->gate.generation = empty_generation();
    server->connections_max = 10;
    server->loop = loop_new();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    client_listener_hooks.accepted(server, pair[0]);
    assert_int_equal(server->client_count, 1);
    fixture->peer = pair[1];
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    loop_free(fixture->server.loop);
    generation_unref(fixture->server.gate.generation);
    assert_int_equal(fixture->server.client_count, 0);
    assert_int_equal(fixture->server.pending, 0);
    assert_int_equal(fixture->server.pending_bytes, 0);
    if (fixture->peer >= 0)
        close(fixture->peer);
    free(fixture);
    return 0;
}

static void turn(struct fixture *fixture)
{
    for (int i = 0; i < 10; i++)
        loop_turn(fixture->server.loop, false);
}

static void say(struct fixture *fixture, const char *line)
{
    assert_int_equal(send(fixture->peer, line, strlen(line), MSG_NOSIGNAL), (ssize_t)strlen(line));
    turn(fixture);
}

static void call(struct fixture *fixture, int id)
{
    char line[200];
    snprintf(line, sizeof(line),
             "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\",\"params\":{\"name\":\"t\","
             "\"_meta\":{\"progressToken\":\"p%d\"}}}\n",
             id, id);
    say(fixture, line);
}

/* Returns everything received so far, or an empty string. */
static const char *heard(struct fixture *fixture)
{
    turn(fixture);
    ssize_t n = recv(fixture->peer, fixture->heard, sizeof(fixture->heard) - 1, 0);
    fixture->heard[n > 0 ? n : 0] = '\0';
    return fixture->heard;
}

static void expect_words(struct fixture *fixture, const char *words)
{
    const char *text = heard(fixture);
    if (!strstr(text, words))
        fail_msg("expected %s in %s", words, text);
}

static void expect_silence(struct fixture *fixture)
{
    assert_string_equal(heard(fixture), "");
}

/* ---- cancellation and progress ---------------------------------------------- */

static void replies_come_in_the_order_of_finishing(void **state)
{
    struct fixture *fixture = *state;
    call(fixture, 1);
    call(fixture, 2);
    expect_silence(fixture);
    assert_int_equal(fixture->server.pending, 2);
    assert_true(fixture->server.pending_bytes > 0);
    finish(1);
    expect_words(fixture, "\"id\":2,\"result\"");
    finish(0);
    expect_words(fixture, "\"id\":1,\"result\"");
    assert_int_equal(freed_count, 2);
}

static void a_cancelled_request_gets_no_reply(void **state)
{
    struct fixture *fixture = *state;
    call(fixture, 1);
    call(fixture, 2);
    say(fixture,
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n");
    assert_int_equal(cancelled_count, 1);
    assert_int_equal(fixture->server.pending, 1);
    /* unknown, of another type, or missing: the messages crossed */
    say(fixture,
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n"
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"2\"}}\n"
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}\n");
    expect_silence(fixture);
    finish(1);
    expect_words(fixture, "\"id\":2,\"result\"");
}

static void progress_only_increases(void **state)
{
    struct fixture *fixture = *state;
    call(fixture, 1);
    struct call *one = waiting[0];
    one->progress(one->progress_owner, 1, 3, STR_LIT("half way"));
    expect_words(fixture,
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
                 "{\"progressToken\":\"p1\",\"progress\":1,\"total\":3,\"message\":\"half way\"}}\n");
    one->progress(one->progress_owner, 1, 3, STR_NONE);
    one->progress(one->progress_owner, 0.5, 3, STR_NONE);
    one->progress(one->progress_owner, 0.0 / 0.0, 3, STR_NONE);
    expect_silence(fixture);
    one->progress(one->progress_owner, 2.5, 0, STR_NONE);
    expect_words(fixture, "\"progress\":2.5}}");
    finish(0);
    expect_words(fixture, "\"id\":1,\"result\"");
}

/* A tool may send progress as long as it runs; the daemon does not accumulate it. */
static void unread_progress_takes_no_memory(void **state)
{
    struct fixture *fixture = *state;
    char long_text[10000];
    memset(long_text, 'x', sizeof(long_text));
    call(fixture, 1);
    struct call *one = waiting[0];
    size_t held = arena_bytes(one->arena);
    for (int i = 1; i <= 1000; i++) {
        one->progress(one->progress_owner, i, 0, (struct str){long_text, sizeof(long_text)});
        turn(fixture);
    }
    assert_in_range(conn_out(LIST_FIRST(&fixture->server.clients)->conn)->len, 1, CONN_OUT_HIGH_BYTES + 8192);
    assert_int_equal(arena_bytes(one->arena), held);
}

static void in_flight_calls_of_a_connection_are_limited(void **state)
{
    struct fixture *fixture = *state;
    for (int i = 1; i <= 5; i++)
        call(fixture, i);
    expect_words(fixture, "\"id\":5,\"error\":{\"code\":1004");
    finish(0);
    heard(fixture);
    call(fixture, 6);
    expect_silence(fixture);
    say(fixture, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n"); /* a ping needs no slot */
    expect_words(fixture, "\"id\":7,\"result\":{}");
}

static void in_flight_calls_of_all_connections_are_limited(void **state)
{
    struct fixture *fixture = *state;
    fixture->server.pending = 4 * CONFIG_IN_FLIGHT_FACTOR;
    call(fixture, 1);
    expect_words(fixture, "\"code\":1005");
    fixture->server.pending = 0;
}

/* Half for one user alone: 32 of 64. Another would still find room. */
static void in_flight_calls_of_a_user_leave_room_for_others(void **state)
{
    struct fixture *fixture = *state;
    struct user_calls *user = LIST_FIRST(&fixture->server.users);
    user->pending = fixture->server.pending = 4 * CONFIG_IN_FLIGHT_FACTOR / 2;
    call(fixture, 1);
    expect_words(fixture, "\"code\":1017");
    user->pending--;
    call(fixture, 2);
    expect_silence(fixture);
    fixture->server.pending = user->pending = 1;
}

static void memory_of_all_connections_is_limited(void **state)
{
    struct fixture *fixture = *state;
    fixture->server.pending_bytes = 20000000;
    call(fixture, 1);
    const char *text = heard(fixture);
    assert_non_null(strstr(text, "\"code\":1006"));
    assert_non_null(strstr(text, "limits.memory"));
    fixture->server.pending_bytes = 0;
}

static void a_half_closed_client_gets_its_reply(void **state)
{
    struct fixture *fixture = *state;
    char byte;
    call(fixture, 1);
    shutdown(fixture->peer, SHUT_WR);
    turn(fixture);
    assert_int_equal(fixture->server.client_count, 1);
    finish(0);
    expect_words(fixture, "\"id\":1,\"result\"");
    assert_int_equal(recv(fixture->peer, &byte, 1, 0), 0);
    assert_int_equal(fixture->server.client_count, 0);
}

static void the_calls_of_a_disconnected_client_are_cancelled(void **state)
{
    struct fixture *fixture = *state;
    call(fixture, 1);
    call(fixture, 2);
    close(fixture->peer);
    fixture->peer = -1;
    turn(fixture);
    assert_int_equal(cancelled_count, 2);
    assert_int_equal(freed_count, 2);
    assert_int_equal(fixture->server.client_count, 0);
}

static void drain_replies_before_it_closes(void **state)
{
    struct fixture *fixture = *state;
    call(fixture, 1);
    say(fixture,
        "{\"jsonrpc\":\"2.0\",\"id\":\"s\",\"method\":\"subscriptions/listen\",\"params\":{\"notifications\":"
        "{\"toolsListChanged\":true,\"promptsListChanged\":true},\"_meta\":{"
        "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
        "\"io.modelcontextprotocol/clientCapabilities\":{}}}}\n");
    expect_words(fixture, "\"notifications\":{\"toolsListChanged\":true,\"promptsListChanged\":true}}}\n");
    fixture->server.draining = true;
    client_drain(LIST_FIRST(&fixture->server.clients));
    expect_words(fixture, "\"id\":\"s\",\"result\":{\"resultType\":\"complete\",\"_meta\":{");
    assert_int_equal(send(fixture->peer, "{}\n", 3, MSG_NOSIGNAL), -1); /* too late */
    assert_int_equal(errno, EPIPE);
    expect_silence(fixture);
    finish(0);
    expect_words(fixture, "\"id\":1,\"result\"");
    assert_int_equal(fixture->server.client_count, 0);
}

static void a_drain_that_takes_too_long_answers_with_an_error(void **state)
{
    struct fixture *fixture = *state;
    call(fixture, 1);
    call(fixture, 2);
    fixture->server.draining = true;
    client_drain(LIST_FIRST(&fixture->server.clients));
    client_give_up(LIST_FIRST(&fixture->server.clients));
    expect_words(fixture, "\"id\":1,\"error\":{\"code\":1013,");
    assert_int_equal(cancelled_count, 2);
}

static void a_subscription_is_cancelled_silently(void **state)
{
    struct fixture *fixture = *state;
    say(fixture,
        "{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,\"method\":\"subscriptions/listen\",\"params\":"
        "{\"notifications\":{},\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
        "\"io.modelcontextprotocol/clientCapabilities\":{}}}}\n");
    expect_words(fixture,
                 "\"io.modelcontextprotocol/subscriptionId\":9007199254740993},\"notifications\":{}");
    assert_int_equal(LIST_FIRST(&fixture->server.clients)->subscription_count, 1);
    say(fixture, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
                 "cancelled\",\"params\":{\"requestId\":9007199254740993}}\n");
    assert_int_equal(LIST_FIRST(&fixture->server.clients)->subscription_count, 0);
    expect_silence(fixture);
}

/* The daemon sends clients no requests, so it ignores responses. */
static void responses_are_ignored(void **state)
{
    struct fixture *fixture = *state;
    say(fixture,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}}\n \r\n\n");
    expect_silence(fixture);
}

static void an_id_has_its_own_limit(void **state)
{
    struct fixture *fixture = *state;
    char line[3000], id[2000];
    memset(id, 'x', sizeof(id) - 1);
    id[sizeof(id) - 1] = '\0';
    snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"method\":\"ping\"}\n", id);
    say(fixture, line);
    expect_words(fixture,
                 "\"error\":{\"code\":-32600,\"message\":\"id: expected at most 1024 bytes, got 2001\"}");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(replies_come_in_the_order_of_finishing),
        TEST(a_cancelled_request_gets_no_reply),
        TEST(progress_only_increases),
        TEST(unread_progress_takes_no_memory),
        TEST(in_flight_calls_of_a_connection_are_limited),
        TEST(in_flight_calls_of_all_connections_are_limited),
        TEST(in_flight_calls_of_a_user_leave_room_for_others),
        TEST(memory_of_all_connections_is_limited),
        TEST(a_half_closed_client_gets_its_reply),
        TEST(the_calls_of_a_disconnected_client_are_cancelled),
        TEST(drain_replies_before_it_closes),
        TEST(a_drain_that_takes_too_long_answers_with_an_error),
        TEST(a_subscription_is_cancelled_silently),
        TEST(responses_are_ignored),
        TEST(an_id_has_its_own_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
