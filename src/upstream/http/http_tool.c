/* One call of an HTTP endpoint: http_request.c builds the request, http_response.c reads the answer. */
#include "upstream/http/http_tool_internal.h"

#include "base/arena.h"
#include "json/value.h"

struct work {
    struct http_call call;
    struct http_answer answer;
    struct fetch *fetch;
};

static struct str keep(struct upstream_call *run, struct str text)
{
    const struct work *work = run->work;
    return secrets_redact(run->arena, &work->call.secrets, arena_dup(run->arena, text));
}

static void on_head(void *owner, const struct fetch_head *head)
{
    static const char *const names[] = {"content-type", "content-length", "last-modified", "etag",
                                        "location"};
    struct upstream_call *run = owner;
    struct http_answer *answer = &((struct work *)run->work)->answer;
    size_t count = sizeof(names) / sizeof(names[0]);
    struct name_value *headers = ARENA_ARRAY(run->arena, struct name_value, count);
    answer->status = head->status;
    answer->after_s = head->after_s;
    answer->type = keep(run, fetch_header(head, "content-type"));
    answer->redirect = keep(run, head->redirect);
    answer->headers = headers;
    for (size_t i = 0; i < count; i++) {
        struct str value = fetch_header(head, names[i]);
        if (value.len)
            headers[answer->header_count++] = (struct name_value){str_of(names[i]), keep(run, value)};
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
    if (end->how == FETCH_DONE) {
        http_response_read(run, &work->call, &work->answer);
    } else {
        upstream_call_answer(run, http_failures[end->how].outcome, http_failures[end->how].code, "%s",
                             end->why);
        run->answer->reached = end->sent;
    }
    buf_clear(&work->answer.body);
    run->finish(run);
}

static void stop(struct upstream_call *run)
{
    struct work *work = run->work;
    fetch_cancel(work->fetch);
    buf_clear(&work->answer.body);
}

/* The model can fix arguments, only the operator a setting. */
static enum upstream_call_state reject(struct upstream_call *run, enum err err, const struct why *why)
{
    if (err == ERR_PARSE)
        return upstream_call_answer(run, UPSTREAM_REFUSED, "invalid_arguments", "%s; nothing was sent",
                                    why->text);
    upstream_call_log_failure(run, STR_LIT("not_configured"), str_of(why->text));
    return upstream_call_answer(run, UPSTREAM_UNAVAILABLE, "not_configured",
                                "a setting that its endpoint needs is missing: only the operator can fix "
                                "that; nothing was sent");
}

enum upstream_call_state http_tool_call(struct upstream_call *run)
{
    static const struct fetch_hooks hooks = {.head = on_head, .data = on_data, .done = on_done};
    struct why why = {0};
    struct work *work = ARENA_NEW(run->arena, struct work);
    work->call = (struct http_call){.arena = run->arena,
                                    .spec = run->request->target->http,
                                    .base = run->spec,
                                    .arguments = run->request->arguments,
                                    .trace = run->request->trace_context};
    work->answer.after_s = -1;
    run->work = work;
    enum err err = http_request_build(&work->call, &why);
    if (err != OK)
        return reject(run, err, &why);
    work->call.request.total_ms =
        upstream_call_timeout_ms(run, target_timeout_ms(run->request->target, run->spec));
    work->fetch = fetch_start(run->loop, &work->call.request, &hooks, run, &why);
    if (!work->fetch)
        return reject(run, ERR_UNAVAILABLE, &why);
    run->stop = stop;
    return UPSTREAM_PENDING;
}
