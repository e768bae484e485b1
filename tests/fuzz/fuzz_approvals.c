/*
 * Questions of policies and their answers. The first byte says what the rest is:
 *
 *   even  requests to the table, OP_BYTES each, from two daemons that commit by compare-and-set: what one
 *         applies to a table that is no longer stored is applied again to the stored one
 *   odd   a stored record: its bytes are bad, or are written as the same again
 *
 * After each request: nothing is spent that nobody approved, and once for each approval; the process that
 * asked never answers; what was denied stays denied; no operator sees a client's own question; bounds and
 * texts hold.
 */
#include "require.h"

#include "base/arena.h"
#include "base/buf.h"
#include "ledger/approvals.h"
#include "ledger/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OP_BYTES   5u
#define DAEMONS    2u
#define OPS_MAX    800u
#define IDS        512u /* ids are numbers from 1 */
#define TEXT_BYTES 5200u

struct op {
    uint8_t kind, what, who, text, time;
};

/* What is known of an id from the answers alone. */
struct known {
    bool asked, of_client, approved, denied;
    unsigned spendable; /* approvals and reopenings less spendings */
    uint32_t pid;
    int64_t answered_ms;
    uint8_t binding[SHA256_BYTES];
};

struct world {
    struct approval_table tables[DAEMONS]; /* as each daemon has read it last */
    struct arena *arenas[DAEMONS];
    uint64_t read[DAEMONS], version; /* of the stored bytes */
    struct buf stored;
    struct known known[IDS];
    unsigned ids;
    int64_t now_ms;
    char text[TEXT_BYTES];
};

/* The number of bytes that are the table's; 0: they are bad. */
static size_t decode(struct str bytes, struct approval_table *table, struct arena *arena)
{
    struct record_coder c = {.rest = bytes, .arena = arena};
    table->count = 0;
    approval_table_code(table, &c);
    return c.bad ? 0 : bytes.len - c.rest.len;
}

static void encode(struct approval_table *table, struct buf *out)
{
    struct record_coder c = {.out = out};
    out->len = 0;
    approval_table_code(table, &c);
    REQUIRE(!c.bad && out->len <= APPROVAL_RECORD_BYTES);
}

static void check_table(struct world *w, const struct approval_table *t)
{
    REQUIRE(t->count <= APPROVALS_MAX);
    for (unsigned i = 0; i < t->count; i++) {
        const struct approval *e = &t->list[i];
        unsigned of_user = 0, of_session = 0;
        for (unsigned n = 0; n < t->count; n++) {
            REQUIRE(n == i || t->list[n].id != e->id);
            of_user += t->list[n].uid == e->uid;
            of_session += t->list[n].uid == e->uid && t->list[n].session_hash == e->session_hash;
        }
        REQUIRE(of_user <= APPROVALS_USER_MAX && of_session <= APPROVALS_SESSION_MAX);
        REQUIRE(e->question.len <= APPROVAL_QUESTION_MAX && e->arguments.len <= APPROVAL_ARGUMENTS_MAX);
        REQUIRE(e->session.len <= APPROVAL_NAME_MAX && e->tool.len <= APPROVAL_NAME_MAX);
        const struct known *k = &w->known[e->id];
        REQUIRE(e->id && e->id < IDS && k->asked && k->of_client == e->of_client);
        REQUIRE(e->state != APPROVAL_APPROVED || (k->approved && k->spendable));
        REQUIRE(e->state != APPROVAL_DENIED || k->denied);
        REQUIRE(memcmp(k->binding, e->binding, sizeof(e->binding)) == 0);
    }
}

/* Who approves a question that was cut sees that it was. */
static void check_shown(const struct approval_request *r)
{
    static const struct str end = STR("deny it unless you know them)");
    struct str shown = r->entry.question;
    REQUIRE(shown.len <= APPROVAL_QUESTION_MAX);
    if (r->asked.question.len > APPROVAL_QUESTION_MAX)
        REQUIRE(shown.len > end.len && str_eq(str_from(shown, shown.len - end.len), end));
}

static void ask(struct world *w, struct op op, struct approval_request *r)
{
    unsigned binding = op.what % 40u;
    size_t len = op.text * 20u;
    r->asked = (struct approval){.id = w->ids + 1,
                                 .of_client = op.kind & 32u,
                                 .uid = op.who % 3u,
                                 .session_hash = op.who / 3u % 12u,
                                 .process = {1, op.who % 5u},
                                 .question = {w->text, len},
                                 .arguments = {w->text, len},
                                 .session = {w->text, len},
                                 .tool = {w->text + 1, len},
                                 .user = {w->text + 2, len}};
    memcpy(r->asked.binding, &binding, sizeof(binding));
    r->answers = op.kind & 64u ? 1 + op.time % (w->ids + 1) : 0;
    r->given = op.kind & 128u;
}

static void make(struct world *w, struct op op, struct approval_request *r)
{
    r->kind = (enum approval_kind)(op.kind % 8u > APPROVAL_LIST ? APPROVAL_ASK : op.kind % 8u);
    if (r->kind == APPROVAL_ASK)
        ask(w, op, r);
    r->id_count = 1 + op.who % APPROVAL_SPENDS_MAX / 4;
    for (unsigned i = 0; i < r->id_count; i++)
        r->ids[i] = 1 + (op.what + i) % (w->ids + 1);
    if (r->kind == APPROVAL_DECIDE) {
        r->given = op.kind & 128u;
        r->asked = (struct approval){.id = r->ids[0],
                                     .process = {1, op.who % 5u},
                                     .answered_uid = op.who,
                                     .answered_by = {w->text, op.text * 20u}};
    }
}

static void note_ask(struct world *w, const struct approval_request *r)
{
    REQUIRE(!r->is_full || (!r->is_new && r->found == APPROVAL_NONE));
    if (r->is_full)
        return;
    uint64_t id = r->entry.id;
    struct known *k = &w->known[id];
    if (r->is_new) {
        REQUIRE(id == w->ids + 1 && r->found == APPROVAL_PENDING);
        w->ids++;
        *k = (struct known){.asked = true, .of_client = r->asked.of_client, .pid = r->asked.process.pid};
        memcpy(k->binding, r->asked.binding, sizeof(k->binding));
        check_shown(r);
        return;
    }
    REQUIRE(k->asked && memcmp(k->binding, r->asked.binding, sizeof(k->binding)) == 0);
    bool answered = r->answers == id && k->of_client && !k->approved && !k->denied;
    if (answered && r->given) {
        k->approved = true;
        k->spendable++;
    } else if (answered) {
        k->denied = true;
    }
    REQUIRE(r->found == (k->denied ? APPROVAL_DENIED : k->approved ? APPROVAL_APPROVED : APPROVAL_PENDING));
}

static void note_decide(struct world *w, const struct approval_request *r)
{
    struct known *k = &w->known[r->asked.id];
    if (r->found == APPROVAL_NONE)
        return;
    REQUIRE(k->asked && !k->of_client);
    REQUIRE(r->is_own == (k->pid == r->asked.process.pid));
    if (r->found != APPROVAL_PENDING || r->is_own)
        return;
    REQUIRE(!k->approved && !k->denied); /* of racing answers, the first */
    k->approved = r->given;
    k->denied = !r->given;
    k->spendable += r->given;
}

static void note_spent(struct world *w, const struct approval_request *r)
{
    bool spends = r->kind == APPROVAL_SPEND;
    if (r->found == APPROVAL_NONE)
        return;
    for (unsigned i = 0; i < r->id_count; i++) {
        struct known *k = &w->known[r->ids[i]];
        REQUIRE(k->approved && !k->denied);
        REQUIRE(!spends || k->spendable);
        REQUIRE(spends || !k->spendable);
        k->spendable += spends ? -1u : 1u;
    }
}

static void note_list(const struct approval_request *r)
{
    for (unsigned i = 0; i < r->list_count; i++)
        REQUIRE(!r->list[i].of_client);
}

/* As record.c does: a commit on what is no longer stored reads it and applies the request again. */
static void run(struct world *w, unsigned daemon, struct op op)
{
    struct arena *arena = arena_new();
    struct approval_request r;
    for (;;) {
        memset(&r, 0, sizeof(r));
        r.arena = arena;
        make(w, op, &r);
        bool changed = approval_table_apply(&w->tables[daemon], &r, w->now_ms, w->arenas[daemon]);
        if (w->read[daemon] == w->version) {
            if (changed) {
                encode(&w->tables[daemon], &w->stored);
                w->read[daemon] = ++w->version;
            }
            break;
        }
        arena_free(w->arenas[daemon]);
        w->arenas[daemon] = arena_new();
        REQUIRE(decode(buf_view(&w->stored), &w->tables[daemon], w->arenas[daemon]));
        w->read[daemon] = w->version;
    }
    if (r.kind == APPROVAL_ASK)
        note_ask(w, &r);
    else if (r.kind == APPROVAL_DECIDE)
        note_decide(w, &r);
    else if (r.kind == APPROVAL_LIST)
        note_list(&r);
    else
        note_spent(w, &r);
    check_table(w, &w->tables[daemon]);
    arena_free(arena);
}

static void play(const uint8_t *data, size_t size)
{
    struct world *w = calloc(1, sizeof(*w));
    REQUIRE(w);
    w->now_ms = 1700000000000;
    for (size_t i = 0; i < TEXT_BYTES && size; i++)
        w->text[i] = (char)data[i % size];
    for (unsigned i = 0; i < DAEMONS; i++)
        w->arenas[i] = arena_new();
    encode(&w->tables[0], &w->stored);
    for (unsigned i = 0; size >= OP_BYTES && i < OPS_MAX && w->ids + 2 < IDS; i++) {
        struct op op = {data[0], data[1], data[2], data[3], data[4]};
        w->now_ms += (int64_t)op.time * op.time * op.time / 256;
        run(w, op.time % DAEMONS, op);
        data += OP_BYTES;
        size -= OP_BYTES;
    }
    for (unsigned i = 0; i < DAEMONS; i++)
        arena_free(w->arenas[i]);
    buf_clear(&w->stored);
    free(w);
}

static void read_record(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new();
    struct approval_table *table = calloc(1, sizeof(*table));
    char *exact = malloc(size ? size : 1); /* of the exact size, for the address sanitizer */
    struct buf again = {0};
    REQUIRE(table && exact);
    memcpy(exact, data, size);
    size_t len = decode((struct str){exact, size}, table, arena);
    if (len) {
        encode(table, &again);
        REQUIRE(again.len == len);
        struct buf once_more = {0};
        REQUIRE(decode(buf_view(&again), table, arena) == len);
        encode(table, &once_more);
        REQUIRE(str_eq(buf_view(&again), buf_view(&once_more)));
        buf_clear(&once_more);
    }
    buf_clear(&again);
    free(exact);
    free(table);
    arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size && data[0] & 1u)
        read_record(data + 1, size - 1);
    else if (size)
        play(data + 1, size - 1);
    return 0;
}
