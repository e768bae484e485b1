#include "ledger/outage.h"

#include <stdlib.h>

#define TABLE_FIRST 64u

struct kept_session {
    struct hash128 id;
    struct request_queue requests;
    struct kept_session *alike;
    TAILQ_ENTRY(kept_session) next; /* kept longest first */
};

struct outage {
    struct kept_session **table;
    size_t size, sessions, requests, bytes, bytes_max;
    TAILQ_HEAD(, kept_session) all;
};

struct outage *outage_new(size_t bytes_max)
{
    struct outage *o = calloc(1, sizeof(*o));
    if (!o || !(o->table = calloc(TABLE_FIRST, sizeof(struct kept_session *))))
        abort();
    o->size = TABLE_FIRST;
    o->bytes_max = bytes_max;
    TAILQ_INIT(&o->all);
    return o;
}

static struct kept_session **place_of(const struct outage *o, struct hash128 id)
{
    struct kept_session **at = &o->table[id.low % o->size];
    while (*at && ((*at)->id.low != id.low || (*at)->id.high != id.high))
        at = &(*at)->alike;
    return at;
}

static void grow(struct outage *o)
{
    size_t size = o->size * 2;
    struct kept_session **table = calloc(size, sizeof(struct kept_session *)), *kept;
    if (!table)
        return;
    TAILQ_FOREACH (kept, &o->all, next) {
        kept->alike = table[kept->id.low % size];
        table[kept->id.low % size] = kept;
    }
    free(o->table);
    o->table = table;
    o->size = size;
}

static struct kept_session *session_for(struct outage *o, struct hash128 id)
{
    struct kept_session *kept = *place_of(o, id);
    if (kept)
        return kept;
    if (o->sessions >= o->size)
        grow(o);
    kept = calloc(1, sizeof(*kept));
    if (!kept)
        abort();
    kept->id = id;
    STAILQ_INIT(&kept->requests);
    *place_of(o, id) = kept;
    TAILQ_INSERT_TAIL(&o->all, kept, next);
    o->sessions++;
    return kept;
}

static void drop_session(struct outage *o, struct kept_session *kept)
{
    *place_of(o, kept->id) = kept->alike;
    TAILQ_REMOVE(&o->all, kept, next);
    o->sessions--;
    free(kept);
}

static void count(struct outage *o, const struct session_request *r)
{
    o->requests++;
    o->bytes += r->bytes;
}

bool outage_keep(struct outage *o, struct session_request *owned)
{
    if (o->bytes + owned->bytes > o->bytes_max)
        return false;
    STAILQ_INSERT_TAIL(&session_for(o, owned->id)->requests, owned, next);
    count(o, owned);
    return true;
}

void outage_put_back(struct outage *o, struct hash128 id, struct request_queue *queue)
{
    const struct session_request *r;
    if (STAILQ_EMPTY(queue))
        return;
    struct kept_session *kept = session_for(o, id);
    STAILQ_FOREACH (r, queue, next)
        count(o, r);
    STAILQ_CONCAT(queue, &kept->requests);
    STAILQ_CONCAT(&kept->requests, queue);
}

bool outage_has(const struct outage *o, struct hash128 id)
{
    return *place_of(o, id) != NULL;
}

uint32_t outage_take(struct outage *o, struct hash128 id, struct request_queue *queue)
{
    struct kept_session *kept = *place_of(o, id);
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
    drop_session(o, kept);
    return taken;
}

bool outage_first(const struct outage *o, struct hash128 *id)
{
    const struct kept_session *kept = TAILQ_FIRST(&o->all);
    if (kept)
        *id = kept->id;
    return kept != NULL;
}

size_t outage_sessions(const struct outage *o)
{
    return o->sessions;
}

size_t outage_requests(const struct outage *o)
{
    return o->requests;
}

void outage_free(struct outage *o)
{
    struct kept_session *kept;
    struct session_request *r;
    while (o && (kept = TAILQ_FIRST(&o->all))) {
        while ((r = STAILQ_FIRST(&kept->requests))) {
            STAILQ_REMOVE_HEAD(&kept->requests, next);
            request_free(r);
        }
        drop_session(o, kept);
    }
    if (o)
        free(o->table);
    free(o);
}
