/* Lists of kept messages, with their counts. */
#include "connect/requests.h"

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

static void clear(struct tracked_list *list)
{
    struct tracked *t;
    while ((t = TAILQ_FIRST(list))) {
        TAILQ_REMOVE(list, t, link);
        tracked_free(t);
    }
}

void requests_clear(struct requests *requests)
{
    clear(&requests->waiting);
    clear(&requests->sent);
    requests_init(requests);
}

static void *allocate(size_t size)
{
    void *at = calloc(1, size);
    if (!at)
        abort();
    return at;
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
    struct tracked *t = allocate(sizeof(*t) + text.len + key.len + tool.len);
    char *at = (char *)(t + 1);
    t->kind = kind;
    t->id = put(&at, buf_view(&text));
    t->key = put(&at, buf_view(&key));
    t->tool = put(&at, tool);
    if (line.len) {
        t->line = allocate(line.len + 1);
        t->line_len = line.len + 1;
        memcpy(t->line, line.at, line.len);
        t->line[line.len] = '\n';
    }
    buf_clear(&text);
    buf_clear(&key);
    return t;
}

static void count_waiting(struct requests *requests, const struct tracked *t)
{
    requests->waiting_count++;
    requests->waiting_bytes += t->line_len;
}

void requests_wait(struct requests *requests, struct tracked *t)
{
    TAILQ_INSERT_TAIL(&requests->waiting, t, link);
    count_waiting(requests, t);
}

void requests_wait_first(struct requests *requests, struct tracked *t)
{
    TAILQ_INSERT_HEAD(&requests->waiting, t, link);
    count_waiting(requests, t);
}

void requests_sent(struct requests *requests, struct tracked *t)
{
    TAILQ_INSERT_TAIL(&requests->sent, t, link);
    requests->sent_count++;
}

void requests_drop_waiting(struct requests *requests, struct tracked *t)
{
    TAILQ_REMOVE(&requests->waiting, t, link);
    requests->waiting_count--;
    requests->waiting_bytes -= t->line_len;
}

void requests_drop_sent(struct requests *requests, struct tracked *t)
{
    TAILQ_REMOVE(&requests->sent, t, link);
    requests->sent_count--;
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
