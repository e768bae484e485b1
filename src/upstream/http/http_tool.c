/* One call of an HTTP endpoint, from its arguments to its answer. Which argument goes where: http_request.c;
 * what an answer means: http_response.c. */
#include "upstream/http/http_tool_internal.h"

#include "base/arena.h"
#include "json/value.h"

struct work {
    struct http_call call;
    struct http_answer answer;
    struct fetch *fetch;
};

static const char *const told_headers[] = {"content-type", "content-length", "last-modified", "etag",
                                           "location"};
#define TOLD (sizeof(told_headers) / sizeof(told_headers[0]))

static struct str keep(struct upstream_call *run, const struct work *work, struct str text)
{
    return secrets_redact(run->arena, &work->call.secrets, arena_dup(run->arena, text));
}

static void on_head(void *owner, const struct fetch_head *head)
{
    struct upstream_call *run = owner;
    struct work *work = run->work;
    struct name_value *told = ARENA_ARRAY(run->arena, struct name_value, TOLD);
    work->answer.status = head->status;
    work->answer.after_s = head->after_s;
    work->answer.type = keep(run, work, fetch_header(head, "content-type"));
    work->answer.redirect = keep(run, work, head->redirect);
    work->answer.told = told;
    for (size_t i = 0; i < TOLD; i++) {
        struct str value = fetch_header(head, told_headers[i]);
        if (value.len)
            told[work->answer.told_count++] =
                (struct name_value){str_of(told_headers[i]), keep(run, work, value)};
    }
}

static void on_data(void *owner, struct str bytes)
{
    struct work *work = ((struct upstream_call *)owner)->work;
    buf_str(&work->answer.body, bytes);
}

static void on_done(void *owner, const struct fetch_end *end)
{
    struct upstream_call *run = owner;
    struct work *work = run->work;
    if (end->how == FETCH_DONE)
        http_response_read(run, &work->call, &work->answer);
    else
        http_response_fail(run, end);
    buf_clear(&work->answer.body);
    upstream_call_finish(run);
}

static const struct fetch_hooks hooks = {.head = on_head, .data = on_data, .done = on_done};

static void stop(struct upstream_call *run)
{
    struct work *work = run->work;
    fetch_cancel(work->fetch);
    buf_clear(&work->answer.body);
}

static uint32_t time_of(const struct upstream_call *run)
{
    return upstream_call_timeout_ms(run, target_timeout_ms(run->request->target, upstream_call_spec(run)));
}

/* Arguments are the model's to mend, settings the operator's. */
static enum upstream_call_state turn_down(struct upstream_call *run, enum err err, const struct why *why)
{
    run->answer->reached = false;
    run->answer->after_s = -1;
    if (err == ERR_PARSE)
        upstream_call_answer(run, UPSTREAM_REFUSED, "invalid_arguments", "%s; nothing was sent", why->text);
    else {
        upstream_call_log_failure(run, STR_LIT("not_configured"), str_of(why->text));
        upstream_call_answer(
            run, UPSTREAM_UNAVAILABLE, "not_configured",
            "a setting that its endpoint needs is missing: only who runs the gateway can mend that; "
            "nothing was sent");
    }
    return UPSTREAM_DONE;
}

enum upstream_call_state http_tool_call(struct upstream_call *run)
{
    struct why why = {0};
    struct work *work = ARENA_NEW(run->arena, struct work);
    work->call = (struct http_call){.arena = run->arena,
                                    .spec = run->request->target->http,
                                    .base = upstream_call_spec(run),
                                    .arguments = run->request->arguments};
    work->answer.after_s = -1;
    run->work = work;
    run->answer->after_s = -1;
    enum err err = http_request_build(&work->call, &why);
    if (err != OK)
        return turn_down(run, err, &why);
    work->call.request.total_ms = time_of(run);
    work->fetch = fetch_start(upstream_call_loop(run), &work->call.request, &hooks, run, &why);
    if (!work->fetch)
        return turn_down(run, ERR_UNAVAILABLE, &why);
    run->stop = stop;
    return UPSTREAM_PENDING;
}
