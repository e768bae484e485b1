/* The sessions that this daemon has in use or remembers, and copies of requests. */
#include "base/alloc.h"
#include "base/buf.h"
#include "json/write.h"
#include "ledger/ledger_internal.h"

#include <stdlib.h>

#define ENTRIES_MAX 1024u /* sessions remembered beside those with requests; about 8 KB each */

#define LET_GO_AT_ONCE 4 /* where all are in use there are more than ENTRIES_MAX for a while */

/* Leaves nothing of it but its memory. */
static void take_out(struct ledger_entry *entry)
{
    lru_remove(&entry->ledger->entries, &entry->node);
    timer_clear(&entry->pause);
    buf_clear(&entry->parts.journal);
    buf_clear(&entry->parts.ids);
    buf_clear(&entry->parts.details);
    buf_clear(&entry->commit.store.command.bytes);
    buf_clear(&entry->commit.core);
    buf_clear(&entry->commit.fields);
    buf_clear(&entry->commit.gave_up);
}

void entries_clear(struct ledger *ledger)
{
    struct ledger_entry *entry;
    struct session_request *r;
    while ((entry = (struct ledger_entry *)ledger->entries.oldest)) {
        TAILQ_CONCAT(&entry->flying, &entry->queue, next);
        while ((r = request_pop(&entry->flying)))
            if (r->is_owned)
                free(r);
        take_out(entry);
        free(entry);
    }
    lru_clear(&ledger->entries);
}

struct ledger_entry *entries_get(struct ledger *ledger, struct hash128 id)
{
    struct lru *entries = &ledger->entries;
    struct ledger_entry *entry = (struct ledger_entry *)lru_find(entries, id), *spare = NULL;
    if (entry)
        return entry;
    struct ledger_entry *oldest = (struct ledger_entry *)entries->oldest;
    for (int i = 0; i < LET_GO_AT_ONCE && oldest && entries->count >= ENTRIES_MAX; i++) {
        struct ledger_entry *newer = (struct ledger_entry *)oldest->node.newer;
        if (!oldest->busy && !oldest->paused && TAILQ_EMPTY(&oldest->queue)) {
            take_out(oldest);
            free(spare);
            spare = oldest;
        }
        oldest = newer;
    }
    /* All but the session, which is filled in when it is loaded or begun: with many sessions each request
     * would otherwise clear some 8 KB. */
    if ((entry = spare))
        memset(entry, 0, offsetof(struct ledger_entry, session));
    else
        entry = alloc_zeroed(sizeof(*entry));
    entry->node.id = id;
    entry->ledger = ledger;
    TAILQ_INIT(&entry->queue);
    TAILQ_INIT(&entry->flying);
    lru_add(entries, &entry->node);
    return entry;
}

struct session_store *entry_store(const struct ledger_entry *e)
{
    return e->ledger->redis && !e->local ? e->ledger->redis : e->ledger->memory;
}

void entry_begin(struct ledger_entry *e, uint64_t version)
{
    struct session_parts *p = &e->parts;
    if (e->begun)
        return;
    session_begin(&e->session, version, ledger_now_ms(e->ledger));
    e->session.journal_max = (uint16_t)e->ledger->history;
    p->journal.len = p->ids.len = p->details.len = 0;
    e->begun = true;
}

void entry_forget(struct ledger_entry *entry)
{
    entry->loaded = entry->begun = entry->stored = false;
    entry->session.batch = 0; /* what is stored may be of another daemon's step */
}

/* ---- copies of requests: one block holds the request, what it asks, and the strings and arrays behind that
 * ---- */

/* Lays out a block twice: first to measure it (`at` NULL), then to fill it. */
struct layout {
    char *at;
    size_t used;
};

static void *put(struct layout *block, const void *bytes, size_t len)
{
    size_t from = (block->used + 7) & ~(size_t)7;
    block->used = from + len;
    if (!block->at)
        return NULL;
    if (len)
        memcpy(block->at + from, bytes, len);
    return block->at + from;
}

static struct str put_str(struct layout *block, struct str s)
{
    return (struct str){put(block, s.at, s.len), s.len};
}

static const struct ledger_problem *put_problems(struct layout *block, const struct ledger_problem *list,
                                                 size_t count)
{
    struct ledger_problem *copy = put(block, list, count * sizeof(*list));
    for (size_t i = 0; i < count; i++) {
        struct str path = put_str(block, list[i].path), code = put_str(block, list[i].code),
                   place = put_str(block, list[i].place);
        if (copy)
            copy[i] = (struct ledger_problem){path, code, place};
    }
    return copy;
}

static const struct ledger_call *put_call(struct layout *block, const struct ledger_call *from)
{
    static const size_t texts[] = {
        offsetof(struct ledger_call, place.session), offsetof(struct ledger_call, place.step),
        offsetof(struct ledger_call, tool),          offsetof(struct ledger_call, call),
        offsetof(struct ledger_call, ext),           offsetof(struct ledger_call, refused_as),
        offsetof(struct ledger_call, peer),          offsetof(struct ledger_call, open_arguments),
        offsetof(struct ledger_call, error),         offsetof(struct ledger_call, label),
        offsetof(struct ledger_call, goal),
    };
    struct ledger_call *to = put(block, from, sizeof(*from));
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct str text;
        memcpy(&text, (const char *)from + texts[i], sizeof(text));
        text = put_str(block, text);
        if (to)
            memcpy((char *)to + texts[i], &text, sizeof(text));
    }
    struct buf facts = {.at = NULL}; /* a tree cannot be copied as bytes: it goes as JSON */
    if (from->facts)
        json_write(&facts, from->facts);
    struct str json = put_str(block, from->facts ? buf_view(&facts) : from->facts_json);
    buf_clear(&facts);
    const struct ledger_problem *problems = put_problems(block, from->problems, from->problem_count);
    const struct ledger_limits *limits = put(block, from->limits, from->limits ? sizeof(*from->limits) : 0);
    const struct hash128 *ids = put(block, from->ids, from->id_count * sizeof(*from->ids));
    const struct hash128 *gives =
        put(block, from->gives_ids, from->gives_id_count * sizeof(*from->gives_ids));
    if (!to)
        return NULL;
    to->problems = problems;
    to->limits = from->limits ? limits : NULL;
    to->ids = ids;
    to->gives_ids = gives;
    to->facts_json = json;
    to->facts = NULL;
    to->wants_history = to->wants_facts = false;
    if (from->fingerprint)
        to->arguments = from->fingerprint(from->of);
    to->fingerprint = NULL;
    return to;
}

static void put_request(struct layout *block, const struct session_request *from)
{
    struct session_request *to = put(block, from, sizeof(*from));
    const struct ledger_call *call = from->call ? put_call(block, from->call) : NULL;
    if (to)
        to->call = call;
}

struct session_request *request_copy(const struct session_request *from)
{
    struct layout block = {.at = NULL};
    put_request(&block, from);
    size_t bytes = block.used;
    struct session_request *copy = malloc(bytes);
    if (!copy)
        abort();
    block = (struct layout){.at = (char *)copy};
    put_request(&block, from);
    copy->bytes = bytes;
    copy->answer = NULL;
    copy->arena = NULL;
    copy->done = NULL;
    copy->owner = NULL;
    copy->is_owned = true;
    return copy;
}

struct session_request *request_release(const struct session_request *admit)
{
    struct session_request release = {.kind = LEDGER_RELEASE, .id = admit->id, .call = admit->call};
    return request_copy(&release);
}
