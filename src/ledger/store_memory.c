/*
 * Each part is one block of bytes that is as large as it needs to be. All parts of a session live equally
 * long. A bucket of rates is kept in the same way, in a pool of its own: its only part is a struct
 * rate_bucket.
 */
#include "ledger/store.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/lru.h"
#include "ledger/ledger.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/queue.h>

#define SHARES_MAX     256u /* users; those beyond take one share together */
#define EXPIRE_AT_ONCE 8u   /* sessions or buckets whose time is over, looked for at each request */
#define RATES_SHARE    8u   /* of the memory: one part in this many */
#define NEVER          INT64_MAX
#define US_PER_S       1000000
#define US_PER_MS      1000

/* What malloc takes of its pool for this many bytes (glibc, 64 bits). */
#define CHUNK_HEAD_BYTES 8u
#define CHUNK_STEP_BYTES 16u
#define CHUNK_MIN_BYTES  32u

struct kept {
    struct lru_node node; /* first: a node is its session */
    struct share *share;
    TAILQ_ENTRY(kept) of_share;
    char *at[PART_COUNT];
    uint32_t len[PART_COUNT];
};

/* What one user takes of a pool. Where room is short, the user that takes most loses the one untouched for
 * longest, so that a user who floods the memory pushes out only its own. */
struct share {
    uint32_t user;
    size_t bytes;
    TAILQ_HEAD(, kept) kept; /* by touch; empty: no user's share */
};

struct pool {
    struct lru table;
    size_t bytes, bytes_max; /* without the table */
    struct share shares[SHARES_MAX];
};

#define RATE_KEEP_MS_MIN 60000 /* after the last call that it took: its admission may come again */

struct rate_bucket { /* initially zero */
    struct {
        struct ledger_rate rate;
        int64_t level_us;
    } rates[LEDGER_RATES_MAX];             /* of the last call that was taken */
    uint64_t taken[STORE_RATE_ADMISSIONS]; /* a ring; 0: none */
    uint32_t taken_at;
};

struct store_memory {
    struct session_store store; /* first */
    struct store_memory_options options;
    struct pool sessions, buckets;
    uint64_t forgotten;
};

static int64_t memory_now_ms(struct session_store *store)
{
    return ((struct store_memory *)store)->options.now_ms();
}

/* ---- pools --------------------------------------------------------------- */

static size_t chunk_bytes(size_t len)
{
    size_t chunk = (len + CHUNK_HEAD_BYTES + CHUNK_STEP_BYTES - 1) / CHUNK_STEP_BYTES * CHUNK_STEP_BYTES;
    return chunk < CHUNK_MIN_BYTES ? CHUNK_MIN_BYTES : chunk;
}

/* The table is short: it is searched only when something begins to be kept. */
static struct share *share_of(struct pool *pool, uint32_t user)
{
    struct share *unused = NULL;
    for (unsigned i = 0; i < SHARES_MAX; i++) {
        struct share *share = &pool->shares[i];
        if (!TAILQ_EMPTY(&share->kept) && share->user == user)
            return share;
        if (TAILQ_EMPTY(&share->kept) && !unused)
            unused = share;
    }
    if (!unused)
        return &pool->shares[SHARES_MAX - 1];
    unused->user = user;
    TAILQ_INIT(&unused->kept);
    return unused;
}

/* The share that takes most bytes. O(SHARES_MAX). */
static const struct share *largest_share(const struct pool *pool)
{
    const struct share *largest = &pool->shares[0];
    for (unsigned i = 1; i < SHARES_MAX; i++)
        if (pool->shares[i].bytes > largest->bytes)
            largest = &pool->shares[i];
    return largest;
}

static void count_bytes(struct pool *pool, struct kept *s, size_t before, size_t after)
{
    pool->bytes += after - before;
    s->share->bytes += after - before;
}

/* Bytes beyond the old length are not set. */
static void resize(struct pool *pool, struct kept *s, enum session_part part, size_t len)
{
    size_t before = s->len[part] ? chunk_bytes(s->len[part]) : 0, after = len ? chunk_bytes(len) : 0;
    if (before != after && len == 0) {
        free(s->at[part]);
        s->at[part] = NULL;
    } else if (before != after && !(s->at[part] = realloc(s->at[part], after - CHUNK_HEAD_BYTES))) {
        abort();
    }
    count_bytes(pool, s, before, after);
    s->len[part] = (uint32_t)len;
}

static struct kept *add(struct pool *pool, struct hash128 id, uint32_t user)
{
    struct kept *s = alloc_zeroed(sizeof(*s));
    s->node.id = id;
    s->node.expires_ms = NEVER;
    s->share = share_of(pool, user);
    lru_add(&pool->table, &s->node);
    TAILQ_INSERT_TAIL(&s->share->kept, s, of_share);
    count_bytes(pool, s, 0, chunk_bytes(sizeof(*s)));
    return s;
}

static void drop(struct pool *pool, struct kept *s)
{
    for (unsigned part = 0; part < PART_COUNT; part++)
        resize(pool, s, part, 0);
    count_bytes(pool, s, chunk_bytes(sizeof(*s)), 0);
    lru_remove(&pool->table, &s->node);
    TAILQ_REMOVE(&s->share->kept, s, of_share);
    free(s);
}

static struct str part_of(const struct kept *s, enum session_part part)
{
    return (struct str){s->at[part], s->len[part]};
}

static void let_go(struct store_memory *m, struct pool *pool, struct kept *s, bool evicted)
{
    if (pool == &m->sessions) {
        m->forgotten += evicted;
        if (m->options.gone)
            m->options.gone(m->options.owner, s->node.id, part_of(s, PART_CORE), evicted);
    }
    drop(pool, s);
}

/* The order by touch is nearly that by end of life: who renews it touches it. One lives longer than all
 * sessions, what is learnt of schemas (record.h), and must not stand in their way. */
static void expire_some(struct store_memory *m, struct pool *pool, int64_t now_ms)
{
    struct lru_node *node = pool->table.oldest, *newer;
    unsigned alive = 0;
    for (unsigned i = 0; node && alive < 2 && i < EXPIRE_AT_ONCE; i++, node = newer) {
        newer = node->newer;
        if (node->expires_ms > now_ms)
            alive++;
        else
            let_go(m, pool, (struct kept *)node, false);
    }
}

/* NULL: none exists, or its time is over; else it is the one touched last. */
static struct kept *find(struct store_memory *m, struct pool *pool, struct hash128 id, int64_t now_ms)
{
    expire_some(m, pool, now_ms);
    struct kept *s = (struct kept *)lru_find(&pool->table, id);
    if (s && s->node.expires_ms <= now_ms) {
        let_go(m, pool, s, false);
        return NULL;
    }
    if (s && TAILQ_NEXT(s, of_share)) {
        TAILQ_REMOVE(&s->share->kept, s, of_share);
        TAILQ_INSERT_TAIL(&s->share->kept, s, of_share);
    }
    return s;
}

static void stay_within_bound(struct store_memory *m, struct pool *pool, int64_t now_ms)
{
    while (pool->bytes > pool->bytes_max && pool->table.oldest != pool->table.newest) {
        /* Never the one touched last of all, which is being committed. */
        struct kept *s = TAILQ_FIRST(&largest_share(pool)->kept);
        if (&s->node == pool->table.newest)
            s = (struct kept *)pool->table.oldest;
        let_go(m, pool, s, s->node.expires_ms > now_ms);
    }
}

/* ---- sessions ------------------------------------------------------------ */

static void answer(struct store_request *request, enum store_result result, const struct kept *s)
{
    request->result = result;
    request->why = "";
    for (enum session_part part = PART_CORE; part < PART_COUNT; part++)
        request->stored[part] = s ? part_of(s, part) : STR_NONE;
}

static bool memory_ask(struct session_store *store, struct store_request *request)
{
    struct store_memory *m = (struct store_memory *)store;
    int64_t now_ms = m->options.now_ms();
    struct kept *s = find(m, &m->sessions, request->id, now_ms);
    struct str core = s ? part_of(s, PART_CORE) : STR_NONE, guard = request->guard;
    bool loads = store_request_loads(request);
    bool holds =
        loads || request->forget ||
        (guard.len ? core.len >= guard.len && str_bytes_eq(core.at, guard.at, guard.len) : core.len == 0);
    answer(request, holds ? STORE_DONE : STORE_CONFLICT, holds && !loads ? NULL : s);
    if (loads || !holds)
        return true;
    if (request->forget) {
        if (s)
            drop(&m->sessions, s);
        return true;
    }
    if (!s)
        s = add(&m->sessions, request->id, request->user);
    for (enum session_part part = PART_CORE; part < PART_COUNT; part++) {
        struct str value = request->parts[part];
        if (!value.at)
            continue;
        resize(&m->sessions, s, part, value.len);
        if (value.len)
            memcpy(s->at[part], value.at, value.len);
    }
    if (request->renew_ttl_s)
        s->node.expires_ms = now_ms + (int64_t)request->renew_ttl_s * 1000;
    stay_within_bound(m, &m->sessions, now_ms);
    return true;
}

/* ---- rates --------------------------------------------------------------- */

/*
 * Rates by time window, as arithmetic on a plain struct (GCRA). This file and lua/ledger/rate.lua do the
 * same, in whole microseconds, which a double holds exactly:
 *
 *   step   window / count, rounded up: what one call fills
 *   room   step * count
 *   level  until when the rate is filled. Before use: at least now, at most now + room, so that a clock put
 *          back keeps nobody out for longer than a window
 *
 * A call is taken if for every rate level + step <= now + room; then each level rises by its step. Otherwise
 * none changes, and the answer is the longest wait. A call that did not run is given back: each level falls
 * by its step less the time that it was held, which would have run off without it, too.
 *
 * Count and window tell a bucket's rates apart; this store forgets a rate that the last call taken did not
 * have, Redis when the bucket goes. A bucket is kept until its rates are empty, and for RATE_KEEP_MS_MIN at
 * least.
 */

static int64_t step_us(struct ledger_rate rate)
{
    return ((int64_t)rate.window_s * US_PER_S + rate.count - 1) / rate.count;
}

/* The longest wait of any rate in µs; `next` is the bucket with one call more. */
static int64_t wait_us(const struct rate_bucket *bucket, const struct store_rate_request *request,
                       int64_t now_us, struct rate_bucket *next)
{
    int64_t longest = 0;
    for (uint32_t i = 0; i < request->rate_count; i++) {
        uint32_t count = request->rates[i].count, window_s = request->rates[i].window_s;
        int64_t step = step_us(request->rates[i]), room = step * count, level = 0;
        for (uint32_t k = LEDGER_RATES_MAX; k-- > 0;)
            if (bucket->rates[k].rate.count == count && bucket->rates[k].rate.window_s == window_s)
                level = bucket->rates[k].level_us;
        if (level < now_us)
            level = now_us;
        if (level > now_us + room)
            level = now_us + room;
        if (level + step - now_us - room > longest)
            longest = level + step - now_us - room;
        next->rates[i].rate = request->rates[i];
        next->rates[i].level_us = level + step;
    }
    return longest;
}

static int64_t to_ms(int64_t us)
{
    return (us + US_PER_MS - 1) / US_PER_MS;
}

/* 0: the call is taken, and the bucket kept until *expires_ms, or it was; else the ms to wait, at least 1.
 * Each rate's count is at least 1: an empty bucket takes any call. */
static uint32_t rate_take(struct rate_bucket *bucket, const struct store_rate_request *request,
                          int64_t now_ms, int64_t *expires_ms)
{
    struct rate_bucket next = {.taken_at = 0};
    for (uint32_t i = 0; i < STORE_RATE_ADMISSIONS; i++)
        if (bucket->taken[i] == request->admission)
            return 0;
    int64_t wait = to_ms(wait_us(bucket, request, now_ms * US_PER_MS, &next));
    if (wait > 0)
        return wait < UINT32_MAX ? (uint32_t)wait : UINT32_MAX;
    memcpy(bucket->rates, next.rates, sizeof(next.rates));
    bucket->taken[bucket->taken_at++ % STORE_RATE_ADMISSIONS] = request->admission;
    *expires_ms = now_ms + RATE_KEEP_MS_MIN;
    for (uint32_t i = 0; i < request->rate_count; i++)
        if (to_ms(next.rates[i].level_us) > *expires_ms)
            *expires_ms = to_ms(next.rates[i].level_us);
    return 0;
}

static void rate_give_back(struct rate_bucket *bucket, const struct store_rate_request *request)
{
    for (uint32_t i = 0; i < STORE_RATE_ADMISSIONS; i++) {
        if (bucket->taken[i] != request->admission)
            continue;
        bucket->taken[i] = 0;
        for (uint32_t k = 0; k < LEDGER_RATES_MAX && bucket->rates[k].rate.count; k++) {
            int64_t step = step_us(bucket->rates[k].rate), held = (int64_t)request->held_us;
            bucket->rates[k].level_us -= step > held ? step - held : 0;
        }
    }
}

static bool memory_rate(struct session_store *store, struct store_rate_request *request)
{
    struct store_memory *m = (struct store_memory *)store;
    int64_t now_ms = m->options.now_ms();
    struct kept *s = find(m, &m->buckets, request->bucket, now_ms);
    request->result = STORE_DONE;
    request->why = "";
    request->wait_ms = 0;
    if (request->held_us) {
        if (s)
            rate_give_back((struct rate_bucket *)(void *)s->at[PART_CORE], request);
        return true;
    }
    if (!s) {
        s = add(&m->buckets, request->bucket, request->user);
        resize(&m->buckets, s, PART_CORE, sizeof(struct rate_bucket));
        memset(s->at[PART_CORE], 0, sizeof(struct rate_bucket));
    }
    struct rate_bucket *bucket = (struct rate_bucket *)(void *)s->at[PART_CORE];
    request->wait_ms = rate_take(bucket, request, now_ms, &s->node.expires_ms);
    stay_within_bound(m, &m->buckets, now_ms);
    return true;
}

static void clear(struct pool *pool)
{
    while (pool->table.oldest)
        drop(pool, (struct kept *)pool->table.oldest);
    lru_clear(&pool->table);
}

static void memory_free(struct session_store *store)
{
    struct store_memory *m = (struct store_memory *)store;
    clear(&m->sessions);
    clear(&m->buckets);
    free(m);
}

static const struct session_store_kind memory_kind = {
    .name = "local",
    .ask = memory_ask,
    .rate = memory_rate,
    .now_ms = memory_now_ms,
    .free = memory_free,
};

struct session_store *store_memory_new(const struct store_memory_options *options)
{
    struct store_memory *m = alloc_zeroed(sizeof(*m));
    m->store.kind = &memory_kind;
    m->options = *options;
    if (!m->options.now_ms)
        m->options.now_ms = clock_wall_ms;
    if (!m->options.memory_bytes)
        m->options.memory_bytes = LEDGER_MEMORY_BYTES;
    m->sessions.bytes_max = m->options.memory_bytes;
    m->buckets.bytes_max = m->options.memory_bytes / RATES_SHARE;
    lru_init(&m->sessions.table);
    lru_init(&m->buckets.table);
    return &m->store;
}

void store_memory_usage(const struct session_store *store, struct store_memory_usage *out)
{
    const struct store_memory *m = (const struct store_memory *)store;
    const struct share *largest = largest_share(&m->sessions);
    size_t tables =
        (m->sessions.table.bucket_count + m->buckets.table.bucket_count) * sizeof(*m->sessions.table.buckets);
    *out = (struct store_memory_usage){.sessions = m->sessions.table.count,
                                       .bytes = m->sessions.bytes + m->buckets.bytes + tables,
                                       .forgotten = m->forgotten,
                                       .largest_user = largest->user,
                                       .largest_bytes = largest->bytes};
}
