/*
 * The handshake and the tools. `initialize` comes first: some servers end at
 * any other first word. One that refuses it is asked the modern way
 * (server/discover), where each request says who speaks. Its tools are read
 * page by page, within bounds, and again whenever it says that they changed.
 */
#include "base/arena.h"
#include "base/log.h"
#include "base/version.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"
#include "upstream/mcp/mcp_client_internal.h"

#include <stdio.h>
#include <stdlib.h>

#define LEGACY "2025-11-25"
#define MODERN "2026-07-28"

#define LIST_MAX_BYTES UPSTREAM_LINE_MAX_BYTES /* of all pages together */
#define LIST_NODES     1000000u                /* JSON values of one page */
#define RELISTEN_MS    10000u                  /* before it is asked again to tell of changes */
#define RELIST_MAX_MS  10000u                  /* between two lists of one that changes all the time */

#define CAPABILITIES "{\"elicitation\":{}}"
#define CLIENT       "{\"name\":\"toolgate\",\"version\":\"" TOOLGATE_VERSION "\"}"
#define MODERN_META                                                                                          \
    "\"io.modelcontextprotocol/protocolVersion\":\"" MODERN "\","                                            \
    "\"io.modelcontextprotocol/clientCapabilities\":" CAPABILITIES ","                                       \
    "\"io.modelcontextprotocol/clientInfo\":" CLIENT

/* ---- what we write ----------------------------------------------------------- */

void mcp_client_begin_message(struct mcp_client *mcp, uint64_t id, const char *method)
{
    struct buf *out = &mcp->out;
    out->len = 0;
    buf_text(out, "{\"jsonrpc\":\"2.0\",");
    if (id) {
        buf_text(out, "\"id\":");
        buf_int(out, (int64_t)id);
        buf_byte(out, ',');
    }
    buf_text(out, "\"method\":\"");
    buf_text(out, method);
    buf_text(out, "\",\"params\":{");
}

bool mcp_client_has_meta(const struct mcp_client *mcp, uint64_t progress_token)
{
    return mcp->modern || progress_token;
}

void mcp_client_write_meta(struct mcp_client *mcp, uint64_t progress_token)
{
    struct buf *out = &mcp->out;
    buf_text(out, "\"_meta\":{");
    if (mcp->modern)
        buf_text(out, MODERN_META);
    if (progress_token) {
        buf_text(out, mcp->modern ? ",\"progressToken\":" : "\"progressToken\":");
        buf_int(out, (int64_t)progress_token);
    }
    buf_byte(out, '}');
}

void mcp_client_send(struct mcp_client *mcp, uint64_t id, const char *method, struct str name)
{
    mcp->kind->send(mcp->transport, id, method, name, buf_view(&mcp->out));
    if (mcp->out.cap > MCP_SCRATCH_KEEP)
        buf_clear(&mcp->out);
}

struct pending *mcp_client_request(struct mcp_client *mcp, const char *method, mcp_response_handler *heard,
                                   uint32_t ms)
{
    struct pending *pending = pending_add(&mcp->pendings);
    if (!pending)
        return NULL;
    pending->heard = heard;
    pending->since_us = clock_mono_us();
    if (ms) {
        pending->deadline_us = pending->last_us = pending->since_us + (int64_t)ms * 1000;
        mcp_client_watch_deadline(mcp, pending->deadline_us);
    }
    pending_send(&mcp->pendings, pending);
    mcp_client_begin_message(mcp, pending->id, method);
    return pending;
}

static void close_and_send(struct mcp_client *mcp, uint64_t id, const char *method)
{
    buf_text(&mcp->out, "}}");
    mcp_client_send(mcp, id, method, STR_NONE);
}

/* ---- what we read -------------------------------------------------------------- */

/* False where there is none; *value is filled where it could be read at all. */
static bool read_json_or_say(struct arena *arena, struct str text, struct json *value,
                             struct json_error *fault)
{
    static const struct json_limits limits = {.nodes = LIST_NODES};
    return text.len && (json_parse(arena, text, &limits, value, fault) == OK || fault->soft);
}

static bool read_json(struct arena *arena, struct str text, struct json *value)
{
    struct json_error fault;
    return read_json_or_say(arena, text, value, &fault);
}

/* The error that answered, in words; what is the server's stands in quotes and is cut. */
static struct str error_words(const struct mcp_client *mcp, struct arena *arena,
                              const struct mcp_message *line)
{
    struct json error;
    int64_t code = 0;
    if (!line->error.len)
        return str_of(line->trouble ? line->trouble : "the answer has no result");
    if (!read_json(arena, line->error, &error))
        return STR_LIT("an error that is no valid JSON");
    json_int(json_get_text(&error, "code"), &code);
    return arena_printf(
        arena, "error %lld \"" STR_FMT "\"", (long long)code,
        STR_ARG(str_cut(mcp_client_redact(mcp, arena, json_str(json_get_text(&error, "message"))), 200)));
}

static void keep_text(char *kept, size_t room, struct str text)
{
    struct str cut = str_cut(text, room - 1);
    if (cut.len)
        memcpy(kept, cut.at, cut.len);
    kept[cut.len] = '\0';
}

static void keep_server(struct mcp_client *mcp, const struct json *info)
{
    struct str name = json_str(json_get_text(info, "name")),
               version = json_str(json_get_text(info, "version"));
    snprintf(mcp->server, sizeof(mcp->server), STR_FMT "%s" STR_FMT, STR_ARG(str_cut(name, 60)),
             name.len && version.len ? " " : "", STR_ARG(str_cut(version, 60)));
}

/* ---- its tools -------------------------------------------------------------------- */

void mcp_tools_clear(struct tools_listing *listing)
{
    if (listing->arena)
        arena_free(listing->arena);
    free(listing->tools);
    *listing = (struct tools_listing){0};
}

static void hear_page(struct mcp_client *mcp, struct pending *pending, const struct mcp_message *line);

static void ask_page(struct mcp_client *mcp, struct str cursor)
{
    uint32_t ms =
        mcp->ready ? mcp_client_start_ms(mcp) : 0; /* the start is over then, or all of it is too late */
    struct pending *pending = mcp_client_request(mcp, "tools/list", hear_page, ms);
    if (!pending) {
        mcp_tools_clear(&mcp->listing);
        return;
    }
    if (cursor.len) {
        buf_text(&mcp->out, "\"cursor\":");
        json_write_string(&mcp->out, cursor);
    }
    if (mcp_client_has_meta(mcp, 0)) {
        buf_text(&mcp->out, cursor.len ? "," : "");
        mcp_client_write_meta(mcp, 0);
    }
    close_and_send(mcp, pending->id, "tools/list");
}

static void ask_tools(struct mcp_client *mcp)
{
    mcp_tools_clear(&mcp->listing);
    mcp->listing.on = true;
    mcp->listing.arena = arena_new();
    ask_page(mcp, STR_NONE);
}

static void listen_for_changes(struct mcp_client *mcp);

/* What it offers is what it has told; the same as before is no news. */
static void take_offer(struct mcp_client *mcp)
{
    struct tools_listing *listing = &mcp->listing;
    struct json tools = json_array(listing->tools, listing->count);
    struct tool_list *offer = tool_list_new(&tools), *before = mcp->offer;
    bool again = listing->again, first = !mcp->ready;
    if (listing->cut)
        log_event(LOG_WARN, "upstream_tools_truncated", LOG_STR("upstream", mcp->spec->name),
                  LOG_TEXT("why", listing->cut), LOG_NUM("tools", listing->count));
    mcp_tools_clear(listing);
    bool differs = !before || tool_list_hash(before) != tool_list_hash(offer);
    if (differs)
        mcp->offer = offer;
    tool_list_unref(differs ? before : offer);
    if (again)
        mcp_tools_changed(mcp);
    if (first && mcp->modern)
        listen_for_changes(mcp);
    if (differs)
        mcp->hooks->changed(mcp->owner);
    if (first)
        mcp_client_up(mcp);
}

static struct str why_no_tools(const struct mcp_client *mcp, const struct mcp_message *line, bool read,
                               const struct json_error *fault)
{
    struct arena *arena = mcp->listing.arena;
    if (!line->result.len)
        return error_words(mcp, arena, line);
    if (!read)
        return arena_printf(arena, "the answer cannot be read: %s", fault->text);
    return STR_LIT("the answer has no array `tools`");
}

/* Once it is up, a list that cannot be read leaves the last one as it was. */
static void list_failed(struct mcp_client *mcp, struct str why)
{
    if (!mcp->ready) {
        mcp_client_fail(mcp, "it does not list its tools: " STR_FMT, STR_ARG(why));
        return;
    }
    log_event(LOG_WARN, "upstream_tools_stale", LOG_STR("upstream", mcp->spec->name), LOG_STR("why", why));
    mcp_tools_clear(&mcp->listing);
}

static bool was_asked(const struct tools_listing *listing, struct str cursor)
{
    for (uint32_t i = 0; i < listing->pages; i++)
        if (str_eq(listing->cursors[i], cursor))
            return true;
    return false;
}

static void add_tools(struct tools_listing *listing, const struct json *tools)
{
    uint32_t count = tools->len;
    if (count > UPSTREAM_TOOLS_MAX - listing->count) {
        count = UPSTREAM_TOOLS_MAX - listing->count;
        listing->cut = "it offers more tools than one server may";
    }
    struct json *all = realloc(listing->tools, (listing->count + count + 1) * sizeof(*all));
    if (!all)
        abort();
    for (uint32_t i = 0; i < count; i++)
        all[listing->count + i] = tools->items[i];
    listing->tools = all;
    listing->count += count;
}

/* The next page, or the end: its own, or that of our patience. */
static void go_on_listing(struct mcp_client *mcp, struct str cursor)
{
    struct tools_listing *listing = &mcp->listing;
    if (cursor.len && was_asked(listing, cursor))
        listing->cut = "a page of its list leads back to one that was read";
    else if (cursor.len && listing->pages + 1 >= MCP_PAGES_MAX)
        listing->cut = "its list has more pages than are read";
    else if (cursor.len && listing->bytes >= LIST_MAX_BYTES)
        listing->cut = "its list is longer than is read";
    if (!cursor.len || listing->cut) {
        take_offer(mcp);
        return;
    }
    listing->cursors[listing->pages++] = cursor;
    ask_page(mcp, cursor);
}

static void hear_page(struct mcp_client *mcp, struct pending *pending, const struct mcp_message *line)
{
    static const struct json nothing = {.type = JSON_ARRAY};
    struct tools_listing *listing = &mcp->listing;
    struct json page;
    pending_remove(&mcp->pendings, pending);
    if (!listing->on)
        return;
    struct str text = arena_dup(listing->arena, line->result);
    struct json_error fault;
    bool read = read_json_or_say(listing->arena, text, &page, &fault);
    const struct json *tools = read ? json_get_text(&page, "tools") : NULL;
    if (!json_is(tools, JSON_ARRAY)) {
        struct str why = why_no_tools(mcp, line, read, &fault);
        if (!mcp->ready && strstr(why.at, "error -32601")) /* it has none, and knows it */
            tools = &nothing;
        else {
            list_failed(mcp, why);
            return;
        }
    }
    listing->bytes += text.len;
    add_tools(listing, tools);
    go_on_listing(mcp, read ? json_str(json_get_text(&page, "nextCursor")) : STR_NONE);
}

void mcp_relist(void *owner)
{
    struct mcp_client *mcp = owner;
    if (mcp->listing.on)
        mcp->listing.again = true;
    else if (mcp->open)
        ask_tools(mcp);
}

/* A storm of them is one: the first sets the time, those that come before it is over change nothing. One that
 * goes on is asked ever less often, until it has been quiet for a while. */
void mcp_tools_changed(struct mcp_client *mcp)
{
    int64_t now = clock_mono_us();
    if (timer_is_set(&mcp->relist))
        return;
    bool quiet = now - mcp->relist_us > (int64_t)RELIST_MAX_MS * 1000;
    mcp->relist_ms = quiet ? MCP_LIST_SETTLE_MS : mcp->relist_ms * 2;
    mcp->relist_ms = mcp->relist_ms < RELIST_MAX_MS ? mcp->relist_ms : RELIST_MAX_MS;
    mcp->relist_us = now + (int64_t)mcp->relist_ms * 1000;
    timer_set(&mcp->relist, mcp->loop, mcp->relist_ms, mcp_relist, mcp);
}

/* ---- modern: it tells of changes only to those who listen ------------------------- */

void mcp_relisten(void *owner)
{
    struct mcp_client *mcp = owner;
    if (mcp->ready)
        listen_for_changes(mcp);
}

/* It is answered when it is over. A no is final, whatever else is tried again. */
static void hear_end_of_listening(struct mcp_client *mcp, struct pending *pending,
                                  const struct mcp_message *line)
{
    pending_remove(&mcp->pendings, pending);
    if (!line->error.len)
        timer_set(&mcp->relisten, mcp->loop, RELISTEN_MS, mcp_relisten, mcp);
}

static void listen_for_changes(struct mcp_client *mcp)
{
    struct pending *pending = mcp_client_request(mcp, "subscriptions/listen", hear_end_of_listening, 0);
    if (!pending)
        return;
    buf_text(&mcp->out, "\"notifications\":{\"toolsListChanged\":true},");
    mcp_client_write_meta(mcp, 0);
    close_and_send(mcp, pending->id, "subscriptions/listen");
}

/* ---- the handshake ------------------------------------------------------------------ */

static void greeted(struct mcp_client *mcp, const char *version)
{
    snprintf(mcp->version, sizeof(mcp->version), "%s", version);
    mcp->kind->version(mcp->transport, mcp->version, mcp->modern);
    if (!mcp->modern) {
        mcp_client_begin_message(mcp, 0, "notifications/initialized");
        close_and_send(mcp, 0, "notifications/initialized");
    }
    ask_tools(mcp);
}

static void hear_discovered(struct mcp_client *mcp, struct pending *pending, const struct mcp_message *line)
{
    struct arena *arena = mcp_client_scratch(mcp);
    struct json result;
    pending_remove(&mcp->pendings, pending);
    if (!read_json(arena, line->result, &result)) {
        mcp_client_fail(mcp, "it accepts neither `initialize` (%s) nor `server/discover` (" STR_FMT ")",
                        mcp->error, STR_ARG(error_words(mcp, arena, line)));
        return;
    }
    if (!json_array_has(json_get_text(&result, "supportedVersions"), STR_LIT(MODERN))) {
        mcp_client_fail(mcp, "it speaks neither " LEGACY " nor " MODERN " of MCP, nor anything between");
        return;
    }
    keep_server(mcp,
                json_get(json_get_text(&result, "_meta"), STR_LIT("io.modelcontextprotocol/serverInfo")));
    greeted(mcp, MODERN);
}

static void discover(struct mcp_client *mcp, struct str why)
{
    keep_text(mcp->error, sizeof(mcp->error), str_cut(why, MCP_ERROR_MAX_BYTES / 2));
    mcp->modern = true;
    mcp->kind->version(mcp->transport, MODERN, true);
    struct pending *pending = mcp_client_request(mcp, "server/discover", hear_discovered, 0);
    if (!pending)
        return;
    mcp_client_write_meta(mcp, 0);
    close_and_send(mcp, pending->id, "server/discover");
}

/* Versions of before, and those of which nobody has heard, are spoken as the newest legacy one. */
static void hear_initialized(struct mcp_client *mcp, struct pending *pending, const struct mcp_message *line)
{
    struct arena *arena = mcp_client_scratch(mcp);
    struct json result;
    char version[sizeof(mcp->version)];
    pending_remove(&mcp->pendings, pending);
    if (!read_json(arena, line->result, &result)) {
        discover(mcp, error_words(mcp, arena, line));
        return;
    }
    struct str told = json_str(json_get_text(&result, "protocolVersion"));
    if (str_is(told, MODERN)) {
        discover(mcp, STR_LIT("it answered with a version that has no handshake"));
        return;
    }
    keep_server(mcp, json_get_text(&result, "serverInfo"));
    keep_text(version, sizeof(version), told.len ? told : STR_LIT(LEGACY));
    greeted(mcp, version);
}

void mcp_handshake_start(struct mcp_client *mcp)
{
    mcp->modern = false;
    struct pending *pending = mcp_client_request(mcp, "initialize", hear_initialized, 0);
    if (!pending)
        return;
    buf_text(&mcp->out,
             "\"protocolVersion\":\"" LEGACY "\",\"capabilities\":" CAPABILITIES ",\"clientInfo\":" CLIENT);
    close_and_send(mcp, pending->id, "initialize");
}
