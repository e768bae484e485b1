/* The table and its bytes, then how it is read and committed. */
#include "ledger/lax_fleet.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "ledger/ledger_internal.h"

#include <endian.h>
#include <stdlib.h>

#define RECORD_FORMAT 0x4cu /* the first byte, where sessions have their format */

/* ---- the table --------------------------------------------------------------- */

static bool is_of(const struct lax_entry *e, uint64_t schema, struct str path, struct str code)
{
    return e->schema == schema && str_eq((struct str){e->path, e->path_len}, path) &&
           str_eq((struct str){e->code, e->code_len}, code);
}

/* items[3].x is items[].x. Returns false if it is too long to be kept. */
static bool general_path(struct str path, char out[LAX_FLEET_PATH_BYTES], uint8_t *len)
{
    bool in_index = false;
    size_t n = 0;
    for (size_t i = 0; i < path.len; i++) {
        in_index = in_index && ascii_is_digit(path.at[i]);
        if (!in_index && n == LAX_FLEET_PATH_BYTES)
            return false;
        if (!in_index)
            out[n++] = path.at[i];
        in_index |= path.at[i] == '[';
    }
    *len = (uint8_t)n;
    return true;
}

static void drop(struct lax_table *t, unsigned at)
{
    t->count--;
    memmove(&t->list[at], &t->list[at + 1], (t->count - at) * sizeof(*t->list));
}

static bool has_expired(const struct lax_entry *e, uint32_t now_s)
{
    uint32_t since = e->known_s ? e->known_s : e->touched_s;
    return now_s > since && now_s - since >= LAX_FLEET_KNOWN_S;
}

void lax_table_expire(struct lax_table *t, uint32_t now_s)
{
    for (unsigned i = t->count; i-- > 0;)
        if (has_expired(&t->list[i], now_s))
            drop(t, i);
}

static bool add_user(struct lax_table *t, uint64_t user)
{
    if (t->users[0] == user || t->users[1] == user || (t->users[0] && t->users[1]))
        return false;
    t->users[t->users[0] ? 1 : 0] = user;
    return true;
}

static bool has_two_users(const struct lax_entry *e)
{
    for (unsigned i = 1; i < e->session_count; i++)
        if (e->users[i] != e->users[0])
            return true;
    return false;
}

/* When all places are taken by sessions of one user, the last gives way to one of another. */
static bool add_session(struct lax_entry *e, uint64_t session, uint64_t user)
{
    for (unsigned i = 0; i < e->session_count; i++)
        if (e->sessions[i] == session)
            return false;
    unsigned at = e->session_count;
    if (at == LAX_FLEET_SESSIONS && (has_two_users(e) || e->users[0] == user))
        return false;
    if (at == LAX_FLEET_SESSIONS)
        at--;
    else
        e->session_count++;
    e->sessions[at] = session;
    e->users[at] = user;
    return true;
}

bool lax_table_apply(struct lax_table *t, const struct lax_finding *f, uint32_t now_s)
{
    struct lax_entry e = f->of;
    struct str path = {e.path, e.path_len}, code = {e.code, e.code_len};
    unsigned at = 0;
    while (at < t->count && !is_of(&t->list[at], e.schema, path, code))
        at++;
    bool is_there = at < t->count;
    if (!f->accepted) {
        if (is_there)
            drop(t, at);
        return is_there;
    }
    bool changed = add_user(t, f->user);
    if (is_there)
        e = t->list[at];
    if (e.known_s || !add_session(&e, f->session, f->user))
        return changed;
    e.touched_s = now_s;
    bool is_enough = e.session_count == LAX_FLEET_SESSIONS && (has_two_users(&e) || !t->users[1]);
    e.known_s = is_enough ? now_s : 0;
    if (is_there)
        drop(t, at);
    else if (t->count == LAX_FLEET_ENTRIES_MAX)
        drop(t, 0);
    t->list[t->count++] = e;
    return true;
}

uint64_t lax_table_known(const struct lax_table *t, uint64_t schema, const struct ledger_problem *problems,
                         size_t count, uint32_t now_s)
{
    uint64_t known = 0;
    for (size_t i = 0; i < count && i < 64; i++) {
        char path[LAX_FLEET_PATH_BYTES];
        uint8_t len;
        if (!general_path(problems[i].path, path, &len))
            continue;
        for (unsigned k = 0; k < t->count; k++)
            if (is_of(&t->list[k], schema, (struct str){path, len}, problems[i].code))
                known |= (uint64_t)(t->list[k].known_s && !has_expired(&t->list[k], now_s)) << i;
    }
    return known;
}

/* ---- its bytes --------------------------------------------------------------- */

static void put_number(struct buf *out, uint64_t n, unsigned bytes)
{
    n = htole64(n);
    buf_add(out, &n, bytes);
}

static void put_text(struct buf *out, const char *text, uint8_t len)
{
    put_number(out, len, 1);
    buf_add(out, text, len);
}

void lax_table_encode(const struct lax_table *t, struct buf *out)
{
    put_number(out, RECORD_FORMAT, 1);
    put_number(out, t->version, 8);
    put_number(out, t->users[0], 8);
    put_number(out, t->users[1], 8);
    put_number(out, t->count, 2);
    for (unsigned i = 0; i < t->count; i++) {
        const struct lax_entry *e = &t->list[i];
        put_number(out, e->schema, 8);
        put_number(out, e->touched_s, 4);
        put_number(out, e->known_s, 4);
        put_number(out, e->session_count, 1);
        for (unsigned k = 0; k < e->session_count; k++) {
            put_number(out, e->sessions[k], 8);
            put_number(out, e->users[k], 8);
        }
        put_text(out, e->tool, e->tool_len);
        put_text(out, e->path, e->path_len);
        put_text(out, e->code, e->code_len);
    }
}

/* Bytes that are too few make all that follows 0, and `ok` false. */
struct reader {
    struct str rest;
    bool ok;
};

static uint64_t get_number(struct reader *r, unsigned bytes)
{
    uint64_t n = 0;
    r->ok = r->ok && r->rest.len >= bytes;
    if (!r->ok)
        return 0;
    memcpy(&n, r->rest.at, bytes);
    r->rest = str_from(r->rest, bytes);
    return le64toh(n);
}

static uint8_t get_text(struct reader *r, char *out, size_t most)
{
    size_t len = get_number(r, 1);
    r->ok = r->ok && len <= most && r->rest.len >= len;
    if (!r->ok)
        return 0;
    if (len)
        memcpy(out, r->rest.at, len);
    r->rest = str_from(r->rest, len);
    return (uint8_t)len;
}

static void get_entry(struct reader *r, struct lax_entry *e)
{
    *e = (struct lax_entry){.schema = get_number(r, 8)};
    e->touched_s = (uint32_t)get_number(r, 4);
    e->known_s = (uint32_t)get_number(r, 4);
    e->session_count = (uint8_t)get_number(r, 1);
    r->ok = r->ok && e->session_count <= LAX_FLEET_SESSIONS;
    for (unsigned k = 0; r->ok && k < e->session_count; k++) {
        e->sessions[k] = get_number(r, 8);
        e->users[k] = get_number(r, 8);
    }
    e->tool_len = get_text(r, e->tool, sizeof(e->tool));
    e->path_len = get_text(r, e->path, sizeof(e->path));
    e->code_len = get_text(r, e->code, sizeof(e->code));
}

bool lax_table_decode(struct str bytes, struct lax_table *t)
{
    struct reader r = {bytes, true};
    r.ok = get_number(&r, 1) == RECORD_FORMAT && bytes.len <= LAX_FLEET_RECORD_BYTES;
    t->version = get_number(&r, 8);
    t->users[0] = get_number(&r, 8);
    t->users[1] = get_number(&r, 8);
    t->count = (unsigned)get_number(&r, 2);
    r.ok = r.ok && t->count <= LAX_FLEET_ENTRIES_MAX;
    for (unsigned i = 0; r.ok && i < t->count; i++)
        get_entry(&r, &t->list[i]);
    if (!r.ok || r.rest.len)
        *t = (struct lax_table){.version = 0};
    return t->version != 0;
}

/* ---- the fleet --------------------------------------------------------------- */

/* A call that waits for what the fleet knows. */
struct look {
    uint64_t schema;
    const struct ledger_problem *problems;
    size_t count;
    uint64_t *known;
    ledger_done *done;
    void *owner;
    LIST_ENTRY(look) next;
};

struct lax_fleet {
    struct store_request store; /* first: its callback casts it back */
    struct session_store *redis, *memory;
    struct lax_table table; /* as stored, with what is pending */
    int64_t read_us;        /* when it was read; 0: never */
    bool busy, is_unreadable;
    unsigned conflicts;
    struct lax_finding pending[LAX_FLEET_PENDING_MAX];
    unsigned pending_count, committing; /* the first ones are in the commit */
    bool has_dropped;
    LIST_HEAD(, look) looks;
    struct buf bytes;
    char guard[CODEC_GUARD_BYTES];
};

static bool run(struct lax_fleet *f);
static void on_loaded(struct store_request *store);
static void on_committed(struct store_request *store);

/* No session's name has this hash. */
static struct hash128 record_id(void)
{
    return (struct hash128){.high = hash_stable(STR_LIT("schema_lax of the fleet")).low, .low = 0};
}

static uint32_t now_s(const struct lax_fleet *f)
{
    struct session_store *store = f->redis ? f->redis : f->memory;
    return (uint32_t)(store->kind->now_ms(store) / 1000);
}

static void answer(struct lax_fleet *f, const struct look *look)
{
    *look->known = lax_table_known(&f->table, look->schema, look->problems, look->count, now_s(f));
}

static void answer_looks(struct lax_fleet *f)
{
    struct look *look;
    while ((look = LIST_FIRST(&f->looks))) {
        struct look gone = *look; /* NOLINT(clang-analyzer-unix.Malloc): the one before is off the list */
        LIST_REMOVE(look, next);
        free(look);
        answer(f, &gone);
        gone.done(gone.owner);
    }
}

static bool apply_pending(struct lax_fleet *f)
{
    bool changed = false;
    lax_table_expire(&f->table, now_s(f));
    for (unsigned i = 0; i < f->pending_count; i++)
        changed |= lax_table_apply(&f->table, &f->pending[i], now_s(f));
    return changed;
}

static void forget_pending(struct lax_fleet *f, unsigned count)
{
    f->pending_count -= count;
    memmove(f->pending, f->pending + count, f->pending_count * sizeof(*f->pending));
}

/* Damaged bytes, or those of a newer build, are left as they are: this daemon learns alone. */
static bool take_record(struct lax_fleet *f, struct str core)
{
    f->read_us = clock_mono_us();
    bool was_unreadable = f->is_unreadable;
    f->is_unreadable = core.len && !lax_table_decode(core, &f->table);
    if (!core.len)
        f->table = (struct lax_table){.version = 0};
    if (f->is_unreadable && !was_unreadable)
        log_event(
            LOG_WARN, "schema_lax_unreadable",
            LOG_TEXT("why", "what the fleet has learnt of schemas cannot be read, and is left as it is"));
    return apply_pending(f) && !f->is_unreadable;
}

static void rest(struct lax_fleet *f)
{
    f->busy = false;
    f->conflicts = 0;
    f->committing = 0;
}

/* True: it has ended. */
static bool commit(struct lax_fleet *f)
{
    bool is_new = f->table.version == 0;
    uint64_t version = htole64(f->table.version);
    f->guard[0] = RECORD_FORMAT;
    memcpy(f->guard + 1, &version, sizeof(version));
    f->table.version = is_new ? hash_random() | 1 : f->table.version + 1;
    f->bytes.len = 0;
    lax_table_encode(&f->table, &f->bytes);
    f->committing = f->pending_count;
    f->store = (struct store_request){
        .id = record_id(),
        .guard = is_new ? STR_NONE : (struct str){f->guard, sizeof(f->guard)},
        .parts[PART_CORE] = buf_view(&f->bytes),
        .renew_ttl_s = LAX_FLEET_KNOWN_S,
        .ended = on_committed,
    };
    return f->redis->kind->commit(f->redis, &f->store);
}

/* False: it goes on when the store has answered. */
static bool take_commit(struct lax_fleet *f)
{
    while (f->store.result == STORE_CONFLICT && f->conflicts++ < CONFLICTS_MAX) {
        if (!take_record(f, f->store.stored[PART_CORE])) {
            forget_pending(f, f->pending_count);
            break;
        }
        if (!commit(f))
            return false;
    }
    bool is_done = f->store.result == STORE_DONE;
    if (is_done)
        forget_pending(f, f->committing);
    rest(f);
    if (is_done && f->pending_count)
        run(f); /* found out meanwhile */
    return true;
}

/* What the store did not take stays pending until the next time. */
static bool take_load(struct lax_fleet *f)
{
    bool is_there = f->store.result == STORE_DONE;
    bool changed = is_there && take_record(f, f->store.stored[PART_CORE]);
    if (is_there && !changed)
        forget_pending(f, f->pending_count);
    if (changed && (!commit(f) || !take_commit(f)))
        return false;
    if (!changed)
        rest(f);
    return true;
}

static void on_loaded(struct store_request *store)
{
    struct lax_fleet *f = (struct lax_fleet *)store;
    take_load(f);
    answer_looks(f);
}

static void on_committed(struct store_request *store)
{
    take_commit((struct lax_fleet *)store);
}

/* Reads the record and commits what is pending. True: it has ended. */
static bool run(struct lax_fleet *f)
{
    if (f->busy)
        return false;
    f->busy = true;
    f->store = (struct store_request){.id = record_id(), .ended = on_loaded};
    if (!f->redis->kind->load(f->redis, &f->store))
        return false;
    take_load(f);
    return true;
}

struct lax_fleet *lax_fleet_new(struct session_store *redis, struct session_store *memory)
{
    struct lax_fleet *f = calloc(1, sizeof(*f));
    if (!f)
        abort();
    f->redis = redis;
    f->memory = memory;
    LIST_INIT(&f->looks);
    return f;
}

void lax_fleet_free(struct lax_fleet *f)
{
    struct look *look;
    while (f && (look = LIST_FIRST(&f->looks))) {
        LIST_REMOVE(look, next);
        free(look);
    }
    if (f)
        buf_clear(&f->bytes);
    free(f);
}

void lax_fleet_up(struct lax_fleet *f)
{
    run(f);
}

void lax_fleet_cancel(struct lax_fleet *f, void *owner)
{
    struct look *look = LIST_FIRST(&f->looks);
    while (look) {
        struct look *next = LIST_NEXT(look, next);
        if (look->owner == owner) {
            LIST_REMOVE(look, next);
            free(look);
        }
        look = next;
    }
}

/* ---- ledger.h ------------------------------------------------------------------ */

static bool is_fresh(const struct lax_fleet *f)
{
    return !f->redis || (f->read_us && clock_mono_us() - f->read_us < (int64_t)LAX_FLEET_FRESH_MS * 1000);
}

enum ledger_state ledger_lax_look(struct ledger *l, uint64_t schema, const struct ledger_problem *problems,
                                  size_t count, uint64_t *known, ledger_done *done, void *owner)
{
    struct lax_fleet *f = l->lax_fleet;
    struct look now = {schema, problems, count, known, done, owner, {NULL, NULL}};
    if (is_fresh(f) || run(f) || f->read_us) {
        answer(f, &now); /* what was read last does while more is being read */
        return LEDGER_DONE;
    }
    struct look *look = malloc(sizeof(*look));
    if (!look)
        abort();
    *look = now;
    LIST_INSERT_HEAD(&f->looks, look, next);
    return LEDGER_PENDING;
}

static void keep(struct lax_fleet *f, const struct lax_finding *finding)
{
    lax_table_expire(&f->table, now_s(f));
    lax_table_apply(&f->table, finding, now_s(f));
    if (!f->redis)
        return;
    if (f->pending_count < LAX_FLEET_PENDING_MAX) {
        f->pending[f->pending_count++] = *finding;
    } else if (!f->has_dropped) {
        f->has_dropped = true;
        log_event(
            LOG_WARN, "schema_lax_dropped", LOG_NUM("pending", LAX_FLEET_PENDING_MAX),
            LOG_TEXT("why", "Redis is away: what more is learnt of schemas meanwhile, it does not learn"));
    }
}

void ledger_lax_found(struct ledger *l, const struct ledger_lax_finding *found)
{
    struct lax_finding finding = {
        .of = {.schema = found->schema},
        .session = found->session.low ^ found->session.high,
        .user = ((uint64_t)found->user << 1) | 1,
        .accepted = found->accepted,
    };
    struct str tool = str_cut(found->tool, sizeof(finding.of.tool));
    finding.of.tool_len = (uint8_t)tool.len;
    memcpy(finding.of.tool, tool.at, tool.len);
    for (size_t i = 0; i < found->count; i++) {
        const struct ledger_problem *problem = &found->problems[i];
        if (problem->code.len > sizeof(finding.of.code) ||
            !general_path(problem->path, finding.of.path, &finding.of.path_len))
            continue;
        finding.of.code_len = (uint8_t)problem->code.len;
        memcpy(finding.of.code, problem->code.at, problem->code.len);
        keep(l->lax_fleet, &finding);
    }
    if (l->redis)
        run(l->lax_fleet);
}

size_t ledger_lax_list(struct ledger *l, struct arena *arena, struct ledger_lax_known **out)
{
    struct lax_fleet *f = l->lax_fleet;
    size_t count = 0;
    if (!is_fresh(f))
        run(f); /* for the next time, if Redis does not answer at once */
    *out = ARENA_ARRAY(arena, struct ledger_lax_known, f->table.count);
    for (unsigned i = 0; i < f->table.count; i++) {
        const struct lax_entry *e = &f->table.list[i];
        if (!e->known_s || has_expired(e, now_s(f)))
            continue;
        (*out)[count++] = (struct ledger_lax_known){
            .tool = arena_dup(arena, (struct str){e->tool, e->tool_len}),
            .problem = {arena_dup(arena, (struct str){e->path, e->path_len}),
                        arena_dup(arena, (struct str){e->code, e->code_len})},
            .until_s = e->known_s + LAX_FLEET_KNOWN_S,
        };
    }
    return count;
}
