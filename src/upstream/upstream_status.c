/* The set as an array for `toolgate status`: no secrets, none of what they answered. */
#include "upstream/upstream_internal.h"

#include "json/write.h"

static void put_number(struct json_out *out, const char *key, int64_t n)
{
    json_key(out, key);
    json_put_int(out, n);
}

static void put_text(struct json_out *out, const char *key, struct str text)
{
    if (!text.len)
        return;
    json_key(out, key);
    json_put_str(out, text);
}

static void put_breaker(struct json_out *out, const struct breaker *breaker)
{
    put_text(out, "breaker", str_of(breaker_state_name(breaker->state)));
    if (breaker->state != BREAKER_CLOSED)
        put_number(out, "breaker_after_s", breaker_after_s(breaker, upstream_now_ms()));
}

static void put_mcp(struct json_out *out, const struct mcp_client_status *view)
{
    if (view->pid)
        put_number(out, "pid", view->pid);
    put_number(out, "starts", (int64_t)view->starts);
    put_number(out, "failed_in_a_row", view->failures);
    if (view->next_ms >= 0)
        put_number(out, "next_try_ms", view->next_ms);
    if (view->ignored)
        put_number(out, "ignored_messages", (int64_t)view->ignored);
    put_text(out, "protocol", view->version);
    put_text(out, "server", view->server);
}

static void put_upstream(struct json_out *out, const struct upstream *u)
{
    static const char *const kinds[] = {"stdio", "http", "rest"};
    struct tool_list *offer = upstreams_tool_list(u->set, u->spec->name);
    struct mcp_client_status view = {.name = "ready", .next_ms = -1};
    if (u->mcp)
        mcp_client_view(u->mcp, &view);
    json_open(out, '{');
    put_text(out, "name", u->spec->name);
    put_text(out, "kind", str_of(kinds[u->spec->kind]));
    put_text(out, "state", str_of(view.name));
    if (u->mcp)
        put_number(out, "tools", offer ? tool_list_array(offer)->len : 0);
    put_number(out, "calls", (int64_t)u->calls);
    put_number(out, "in_flight", u->in_flight);
    put_number(out, "queued", u->queued + view.queued);
    put_number(out, "failures", (int64_t)u->failures);
    put_breaker(out, &u->breaker);
    put_text(out, "last_error", view.error.len ? view.error : str_of(u->last_error));
    if (!view.error.len && u->error_ms)
        put_number(out, "last_error_s_ago", (upstream_now_ms() - u->error_ms) / 1000);
    if (u->mcp)
        put_mcp(out, &view);
    json_close(out, '}');
    tool_list_unref(offer);
}

void upstreams_write_status(struct json_out *out, const struct upstreams *set)
{
    json_open(out, '[');
    for (const struct upstream *u = set->first; u; u = u->next)
        if (!u->leaving)
            put_upstream(out, u);
    json_close(out, ']');
}
