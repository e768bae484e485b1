/*
 * A table of sessions by key stem, chained, doubled when full, and one list of
 * them by last touch. A session has a slot for each of its keys: bytes with
 * room to grow, or the fields of a hash.
 */
#include "ledger/store.h"

#include "base/hash.h"

#include <stdlib.h>

#define FIRST_BUCKETS    1024u
#define ROUND_UP_BYTES   64u /* values grow by a call at a time */
#define FETCH_BYTES_MAX  1024u
#define CACHE_LINE_BYTES 64u
#define LET_GO_AT_ONCE   8u /* sessions whose time is over, looked for at each store_at */
#define NEVER            INT64_MAX

struct field {
    char *bytes; /* name, then value */
    uint32_t name_len, value_len;
};

struct slot {
    char *bytes;
    struct field *fields;
    uint32_t len, cap; /* of bytes, or counts of fields */
    int64_t expires;
    bool held;
};

struct session {
    char stem[STORE_STEM_BYTES];
    struct session *chained, *older, *newer;
    struct slot slots[STORE_KEYS];
    size_t bytes;
};

struct store {
    struct session **buckets;
    size_t bucket_count, count, bytes, cap;
    uint64_t forgotten;
    struct session *oldest, *newest;
    struct session *entered; /* NULL: nothing is kept for `stem` yet */
    char stem[STORE_STEM_BYTES];
    int64_t now;
};

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

/* ---- sessions ------------------------------------------------------------- */

static void unlink_session(struct store *store, struct session *session)
{
    *(session->older ? &session->older->newer : &store->oldest) = session->newer;
    *(session->newer ? &session->newer->older : &store->newest) = session->older;
    session->older = session->newer = NULL;
}

static void link_newest(struct store *store, struct session *session)
{
    session->older = store->newest;
    session->newer = NULL;
    *(store->newest ? &store->newest->newer : &store->oldest) = session;
    store->newest = session;
}

static void weigh(struct store *store, struct session *session, size_t more, size_t less)
{
    session->bytes += more - less;
    store->bytes += more - less;
}

static void empty_slot(struct store *store, struct session *session, struct slot *slot)
{
    size_t less = slot->bytes ? slot->cap : 0;
    for (uint32_t i = 0; slot->fields && i < slot->len; i++) {
        less += sizeof(struct field) + slot->fields[i].name_len + slot->fields[i].value_len;
        free(slot->fields[i].bytes);
    }
    free(slot->fields);
    free(slot->bytes);
    *slot = (struct slot){.expires = NEVER};
    weigh(store, session, 0, less);
}

static struct session **bucket_of(const struct store *store, const char *stem)
{
    return &store->buckets[hash_seeded((struct str){stem, STORE_STEM_BYTES}) & (store->bucket_count - 1)];
}

static void forget(struct store *store, struct session *session)
{
    struct session **at = bucket_of(store, session->stem);
    while (*at != session)
        at = &(*at)->chained;
    *at = session->chained;
    unlink_session(store, session);
    for (size_t i = 0; i < STORE_KEYS; i++)
        empty_slot(store, session, &session->slots[i]);
    store->bytes -= session->bytes;
    store->count--;
    free(session);
}

static void double_buckets(struct store *store)
{
    struct session **old = store->buckets;
    size_t old_count = store->bucket_count;
    store->bucket_count = old_count * 2;
    store->buckets = must(calloc(store->bucket_count, sizeof(*store->buckets)));
    for (size_t i = 0; i < old_count; i++)
        for (struct session *s = old[i], *next; s; s = next) {
            struct session **at = bucket_of(store, s->stem);
            next = s->chained;
            s->chained = *at;
            *at = s;
        }
    free(old);
}

static struct session *find_session(struct store *store)
{
    struct session *session = *bucket_of(store, store->stem);
    while (session && memcmp(session->stem, store->stem, STORE_STEM_BYTES) != 0)
        session = session->chained;
    if (session && session != store->newest) {
        unlink_session(store, session);
        link_newest(store, session);
    }
    return session;
}

static struct session *add_session(struct store *store)
{
    if (store->count >= store->bucket_count)
        double_buckets(store);
    struct session *session = must(calloc(1, sizeof(*session)));
    struct session **at = bucket_of(store, store->stem);
    memcpy(session->stem, store->stem, STORE_STEM_BYTES);
    for (size_t i = 0; i < STORE_KEYS; i++)
        session->slots[i].expires = NEVER;
    session->chained = *at;
    *at = session;
    link_newest(store, session);
    store->count++;
    weigh(store, session, sizeof(*session), 0);
    return session;
}

static bool is_over(const struct store *store, const struct session *session)
{
    for (size_t i = 0; i < STORE_KEYS; i++)
        if (session->slots[i].held && session->slots[i].expires > store->now)
            return false;
    return true;
}

struct store *store_new(size_t memory_bytes)
{
    struct store *store = must(calloc(1, sizeof(*store)));
    store->cap = memory_bytes;
    store->bucket_count = FIRST_BUCKETS;
    store->buckets = must(calloc(FIRST_BUCKETS, sizeof(*store->buckets)));
    return store;
}

void store_free(struct store *store)
{
    if (!store)
        return;
    while (store->oldest)
        forget(store, store->oldest);
    free(store->buckets);
    free(store);
}

static void let_go(struct store *store)
{
    for (unsigned i = 0; i < LET_GO_AT_ONCE && store->oldest && is_over(store, store->oldest); i++)
        forget(store, store->oldest);
    while (store->oldest && store->oldest != store->newest && store->bytes > store->cap) {
        store->forgotten += !is_over(store, store->oldest);
        forget(store, store->oldest);
    }
}

/* The first key's bytes are read as a whole in a moment, and with many sessions they are in no cache. */
static void fetch(const struct session *session)
{
    const struct slot *first = session ? &session->slots[0] : NULL;
    for (uint32_t at = 0; first && at < first->len && at < FETCH_BYTES_MAX; at += CACHE_LINE_BYTES)
        __builtin_prefetch(first->bytes + at);
}

void store_enter(struct store *store, struct str stem, int64_t now_ms)
{
    store->now = now_ms;
    let_go(store);
    memcpy(store->stem, stem.at, STORE_STEM_BYTES);
    store->entered = find_session(store);
    fetch(store->entered);
}

void store_usage(const struct store *store, struct store_usage *out)
{
    *out = (struct store_usage){
        .sessions = store->count,
        .bytes = store->bytes + store->bucket_count * sizeof(*store->buckets),
        .forgotten = store->forgotten,
    };
}

/* ---- keys ----------------------------------------------------------------- */

/* The slot that holds the key, NULL where there is none or its time is over. */
static struct slot *held(struct store *store, unsigned key)
{
    struct slot *slot = store->entered ? &store->entered->slots[key] : NULL;
    if (slot && slot->held && slot->expires <= store->now)
        empty_slot(store, store->entered, slot);
    return slot && slot->held ? slot : NULL;
}

/* Likewise, made where there is none. */
static struct slot *hold(struct store *store, unsigned key)
{
    struct slot *slot = held(store, key);
    if (!slot) {
        if (!store->entered)
            store->entered = add_session(store);
        slot = &store->entered->slots[key];
        slot->held = true;
    }
    return slot;
}

static void make_room(struct store *store, struct slot *slot, size_t len)
{
    if (len <= slot->cap)
        return;
    size_t cap = (len + ROUND_UP_BYTES - 1) / ROUND_UP_BYTES * ROUND_UP_BYTES;
    slot->bytes = must(realloc(slot->bytes, cap));
    weigh(store, store->entered, cap, slot->cap);
    slot->cap = (uint32_t)cap;
}

bool store_get(struct store *store, unsigned key, struct str *value)
{
    struct slot *slot = held(store, key);
    *value = slot ? (struct str){slot->bytes, slot->len} : STR_NONE;
    return slot != NULL;
}

void store_set(struct store *store, unsigned key, struct str value)
{
    struct slot *slot = hold(store, key);
    make_room(store, slot, value.len);
    if (value.len)
        memcpy(slot->bytes, value.at, value.len);
    slot->len = (uint32_t)value.len;
}

size_t store_setrange(struct store *store, unsigned key, size_t from, struct str value)
{
    struct slot *slot = hold(store, key);
    make_room(store, slot, from + value.len);
    if (from > slot->len)
        memset(slot->bytes + slot->len, 0, from - slot->len);
    if (value.len)
        memcpy(slot->bytes + from, value.at, value.len);
    if (from + value.len > slot->len)
        slot->len = (uint32_t)(from + value.len);
    return slot->len;
}

bool store_expire(struct store *store, unsigned key, int64_t ms)
{
    struct slot *slot = held(store, key);
    if (slot)
        slot->expires = store->now + ms;
    return slot != NULL;
}

bool store_del(struct store *store, unsigned key)
{
    struct slot *slot = held(store, key);
    if (!slot)
        return false;
    empty_slot(store, store->entered, slot);
    for (size_t i = 0; i < STORE_KEYS; i++)
        if (store->entered->slots[i].held)
            return true;
    forget(store, store->entered);
    store->entered = NULL;
    return true;
}

/* ---- hashes --------------------------------------------------------------- */

static struct field *find_field(const struct slot *slot, struct str name)
{
    for (uint32_t i = 0; i < slot->len; i++) {
        struct field *field = &slot->fields[i];
        if (field->name_len == name.len && memcmp(field->bytes, name.at, name.len) == 0)
            return field;
    }
    return NULL;
}

static struct str value_of(const struct field *field)
{
    return (struct str){field->bytes + field->name_len, field->value_len};
}

size_t store_fields(struct store *store, unsigned key)
{
    struct slot *slot = held(store, key);
    return slot ? slot->len : 0;
}

bool store_field(struct store *store, unsigned key, size_t at, struct str *name, struct str *value)
{
    struct slot *slot = held(store, key);
    if (!slot || at >= slot->len)
        return false;
    *name = (struct str){slot->fields[at].bytes, slot->fields[at].name_len};
    *value = value_of(&slot->fields[at]);
    return true;
}

bool store_hget(struct store *store, unsigned key, struct str name, struct str *value)
{
    struct slot *slot = held(store, key);
    struct field *field = slot ? find_field(slot, name) : NULL;
    *value = field ? value_of(field) : STR_NONE;
    return field != NULL;
}

static struct field *add_field(struct slot *slot, struct str name)
{
    if (slot->len == slot->cap) {
        slot->cap = slot->cap ? slot->cap * 2 : 4;
        slot->fields = must(realloc(slot->fields, slot->cap * sizeof(*slot->fields)));
    }
    struct field *field = &slot->fields[slot->len++];
    *field = (struct field){.name_len = (uint32_t)name.len};
    return field;
}

bool store_hset(struct store *store, unsigned key, struct str name, struct str value)
{
    struct slot *slot = hold(store, key);
    struct field *field = find_field(slot, name);
    bool is_new = !field;
    size_t before = field ? field->value_len : 0;
    if (is_new)
        field = add_field(slot, name);
    field->bytes = must(realloc(field->bytes, name.len + value.len + 1));
    memcpy(field->bytes, name.at, name.len);
    if (value.len)
        memcpy(field->bytes + name.len, value.at, value.len);
    field->value_len = (uint32_t)value.len;
    weigh(store, store->entered, value.len + (is_new ? sizeof(*field) + name.len : 0), before);
    return is_new;
}
