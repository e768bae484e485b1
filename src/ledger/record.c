#include "ledger/record.h"

#include "base/arena.h"
#include "base/log.h"

#include <endian.h>

const char record_unreadable[] = "the record cannot be read";

int64_t record_now_ms(const struct record *r)
{
    return r->in->kind->now_ms(r->in);
}

void record_init(struct record *r, const struct record_kind *kind, void *owner, struct session_store *in)
{
    *r = (struct record){.kind = kind, .owner = owner, .in = in, .arena = arena_new()};
}

void record_clear(struct record *r)
{
    buf_clear(&r->bytes);
    arena_free(r->arena);
}

/* Damaged bytes, or those of a newer build, are left as they are. */
static bool read_stored(struct record *r)
{
    struct str stored = r->store.stored[PART_CORE];
    struct record_coder coder = {.rest = stored, .bad = stored.len > r->kind->bytes_max};
    bool was_unreadable = r->is_unreadable;
    arena_free(r->arena);
    coder.arena = r->arena = arena_new();
    coder.bad |= record_number(&coder, 0, 1) != r->kind->format;
    RECORD_NUMBER(&coder, r->version, sizeof(r->version));
    coder.bad |= r->version == 0;
    r->kind->code(r->owner, &coder);
    r->is_unreadable = stored.len && (coder.bad || coder.rest.len);
    if (r->is_unreadable && !was_unreadable)
        log_event(LOG_WARN, r->kind->unreadable, LOG_TEXT("why", r->kind->why));
    return !r->is_unreadable;
}

static void on_ended(struct store_request *store);

/* Sends the load, or the commit of the table as it is. True: the store has answered at once. */
static bool ask_store(struct record *r, bool commits)
{
    r->is_committing = commits;
    r->store = (struct store_request){
        .id = {.high = hash_stable(str_of(r->kind->name)).low, .low = 0},
        .ended = on_ended,
    };
    if (!commits)
        return r->in->kind->load(r->in, &r->store);
    struct record_coder coder = {.out = &r->bytes};
    r->bytes.len = 0;
    record_number(&coder, r->kind->format, 1);
    record_number(&coder, r->version ? r->version + 1 : hash_random() | 1, sizeof(r->version));
    r->kind->code(r->owner, &coder);
    codec_guard(r->kind->format, r->version, r->guard);
    r->store.guard = r->version ? (struct str){r->guard, sizeof(r->guard)} : STR_NONE;
    r->store.parts[PART_CORE] = buf_view(&r->bytes);
    r->store.renew_ttl_s = r->kind->ttl_s;
    return r->in->kind->commit(r->in, &r->store);
}

/* Goes on from the store's answer, as long as it answers at once. */
static void go_on(struct record *r)
{
    const char *why = NULL;
    for (;;) {
        bool conflict = r->store.result == STORE_CONFLICT && r->conflicts++ < RECORD_CONFLICTS_MAX;
        if (r->store.result != STORE_DONE && !conflict) {
            why = "the ledger cannot be reached";
            break;
        }
        if (r->is_committing && !conflict)
            break;
        if (!read_stored(r)) {
            why = record_unreadable;
            break;
        }
        if (!r->kind->apply(r->owner))
            break;
        if (!ask_store(r, true))
            return;
    }
    r->busy = false;
    r->conflicts = 0;
    r->kind->ended(r->owner, why);
}

static void on_ended(struct store_request *store)
{
    go_on((struct record *)store);
}

void record_run(struct record *r)
{
    if (r->busy)
        return;
    r->busy = true;
    if (ask_store(r, false))
        go_on(r);
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

void record_text(struct record_coder *c, struct str *text, unsigned length_bytes, size_t max)
{
    size_t len = record_number(c, text->len, length_bytes);
    if (c->out) {
        buf_str(c->out, *text);
        return;
    }
    c->bad = c->bad || len > max;
    *text = arena_dup(c->arena, take(c, len));
}
