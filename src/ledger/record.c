#include "ledger/record.h"

#include "base/log.h"

#include <endian.h>

const char record_unreadable[] = "the record cannot be read";
static const char unreachable[] = "the ledger cannot be reached";

static struct hash128 id_of(const struct record_kind *kind)
{
    return (struct hash128){.high = hash_stable(str_of(kind->name)).low, .low = 0};
}

int64_t record_now_ms(const struct record *r)
{
    return r->in->kind->now_ms(r->in);
}

void record_clear(struct record *r)
{
    buf_clear(&r->bytes);
}

static bool end_round(struct record *r, const char *why)
{
    r->busy = false;
    r->conflicts = 0;
    r->kind->ended(r->owner, why);
    return true;
}

static void on_committed(struct store_request *store);

/* True: it has ended. */
static bool commit(struct record *r)
{
    struct record_coder coder = {.out = &r->bytes};
    r->bytes.len = 0;
    record_number(&coder, r->kind->format, 1);
    record_number(&coder, r->version ? r->version + 1 : hash_random() | 1, sizeof(r->version));
    r->kind->code(r->owner, &coder);
    codec_guard(r->kind->format, r->version, r->guard);
    r->store = (struct store_request){
        .id = id_of(r->kind),
        .guard = r->version ? (struct str){r->guard, sizeof(r->guard)} : STR_NONE,
        .parts[PART_CORE] = buf_view(&r->bytes),
        .renew_ttl_s = r->kind->ttl_s,
        .ended = on_committed,
    };
    return r->in->kind->commit(r->in, &r->store);
}

/* Damaged bytes, or those of a newer build, are left as they are. */
static bool read_stored(struct record *r)
{
    struct str stored = r->store.stored[PART_CORE];
    struct record_coder coder = {.rest = stored, .bad = stored.len > r->kind->bytes_max};
    bool was_unreadable = r->is_unreadable;
    coder.bad |= record_number(&coder, 0, 1) != r->kind->format;
    RECORD_NUMBER(&coder, r->version, sizeof(r->version));
    coder.bad |= r->version == 0;
    r->kind->code(r->owner, &coder);
    r->is_unreadable = stored.len && (coder.bad || coder.rest.len);
    if (r->is_unreadable && !was_unreadable)
        log_event(LOG_WARN, r->kind->unreadable, LOG_TEXT("why", r->kind->why));
    return !r->is_unreadable;
}

/* Goes on with what is stored as long as the store answers at once. True: the round has ended. */
static bool go_on(struct record *r)
{
    do {
        if (!read_stored(r))
            return end_round(r, record_unreadable);
        if (!r->kind->apply(r->owner))
            return end_round(r, NULL);
        if (!commit(r))
            return false;
    } while (r->store.result == STORE_CONFLICT && r->conflicts++ < RECORD_CONFLICTS_MAX);
    return end_round(r, r->store.result == STORE_DONE ? NULL : unreachable);
}

static void on_committed(struct store_request *store)
{
    struct record *r = (struct record *)store;
    if (store->result == STORE_CONFLICT && r->conflicts++ < RECORD_CONFLICTS_MAX)
        go_on(r);
    else
        end_round(r, store->result == STORE_DONE ? NULL : unreachable);
}

static void on_loaded(struct store_request *store)
{
    struct record *r = (struct record *)store;
    if (store->result == STORE_DONE)
        go_on(r);
    else
        end_round(r, unreachable);
}

bool record_run(struct record *r)
{
    if (r->busy)
        return false;
    r->busy = true;
    r->store = (struct store_request){.id = id_of(r->kind), .ended = on_loaded};
    if (!r->in->kind->load(r->in, &r->store))
        return false;
    return r->store.result == STORE_DONE ? go_on(r) : end_round(r, unreachable);
}

/* ---- bytes ---- */

static struct str take(struct record_coder *c, size_t bytes)
{
    struct str taken = {c->rest.at, bytes};
    c->bad = c->bad || c->rest.len < bytes;
    if (c->bad)
        return STR_NONE;
    c->rest = str_from(c->rest, bytes);
    return taken;
}

uint64_t record_number(struct record_coder *c, uint64_t n, unsigned bytes)
{
    uint64_t stored = htole64(n);
    if (c->out) {
        buf_add(c->out, &stored, bytes);
        return n;
    }
    struct str taken = take(c, bytes);
    stored = 0;
    if (taken.len)
        memcpy(&stored, taken.at, taken.len);
    return le64toh(stored);
}

struct str record_text(struct record_coder *c, struct str text, unsigned length_bytes, size_t most)
{
    size_t len = record_number(c, text.len, length_bytes);
    if (c->out) {
        buf_str(c->out, text);
        return text;
    }
    c->bad = c->bad || len > most;
    return take(c, len);
}
