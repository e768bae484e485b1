/*
 * What a server says unasked. Requests: it may ping, and ask something of the
 * user during a call (mcp_elicitation.c); for everything else we are no client of the
 * kind it looks for. Notices: progress and messages go to the call that they
 * are about and to no other; of a list that changed the tools are read again.
 */
#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "json/parse.h"
#include "json/write.h"
#include "upstream/mcp/mcp_client_internal.h"

#include <math.h>

#define MESSAGE_MAX_BYTES 4096u /* of a text that is relayed */

struct pending *mcp_notifications_subject(struct mcp_client *mcp, uint64_t about)
{
    struct pending *found = about ? pending_find(&mcp->pendings, about) : NULL;
    if (about)
        return found && found->run ? found : NULL;
    for (struct pending *pending = mcp->pendings.sent.first; pending; pending = pending->next) {
        if (found && pending->run)
            return NULL;
        if (pending->run)
            found = pending;
    }
    bool others = found && abandoned_calls_by_others(&mcp->abandoned_calls, found->run->request->caller,
                                                     clock_mono_us());
    return others ? NULL : found;
}

/* ---- requests ------------------------------------------------------------------ */

static void begin_answer(struct mcp_client *mcp, struct str id)
{
    mcp->out.len = 0;
    buf_text(&mcp->out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_str(&mcp->out, id);
}

/* One that asks and does not read is not answered. */
static void send_answer(struct mcp_client *mcp)
{
    buf_byte(&mcp->out, '}');
    if (!mcp_call_blocked(mcp))
        mcp_client_send(mcp, 0, NULL, STR_NONE);
}

void mcp_client_respond(struct mcp_client *mcp, struct str id, struct str result)
{
    begin_answer(mcp, id);
    buf_text(&mcp->out, ",\"result\":");
    buf_str(&mcp->out, result);
    send_answer(mcp);
}

void mcp_client_respond_error(struct mcp_client *mcp, struct str id, int code, const char *message)
{
    begin_answer(mcp, id);
    buf_printf(&mcp->out, ",\"error\":{\"code\":%d,\"message\":\"%s\"}", code, message);
    send_answer(mcp);
}

void mcp_notifications_request(struct mcp_client *mcp, uint64_t about, const struct mcp_message *line)
{
    if (mcp_message_is(line, "ping"))
        mcp_client_respond(mcp, line->id, STR_LIT("{}"));
    else if (mcp_message_is(line, "elicitation/create"))
        mcp_elicitation_request(mcp, about, line);
    else
        mcp_client_respond_error(
            mcp, line->id, -32601,
            "Method not found: this client is a gateway that calls tools; it has no roots and samples "
            "nothing");
}

/* ---- notices -------------------------------------------------------------------- */

static bool read_params(struct mcp_client *mcp, const struct mcp_message *line, struct json *params)
{
    struct json_error fault;
    if (line->params.len &&
        (json_parse(mcp_client_scratch(mcp), line->params, NULL, params, &fault) == OK || fault.soft))
        return true;
    mcp_client_ignore(mcp, "a notice without params that could be read", line->method);
    return false;
}

/* Progress is life: the time of the call begins anew, up to all that it may take. */
static void give_more_time(struct pending *pending, int64_t now)
{
    int64_t until = now + pending->time_us;
    pending->deadline_us = until < pending->last_us ? until : pending->last_us;
}

/* It only goes forward; what goes back, stands still or comes too fast is not passed on. */
static bool is_news(struct pending *pending, double progress)
{
    uint64_t held;
    if (!isfinite(progress) || (pending->told && progress <= pending->progress))
        return false;
    pending->told = true;
    pending->progress = progress;
    return rate_limit_allow(&pending->tells, MCP_RELAYED_PER_S, &held);
}

static void hear_progress(struct mcp_client *mcp, uint64_t about, const struct mcp_message *line)
{
    struct json params;
    int64_t token = 0;
    double progress = 0, total = 0;
    (void)about;
    if (!read_params(mcp, line, &params))
        return;
    struct pending *pending = json_int(json_get_text(&params, "progressToken"), &token) && token > 0
                                  ? pending_find(&mcp->pendings, (uint64_t)token)
                                  : NULL;
    if (!pending || !pending->run || !pending->run->request->progress ||
        !json_double(json_get_text(&params, "progress"), &progress)) {
        mcp_client_ignore(mcp, "progress of what nobody asked for", STR_NONE);
        return;
    }
    give_more_time(pending, clock_mono_us());
    if (!json_double(json_get_text(&params, "total"), &total) || !isfinite(total))
        total = 0;
    const struct upstream_request *request = pending->run->request;
    struct str message = str_cut(json_str(json_get_text(&params, "message")), MESSAGE_MAX_BYTES);
    if (is_news(pending, progress))
        request->progress(request->listener, progress, total, message);
}

static struct str text_of(struct mcp_client *mcp, const struct json *data)
{
    if (json_is(data, JSON_STRING))
        return str_cut(json_str(data), MESSAGE_MAX_BYTES);
    struct buf text = buf_in(mcp->scratch);
    if (data)
        json_write(&text, data);
    return str_cut(buf_view(&text), MESSAGE_MAX_BYTES);
}

/* For the caller whom it concerns; where several wait and nobody knows whom, for our log alone. */
static void hear_message(struct mcp_client *mcp, uint64_t about, const struct mcp_message *line)
{
    struct json params;
    uint64_t held;
    if (!rate_limit_allow(&mcp->messages, MCP_RELAYED_PER_S, &held) || !read_params(mcp, line, &params))
        return;
    struct str level = json_str(json_get_text(&params, "level"));
    struct str text = text_of(mcp, json_get_text(&params, "data"));
    log_event(LOG_DEBUG, "upstream_message", LOG_STR("upstream", mcp->spec->name),
              LOG_STR("says", str_cut(level, 16)), LOG_STR("text", text), LOG_NUM("not_logged", held));
    struct pending *pending = mcp_notifications_subject(mcp, about);
    const struct upstream_request *request = pending ? pending->run->request : NULL;
    if (request && request->log && level.len)
        request->log(request->listener, level, text);
}

static void hear_list_changed(struct mcp_client *mcp, uint64_t about, const struct mcp_message *line)
{
    (void)about, (void)line;
    mcp_tools_changed(mcp);
}

void mcp_notifications_notify(struct mcp_client *mcp, uint64_t about, const struct mcp_message *line)
{
    static const struct {
        const char *method;
        void (*hear)(struct mcp_client *mcp, uint64_t about, const struct mcp_message *line);
    } known[] = {
        {"notifications/progress", hear_progress},
        {"notifications/message", hear_message},
        {"notifications/tools/list_changed", hear_list_changed},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (mcp_message_is(line, known[i].method)) {
            known[i].hear(mcp, about, line);
            return;
        }
}
