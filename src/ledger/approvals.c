/* Each request first drops the entries whose time is over, so that it meets none of them. */
#include "ledger/approvals.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/hash.h"
#include "ledger/ledger.h"
#include "ledger/record.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define QUESTION_REST_BYTES 128u /* of the words for what is cut off */

static struct approval *find_id(struct approval_table *t, uint64_t id)
{
    for (unsigned i = 0; i < t->count; i++)
        if (t->list[i].id == id)
            return &t->list[i];
    return NULL;
}

static bool is_of(const struct approval *a, const struct approval *b, bool of_session)
{
    return a->uid == b->uid && (!of_session || a->session_hash == b->session_hash);
}

static unsigned count_of(const struct approval_table *t, const struct approval *like, bool of_session)
{
    unsigned count = 0;
    for (unsigned i = 0; i < t->count; i++)
        count += is_of(&t->list[i], like, of_session);
    return count;
}

/* The oldest without an answer that still counts: one that was approved or denied stays. */
static bool drop_oldest(struct approval_table *t, struct approval like, bool of_session)
{
    for (unsigned i = 0; i < t->count; i++) {
        bool counts = t->list[i].state == APPROVAL_APPROVED || t->list[i].state == APPROVAL_DENIED;
        if (!counts && is_of(&t->list[i], &like, of_session)) {
            DROP_AT(t->list, t->count, i);
            return true;
        }
    }
    return false;
}

/* A session or user with many questions loses its own oldest ones, else the user with the most does. */
static bool make_room(struct approval_table *t, const struct approval *asked)
{
    if (count_of(t, asked, true) >= APPROVALS_SESSION_MAX && !drop_oldest(t, *asked, true))
        return false;
    if (count_of(t, asked, false) >= APPROVALS_USER_MAX && !drop_oldest(t, *asked, false))
        return false;
    if (t->count < APPROVALS_MAX)
        return true;
    unsigned most = 0, at = 0;
    for (unsigned i = 0; i < t->count; i++) {
        unsigned count = count_of(t, &t->list[i], false);
        at = count > most ? i : at;
        most = count > most ? count : most;
    }
    return drop_oldest(t, t->list[at], false);
}

/* ---- requests ---- */

/* A person who approves must see that there is more, and can tell it from another question. */
static struct str shown_question(struct arena *arena, struct str question)
{
    if (question.len <= APPROVAL_QUESTION_MAX)
        return arena_dup(arena, question);
    struct str shown = str_cut(question, APPROVAL_QUESTION_MAX - QUESTION_REST_BYTES);
    return arena_printf(arena,
                        STR_FMT "… (%zu bytes more, digest %016" PRIx64 ": deny it unless you know them)",
                        STR_ARG(shown), question.len - shown.len, hash_stable(question).low);
}

/* Its texts in the arena, cut to what the table keeps: it may outlive what it is copied from. */
static struct approval copy(const struct approval *e, struct arena *arena)
{
    struct approval out = *e;
    out.session = arena_dup(arena, str_cut(e->session, APPROVAL_NAME_MAX));
    out.user = arena_dup(arena, str_cut(e->user, APPROVAL_NAME_MAX));
    out.tool = arena_dup(arena, str_cut(e->tool, APPROVAL_NAME_MAX));
    out.arguments = arena_dup(arena, str_cut(e->arguments, APPROVAL_ARGUMENTS_MAX));
    out.question = shown_question(arena, e->question);
    out.answered_by = arena_dup(arena, str_cut(e->answered_by, APPROVAL_NAME_MAX));
    return out;
}

static void decide(struct approval *e, bool given, int64_t now_ms)
{
    e->state = given ? APPROVAL_APPROVED : APPROVAL_DENIED;
    e->expires_ms = now_ms + APPROVAL_MS;
}

static bool ask(struct approval_table *t, struct approval_request *r, int64_t now_ms, struct arena *arena)
{
    struct approval *e = NULL;
    bool changed = false;
    for (unsigned i = 0; i < t->count && !e; i++) {
        struct approval *at = &t->list[i]; /* a spent one is over: the same call is a new question */
        if (at->state != APPROVAL_SPENT && at->of_client == r->asked.of_client &&
            memcmp(at->binding, r->asked.binding, sizeof(at->binding)) == 0)
            e = at;
    }
    r->is_new = r->is_full = false;
    r->found = APPROVAL_NONE;
    if (!e && !make_room(t, &r->asked)) {
        r->is_full = true;
        return false;
    }
    if (!e) {
        e = &t->list[t->count++];
        *e = copy(&r->asked, arena);
        e->state = APPROVAL_PENDING;
        e->made_ms = now_ms;
        e->expires_ms = now_ms + APPROVAL_MS;
        e->is_cut = r->asked.arguments.len > APPROVAL_ARGUMENTS_MAX;
        e->answered_by = STR_NONE;
        r->is_new = changed = true;
    } else if (r->answers && r->answers == e->id && e->of_client && e->state == APPROVAL_PENDING) {
        decide(e, r->given, now_ms);
        changed = true;
    }
    r->found = e->state;
    r->entry = copy(e, r->arena);
    return changed;
}

static bool change_all(struct approval_table *t, struct approval_request *r, enum approval_state from,
                       enum approval_state to)
{
    struct approval *found[APPROVAL_SPENDS_MAX];
    r->found = APPROVAL_NONE;
    for (unsigned i = 0; i < r->id_count; i++) {
        found[i] = find_id(t, r->ids[i]);
        if (!found[i] || found[i]->state != from)
            return false;
    }
    for (unsigned i = 0; i < r->id_count; i++)
        found[i]->state = r->found = to;
    return r->id_count > 0;
}

static bool decide_one(struct approval_table *t, struct approval_request *r, int64_t now_ms,
                       struct arena *arena)
{
    struct approval *e = find_id(t, r->asked.id);
    const struct approval_process *who = &r->asked.process;
    bool changed = false;
    if (e && e->of_client)
        e = NULL;
    r->found = e ? e->state : APPROVAL_NONE;
    r->is_own = e && e->process.host == who->host && e->process.pid == who->pid;
    if (e && e->state == APPROVAL_PENDING && !r->is_own) {
        decide(e, r->given, now_ms);
        e->answered_uid = r->asked.answered_uid;
        e->answered_by = arena_dup(arena, str_cut(r->asked.answered_by, APPROVAL_NAME_MAX));
        changed = true;
    }
    if (e)
        r->entry = copy(e, r->arena);
    return changed;
}

bool approval_table_apply(struct approval_table *t, struct approval_request *r, int64_t now_ms,
                          struct arena *arena)
{
    struct approval *list;
    for (unsigned i = t->count; i-- > 0;)
        if (t->list[i].expires_ms <= now_ms)
            DROP_AT(t->list, t->count, i);
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
        r->list = list = ARENA_ARRAY(r->arena, struct approval, t->count + 1);
        r->list_count = 0;
        for (unsigned i = 0; i < t->count; i++)
            if (!t->list[i].of_client)
                list[r->list_count++] = copy(&t->list[i], r->arena);
        break;
    }
    return false;
}

/* ---- bytes ---- */

_Static_assert(offsetof(struct approval, expires_ms) == 78, "it is stored without padding");

void approval_table_code(void *table, struct record_coder *c)
{
    struct approval_table *t = table;
    uint64_t count = t->count;
    RECORD_NUMBER(c, count, 2);
    c->bad |= count > APPROVALS_MAX;
    for (t->count = 0; !c->bad && t->count < count; t->count++) {
        struct approval *e = &t->list[t->count];
        RECORD_UP_TO(c, e, expires_ms);
        e->unused = 0;
        c->bad |= e->state < APPROVAL_PENDING || e->state > APPROVAL_SPENT;
        record_text(c, &e->session, 2, APPROVAL_NAME_MAX);
        record_text(c, &e->user, 2, APPROVAL_NAME_MAX);
        record_text(c, &e->tool, 2, APPROVAL_NAME_MAX);
        record_text(c, &e->arguments, 2, APPROVAL_ARGUMENTS_MAX);
        record_text(c, &e->question, 2, APPROVAL_QUESTION_MAX);
        record_text(c, &e->answered_by, 2, APPROVAL_NAME_MAX);
    }
    t->count = c->bad ? 0 : t->count;
}

/* ---- the fleet's table: requests wait in a queue, and a round of the record applies all of them ---- */

struct approvals {
    struct approval_table table; /* first */
    struct record record;
    TAILQ_HEAD(, approval_request) requests;
};

int64_t approvals_now_ms(const struct approvals *a)
{
    return record_now_ms(&a->record);
}

static bool apply_all(void *owner)
{
    struct approvals *a = owner;
    struct approval_request *r;
    bool changed = false;
    TAILQ_FOREACH (r, &a->requests, next)
        if (!r->is_ended) {
            r->is_applied = true;
            changed |= approval_table_apply(&a->table, r, approvals_now_ms(a), a->record.arena);
        }
    return changed;
}

/* Those that were applied end, or, if `why`, all. Each may begin others, and cancel those behind it. */
static void on_ended(void *owner, const char *why)
{
    struct approvals *a = owner;
    struct approval_request *r;
    TAILQ_FOREACH (r, &a->requests, next)
        if (!r->is_ended && (why || r->is_applied)) {
            r->unavailable = why == record_unreadable ? "the record of approvals cannot be read" : why;
            r->is_ended = true;
        }
    /* Those that have come since stand behind them. */
    while ((r = TAILQ_FIRST(&a->requests)) && r->is_ended) { /* NOLINT(clang-analyzer-unix.Malloc) */
        TAILQ_REMOVE(&a->requests, r, next);
        if (r->is_owned)
            free(r);
        else if (!r->is_inside)
            r->done(r->owner);
    }
    if (!TAILQ_EMPTY(&a->requests))
        record_run(&a->record);
}

struct approvals *approvals_new(struct ledger *ledger)
{
    static const struct record_kind kind = {
        .name = "approvals of the fleet",
        .ttl_s = APPROVAL_MS / 1000,
        .format = 0x41,
        .bytes_max = APPROVAL_RECORD_BYTES,
        .unreadable = "approvals_unreadable",
        .why =
            "the record of approvals in the ledger cannot be read; until it expires, nothing can be approved",
        .code = approval_table_code,
        .apply = apply_all,
        .ended = on_ended};
    struct approvals *a = alloc_zeroed(sizeof(*a));
    record_init(&a->record, &kind, a, ledger_store(ledger));
    TAILQ_INIT(&a->requests);
    return a;
}

void approvals_free(struct approvals *a)
{
    struct approval_request *r;
    if (!a)
        return;
    while ((r = TAILQ_FIRST(&a->requests))) {
        TAILQ_REMOVE(&a->requests, r, next);
        if (r->is_owned)
            free(r);
    }
    record_clear(&a->record);
    free(a);
}

bool approvals_do(struct approvals *a, struct approval_request *r)
{
    bool unheard = !r->done;
    if (unheard) {
        struct approval_request *copy = alloc_zeroed(sizeof(*copy));
        *copy = *r;
        r = copy;
    }
    r->unavailable = NULL;
    r->is_applied = r->is_ended = false;
    r->is_owned = unheard;
    r->is_inside = true;
    TAILQ_INSERT_TAIL(&a->requests, r, next);
    record_run(&a->record);
    if (unheard)
        return true;
    r->is_inside = false;
    return r->is_ended;
}

void approvals_cancel(struct approvals *a, const void *owner)
{
    struct approval_request *r = TAILQ_FIRST(&a->requests);
    while (r) {
        struct approval_request *next = TAILQ_NEXT(r, next);
        if (!r->is_owned && r->owner == owner)
            TAILQ_REMOVE(&a->requests, r, next);
        r = next;
    }
}

/* The boot is the same for all daemons of a host. Without one, every host counts as this. */
struct approval_process approvals_process(uint32_t pid)
{
    static uint64_t host;
    char boot[64];
    if (!host) {
        int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
        ssize_t got = fd >= 0 ? read(fd, boot, sizeof(boot)) : 0;
        if (fd >= 0)
            close(fd);
        host = hash_stable((struct str){boot, got > 0 ? (size_t)got : 0}).low | 1;
    }
    return (struct approval_process){host, pid};
}

void approvals_write_id(uint64_t id, char out[APPROVAL_ID_CHARS + 1])
{
    snprintf(out, APPROVAL_ID_CHARS + 1, "%016llx", (unsigned long long)id);
}

uint64_t approvals_read_id(struct str text)
{
    char digits[APPROVAL_ID_CHARS + 1] = "", written[APPROVAL_ID_CHARS + 1];
    if (text.len != APPROVAL_ID_CHARS)
        return 0;
    memcpy(digits, text.at, text.len);
    uint64_t id = strtoull(digits, NULL, 16);
    approvals_write_id(id, written);
    return str_is(text, written) ? id : 0; /* as it is written, and in no other way */
}
