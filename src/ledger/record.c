#include "ledger/record.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/log.h"

#include <stdio.h>
#include <unistd.h>

#define RECORD_CONFLICTS_MAX 16u /* of one round; then it ends without its commit */
#define FLEET_BEAT_MS        20000u
#define FLEET_RECORD_BYTES   16384u
#define FLEET_NAMED          3u /* in the warning */

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
    buf_clear(&r->store.command.bytes);
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

static void go_on(struct record *r);

static void on_ended(struct store_request *store)
{
    go_on((struct record *)store);
}

/* Sends the load, or the commit of the table as it is. True: the store has answered at once. */
static bool ask_store(struct record *r, bool commits)
{
    struct record_coder coder = {.out = &r->bytes};
    r->store = (struct store_request){.id = {.high = hash_stable(str_of(r->kind->name)).low, .low = 0},
                                      .ended = on_ended};
    if (!commits)
        return r->in->kind->ask(r->in, &r->store);
    r->bytes.len = 0;
    record_number(&coder, r->kind->format, 1);
    record_number(&coder, r->version ? r->version + 1 : hash_random() | 1, sizeof(r->version));
    r->kind->code(r->owner, &coder);
    codec_guard(r->kind->format, r->version, r->guard);
    r->store.guard = r->version ? (struct str){r->guard, sizeof(r->guard)} : STR_NONE;
    r->store.parts[PART_CORE] = buf_view(&r->bytes);
    r->store.renew_ttl_s = r->kind->ttl_s;
    return r->in->kind->ask(r->in, &r->store);
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
        if (!store_request_loads(&r->store) && !conflict)
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

void record_bytes(struct record_coder *c, void *bytes, size_t len)
{
    if (c->out) {
        buf_add(c->out, bytes, len);
        return;
    }
    struct str taken = take(c, len);
    memset(bytes, 0, len);
    if (taken.len)
        memcpy(bytes, taken.at, taken.len);
}

uint64_t record_number(struct record_coder *c, uint64_t n, unsigned bytes)
{
    uint64_t stored = c->out ? n : 0;
    record_bytes(c, &stored, bytes);
    return stored;
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

/* ---- the fleet ---- */

/* Writes this daemon down as the one heard of last. */
static bool write_self(void *owner)
{
    struct fleet *f = owner;
    f->self.seen_s = record_now_s(&f->record);
    for (unsigned i = f->count; i-- > 0;)
        if (f->list[i].id == f->self.id || f->list[i].seen_s + FLEET_GONE_S < f->self.seen_s)
            DROP_AT(f->list, f->count, i);
    if (f->count == FLEET_DAEMONS_MAX)
        DROP_AT(f->list, f->count, 0);
    f->list[f->count++] = f->self;
    f->written = f->self.policies;
    return true;
}

void fleet_code(void *owner, struct record_coder *c)
{
    struct fleet *f = owner;
    RECORD_NUMBER(c, f->count, 2);
    c->bad |= f->count > FLEET_DAEMONS_MAX;
    for (unsigned i = 0; !c->bad && i < f->count; i++) {
        RECORD_UP_TO(c, &f->list[i], seen_s);
        record_text(c, &f->list[i].name, 1, FLEET_NAME_BYTES);
    }
    if (c->bad)
        f->count = 0;
}

/* The names of those that judge otherwise: "a/12, b/7 and 3 more". Returns how many, *hashes: which. */
static unsigned name_others(const struct fleet *f, struct buf *names, uint64_t *hashes)
{
    unsigned others = 0;
    *hashes = f->self.policies;
    for (unsigned i = 0; i < f->count; i++) {
        if (f->list[i].id == f->self.id || f->list[i].policies == f->self.policies)
            continue;
        *hashes = *hashes * 31 + f->list[i].policies;
        if (others++ < FLEET_NAMED)
            buf_printf(names, "%s" STR_FMT, others > 1 ? ", " : "", STR_ARG(f->list[i].name));
    }
    if (others > FLEET_NAMED)
        buf_printf(names, " and %u more", others - FLEET_NAMED);
    return others;
}

static void compare(struct fleet *f)
{
    struct buf names = buf_in(f->record.arena);
    uint64_t hashes;
    unsigned others = name_others(f, &names, &hashes);
    if (!others) {
        if (f->warning[0])
            log_event(LOG_INFO, "policies_alike", LOG_NUM("daemons", f->count));
        f->warning[0] = '\0';
        f->warned_of = 0;
        return;
    }
    struct str shown = buf_view(&names);
    snprintf(f->warning, sizeof(f->warning),
             "%u of %u daemons on this Redis have other policies than this one (" STR_FMT
             "): they give the same session other verdicts; give all of them the same policies, or each its "
             "own database",
             others, f->count, STR_ARG(shown));
    if (f->warned_of != hashes)
        log_event(LOG_WARN, "policies_differ", LOG_STR("daemons", shown), LOG_TEXT("why", f->warning));
    f->warned_of = hashes;
}

static void on_beat(void *owner)
{
    record_run(&((struct fleet *)owner)->record);
}

/* After an outage as before: the next beat tries again. */
static void on_told(void *owner, const char *why)
{
    struct fleet *f = owner;
    if (!why)
        compare(f);
    if (f->written != f->self.policies && !why) /* told while the round was under way */
        record_run(&f->record);
    timer_set(&f->beat, f->loop, FLEET_BEAT_MS, on_beat, f);
}

void fleet_init(struct fleet *f, struct loop *loop, struct session_store *store)
{
    static const struct record_kind kind = {.name = "daemons of the fleet",
                                            .ttl_s = 2 * FLEET_GONE_S,
                                            .format = 0x46,
                                            .bytes_max = FLEET_RECORD_BYTES,
                                            .unreadable = "fleet_unreadable",
                                            .why = "which daemons share this Redis cannot be read",
                                            .code = fleet_code,
                                            .apply = write_self,
                                            .ended = on_told};
    char host[FLEET_NAME_BYTES - 16] = "";
    (void)gethostname(host, sizeof(host) - 1);
    snprintf(f->name, sizeof(f->name), "%s/%d", host, (int)getpid());
    f->self = (struct fleet_daemon){.id = hash_random() | 1, .name = str_of(f->name)};
    f->loop = loop;
    record_init(&f->record, &kind, f, store);
}

void fleet_tell(struct fleet *f, uint64_t policies)
{
    if (f->self.policies == policies)
        return;
    f->self.policies = policies;
    record_run(&f->record);
}

void fleet_clear(struct fleet *f)
{
    timer_clear(&f->beat);
    record_clear(&f->record);
}
