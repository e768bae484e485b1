/*
 * The latest records of the decision log, masked as they are in its file, for the page. Each has a number, so
 * that a browser asks only for those that it does not have.
 */
#include "server/page.h"

#include "base/arena.h"
#include "gate/decision_log.h"
#include "json/write.h"
#include "server/server_internal.h"

#include <stdlib.h>

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
    if (is_on && !p) {
        p = calloc(1, sizeof(*p));
        if (!p)
            abort();
    }
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

static uint64_t read_number(struct str text)
{
    uint64_t n = 0;
    for (size_t i = 0; i < text.len && i < 18 && ascii_is_digit(text.at[i]); i++)
        n = 10 * n + (uint64_t)(text.at[i] - '0');
    return n;
}

/* after=N: those from N on, the oldest first. */
unsigned page_decisions(struct server *server, const struct http_request *request, struct buf *body)
{
    struct page_decisions *p = server->page_decisions;
    struct arena *arena = arena_new();
    uint64_t from = read_number(page_query(arena, request->query, "after"));
    arena_free(arena);
    struct json_out out = json_out(body);
    if (from < p->first || from > p->next) /* the daemon has restarted, or the browser has slept */
        from = p->first;
    json_open(&out, '{');
    json_field_int(&out, "started_ms", server->started_ms);
    json_field_int(&out, "first", (int64_t)p->first);
    json_field_int(&out, "next", (int64_t)p->next);
    json_field_open(&out, "records", '[');
    for (; from < p->next; from++)
        json_put_raw(&out, buf_view(record_at(p, from)));
    json_close(&out, ']');
    json_close(&out, '}');
    return 200;
}
