/* Lists of kept messages, with their counts. */
#include "cli/connect/requests.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/canonical.h"
#include "json/write.h"

#include <stdlib.h>

void requests_init(struct requests *requests)
{
    *requests = (struct requests){0};
    TAILQ_INIT(&requests->waiting);
    TAILQ_INIT(&requests->sent);
}

void tracked_free(struct tracked *t)
{
    free(t->line);
    free(t);
}

void requests_clear(struct requests *requests)
{
    struct tracked_list *lists[] = {&requests->waiting, &requests->sent};
    for (size_t i = 0; i < 2; i++)
        for (struct tracked *t = TAILQ_FIRST(lists[i]), *next; t; t = next) {
            next = TAILQ_NEXT(t, link);
            tracked_free(t);
        }
    requests_init(requests);
}

/* Copies `s` to *at, and moves *at behind it. */
static struct str put(char **at, struct str s)
{
    struct str copy = {*at, s.len};
    if (s.len)
        memcpy(*at, s.at, s.len);
    *at += s.len;
    return copy;
}

struct tracked *tracked_new(enum tracked_kind kind, struct str line, const struct json *id, struct str tool)
{
    struct buf text = {0}, key = {0};
    if (id) {
        json_write(&text, id);
        json_canonical(&key, id);
    }
    struct tracked *t = calloc(1, sizeof(*t) + text.len + key.len + tool.len);
    char *whole = line.len ? malloc(line.len + 1) : NULL;
    if (!t || (line.len && !whole))
        abort();
    char *at = (char *)(t + 1);
    t->kind = kind;
    t->id = put(&at, buf_view(&text));
    t->key = put(&at, buf_view(&key));
    t->tool = put(&at, tool);
    if (line.len) {
        t->line = whole;
        t->line_len = line.len + 1;
        memcpy(t->line, line.at, line.len);
        t->line[line.len] = '\n';
    }
    buf_clear(&text);
    buf_clear(&key);
    return t;
}

void requests_wait(struct requests *requests, struct tracked *t, bool first)
{
    if (first)
        TAILQ_INSERT_HEAD(&requests->waiting, t, link);
    else
        TAILQ_INSERT_TAIL(&requests->waiting, t, link);
    requests->waiting_count++;
    requests->waiting_bytes += t->line_len;
}

void requests_sent(struct requests *requests, struct tracked *t)
{
    TAILQ_INSERT_TAIL(&requests->sent, t, link);
    requests->sent_count++;
    t->is_sent = true;
}

void requests_remove(struct requests *requests, struct tracked *t)
{
    TAILQ_REMOVE(t->is_sent ? &requests->sent : &requests->waiting, t, link);
    if (t->is_sent) {
        requests->sent_count--;
    } else {
        requests->waiting_count--;
        requests->waiting_bytes -= t->line_len;
    }
    t->is_sent = false;
}

void requests_end(struct requests *requests, struct tracked *t)
{
    requests_remove(requests, t);
    tracked_free(t);
}

struct tracked *tracked_find(const struct tracked_list *list, const struct json *id)
{
    struct buf key = {0};
    struct tracked *t, *found = NULL;
    if (!id || TAILQ_EMPTY(list))
        return NULL;
    json_canonical(&key, id);
    TAILQ_FOREACH (t, list, link)
        if (str_eq(t->key, buf_view(&key))) {
            found = t;
            break;
        }
    buf_clear(&key);
    return found;
}
