/* Each request first drops the entries whose time is over, so that it meets none of them. */
#include "approvals/approval_table.h"

#include "base/arena.h"

#include <endian.h>

#define RECORD_FORMAT 0x41u /* the first byte, where sessions have their format */

/* ---- entries ---- */

static void drop(struct approval_table *t, unsigned at)
{
    t->count--;
    memmove(&t->list[at], &t->list[at + 1], (t->count - at) * sizeof(*t->list));
}

static bool expire(struct approval_table *t, int64_t now_ms)
{
    unsigned before = t->count;
    for (unsigned i = t->count; i-- > 0;)
        if (t->list[i].expires_ms <= now_ms)
            drop(t, i);
    return t->count != before;
}

static struct approval *find_id(struct approval_table *t, uint64_t id)
{
    for (unsigned i = 0; i < t->count; i++)
        if (t->list[i].id == id)
            return &t->list[i];
    return NULL;
}

/* What was spent is over: the same call asks anew. */
static struct approval *find_binding(struct approval_table *t, const struct approval *asked)
{
    for (unsigned i = 0; i < t->count; i++) {
        struct approval *e = &t->list[i];
        if (e->state != APPROVAL_SPENT && e->of_client == asked->of_client &&
            memcmp(e->binding, asked->binding, sizeof(e->binding)) == 0)
            return e;
    }
    return NULL;
}

/* ---- room ---- */

enum scope { OF_SESSION, OF_USER };

static bool is_of(const struct approval *a, const struct approval *b, enum scope scope)
{
    return a->uid == b->uid && (scope == OF_USER || a->session_hash == b->session_hash);
}

static unsigned count_of(const struct approval_table *t, const struct approval *like, enum scope scope)
{
    unsigned count = 0;
    for (unsigned i = 0; i < t->count; i++)
        count += is_of(&t->list[i], like, scope);
    return count;
}

/* The oldest without an answer that still counts: one that was approved or denied stays. */
static bool drop_oldest(struct approval_table *t, const struct approval *like, enum scope scope)
{
    for (unsigned i = 0; i < t->count; i++) {
        bool counts = t->list[i].state == APPROVAL_APPROVED || t->list[i].state == APPROVAL_DENIED;
        if (!counts && is_of(&t->list[i], like, scope)) {
            drop(t, i);
            return true;
        }
    }
    return false;
}

static struct approval of_busiest_user(const struct approval_table *t)
{
    unsigned most = 0, busiest = 0;
    for (unsigned i = 0; i < t->count; i++) {
        unsigned count = count_of(t, &t->list[i], OF_USER);
        if (count > most) {
            most = count;
            busiest = i;
        }
    }
    return t->list[busiest];
}

/* Who asks much pushes out its own questions, then those of the user who has most. */
static bool make_room(struct approval_table *t, const struct approval *asked)
{
    if (count_of(t, asked, OF_SESSION) >= APPROVALS_SESSION_MAX && !drop_oldest(t, asked, OF_SESSION))
        return false;
    if (count_of(t, asked, OF_USER) >= APPROVALS_USER_MAX && !drop_oldest(t, asked, OF_USER))
        return false;
    if (t->count < APPROVALS_MAX)
        return true;
    struct approval busiest = of_busiest_user(t);
    return drop_oldest(t, &busiest, OF_USER);
}

/* ---- requests ---- */

static void enter(struct approval_table *t, const struct approval *asked, int64_t now_ms, struct arena *arena)
{
    struct approval *e = &t->list[t->count++];
    *e = *asked;
    e->state = APPROVAL_PENDING;
    e->made_ms = now_ms;
    e->expires_ms = now_ms + APPROVAL_MS;
    e->is_cut = asked->arguments.len > APPROVAL_ARGUMENTS_MAX;
    e->session = arena_dup(arena, str_cut(asked->session, APPROVAL_NAME_MAX));
    e->user = arena_dup(arena, str_cut(asked->user, APPROVAL_NAME_MAX));
    e->tool = arena_dup(arena, str_cut(asked->tool, APPROVAL_NAME_MAX));
    e->arguments = arena_dup(arena, str_cut(asked->arguments, APPROVAL_ARGUMENTS_MAX));
    e->question = arena_dup(arena, str_cut(asked->question, APPROVAL_QUESTION_MAX));
    e->answered_by = STR_NONE;
}

static void decide(struct approval *e, bool given, int64_t now_ms)
{
    e->state = given ? APPROVAL_APPROVED : APPROVAL_DENIED;
    e->expires_ms = now_ms + APPROVAL_MS;
}

/* The request may outlive the table. */
static struct approval copy(const struct approval *e, struct arena *arena)
{
    struct approval out = *e;
    out.session = arena_dup(arena, e->session);
    out.user = arena_dup(arena, e->user);
    out.tool = arena_dup(arena, e->tool);
    out.arguments = arena_dup(arena, e->arguments);
    out.question = arena_dup(arena, e->question);
    out.answered_by = arena_dup(arena, e->answered_by);
    return out;
}

static bool ask(struct approval_table *t, struct approval_request *r, int64_t now_ms, struct arena *arena)
{
    struct approval *e = find_binding(t, &r->asked);
    bool changed = false;
    r->is_new = r->is_full = false;
    r->found = APPROVAL_NONE;
    if (!e && !make_room(t, &r->asked)) {
        r->is_full = true;
        return false;
    }
    if (!e) {
        enter(t, &r->asked, now_ms, arena);
        e = &t->list[t->count - 1];
        r->is_new = changed = true;
    } else if (r->answers && r->answers == e->id && e->of_client && e->state == APPROVAL_PENDING) {
        decide(e, r->given, now_ms);
        changed = true;
    }
    r->found = e->state;
    r->entry = copy(e, r->arena);
    return changed;
}

static bool all_are(struct approval_table *t, const struct approval_request *r, enum approval_state state)
{
    for (unsigned i = 0; i < r->id_count; i++) {
        const struct approval *e = find_id(t, r->ids[i]);
        if (!e || e->state != state)
            return false;
    }
    return r->id_count > 0;
}

static bool change_all(struct approval_table *t, struct approval_request *r, enum approval_state from,
                       enum approval_state to)
{
    bool can = all_are(t, r, from);
    r->found = can ? to : APPROVAL_NONE;
    for (unsigned i = 0; can && i < r->id_count; i++) {
        struct approval *e = find_id(t, r->ids[i]);
        if (e)
            e->state = to;
    }
    return can;
}

static bool decide_one(struct approval_table *t, struct approval_request *r, int64_t now_ms,
                       struct arena *arena)
{
    struct approval *e = find_id(t, r->asked.id);
    const struct approval_process *who = &r->asked.process;
    if (e && e->of_client)
        e = NULL;
    r->found = e ? e->state : APPROVAL_NONE;
    r->is_own = e && e->process.host == who->host && e->process.pid == who->pid;
    if (e && e->state == APPROVAL_PENDING && !r->is_own) {
        decide(e, r->given, now_ms);
        e->answered_uid = r->asked.answered_uid;
        e->answered_by = arena_dup(arena, str_cut(r->asked.answered_by, APPROVAL_NAME_MAX));
        r->entry = copy(e, r->arena);
        return true;
    }
    if (e)
        r->entry = copy(e, r->arena);
    return false;
}

static void list(const struct approval_table *t, struct approval_request *r)
{
    struct approval *out = ARENA_ARRAY(r->arena, struct approval, t->count + 1);
    r->list_count = 0;
    for (unsigned i = 0; i < t->count; i++)
        if (!t->list[i].of_client)
            out[r->list_count++] = copy(&t->list[i], r->arena);
    r->list = out;
}

bool approval_table_apply(struct approval_table *t, struct approval_request *r, int64_t now_ms,
                          struct arena *arena)
{
    expire(t, now_ms);
    switch (r->kind) {
    case APPROVAL_ASK:
        return ask(t, r, now_ms, arena);
    case APPROVAL_SPEND:
        return change_all(t, r, APPROVAL_APPROVED, APPROVAL_SPENT);
    case APPROVAL_REOPEN:
        return change_all(t, r, APPROVAL_SPENT, APPROVAL_APPROVED);
    case APPROVAL_DECIDE:
        return decide_one(t, r, now_ms, arena);
    case APPROVAL_LIST:
        list(t, r);
        break;
    }
    return false;
}

/* ---- bytes ---- */

static void put_number(struct buf *out, uint64_t n, unsigned bytes)
{
    n = htole64(n);
    buf_add(out, &n, bytes);
}

static void put_text(struct buf *out, struct str text)
{
    put_number(out, text.len, 2);
    buf_str(out, text);
}

void approval_table_encode(const struct approval_table *t, struct buf *out)
{
    put_number(out, RECORD_FORMAT, 1);
    put_number(out, t->version, 8);
    put_number(out, t->count, 2);
    for (unsigned i = 0; i < t->count; i++) {
        const struct approval *e = &t->list[i];
        put_number(out, e->id, 8);
        put_number(out, e->state, 1);
        put_number(out, (e->of_client ? 1u : 0u) | (e->is_cut ? 2u : 0u), 1);
        buf_add(out, e->binding, sizeof(e->binding));
        put_number(out, e->session_hash, 8);
        put_number(out, e->uid, 4);
        put_number(out, e->answered_uid, 4);
        put_number(out, e->process.host, 8);
        put_number(out, e->process.pid, 4);
        put_number(out, (uint64_t)e->made_ms, 8);
        put_number(out, (uint64_t)e->expires_ms, 8);
        put_text(out, e->session);
        put_text(out, e->user);
        put_text(out, e->tool);
        put_text(out, e->arguments);
        put_text(out, e->question);
        put_text(out, e->answered_by);
    }
}

/* Bytes that are too few make all that follows 0, and `ok` false. */
struct reader {
    struct str rest;
    bool ok;
    struct arena *arena;
};

static bool take(struct reader *r, void *out, size_t bytes)
{
    r->ok = r->ok && r->rest.len >= bytes;
    if (!r->ok)
        return false;
    memcpy(out, r->rest.at, bytes);
    r->rest = str_from(r->rest, bytes);
    return true;
}

static uint64_t get_number(struct reader *r, unsigned bytes)
{
    uint64_t n = 0;
    return take(r, &n, bytes) ? le64toh(n) : 0;
}

static struct str get_text(struct reader *r, size_t most)
{
    size_t len = get_number(r, 2);
    r->ok = r->ok && len <= most && r->rest.len >= len;
    if (!r->ok)
        return STR_NONE;
    struct str text = arena_dup(r->arena, (struct str){r->rest.at, len});
    r->rest = str_from(r->rest, len);
    return text;
}

static void get_entry(struct reader *r, struct approval *e)
{
    *e = (struct approval){.id = get_number(r, 8)};
    uint64_t state = get_number(r, 1), flags = get_number(r, 1);
    r->ok = r->ok && state >= APPROVAL_PENDING && state <= APPROVAL_SPENT;
    e->state = r->ok ? (enum approval_state)state : APPROVAL_NONE;
    e->of_client = flags & 1u;
    e->is_cut = flags & 2u;
    take(r, e->binding, sizeof(e->binding));
    e->session_hash = get_number(r, 8);
    e->uid = (uint32_t)get_number(r, 4);
    e->answered_uid = (uint32_t)get_number(r, 4);
    e->process.host = get_number(r, 8);
    e->process.pid = (uint32_t)get_number(r, 4);
    e->made_ms = (int64_t)get_number(r, 8);
    e->expires_ms = (int64_t)get_number(r, 8);
    e->session = get_text(r, APPROVAL_NAME_MAX);
    e->user = get_text(r, APPROVAL_NAME_MAX);
    e->tool = get_text(r, APPROVAL_NAME_MAX);
    e->arguments = get_text(r, APPROVAL_ARGUMENTS_MAX);
    e->question = get_text(r, APPROVAL_QUESTION_MAX);
    e->answered_by = get_text(r, APPROVAL_NAME_MAX);
}

bool approval_table_decode(struct str bytes, struct approval_table *t, struct arena *arena)
{
    struct reader r = {bytes, bytes.len <= APPROVAL_RECORD_BYTES, arena};
    r.ok = r.ok && get_number(&r, 1) == RECORD_FORMAT;
    t->version = get_number(&r, 8);
    uint64_t count = get_number(&r, 2);
    r.ok = r.ok && count <= APPROVALS_MAX;
    for (t->count = 0; r.ok && t->count < count; t->count++)
        get_entry(&r, &t->list[t->count]);
    if (!r.ok || r.rest.len) {
        t->version = 0;
        t->count = 0;
    }
    return t->version != 0;
}
