/*
 * The sessions that this daemon has in use or remembers, and the commit that is being made of each: the core
 * as a whole, and of the other parts those that changed, as a whole for a store in memory and as the least
 * that has to be sent to Redis.
 */
#include "base/alloc.h"
#include "ledger/ledger_internal.h"

#include <stdlib.h>

#define LET_GO_AT_ONCE 4 /* where all are in use there are more than ENTRIES_MAX for a while */

/* Leaves nothing of it but its memory. */
static void take_out(struct lru *entries, struct ledger_entry *entry)
{
    lru_remove(entries, &entry->node);
    timer_clear(&entry->pause);
    buf_clear(&entry->parts.journal);
    buf_clear(&entry->parts.ids);
    buf_clear(&entry->parts.details);
    buf_clear(&entry->commit.core);
    buf_clear(&entry->commit.writes);
    buf_clear(&entry->commit.bytes);
    buf_clear(&entry->commit.gave_up);
}

void entries_clear(struct lru *entries)
{
    struct ledger_entry *entry;
    while ((entry = (struct ledger_entry *)entries->oldest)) {
        transaction_drop(entry);
        take_out(entries, entry);
        free(entry);
    }
    lru_clear(entries);
}

struct ledger_entry *entries_get(struct lru *entries, struct ledger *ledger, struct hash128 id)
{
    struct ledger_entry *entry = (struct ledger_entry *)lru_find(entries, id), *spare = NULL;
    if (entry)
        return entry;
    struct ledger_entry *oldest = (struct ledger_entry *)entries->oldest;
    for (int i = 0; i < LET_GO_AT_ONCE && oldest && entries->count >= ENTRIES_MAX; i++) {
        struct ledger_entry *newer = (struct ledger_entry *)oldest->node.newer;
        if (!oldest->busy && !oldest->paused && STAILQ_EMPTY(&oldest->queue)) {
            take_out(entries, oldest);
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
    STAILQ_INIT(&entry->queue);
    STAILQ_INIT(&entry->flying);
    lru_add(entries, &entry->node);
    return entry;
}

static uint8_t keep_text(char *to, size_t room, struct str text)
{
    struct str kept = str_cut(text, room);
    memcpy(to, kept.at, kept.len);
    return (uint8_t)kept.len;
}

void entry_set_name(struct ledger_entry *entry, struct str name)
{
    entry->name_len = keep_text(entry->name, sizeof(entry->name), name);
}

void entry_set_looped(struct ledger_entry *entry, struct str tool)
{
    entry->looped_len = keep_text(entry->looped, sizeof(entry->looped), tool);
}

void entry_forget(struct ledger_entry *entry)
{
    entry->loaded = entry->begun = entry->stored = false;
    entry->session.batch = 0; /* what is stored may be of another daemon's step */
}

/* ---- the commit ---- */

#define COMMIT_KEEP_BYTES 4096u /* of details, for the next commit: a session that is idle holds no more */
#define RENEWALS          32u   /* of the time to live, in its length: not with every commit */

void commit_begin(struct ledger_entry *e)
{
    struct commit *c = &e->commit;
    c->loads = c->changed = c->grows = c->journal_resized = false;
    c->ids_dropped = c->details_changed = false;
    c->writes.len = c->bytes.len = c->gave_up.len = 0;
    c->journal_from = e->begun ? e->session.journal_count : 0;
    c->ids_from = e->begun ? e->parts.ids.len : 0;
}

void commit_end(struct ledger_entry *e)
{
    e->busy = false;
    if (e->commit.bytes.cap > COMMIT_KEEP_BYTES)
        buf_clear(&e->commit.bytes);
}

void commit_take_changes(struct ledger_entry *e)
{
    const struct session_changes *changes = &e->ledger->changes;
    uint32_t first = e->session.journal_count - changes->note_count; /* the rules have counted them */
    e->commit.changed = true;
    buf_add(&e->commit.gave_up, changes->gave_up, changes->gave_up_count * sizeof(*changes->gave_up));
    for (uint32_t i = 0; i < changes->note_count; i++)
        session_parts_add_note(&e->parts, &e->session, first + i, &changes->notes[i]);
}

void commit_set_field(struct ledger_entry *e, struct str name, struct str value)
{
    struct commit *c = &e->commit;
    if (e->ledger->redis) { /* a store in memory takes the whole */
        struct store_write write = {value.at ? WRITE_FIELD : WRITE_NO_FIELD,
                                    PART_DETAILS,
                                    (uint32_t)c->bytes.len,
                                    {NULL, name.len},
                                    {NULL, value.len}};
        buf_str(&c->bytes, name);
        if (value.at)
            buf_str(&c->bytes, value);
        buf_add(&c->writes, &write, sizeof(write));
    }
    c->changed = c->details_changed = true;
    c->grows |= e->parts.details.len == 0;
    detail_set(&e->parts.details, name, value);
    e->session.details_changes +=
        name.at[0] != 'a'; /* by this a build that caches parts one by one drops its copy */
}

void commit_add_ids(struct ledger_entry *e, const struct hash128 *ids, size_t count)
{
    struct commit *c = &e->commit;
    uint16_t before = e->session.ids_changes;
    c->ids_dropped |= session_parts_add_ids(&e->parts, &e->session, ids, count);
    c->changed |= e->session.ids_changes != before;
}

void commit_resize_journal(struct ledger_entry *e, uint16_t max)
{
    struct commit *c = &e->commit;
    session_parts_resize_journal(&e->parts, &e->session, max);
    c->journal_from = e->session.journal_count;
    c->changed = c->journal_resized = true;
}

/* ---- writes ---- */

static void add_write(struct commit *c, enum session_part part, size_t at, struct str value, bool whole)
{
    struct store_write write = {whole ? WRITE_SET : WRITE_AT, part, (uint32_t)at, STR_NONE, value};
    buf_add(&c->writes, &write, sizeof(write));
}

/* The notes since the last commit, in the order of the ring: a run of places that follow each other is one
 * write. Redis gives a string that grows in place twice the memory it needs. When the ring is full it is
 * written as a whole, once, and then takes no more than its length. */
static void write_journal(struct ledger_entry *e)
{
    struct commit *c = &e->commit;
    const struct session *s = &e->session;
    struct str journal = buf_view(&e->parts.journal);
    size_t count = s->journal_count - c->journal_from, most = s->journal_max;
    if (!c->journal_resized && (!count || !most))
        return;
    bool fills = c->journal_from < most && s->journal_count >= most;
    c->store.parts[PART_JOURNAL] = journal.at ? journal : STR_LIT("");
    c->grows |= c->journal_from == 0 || c->journal_resized;
    if (c->journal_resized || (fills && journal.len == most * sizeof(struct session_note))) {
        add_write(c, PART_JOURNAL, 0, c->store.parts[PART_JOURNAL], true);
        return;
    }
    if (count > most) /* the ones before are overwritten already */
        count = most;
    while (count) {
        size_t place = (s->journal_count - count) % most, run = count < most - place ? count : most - place;
        add_write(
            c, PART_JOURNAL, place * sizeof(struct session_note),
            (struct str){journal.at + place * sizeof(struct session_note), run * sizeof(struct session_note)},
            false);
        count -= run;
    }
}

static void write_ids(struct ledger_entry *e)
{
    struct commit *c = &e->commit;
    struct str ids = buf_view(&e->parts.ids);
    bool whole = c->ids_dropped || c->ids_from == 0;
    if (!c->ids_dropped && ids.len == c->ids_from)
        return;
    c->store.parts[PART_IDS] = ids;
    c->grows |= whole;
    add_write(c, PART_IDS, whole ? 0 : c->ids_from, whole ? ids : str_from(ids, c->ids_from), whole);
}

void commit_finish(struct ledger_entry *e, uint32_t ttl_s, bool everything)
{
    struct commit *c = &e->commit;
    struct session *s = &e->session;
    struct store_request *store = &c->store;
    uint32_t now_s = (uint32_t)(s->last_ms / 1000);
    *store = (struct store_request){.id = e->node.id, .user = e->user};
    if (everything) {
        e->stored = false;
        store->parts[PART_JOURNAL] = buf_view(&e->parts.journal);
        store->parts[PART_IDS] = buf_view(&e->parts.ids);
        store->parts[PART_DETAILS] = buf_view(&e->parts.details);
    } else {
        struct store_write *writes = (struct store_write *)(void *)c->writes.at;
        for (size_t i = 0; i < c->writes.len / sizeof(*writes); i++) { /* `bytes` does not move any more */
            writes[i].name.at = c->bytes.at + writes[i].at;
            writes[i].value.at = writes[i].name.at + writes[i].name.len;
        }
        if (c->details_changed)
            store->parts[PART_DETAILS] = buf_view(&e->parts.details);
        write_journal(e);
        write_ids(e);
        store->writes = (const struct store_write *)(const void *)c->writes.at;
        store->write_count = c->writes.len / sizeof(struct store_write);
    }
    store->with = session_parts_with(s);
    for (enum session_part part = PART_JOURNAL; part < PART_COUNT; part++)
        if (store->parts[part].at)
            store->with |= PART_BIT(part);
    codec_guard(e->format, s->version, c->guard);
    store->guard = e->stored ? (struct str){c->guard, sizeof(c->guard)} : STR_NONE;
    e->format = CODEC_FORMAT;
    s->version++;
    if (!e->stored || c->grows || now_s - s->renewed_s > ttl_s / RENEWALS) {
        s->renewed_s = now_s;
        store->renew_ttl_s = ttl_s;
    }
    codec_encode(s, &c->core);
    store->parts[PART_CORE] = buf_view(&c->core);
}
