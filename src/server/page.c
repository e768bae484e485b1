/*
 * The page's views as JSON: status, sessions, tools, the latest decisions, and the playground,
 * which decides on a call as a new session's first, runs nothing and counts nothing.
 */
#include "base/alloc.h"
#include "server/http_endpoint.h"

#include "base/arena.h"
#include "gate/call.h"
#include "gate/decision_log.h"
#include "gate/verdict.h"
#include "json/parse.h"
#include "json/write.h"
#include "schema/sample.h"
#include "server/method_table.h"

#include <stdlib.h>
#include <unistd.h>

#define PAGE_DECISIONS_MAX       300u     /* records that the page can still get */
#define PAGE_DECISIONS_MAX_BYTES 2097152u /* of them together */
#define PAGE_TOOLS_MAX           200u     /* of one reply; the script asks for more with `offset` */
#define PAGE_BODY_MAX_BYTES      4194304u /* of any reply */
#define SEARCH_MAX_BYTES         256u
#define PLAYGROUND               "playground" /* the session, connection and user of its calls */

/* ---- the query ---- */

/* A value of the query, decoded, in the arena; empty: absent. */
static struct str page_query(struct arena *arena, struct str query, const char *name)
{
    while (query.len) {
        struct str text = str_split(&query, '&');
        if (!str_is(str_split(&text, '='), name))
            continue;
        struct buf value = buf_in(arena);
        for (size_t i = 0; i < text.len; i++) {
            bool escaped = text.at[i] == '%' && i + 2 < text.len;
            int high = escaped ? ascii_hex_value(text.at[i + 1]) : -1;
            int low = escaped ? ascii_hex_value(text.at[i + 2]) : -1;
            bool valid = high >= 0 && low >= 0;
            buf_byte(&value, (char)(valid ? high * 16 + low : text.at[i] == '+' ? ' ' : text.at[i]));
            i += valid ? 2 : 0;
        }
        return buf_view(&value);
    }
    return STR_NONE;
}

/* A whole number of up to 18 digits; absent, or something else: `otherwise`. */
static uint64_t query_number(struct arena *arena, struct str query, const char *name, uint64_t otherwise)
{
    size_t n;
    return http_read_number(page_query(arena, query, name), 18, &n) ? n : otherwise;
}

static unsigned refuse(struct buf *body, unsigned status, struct str why)
{
    body->len = 0;
    buf_printf(body, STR_FMT "\n", STR_ARG(why));
    return status;
}

/* A reply that is too large becomes one line that says so. */
static unsigned bounded(struct arena *arena, struct buf *body, const char *instead)
{
    if (body->len <= PAGE_BODY_MAX_BYTES)
        return 200;
    return refuse(
        body, 500,
        arena_printf(arena, "this is larger than %u bytes; %s shows it", PAGE_BODY_MAX_BYTES, instead));
}

/* ---- status ---- */

unsigned page_status(struct server *server, const struct http_request *request, struct arena *arena,
                     struct buf *body)
{
    struct client operator= {.server = server, .peer = {.uid = geteuid(), .is_example = true}};
    struct json_out out = json_out(body);
    (void)request;
    json_open(&out, '{');
    status_write(&out, arena, &operator, true);
    json_close(&out, '}');
    return bounded(arena, body, "`toolgate status`");
}

/* ---- sessions ---- */

unsigned page_sessions(struct server *server, const struct http_request *request, struct arena *arena,
                       struct buf *body)
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
    return bounded(arena, body, "`toolgate sessions`");
}

/* ---- tools ---- */

struct tool_row {
    struct str name;
    const struct tool *tool;            /* NULL: not of this generation */
    const struct metrics_tool *metrics; /* NULL: never called */
    uint64_t key;                       /* to sort by */
};

/* The row with the largest key is first; among equals the names decide. */
static int by_key(const void *x, const void *y)
{
    const struct tool_row *a = x, *b = y;
    return a->key != b->key ? (a->key < b->key) - (a->key > b->key) : str_cmp(a->name, b->name);
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
                (struct tool_row){g->tools[i]->name, g->tools[i], metrics_tool(m, g->tools[i]->name), 0};
    for (size_t i = 0; i < m->tool_count; i++) {
        const struct tool *tool = generation_find(g, m->tools[i]->name);
        bool is_listed = tool && str_eq(tool->name, m->tools[i]->name);
        if (!is_listed && str_contains_nocase(m->tools[i]->name, search))
            rows[count++] = (struct tool_row){m->tools[i]->name, NULL, m->tools[i], 0};
    }
    return count;
}

/* q=TEXT&sort=calls|refused|name&offset=N&limit=N */
unsigned page_tools(struct server *server, const struct http_request *request, struct arena *arena,
                    struct buf *body)
{
    const struct generation *g = server->gate.generation;
    struct tool_row *rows =
        ARENA_ARRAY(arena, struct tool_row, g->tool_count + server->metrics.tool_count + 1);
    struct str search = str_cut(page_query(arena, request->query, "q"), SEARCH_MAX_BYTES);
    struct str sort = page_query(arena, request->query, "sort");
    size_t count = collect(server, search, rows);
    size_t offset = query_number(arena, request->query, "offset", 0);
    size_t limit = query_number(arena, request->query, "limit", PAGE_TOOLS_MAX);
    struct json_out out = json_out(body);
    offset = offset < count ? offset : count;
    limit = limit < PAGE_TOOLS_MAX ? limit : PAGE_TOOLS_MAX;
    for (size_t i = 0; i < count; i++)
        if (rows[i].metrics && !str_is(sort, "name"))
            rows[i].key = str_is(sort, "refused") ? rows[i].metrics->refused : rows[i].metrics->calls;
    qsort(rows, count, sizeof(*rows), by_key);
    json_open(&out, '{');
    json_fields(&out, FIELD_NUM("total", count), FIELD_NUM("offset", offset));
    json_field_open(&out, "tools", '[');
    for (size_t i = offset; i < count && i - offset < limit; i++) {
        const struct tool *tool = rows[i].tool;
        bool guarded = tool && (tool->policy || tool->overlay_count);
        json_open(&out, '{');
        json_fields(&out, FIELD_STR("tool", rows[i].name),
                    FIELD_TEXT("mode", guarded ? status_mode_name(tool->mode)
                                       : tool  ? "no policy"
                                               : ""));
        if (tool)
            json_field_str(&out, "origin", tool->origin);
        if (rows[i].metrics) {
            json_key(&out, "counts");
            metrics_write_tool(&out, rows[i].metrics);
        }
        json_close(&out, '}');
    }
    json_close(&out, ']');
    json_close(&out, '}');
    return 200;
}

/* name=TOOL: what the playground needs to edit a call. */
unsigned page_tool(struct server *server, const struct http_request *request, struct arena *arena,
                   struct buf *body)
{
    const struct tool *tool =
        generation_find(server->gate.generation, page_query(arena, request->query, "name"));
    struct json_out out = json_out(body);
    struct json sample;
    if (!tool)
        return refuse(body, 404, STR_LIT("this generation has no tool of that name"));
    json_open(&out, '{');
    json_fields(&out, FIELD_STR("tool", tool->name), FIELD_STR("description", tool->description));
    json_field_optional(&out, "input_schema", tool->input);
    if (tool->input_schema && schema_sample(arena, tool->input_schema, SAMPLE_REQUIRED, &sample))
        json_field(&out, "sample", &sample);
    json_close(&out, '}');
    return bounded(arena, body, "`toolgate tools`");
}

/* ---- decisions: the latest records, masked as they are in the file; each has a number, so that a browser
 * asks only for those that it does not have ---- */

struct page_decisions {
    struct buf records[PAGE_DECISIONS_MAX]; /* record n is at n % PAGE_DECISIONS_MAX */
    uint64_t first, next;                   /* those that are kept */
    size_t bytes;
};

static struct buf *record_at(struct page_decisions *p, uint64_t n)
{
    return &p->records[n % PAGE_DECISIONS_MAX];
}

static void drop_first(struct page_decisions *p)
{
    struct buf *record = record_at(p, p->first++);
    p->bytes -= record->len;
    buf_clear(record);
}

static void on_record(void *owner, struct str line)
{
    struct page_decisions *p = owner;
    line = str_trim(line);
    while (p->first < p->next &&
           (p->next - p->first == PAGE_DECISIONS_MAX || p->bytes + line.len > PAGE_DECISIONS_MAX_BYTES))
        drop_first(p);
    buf_str(record_at(p, p->next++), line);
    p->bytes += line.len;
}

void page_apply(struct server *server, bool is_on)
{
    struct page_decisions *p = server->page_decisions;
    if (is_on && !p)
        p = alloc_zeroed(sizeof(*p));
    if (server->gate.decisions)
        decision_log_set_tap(server->gate.decisions, is_on ? on_record : NULL, p);
    if (!is_on && p) {
        while (p->first < p->next)
            drop_first(p);
        free(p);
        p = NULL;
    }
    server->page_decisions = p;
}

/* after=N: those from N on, the oldest first. */
unsigned page_decisions(struct server *server, const struct http_request *request, struct arena *arena,
                        struct buf *body)
{
    struct page_decisions *p = server->page_decisions;
    uint64_t from = query_number(arena, request->query, "after", 0);
    struct json_out out = json_out(body);
    if (from < p->first || from > p->next) /* the daemon has restarted, or the browser has slept */
        from = p->first;
    json_open(&out, '{');
    json_fields(&out, FIELD_NUM("started_ms", server->started_ms), FIELD_NUM("first", p->first),
                FIELD_NUM("next", p->next));
    json_field_open(&out, "records", '[');
    for (; from < p->next; from++)
        json_put_raw(&out, buf_view(record_at(p, from)));
    json_close(&out, ']');
    json_close(&out, '}');
    return 200;
}

/* ---- the playground ---- */

/* `allow` is not applied: the operator asks on behalf of any user. */
static unsigned decide(struct server *server, struct arena *arena, const struct json *given,
                       const struct json_error *fault, struct buf *body)
{
    struct str user = json_str(json_get_text(given, "user"));
    struct peer peer;
    peer_init_example(&peer, user.len ? user : STR_LIT(PLAYGROUND));
    const struct call_request request = {
        .mode = CALL_CHECK,
        .tool = json_str(json_get_text(given, "tool")),
        .arguments = json_get_text(given, "arguments"),
        .arguments_fault = fault->soft ? str_of(fault->text) : STR_NONE,
        .session = STR_LIT(PLAYGROUND),
        .connection = STR_LIT(PLAYGROUND),
        .goal = json_str(json_get_text(given, "goal")),
        .peer = &peer,
        .dry_run = true,
        .trace = true,
    };
    struct call *call = call_new(&server->gate, arena, &request);
    unsigned status = 200;
    if (call_start(call, NULL, NULL)) {
        struct json_out out = json_out(body);
        json_open(&out, '{');
        verdict_write(&out, call_outcome(call)->verdict);
        call_reply_check(&out, call);
        json_close(&out, '}');
        if (body->len > PAGE_BODY_MAX_BYTES)
            status = refuse(body, 400,
                            arena_printf(arena, "the verdict is larger than %u bytes", PAGE_BODY_MAX_BYTES));
    } else { /* a dry run waits for nothing */
        call_cancel(call);
        status = refuse(body, 400, STR_LIT("the check did not finish at once"));
    }
    call_free(call);
    return status;
}

/* {"tool", "arguments", "user"?, "goal"?} */
unsigned page_check(struct server *server, const struct http_request *request, struct arena *arena,
                    struct buf *body)
{
    struct json given;
    struct json_error fault = {.code = JSON_ERROR_NONE};
    if (json_parse(arena, request->body, NULL, &given, &fault) != OK && !fault.soft)
        return refuse(body, 400, arena_printf(arena, "the body is not JSON: %s", fault.text));
    if (!json_is(&given, JSON_OBJECT) || !json_str(json_get_text(&given, "tool")).len)
        return refuse(body, 400, STR_LIT("expected {\"tool\": NAME, \"arguments\": {…}}"));
    if (json_str(json_get_text(&given, "goal")).len > GOAL_MAX_BYTES)
        return refuse(body, 400, arena_printf(arena, "goal: expected at most %u bytes", GOAL_MAX_BYTES));
    return decide(server, arena, &given, &fault, body);
}
