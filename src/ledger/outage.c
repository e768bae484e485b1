#include "ledger/outage.h"

#include "base/lru.h"

#include <stdlib.h>

struct kept_session {
    struct lru_node node; /* first */
    struct request_queue requests;
};

struct outage {
    struct lru sessions; /* kept longest first, nearly */
    size_t requests, bytes, bytes_max;
};

struct outage *outage_new(size_t bytes_max)
{
    struct outage *o = calloc(1, sizeof(*o));
    if (!o)
        abort();
    lru_init(&o->sessions);
    o->bytes_max = bytes_max;
    return o;
}

static struct kept_session *session_for(struct outage *o, struct hash128 id)
{
    struct kept_session *kept = (struct kept_session *)lru_find(&o->sessions, id);
    if (kept)
        return kept;
    kept = calloc(1, sizeof(*kept));
    if (!kept)
        abort();
    kept->node.id = id;
    STAILQ_INIT(&kept->requests);
    lru_add(&o->sessions, &kept->node);
    return kept;
}

bool outage_keep(struct outage *o, struct session_request *owned)
{
    if (o->bytes + owned->bytes > o->bytes_max)
        return false;
    STAILQ_INSERT_TAIL(&session_for(o, owned->id)->requests, owned, next);
    o->requests++;
    o->bytes += owned->bytes;
    return true;
}

void outage_put_back(struct outage *o, struct hash128 id, struct request_queue *queue)
{
    const struct session_request *r;
    if (STAILQ_EMPTY(queue))
        return;
    struct kept_session *kept = session_for(o, id);
    STAILQ_FOREACH (r, queue, next) {
        o->requests++;
        o->bytes += r->bytes;
    }
    STAILQ_CONCAT(queue, &kept->requests);
    STAILQ_CONCAT(&kept->requests, queue);
}

bool outage_has(struct outage *o, struct hash128 id)
{
    return o->sessions.count && lru_find(&o->sessions, id);
}

uint32_t outage_take(struct outage *o, struct hash128 id, struct request_queue *queue)
{
    struct kept_session *kept = (struct kept_session *)lru_find(&o->sessions, id);
    const struct session_request *r;
    uint32_t taken = 0;
    if (!kept)
        return 0;
    STAILQ_FOREACH (r, &kept->requests, next) {
        o->requests--;
        o->bytes -= r->bytes;
        taken++;
    }
    STAILQ_CONCAT(queue, &kept->requests);
    lru_remove(&o->sessions, &kept->node);
    free(kept);
    return taken;
}

bool outage_first(const struct outage *o, struct hash128 *id)
{
    if (o->sessions.oldest)
        *id = o->sessions.oldest->id;
    return o->sessions.oldest != NULL;
}

size_t outage_sessions(const struct outage *o)
{
    return o->sessions.count;
}

size_t outage_requests(const struct outage *o)
{
    return o->requests;
}

void outage_free(struct outage *o)
{
    struct hash128 id;
    struct request_queue queue = STAILQ_HEAD_INITIALIZER(queue);
    struct session_request *r;
    if (!o)
        return;
    while (outage_first(o, &id))
        outage_take(o, id, &queue);
    while ((r = STAILQ_FIRST(&queue))) {
        STAILQ_REMOVE_HEAD(&queue, next);
        free(r);
    }
    lru_clear(&o->sessions);
    free(o);
}
