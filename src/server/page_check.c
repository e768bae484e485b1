/*
 * The playground: decides on a call as a new session's first, runs nothing and counts nothing, and tells what
 * each stage decided. `allow` is not applied: the operator asks on behalf of any user.
 */
#include "server/page.h"

#include "base/arena.h"
#include "gate/call_reply.h"
#include "gate/verdict.h"
#include "json/parse.h"
#include "json/write.h"
#include "server/request.h"
#include "server/server_internal.h"

#include <stdarg.h>
#include <stdio.h>

#define CHECK_USER "playground"

static unsigned bad_request(struct buf *body, const char *format, ...) __attribute__((format(printf, 2, 3)));
static unsigned bad_request(struct buf *body, const char *format, ...)
{
    va_list args;
    char line[384];
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    body->len = 0;
    buf_printf(body, "%s\n", line);
    return 400;
}

static void write_answer(struct buf *body, struct call *call)
{
    struct json_out out = json_out(body);
    json_open(&out, '{');
    verdict_write(&out, call_outcome(call)->verdict);
    call_reply_check(&out, call);
    json_close(&out, '}');
}

static unsigned decide(struct server *server, struct arena *arena, const struct json *given,
                       const struct json_error *fault, struct buf *body)
{
    struct str user = json_str(json_get_text(given, "user"));
    struct peer peer;
    peer_init_example(&peer, user.len ? user : STR_LIT(CHECK_USER));
    const struct call_request request = {
        .mode = CALL_CHECK,
        .tool = json_str(json_get_text(given, "tool")),
        .arguments = json_get_text(given, "arguments"),
        .arguments_fault = fault->soft ? str_of(fault->text) : STR_NONE,
        .session = STR_LIT("playground"),
        .connection = STR_LIT("playground"),
        .goal = json_str(json_get_text(given, "goal")),
        .peer = &peer,
        .dry_run = true,
        .trace = true,
    };
    struct call *call = call_new(&server->gate, arena, &request);
    unsigned status = 200;
    if (call_start(call, NULL, NULL)) {
        write_answer(body, call);
        if (body->len > PAGE_BODY_MAX_BYTES)
            status = bad_request(body, "the verdict is larger than %u bytes", PAGE_BODY_MAX_BYTES);
    } else { /* a dry run waits for nobody */
        call_cancel(call);
        status = bad_request(body, "the check did not finish at once");
    }
    call_free(call);
    return status;
}

/* {"tool", "arguments", "user"?, "goal"?} */
unsigned page_check(struct server *server, const struct http_request *request, struct buf *body)
{
    struct arena *arena = arena_new();
    struct json given;
    struct json_error fault = {.code = JSON_ERROR_NONE};
    unsigned status;
    if (json_parse(arena, request->body, NULL, &given, &fault) != OK && !fault.soft)
        status = bad_request(body, "the body is not JSON: %s", fault.text);
    else if (!json_is(&given, JSON_OBJECT) || !json_str(json_get_text(&given, "tool")).len)
        status = bad_request(body, "expected {\"tool\": NAME, \"arguments\": {…}}");
    else if (json_str(json_get_text(&given, "goal")).len > GOAL_MAX_BYTES)
        status = bad_request(body, "goal: expected at most %u bytes", GOAL_MAX_BYTES);
    else
        status = decide(server, arena, &given, &fault, body);
    arena_free(arena);
    return status;
}
