/*
 * Insistence: a published schema may be stricter than its server. A problem that a model insists on is let
 * through once, and the server's answer is remembered for the session: accepted or refused. The caller says
 * which problems may be insisted on (ledger_call.lax); a tool that destroys never runs with one.
 */
#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "ledger/ledger_internal.h"
#include "ledger/rules_internal.h"

#define LAX_FRESH_MS   1000u /* the record is read again at the earliest after this time */
#define LAX_NAME_BYTES 64u   /* of a tool */
#define LAX_CODE_BYTES 16u

/* ---- a session ---- */

static uint32_t hash_of(const struct ledger_problem *problem)
{
    static const struct str end = {"", 1};
    uint32_t place = rules_hash_more(rules_hash_more(RULES_HASH_EMPTY, problem->place), end);
    return rules_hash_more(rules_hash_more(place, problem->code), end);
}

/* One of the problems whose bits are set. */
static bool is_among(const struct ledger_call *request, uint64_t bits, uint32_t problem)
{
    for (size_t i = 0; i < request->problem_count && i < 64; i++)
        if (bits >> i & 1 && hash_of(&request->problems[i]) == problem)
            return true;
    return false;
}

/* The problems of a call, each once. 0: it has none, or too many to remember. */
static unsigned list_problems(const struct rules_ctx *ctx, uint32_t out[SESSION_LAX_MAX])
{
    const struct ledger_call *request = ctx->request;
    unsigned count = 0;
    if (!request->lax || ctx->limits->effects == LEDGER_EFFECTS_DESTRUCTIVE)
        return 0;
    for (size_t i = 0; i < request->problem_count; i++) {
        unsigned at = 0;
        uint32_t hash = hash_of(&request->problems[i]);
        while (at < count && out[at] != hash)
            at++;
        if (at == SESSION_LAX_MAX)
            return 0;
        out[at] = hash;
        count += at == count;
    }
    return count;
}

static struct session_lax *find(const struct session *session, uint32_t tool, uint32_t problem)
{
    for (unsigned i = 0; i < session->lax_count; i++)
        if (session->lax[i].tool == tool && session->lax[i].problem == problem)
            return (struct session_lax *)&session->lax[i];
    return NULL;
}

enum lax_kind lax_judge(const struct rules_ctx *ctx, uint8_t step)
{
    uint32_t problems[SESSION_LAX_MAX];
    unsigned count = list_problems(ctx, problems);
    uint32_t tool = session_tool(ctx->request->tool);
    enum lax_kind kind = LAX_AT_ONCE;
    for (unsigned i = 0; i < count; i++) {
        const struct session_lax *asked = find(ctx->session, tool, problems[i]);
        if (asked && asked->state == LAX_REFUSED)
            return LAX_NONE;
        if (is_among(ctx->request, ctx->request->lax_known, problems[i]) ||
            (asked && asked->state == LAX_ACCEPTED))
            continue;
        if (!asked || asked->step == step) /* its feedback may not have been read */
            kind = LAX_LATER;
        else if (kind == LAX_AT_ONCE)
            kind = LAX_INSISTS;
    }
    return count ? kind : LAX_NONE;
}

void lax_remember(struct rules_ctx *ctx, uint8_t step, uint64_t admission)
{
    struct session *session = ctx->session;
    uint32_t problems[SESSION_LAX_MAX];
    unsigned count = list_problems(ctx, problems);
    uint32_t tool = session_tool(ctx->request->tool);
    for (unsigned i = 0; i < count; i++) {
        const struct session_lax *before = find(session, tool, problems[i]);
        struct session_lax entry = {.tool = tool, .problem = problems[i], .state = LAX_ASKED, .step = step};
        if (before && !admission)
            continue;
        if (before)
            entry = *before;
        entry.admission = admission;
        if (before)
            DROP_AT(session->lax, session->lax_count, before - session->lax);
        else if (session->lax_count == SESSION_LAX_MAX)
            DROP_AT(session->lax, session->lax_count, 0);
        session->lax[session->lax_count++] = entry;
    }
}

/* What the server has accepted once it accepts: its error is about something else. */
bool lax_settle(struct rules_ctx *ctx, const struct session_call *call)
{
    struct session *session = ctx->session;
    bool learnt = false;
    for (unsigned i = 0; i < session->lax_count; i++) {
        struct session_lax *asked = &session->lax[i];
        if (asked->admission != call->admission)
            continue;
        asked->admission = 0;
        if (call->class == CALL_OK || call->class == CALL_PARTIAL) {
            learnt |= asked->state != LAX_ACCEPTED;
            asked->state = LAX_ACCEPTED;
        } else if (asked->state == LAX_ASKED &&
                   is_among(ctx->request, ctx->request->refused, asked->problem)) {
            asked->state = LAX_REFUSED;
        }
    }
    return learnt;
}

void lax_drop_tool(struct session *session, uint32_t tool)
{
    for (unsigned i = session->lax_count; i-- > 0;)
        if (session->lax[i].tool == tool)
            DROP_AT(session->lax, session->lax_count, i);
}

/* ---- the table of the fleet ---- */

static bool is_of(const struct lax_entry *e, uint64_t schema, struct str path, struct str code)
{
    return e->schema == schema && str_eq(e->path, path) && str_eq(e->code, code);
}

static bool has_expired(const struct lax_entry *e, uint32_t now_s)
{
    uint32_t since = e->known_s ? e->known_s : e->touched_s;
    return now_s > since && now_s - since >= LAX_KNOWN_S;
}

static bool has_two_users(const struct lax_entry *e)
{
    for (unsigned i = 1; i < e->count; i++)
        if (e->by[i].user != e->by[0].user)
            return true;
    return false;
}

/* An operator has said so: whatever the fleet has learnt of the tool, or of one place in it. */
static bool forget(struct lax_table *t, const struct ledger_lax *f)
{
    unsigned before = t->count;
    for (unsigned i = t->count; i-- > 0;)
        if (str_eq(t->list[i].tool, f->tool) && (!f->path.len || str_eq(t->list[i].path, f->path)))
            DROP_AT(t->list, t->count, i);
    return t->count != before;
}

bool lax_table_apply(struct lax_table *t, const struct ledger_lax *f, uint32_t now_s, struct arena *arena)
{
    struct lax_entry e = {.schema = f->schema};
    unsigned at = 0;
    if (f->forgets)
        return forget(t, f);
    while (at < t->count && !is_of(&t->list[at], f->schema, f->path, f->code))
        at++;
    bool is_there = at < t->count;
    if (is_there)
        e = t->list[at];
    bool changes = !e.known_s;
    uint64_t session = f->session.low ^ f->session.high, user = (uint64_t)f->user << 1 | 1;
    for (unsigned i = 0; i < e.count; i++)
        changes = changes && e.by[i].session != session;
    /* When all places are taken by sessions of one user, the last gives way to one of another. */
    bool is_full = e.count == LAX_SESSIONS;
    if (!changes || (is_full && !f->alone && (has_two_users(&e) || e.by[0].user == user)))
        return false;
    e.count += !is_full;
    e.by[e.count - 1].session = session;
    e.by[e.count - 1].user = user;
    e.touched_s = now_s;
    bool is_enough = e.count == LAX_SESSIONS && (f->alone || has_two_users(&e));
    e.known_s = is_enough ? now_s : 0;
    if (is_there) {
        DROP_AT(t->list, t->count, at);
    } else {
        e.tool = arena_dup(arena, f->tool);
        e.path = arena_dup(arena, f->path);
        e.code = arena_dup(arena, f->code);
        if (t->count == LAX_ENTRIES_MAX)
            DROP_AT(t->list, t->count, 0);
    }
    t->list[t->count++] = e;
    return true;
}

void lax_table_code(void *table, struct record_coder *c)
{
    struct lax_table *t = table;
    record_bytes(c, t->spare, sizeof(t->spare));
    RECORD_NUMBER(c, t->count, 2);
    c->bad |= t->count > LAX_ENTRIES_MAX;
    for (unsigned i = 0; !c->bad && i < t->count; i++) {
        struct lax_entry *e = &t->list[i];
        RECORD_UP_TO(c, e, count);
        c->bad |= e->count > LAX_SESSIONS;
        if (!c->bad)
            record_bytes(c, e->by, e->count * sizeof(*e->by));
        record_text(c, &e->tool, 1, LAX_NAME_BYTES);
        record_text(c, &e->path, 1, LAX_PATH_BYTES);
        record_text(c, &e->code, 1, LAX_CODE_BYTES);
    }
    if (c->bad)
        *t = (struct lax_table){.count = 0};
}

/* ---- the fleet ---- */

static bool apply_pending(void *owner)
{
    struct lax_fleet *f = owner;
    bool changed = false;
    f->read_us = clock_mono_us();
    for (unsigned i = f->table.count; i-- > 0;)
        if (has_expired(&f->table.list[i], record_now_s(&f->record)))
            DROP_AT(f->table.list, f->table.count, i);
    for (unsigned i = 0; i < f->pending_count; i++)
        changed |= lax_table_apply(&f->table, &f->pending[i], record_now_s(&f->record), f->record.arena);
    f->applied = f->pending_count;
    return changed;
}

/* Changes stay pending until the store has them; this daemon's own table has them at once. */
static void on_ended(void *owner, const char *why)
{
    struct lax_fleet *f = owner;
    if (why) {
        apply_pending(f);
        return;
    }
    f->pending_count -= f->applied;
    memmove(f->pending, f->pending + f->applied, f->pending_count * sizeof(*f->pending));
    if (!f->pending_count) {
        arena_free(f->arena);
        f->arena = arena_new();
    } else {
        record_run(&f->record); /* found while the round was under way */
    }
}

void lax_fleet_init(struct lax_fleet *f, struct session_store *store)
{
    static const struct record_kind kind = {
        .name = "schema_lax of the fleet",
        .ttl_s = LAX_KNOWN_S,
        .format = 0x4c,
        .bytes_max = LAX_RECORD_BYTES,
        .unreadable = "schema_lax_unreadable",
        .why = "what the fleet has learnt of schemas cannot be read, and is left as it is",
        .code = lax_table_code,
        .apply = apply_pending,
        .ended = on_ended};
    record_init(&f->record, &kind, f, store);
    f->arena = arena_new();
}

void lax_fleet_clear(struct lax_fleet *f)
{
    arena_free(f->arena);
    record_clear(&f->record);
}

/* What was read last answers while it is read again. */
static const struct lax_table *table_of(struct lax_fleet *f)
{
    if (!f->read_us || clock_mono_us() - f->read_us >= (int64_t)LAX_FRESH_MS * 1000)
        record_run(&f->record);
    return &f->table;
}

uint64_t ledger_lax_look(struct ledger *l, uint64_t schema, const struct ledger_problem *problems,
                         size_t count)
{
    const struct lax_table *t = table_of(&l->lax);
    uint32_t now_s = record_now_s(&l->lax.record);
    uint64_t known = 0;
    for (size_t i = 0; i < count && i < 64; i++) {
        for (unsigned k = 0; k < t->count; k++)
            if (is_of(&t->list[k], schema, problems[i].place, problems[i].code) && t->list[k].known_s &&
                !has_expired(&t->list[k], now_s))
                known |= (uint64_t)1 << i;
    }
    return known;
}

/* One more change to the record. */
static void add_pending(struct lax_fleet *f, struct ledger_lax finding)
{
    if (f->pending_count == LAX_PENDING_MAX) {
        if (!f->has_dropped)
            log_event(LOG_WARN, "schema_lax_dropped", LOG_NUM("pending", LAX_PENDING_MAX),
                      LOG_TEXT("why", "what is learnt of schemas cannot be stored now; more is dropped"));
        f->has_dropped = true;
        return;
    }
    finding.tool = arena_dup(f->arena, finding.tool);
    finding.path = arena_dup(f->arena, finding.path);
    finding.code = arena_dup(f->arena, finding.code);
    f->pending[f->pending_count++] = finding;
}

void ledger_lax_forget(struct ledger *l, struct str tool, struct str path)
{
    add_pending(&l->lax, (struct ledger_lax){.tool = tool, .path = path, .forgets = true});
    record_run(&l->lax.record);
}

void ledger_lax_found(struct ledger *l, const struct ledger_lax *found, const struct ledger_problem *problems,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct ledger_lax one = *found;
        one.tool = str_cut(found->tool, LAX_NAME_BYTES);
        one.path = problems[i].place;
        one.code = problems[i].code;
        if (one.code.len <= LAX_CODE_BYTES && one.path.len <= LAX_PATH_BYTES)
            add_pending(&l->lax, one);
    }
    record_run(&l->lax.record);
}

size_t ledger_lax_list(struct ledger *l, struct arena *arena, struct ledger_lax **out)
{
    const struct lax_table *t = table_of(&l->lax);
    size_t count = 0;
    *out = ARENA_ARRAY(arena, struct ledger_lax, t->count);
    for (unsigned i = 0; i < t->count; i++) {
        const struct lax_entry *e = &t->list[i];
        if (e->known_s && !has_expired(e, record_now_s(&l->lax.record)))
            (*out)[count++] = (struct ledger_lax){.tool = arena_dup(arena, e->tool),
                                                  .path = arena_dup(arena, e->path),
                                                  .code = arena_dup(arena, e->code),
                                                  .until_s = e->known_s + LAX_KNOWN_S};
    }
    return count;
}
