/* The page's files, and its views of status, sessions and tools as JSON. */
#include "server/page.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/embedded.h"
#include "base/version.h"
#include "gate/decision_log.h"
#include "gate/metrics.h"
#include "json/write.h"
#include "schema/sample.h"
#include "server/listener.h"
#include "server/reload.h"
#include "server/server_internal.h"
#include "server/session_list.h"
#include "server/status_method.h"
#include "state/quarantine.h"
#include "upstream/upstream.h"

#include <stdlib.h>
#include <unistd.h>

#define SEARCH_MAX_BYTES 256u

/* ---- files ---- */

static unsigned put_file(struct buf *body, const char *name)
{
    buf_str(body, embedded_text(name));
    return 200;
}

unsigned page_index(struct server *server, const struct http_request *request, struct buf *body)
{
    (void)server, (void)request;
    return put_file(body, "src/server/page/index.html");
}

unsigned page_script(struct server *server, const struct http_request *request, struct buf *body)
{
    (void)server, (void)request;
    return put_file(body, "src/server/page/app.js");
}

unsigned page_style(struct server *server, const struct http_request *request, struct buf *body)
{
    (void)server, (void)request;
    return put_file(body, "src/server/page/app.css");
}

/* ---- the query ---- */

static int hex_digit(char c)
{
    if (ascii_is_digit(c))
        return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static struct str decode(struct arena *arena, struct str text)
{
    char *at = arena_alloc(arena, text.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        bool escaped = text.at[i] == '%' && i + 2 < text.len;
        int high = escaped ? hex_digit(text.at[i + 1]) : -1, low = escaped ? hex_digit(text.at[i + 2]) : -1;
        if (high >= 0 && low >= 0) {
            at[len++] = (char)(high * 16 + low);
            i += 2;
        } else {
            at[len++] = (char)(text.at[i] == '+' ? ' ' : text.at[i]);
        }
    }
    return (struct str){at, len};
}

struct str page_query(struct arena *arena, struct str query, const char *name)
{
    while (query.len) {
        const char *end = memchr(query.at, '&', query.len);
        struct str pair = {query.at, end ? (size_t)(end - query.at) : query.len};
        const char *equals = pair.len ? memchr(pair.at, '=', pair.len) : NULL;
        size_t key = equals ? (size_t)(equals - pair.at) : pair.len;
        if (str_is((struct str){pair.at, key}, name))
            return decode(arena, str_from(pair, key + 1));
        query = str_from(query, pair.len + 1);
    }
    return STR_NONE;
}

/* Absent, or no number: `otherwise`. */
static size_t query_number(struct arena *arena, struct str query, const char *name, size_t otherwise,
                           size_t most)
{
    struct str text = page_query(arena, query, name);
    size_t n = 0;
    if (!text.len || text.len > 9)
        return otherwise;
    for (size_t i = 0; i < text.len; i++) {
        if (!ascii_is_digit(text.at[i]))
            return otherwise;
        n = 10 * n + (size_t)(text.at[i] - '0');
    }
    return n < most ? n : most;
}

/* A reply that is too large becomes one line that says so. */
static unsigned bounded(struct buf *body, const char *instead)
{
    if (body->len <= PAGE_BODY_MAX_BYTES)
        return 200;
    body->len = 0;
    buf_printf(body, "this is larger than %u bytes; %s shows it\n", PAGE_BODY_MAX_BYTES, instead);
    return 500;
}

/* ---- status ---- */

static size_t at_most(size_t count, size_t most)
{
    return count < most ? count : most;
}

static void put_generation(struct json_out *out, const struct generation *g)
{
    json_field_open(out, "generation", '{');
    json_field_int(out, "number", (int64_t)g->number);
    json_field_str(out, "hash", g->hash);
    json_field_int(out, "tools", (int64_t)g->tool_count);
    json_field_int(out, "policies", (int64_t)policy_set_count(g->policies));
    json_field_int(out, "warning_count", (int64_t)g->warning_count);
    json_field_strs(out, "warnings", g->warnings, at_most(g->warning_count, PAGE_WARNINGS_MAX));
    json_field_open(out, "unmatched", '[');
    for (size_t i = 0; i < at_most(g->unmatched_count, PAGE_WARNINGS_MAX); i++) {
        json_open(out, '{');
        json_field_str(out, "file", g->unmatched[i].file);
        if (g->unmatched[i].why)
            json_field_text(out, "why", g->unmatched[i].why);
        json_close(out, '}');
    }
    json_close(out, ']');
    json_close(out, '}');
}

/* The same figures as toolgate/status has for the operator, without its long lists. */
unsigned page_status(struct server *server, const struct http_request *request, struct buf *body)
{
    struct client operator= {.server = server, .peer = {.uid = geteuid(), .is_example = true}};
    const struct generation *g = server->gate.generation;
    struct json_out out = json_out(body);
    (void)request;
    json_open(&out, '{');
    json_field_text(&out, "version", TOOLGATE_VERSION);
    json_field_int(&out, "pid", getpid());
    json_field_int(&out, "started_ms", server->started_ms);
    json_field_int(&out, "uptime_s", (clock_read_ns(CLOCK_BOOTTIME) - server->started_boot_ns) / 1000000000);
    json_field_text(&out, "socket", server->listener ? listener_path(server->listener) : "");
    put_generation(&out, g);
    reload_write_status(&operator, & out);
    json_key(&out, "upstreams");
    if (server->gate.upstreams && g->config.upstream_count)
        upstreams_write_status(&out, server->gate.upstreams);
    else
        json_put_raw(&out, STR_LIT("[]"));
    status_write_ledger(&out, server->gate.ledger);
    json_key(&out, "counters");
    metrics_write(&out, &server->metrics);
    status_write_failures(&out, &operator);
    quarantine_write_status(server->quarantine, &out, g->policies);
    decision_log_write_status(&out, server->gate.decisions);
    problems_write(&out, server);
    json_close(&out, '}');
    return bounded(body, "`toolgate status`");
}

/* ---- sessions ---- */

unsigned page_sessions(struct server *server, const struct http_request *request, struct buf *body)
{
    static const struct {
        const char *name;
        struct session_list_query query;
    } lists[] = {{"in_a_loop", {.order = SESSION_LIST_RECENT, .loops = true}},
                 {"refusals", {.order = SESSION_LIST_REFUSALS, .limit = 20}},
                 {"recent", {.order = SESSION_LIST_RECENT}}};
    struct json_out out = json_out(body);
    (void)request;
    json_open(&out, '{');
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        json_field_open(&out, lists[i].name, '{');
        session_list_write(&out, server, &lists[i].query);
        json_close(&out, '}');
    }
    json_close(&out, '}');
    return bounded(body, "`toolgate sessions`");
}

/* ---- tools ---- */

struct tool_row {
    struct str name;
    const struct tool *tool;            /* NULL: not of this generation */
    const struct metrics_tool *metrics; /* NULL: never called */
};

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct tool_row *)a)->name, ((const struct tool_row *)b)->name);
}

static int descending(uint64_t a, uint64_t b, const void *x, const void *y)
{
    return a != b ? (a < b) - (a > b) : by_name(x, y);
}

static int by_calls(const void *x, const void *y)
{
    const struct tool_row *a = x, *b = y;
    return descending(a->metrics ? a->metrics->calls : 0, b->metrics ? b->metrics->calls : 0, x, y);
}

static int by_refusals(const void *x, const void *y)
{
    const struct tool_row *a = x, *b = y;
    return descending(a->metrics ? a->metrics->refused : 0, b->metrics ? b->metrics->refused : 0, x, y);
}

/* The generation's tools, then those that were called and are not in it: clients', removed, unknown ones. */
static size_t collect(const struct server *server, struct str search, struct tool_row *rows)
{
    const struct generation *g = server->gate.generation;
    const struct metrics *m = &server->metrics;
    size_t count = 0;
    for (size_t i = 0; i < g->tool_count; i++)
        if (str_contains_nocase(g->tools[i]->name, search))
            rows[count++] =
                (struct tool_row){g->tools[i]->name, g->tools[i], metrics_tool(m, g->tools[i]->name)};
    for (size_t i = 0; i < m->tool_count; i++) {
        const struct tool *tool = generation_find(g, m->tools[i]->name);
        bool is_listed = tool && str_eq(tool->name, m->tools[i]->name);
        if (!is_listed && str_contains_nocase(m->tools[i]->name, search))
            rows[count++] = (struct tool_row){m->tools[i]->name, NULL, m->tools[i]};
    }
    return count;
}

static const char *mode_of(const struct tool *tool)
{
    static const char *const names[] = {
        [POLICY_ENFORCE] = "enforce", [POLICY_SHADOW] = "shadow", [POLICY_OFF] = "off"};
    if (!tool)
        return "";
    return tool->policy || tool->overlay_count ? names[tool->mode] : "no policy";
}

static void put_row(struct json_out *out, const struct tool_row *row)
{
    json_open(out, '{');
    json_field_str(out, "tool", row->name);
    json_field_text(out, "mode", mode_of(row->tool));
    if (row->tool)
        json_field_str(out, "origin", row->tool->origin);
    if (row->metrics) {
        json_key(out, "counts");
        metrics_write_tool(out, row->metrics);
    }
    json_close(out, '}');
}

/* q=TEXT&sort=calls|refused|name&offset=N&limit=N */
unsigned page_tools(struct server *server, const struct http_request *request, struct buf *body)
{
    struct arena *arena = arena_new();
    const struct generation *g = server->gate.generation;
    struct tool_row *rows =
        ARENA_ARRAY(arena, struct tool_row, g->tool_count + server->metrics.tool_count + 1);
    struct str search = str_cut(page_query(arena, request->query, "q"), SEARCH_MAX_BYTES);
    struct str sort = page_query(arena, request->query, "sort");
    size_t count = collect(server, search, rows);
    size_t offset = query_number(arena, request->query, "offset", 0, count);
    size_t limit = query_number(arena, request->query, "limit", PAGE_TOOLS_MAX, PAGE_TOOLS_MAX);
    struct json_out out = json_out(body);
    qsort(rows, count, sizeof(*rows),
          str_is(sort, "name")      ? by_name
          : str_is(sort, "refused") ? by_refusals
                                    : by_calls);
    json_open(&out, '{');
    json_field_int(&out, "total", (int64_t)count);
    json_field_int(&out, "offset", (int64_t)offset);
    json_field_open(&out, "tools", '[');
    for (size_t i = offset; i < count && i - offset < limit; i++)
        put_row(&out, &rows[i]);
    json_close(&out, ']');
    json_close(&out, '}');
    arena_free(arena);
    return 200;
}

/* name=TOOL: what the playground needs to edit a call. */
unsigned page_tool(struct server *server, const struct http_request *request, struct buf *body)
{
    struct arena *arena = arena_new();
    const struct tool *tool =
        generation_find(server->gate.generation, page_query(arena, request->query, "name"));
    struct json_out out = json_out(body);
    struct json sample;
    unsigned status = 404;
    if (!tool) {
        buf_text(body, "this generation has no tool of that name\n");
    } else {
        json_open(&out, '{');
        json_field_str(&out, "tool", tool->name);
        json_field_str(&out, "description", tool->description);
        json_field_optional(&out, "input_schema", tool->input);
        if (tool->input_schema && schema_sample(arena, tool->input_schema, SAMPLE_REQUIRED, &sample))
            json_field(&out, "sample", &sample);
        json_close(&out, '}');
        status = bounded(body, "`toolgate tools`");
    }
    arena_free(arena);
    return status;
}
