/*
 * Each part is one block of bytes that is as large as it needs to be. All parts of a session live equally
 * long.
 */
#include "ledger/store_memory.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/lru.h"
#include "ledger/ledger.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* ---- shares: who takes how much of a bounded memory ----
 *
 * Each owner has a list of its nodes by touch; where room is short, the owner that takes most loses its
 * oldest node. So an owner that floods the memory pushes out only its own, as long as the others take less.
 * Nodes are embedded in what they are of. The table is short: it is searched when a node begins or room is
 * short. */

#define SHARES_MAX 256u /* owners; those beyond take one share together */

struct share_node {
    struct share *share;
    struct share_node *older, *newer;
    size_t bytes;
};

struct share {
    uint32_t owner; /* e.g. a uid */
    size_t bytes;
    struct share_node *oldest, *newest; /* by touch; NULL: nobody's share */
};

struct shares {
    struct share of[SHARES_MAX]; /* initially zero */
};

static struct share *share_of(struct shares *shares, uint32_t owner)
{
    struct share *unused = NULL;
    for (unsigned i = 0; i < SHARES_MAX; i++) {
        struct share *share = &shares->of[i];
        if (share->oldest && share->owner == owner)
            return share;
        if (!share->oldest && !unused)
            unused = share;
    }
    if (!unused)
        return &shares->of[SHARES_MAX - 1];
    unused->owner = owner;
    return unused;
}

static void link_newest(struct share_node *node)
{
    struct share *share = node->share;
    node->older = share->newest;
    node->newer = NULL;
    *(share->newest ? &share->newest->newer : &share->oldest) = node;
    share->newest = node;
}

static void unlink_node(struct share_node *node)
{
    struct share *share = node->share;
    *(node->older ? &node->older->newer : &share->oldest) = node->newer;
    *(node->newer ? &node->newer->older : &share->newest) = node->older;
}

/* As the one touched last, with no bytes yet. */
static void shares_add(struct shares *shares, struct share_node *node, uint32_t owner)
{
    node->share = share_of(shares, owner);
    node->bytes = 0;
    link_newest(node);
}

static void shares_touch(struct share_node *node)
{
    if (!node->newer)
        return;
    unlink_node(node);
    link_newest(node);
}

static void shares_resize(struct share_node *node, size_t bytes)
{
    node->share->bytes += bytes - node->bytes;
    node->bytes = bytes;
}

static void shares_remove(struct share_node *node)
{
    shares_resize(node, 0);
    unlink_node(node);
}

/* The share that takes most bytes; its `oldest` is NULL if there are no nodes. O(SHARES_MAX). */
static const struct share *shares_largest(const struct shares *shares)
{
    const struct share *largest = &shares->of[0];
    for (unsigned i = 1; i < SHARES_MAX; i++)
        if (shares->of[i].bytes > largest->bytes)
            largest = &shares->of[i];
    return largest;
}

/* ---- the store ---- */

#define FETCH_BYTES_MAX  1024u
#define CACHE_LINE_BYTES 64u
#define EXPIRE_AT_ONCE   8u /* sessions or buckets whose time is over, looked for at each request */
#define RATES_SHARE      8u /* of the memory: one part in so many */
#define NEVER            INT64_MAX
#define US_PER_S         1000000
#define US_PER_MS        1000

/* What malloc takes of its pool for so many bytes (glibc, 64 bits). */
#define CHUNK_HEAD_BYTES 8u
#define CHUNK_STEP_BYTES 16u
#define CHUNK_MIN_BYTES  32u

struct kept {
    struct lru_node node; /* first: a node is its session */
    struct share_node share;
    char *at[PART_COUNT];
    uint32_t len[PART_COUNT];
};

#define RATE_KEEP_MS_MIN 60000 /* after the last call that it took: its admission may come again */

struct rate_bucket { /* initially zero */
    struct {
        struct ledger_rate rate;
        int64_t level_us;
    } rates[LEDGER_RATES_MAX];             /* of the last call that was taken */
    uint64_t taken[STORE_RATE_ADMISSIONS]; /* a ring; 0: none */
    uint32_t taken_at;
    int64_t expires_ms; /* set with each call that is taken */
};

struct bucket {
    struct lru_node node; /* first */
    struct share_node share;
    struct rate_bucket rates;
};

struct store_memory {
    struct session_store store; /* first */
    struct store_memory_options options;
    struct lru sessions, buckets;
    struct shares session_shares, bucket_shares; /* of users */
    size_t bytes, bucket_bytes;                  /* without the tables */
    uint64_t forgotten;
};

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

static size_t chunk_bytes(size_t len)
{
    size_t chunk = (len + CHUNK_HEAD_BYTES + CHUNK_STEP_BYTES - 1) / CHUNK_STEP_BYTES * CHUNK_STEP_BYTES;
    return chunk < CHUNK_MIN_BYTES ? CHUNK_MIN_BYTES : chunk;
}

/* ---- time ---------------------------------------------------------------- */

static int64_t memory_now_ms(struct session_store *store)
{
    return ((struct store_memory *)store)->options.now_ms();
}

/* ---- sessions ------------------------------------------------------------ */

/* What the part's bytes take; nothing where there are none. */
static size_t part_bytes(size_t len)
{
    return len ? chunk_bytes(len) : 0;
}

/* Bytes beyond the old length are not set. */
static void resize(struct store_memory *m, struct kept *s, enum session_part part, size_t len)
{
    size_t before = part_bytes(s->len[part]), after = part_bytes(len);
    if (before != after) {
        if (len == 0) {
            free(s->at[part]);
            s->at[part] = NULL;
        } else {
            s->at[part] = must(realloc(s->at[part], after - CHUNK_HEAD_BYTES));
        }
        m->bytes += after - before;
        shares_resize(&s->share, s->share.bytes + after - before);
    }
    s->len[part] = (uint32_t)len;
}

static void drop(struct store_memory *m, struct kept *s)
{
    for (unsigned part = 0; part < PART_COUNT; part++)
        resize(m, s, part, 0);
    lru_remove(&m->sessions, &s->node);
    shares_remove(&s->share);
    m->bytes -= chunk_bytes(sizeof(*s));
    free(s);
}

static struct str part_of(const struct kept *s, enum session_part part)
{
    return (struct str){s->at[part], s->len[part]};
}

static void let_go(struct store_memory *m, struct kept *s, bool evicted)
{
    m->forgotten += evicted;
    if (m->options.gone)
        m->options.gone(m->options.owner, s->node.id, part_of(s, PART_CORE), evicted);
    drop(m, s);
}

static struct kept *find(struct store_memory *m, struct hash128 id, int64_t now_ms)
{
    struct kept *s = (struct kept *)lru_find(&m->sessions, id);
    if (s && s->node.expires_ms <= now_ms) {
        let_go(m, s, false);
        return NULL;
    }
    if (s)
        shares_touch(&s->share);
    return s;
}

/* The order by touch is nearly that by end of life: whoever renews it touches it. */
static void expire_some(struct store_memory *m, int64_t now_ms)
{
    for (unsigned i = 0; i < EXPIRE_AT_ONCE; i++) {
        struct kept *oldest = (struct kept *)m->sessions.oldest;
        if (!oldest || oldest->node.expires_ms > now_ms)
            return;
        let_go(m, oldest, false);
    }
}

#define OF_SHARE(type, node) ((type *)((char *)(node)-offsetof(type, share)))

static void stay_within_bound(struct store_memory *m, int64_t now_ms)
{
    while (m->bytes > m->options.memory_bytes && m->sessions.oldest != m->sessions.newest) {
        /* Of the user whose sessions take most, the one untouched for longest; never the one touched last of
         * all, which is being committed. */
        struct kept *s = OF_SHARE(struct kept, shares_largest(&m->session_shares)->oldest);
        if (&s->node == m->sessions.newest)
            s = (struct kept *)m->sessions.oldest;
        let_go(m, s, s->node.expires_ms > now_ms);
    }
}

/* ---- load and commit ----------------------------------------------------- */

static void answer(struct store_request *request, enum store_result result, const struct kept *s)
{
    request->result = result;
    request->why = "";
    for (enum session_part part = PART_CORE; part < PART_COUNT; part++)
        request->stored[part] = s ? part_of(s, part) : STR_NONE;
}

static bool memory_load(struct session_store *store, struct store_request *request)
{
    struct store_memory *m = (struct store_memory *)store;
    int64_t now_ms = m->options.now_ms();
    expire_some(m, now_ms);
    answer(request, STORE_DONE, find(m, request->id, now_ms));
    /* The core is decoded in a moment as a whole, and with many sessions it is in no cache. */
    struct str core = request->stored[PART_CORE];
    for (size_t at = 0; at < core.len && at < FETCH_BYTES_MAX; at += CACHE_LINE_BYTES)
        __builtin_prefetch(core.at + at);
    return true;
}

static bool memory_commit(struct session_store *store, struct store_request *request)
{
    struct store_memory *m = (struct store_memory *)store;
    int64_t now_ms = m->options.now_ms();
    expire_some(m, now_ms);
    struct kept *s = find(m, request->id, now_ms);
    struct str core = s ? part_of(s, PART_CORE) : STR_NONE, guard = request->guard;
    bool holds =
        request->forget ||
        (guard.len ? core.len >= guard.len && str_bytes_eq(core.at, guard.at, guard.len) : core.len == 0);
    answer(request, holds ? STORE_DONE : STORE_CONFLICT, holds ? NULL : s);
    if (!holds || (request->forget && !s))
        return true;
    if (request->forget) {
        drop(m, s);
        return true;
    }
    if (!s) {
        s = alloc_zeroed(sizeof(*s));
        s->node.id = request->id;
        s->node.expires_ms = NEVER;
        lru_add(&m->sessions, &s->node);
        shares_add(&m->session_shares, &s->share, request->user);
        shares_resize(&s->share, chunk_bytes(sizeof(*s)));
        m->bytes += chunk_bytes(sizeof(*s));
    }
    for (enum session_part part = PART_CORE; part < PART_COUNT; part++) {
        struct str value = request->parts[part];
        if (!value.at)
            continue;
        resize(m, s, part, value.len);
        if (value.len)
            memcpy(s->at[part], value.at, value.len);
    }
    if (request->renew_ttl_s)
        s->node.expires_ms = now_ms + (int64_t)request->renew_ttl_s * 1000;
    stay_within_bound(m, now_ms);
    return true;
}

/* ---- rates --------------------------------------------------------------- */

/*
 * Rates by time window, as arithmetic on a plain struct (GCRA, a leaky bucket as a meter). This file and
 * lua/ledger/rate.lua do the same. Both work in whole microseconds, which a double
 * holds exactly:
 *
 *   step   window / count, rounded up: what one call fills
 *   room   step * count
 *   level  until when the rate is filled. Before use: at least now, at most now + room, so that a clock put
 *          back keeps nobody out for longer than a window
 *
 * A rate has room for a call if level + step <= now + room; else there is room after level + step - now -
 * room, rounded up to ms. A call is taken if every rate has room: then each level rises by its step.
 * Otherwise none changes, and the answer is the longest wait. So `count` calls pass at once after a quiet
 * window, and then one in each step.
 *
 * A bucket remembers the admissions that it took last; asked again with one of them, it takes nothing and
 * says 0. Its rates are told apart by count and window; the memory store forgets a rate that the last call
 * taken did not have, Redis when the bucket goes. A bucket is kept until all its rates are empty again, and
 * for RATE_KEEP_MS_MIN at least.
 */

/* The longest wait of any rate in µs; `next` is the bucket with one call more. */
static int64_t wait_us(const struct rate_bucket *bucket, const struct store_rate_request *request,
                       int64_t now_us, struct rate_bucket *next)
{
    int64_t longest = 0;
    for (uint32_t i = 0; i < request->rate_count; i++) {
        uint32_t count = request->rates[i].count, window_s = request->rates[i].window_s;
        int64_t step = ((int64_t)window_s * US_PER_S + count - 1) / count, room = step * count, level = 0;
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

/* 0: the call is taken, or was; else the ms to wait, at least 1. Each rate's count is at least 1. */
static uint32_t rate_take(struct rate_bucket *bucket, const struct store_rate_request *request,
                          int64_t now_ms)
{
    struct rate_bucket next = {.expires_ms = now_ms + RATE_KEEP_MS_MIN};
    for (uint32_t i = 0; i < STORE_RATE_ADMISSIONS; i++)
        if (bucket->taken[i] == request->admission)
            return 0;
    int64_t wait = to_ms(wait_us(bucket, request, now_ms * US_PER_MS, &next));
    if (wait > 0)
        return wait < UINT32_MAX ? (uint32_t)wait : UINT32_MAX;
    memcpy(bucket->rates, next.rates, sizeof(next.rates));
    bucket->taken[bucket->taken_at++ % STORE_RATE_ADMISSIONS] = request->admission;
    bucket->expires_ms = next.expires_ms;
    for (uint32_t i = 0; i < request->rate_count; i++)
        if (to_ms(next.rates[i].level_us) > bucket->expires_ms)
            bucket->expires_ms = to_ms(next.rates[i].level_us);
    return 0;
}

static void drop_bucket(struct store_memory *m, struct bucket *bucket)
{
    lru_remove(&m->buckets, &bucket->node);
    shares_remove(&bucket->share);
    m->bucket_bytes -= chunk_bytes(sizeof(*bucket));
    free(bucket);
}

/* Never the one touched last. */
static void drop_some_buckets(struct store_memory *m, int64_t now_ms)
{
    size_t most = m->options.memory_bytes / RATES_SHARE;
    for (unsigned i = 0; i < EXPIRE_AT_ONCE && m->buckets.oldest != m->buckets.newest; i++) {
        struct bucket *oldest = (struct bucket *)m->buckets.oldest;
        if (oldest->node.expires_ms > now_ms) {
            if (m->bucket_bytes <= most)
                return;
            struct bucket *of_most = OF_SHARE(struct bucket, shares_largest(&m->bucket_shares)->oldest);
            oldest = &of_most->node == m->buckets.newest ? oldest : of_most;
        }
        drop_bucket(m, oldest);
    }
}

static struct bucket *bucket_for(struct store_memory *m, struct hash128 id, uint32_t user, int64_t now_ms)
{
    struct bucket *bucket = (struct bucket *)lru_find(&m->buckets, id);
    if (bucket && bucket->node.expires_ms <= now_ms)
        bucket->rates = (struct rate_bucket){0};
    if (!bucket) {
        bucket = alloc_zeroed(sizeof(*bucket));
        bucket->node.id = id;
        lru_add(&m->buckets, &bucket->node);
        shares_add(&m->bucket_shares, &bucket->share, user);
        shares_resize(&bucket->share, chunk_bytes(sizeof(*bucket)));
        m->bucket_bytes += chunk_bytes(sizeof(*bucket));
    }
    shares_touch(&bucket->share);
    return bucket;
}

static bool memory_rate(struct session_store *store, struct store_rate_request *request)
{
    struct store_memory *m = (struct store_memory *)store;
    int64_t now_ms = m->options.now_ms();
    struct bucket *bucket = bucket_for(m, request->bucket, request->user, now_ms);
    request->wait_ms = rate_take(&bucket->rates, request, now_ms);
    bucket->node.expires_ms = bucket->rates.expires_ms;
    request->result = STORE_DONE;
    request->why = "";
    drop_some_buckets(m, now_ms);
    return true;
}

/* ---- the whole ----------------------------------------------------------- */

static void memory_free(struct session_store *store)
{
    struct store_memory *m = (struct store_memory *)store;
    while (m->sessions.oldest)
        drop(m, (struct kept *)m->sessions.oldest);
    while (m->buckets.oldest)
        drop_bucket(m, (struct bucket *)m->buckets.oldest);
    lru_clear(&m->sessions);
    lru_clear(&m->buckets);
    free(m);
}

static const struct session_store_kind memory_kind = {
    .name = "local",
    .load = memory_load,
    .commit = memory_commit,
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
    lru_init(&m->sessions);
    lru_init(&m->buckets);
    return &m->store;
}

void store_memory_usage(const struct session_store *store, struct store_memory_usage *out)
{
    const struct store_memory *m = (const struct store_memory *)store;
    const struct share *largest = shares_largest(&m->session_shares);
    size_t tables = (m->sessions.bucket_count + m->buckets.bucket_count) * sizeof(*m->sessions.buckets);
    *out = (struct store_memory_usage){
        .sessions = m->sessions.count,
        .bytes = m->bytes + m->bucket_bytes + tables,
        .forgotten = m->forgotten,
        .largest_user = largest->owner,
        .largest_bytes = largest->bytes,
    };
}
