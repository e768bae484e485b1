/* The table and its bytes, then how it is asked and told. record.h reads and commits it. */
#include "ledger/lax_fleet.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "ledger/ledger_internal.h"

#include <stdlib.h>

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

static void expire(struct lax_table *t, uint32_t now_s)
{
    for (unsigned i = t->count; i-- > 0;)
        if (has_expired(&t->list[i], now_s))
            drop(t, i);
}

static bool has_two_users(const struct lax_entry *e)
{
    for (unsigned i = 1; i < e->session_count; i++)
        if (e->users[i] != e->users[0])
            return true;
    return false;
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
    bool is_new_user = t->users[0] != f->user && t->users[1] != f->user && !(t->users[0] && t->users[1]);
    if (is_new_user)
        t->users[t->users[0] ? 1 : 0] = f->user;
    if (is_there)
        e = t->list[at];
    bool changes = !e.known_s;
    for (unsigned i = 0; i < e.session_count; i++)
        changes = changes && e.sessions[i] != f->session;
    /* When all places are taken by sessions of one user, the last gives way to one of another. */
    bool is_full = e.session_count == LAX_FLEET_SESSIONS;
    if (!changes || (is_full && (has_two_users(&e) || e.users[0] == f->user)))
        return is_new_user;
    e.session_count += !is_full;
    e.sessions[e.session_count - 1] = f->session;
    e.users[e.session_count - 1] = f->user;
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

/* ---- its bytes --------------------------------------------------------------- */

static void code_text(struct record_coder *c, char *text, uint8_t *len, size_t most)
{
    struct str got = record_text(c, (struct str){text, *len}, 1, most);
    if (!c->out && got.len)
        memcpy(text, got.at, got.len);
    *len = (uint8_t)got.len;
}

void lax_table_code(struct record_coder *c, struct lax_table *t)
{
    RECORD_NUMBER(c, t->users[0], 8);
    RECORD_NUMBER(c, t->users[1], 8);
    RECORD_NUMBER(c, t->count, 2);
    c->bad |= t->count > LAX_FLEET_ENTRIES_MAX;
    for (unsigned i = 0; !c->bad && i < t->count; i++) {
        struct lax_entry *e = &t->list[i];
        if (!c->out)
            *e = (struct lax_entry){.schema = 0};
        RECORD_NUMBER(c, e->schema, 8);
        RECORD_NUMBER(c, e->touched_s, 4);
        RECORD_NUMBER(c, e->known_s, 4);
        RECORD_NUMBER(c, e->session_count, 1);
        c->bad |= e->session_count > LAX_FLEET_SESSIONS;
        for (unsigned k = 0; !c->bad && k < e->session_count; k++) {
            RECORD_NUMBER(c, e->sessions[k], 8);
            RECORD_NUMBER(c, e->users[k], 8);
        }
        code_text(c, e->tool, &e->tool_len, sizeof(e->tool));
        code_text(c, e->path, &e->path_len, sizeof(e->path));
        code_text(c, e->code, &e->code_len, sizeof(e->code));
    }
    if (c->bad)
        *t = (struct lax_table){.count = 0};
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
    struct record record;
    bool is_shared;         /* by a Redis; else the table lives here alone */
    struct lax_table table; /* as stored, with what is pending */
    int64_t read_us;        /* when it was read; 0: never */
    bool has_dropped;
    struct lax_finding pending[LAX_FLEET_PENDING_MAX];
    unsigned pending_count, applied; /* the first ones are in the table that is committed */
    LIST_HEAD(, look) looks;
};

static uint32_t now_s(const struct lax_fleet *f)
{
    return (uint32_t)(record_now_ms(&f->record) / 1000);
}

/* Bit i of what is known: problems[i] is. */
static void answer(struct lax_fleet *f, const struct look *look)
{
    const struct lax_table *t = &f->table;
    *look->known = 0;
    for (size_t i = 0; i < look->count && i < 64; i++) {
        char path[LAX_FLEET_PATH_BYTES];
        uint8_t len;
        if (!general_path(look->problems[i].path, path, &len))
            continue;
        for (unsigned k = 0; k < t->count; k++)
            if (is_of(&t->list[k], look->schema, (struct str){path, len}, look->problems[i].code))
                *look->known |= (uint64_t)(t->list[k].known_s && !has_expired(&t->list[k], now_s(f))) << i;
    }
}

static bool apply_pending(void *owner)
{
    struct lax_fleet *f = owner;
    bool changed = false;
    f->read_us = clock_mono_us();
    expire(&f->table, now_s(f));
    for (unsigned i = 0; i < f->pending_count; i++)
        changed |= lax_table_apply(&f->table, &f->pending[i], now_s(f));
    f->applied = f->pending_count;
    return changed;
}

static void code_record(void *owner, struct record_coder *coder)
{
    lax_table_code(coder, &((struct lax_fleet *)owner)->table);
}

/* What the store did not take stays pending until the next time. */
static void on_ended(void *owner, const char *why)
{
    struct lax_fleet *f = owner;
    struct look *look;
    if (why == record_unreadable) /* this daemon learns alone */
        apply_pending(f);
    if (!why || why == record_unreadable) {
        f->pending_count -= f->applied;
        memmove(f->pending, f->pending + f->applied, f->pending_count * sizeof(*f->pending));
    }
    f->applied = 0;
    while ((look = LIST_FIRST(&f->looks))) {
        struct look gone = *look; /* NOLINT(clang-analyzer-unix.Malloc): the one before is off the list */
        LIST_REMOVE(look, next);
        free(look);
        answer(f, &gone);
        gone.done(gone.owner);
    }
    if (!why && f->pending_count)
        record_run(&f->record); /* found out meanwhile */
}

struct lax_fleet *lax_fleet_new(struct session_store *redis, struct session_store *memory)
{
    static const struct record_kind kind = {
        .name = "schema_lax of the fleet",
        .ttl_s = LAX_FLEET_KNOWN_S,
        .format = 0x4c,
        .bytes_max = LAX_FLEET_RECORD_BYTES,
        .unreadable = "schema_lax_unreadable",
        .why = "what the fleet has learnt of schemas cannot be read, and is left as it is",
        .code = code_record,
        .apply = apply_pending,
        .ended = on_ended};
    struct lax_fleet *f = alloc_zeroed(sizeof(*f));
    f->record = (struct record){.kind = &kind, .owner = f, .in = redis ? redis : memory};
    f->is_shared = redis != NULL;
    LIST_INIT(&f->looks);
    return f;
}

/* `owner` NULL: of all. */
static void drop_looks(struct lax_fleet *f, const void *owner)
{
    struct look *look = LIST_FIRST(&f->looks);
    while (look) {
        struct look *next = LIST_NEXT(look, next);
        if (!owner || look->owner == owner) {
            LIST_REMOVE(look, next);
            free(look);
        }
        look = next;
    }
}

void lax_fleet_free(struct lax_fleet *f)
{
    if (!f)
        return;
    drop_looks(f, NULL);
    record_clear(&f->record);
    free(f);
}

void lax_fleet_up(struct lax_fleet *f)
{
    record_run(&f->record);
}

void lax_fleet_cancel(struct lax_fleet *f, void *owner)
{
    if (owner)
        drop_looks(f, owner);
}

/* ---- ledger.h ------------------------------------------------------------------ */

static bool is_fresh(const struct lax_fleet *f)
{
    return !f->is_shared || (f->read_us && clock_mono_us() - f->read_us < (int64_t)LAX_FLEET_FRESH_MS * 1000);
}

enum ledger_state ledger_lax_look(struct ledger *l, uint64_t schema, const struct ledger_problem *problems,
                                  size_t count, uint64_t *known, ledger_done *done, void *owner)
{
    struct lax_fleet *f = l->lax_fleet;
    struct look now = {schema, problems, count, known, done, owner, {NULL, NULL}};
    if (is_fresh(f) || record_run(&f->record) || f->read_us) {
        answer(f, &now); /* what was read last does while more is being read */
        return LEDGER_DONE;
    }
    struct look *look = alloc_zeroed(sizeof(*look));
    *look = now;
    LIST_INSERT_HEAD(&f->looks, look, next);
    return LEDGER_PENDING;
}

void ledger_lax_found(struct ledger *l, const struct ledger_lax_finding *found)
{
    struct lax_fleet *f = l->lax_fleet;
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
        expire(&f->table, now_s(f));
        lax_table_apply(&f->table, &finding, now_s(f));
        if (!f->is_shared)
            continue;
        if (f->pending_count < LAX_FLEET_PENDING_MAX) {
            f->pending[f->pending_count++] = finding;
        } else if (!f->has_dropped) {
            f->has_dropped = true;
            log_event(LOG_WARN, "schema_lax_dropped", LOG_NUM("pending", LAX_FLEET_PENDING_MAX),
                      LOG_TEXT("why",
                               "Redis is away: what more is learnt of schemas meanwhile, it does not learn"));
        }
    }
    if (f->is_shared)
        record_run(&f->record);
}

size_t ledger_lax_list(struct ledger *l, struct arena *arena, struct ledger_lax_known **out)
{
    struct lax_fleet *f = l->lax_fleet;
    size_t count = 0;
    if (!is_fresh(f))
        record_run(&f->record); /* for the next time, if Redis does not answer at once */
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
