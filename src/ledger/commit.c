/*
 * Builds what a store commits: the core as a whole, and of the other parts those that changed, as a whole for
 * a store in memory and as the least that has to be sent to Redis.
 */
#include "ledger/codec.h"
#include "ledger/ledger_internal.h"

#define RENEWALS 32u /* of the time to live, in its length: not with every commit */

void commit_begin(struct commit *c)
{
    const struct ledger_entry *e = c->entry;
    c->loads = c->changed = c->grows = c->journal_resized = c->ids_dropped = false;
    c->calls = 0;
    c->writes.len = c->bytes.len = c->gave_up.len = 0;
    c->journal_from = e->begun ? e->session.journal_count : 0;
    c->ids_from = e->begun ? e->parts.ids.len : 0;
    c->changes.calls = 0;
    c->changes.whole = c->changes.new_tool = false;
    c->changes.note_count = c->changes.gave_up_count = 0;
}

void commit_take_changes(struct commit *c)
{
    struct ledger_entry *e = c->entry;
    struct session_changes *changes = &c->changes;
    uint32_t first = e->session.journal_count - changes->note_count; /* the rules have counted them */
    c->changed = true;
    c->calls |= changes->whole ? UINT32_MAX : changes->calls;
    if (changes->gave_up_count)
        buf_add(&c->gave_up, changes->gave_up, changes->gave_up_count * sizeof(*changes->gave_up));
    for (uint32_t i = 0; i < changes->note_count; i++)
        session_parts_add_note(&e->parts, &e->session, first + i, &changes->notes[i]);
    changes->calls = changes->note_count = changes->gave_up_count = 0;
    changes->whole = changes->new_tool = false;
}

void commit_set_field(struct commit *c, struct str name, struct str value)
{
    struct ledger_entry *e = c->entry;
    struct store_write write = {value.at ? WRITE_FIELD : WRITE_NO_FIELD,
                                PART_DETAILS,
                                (uint32_t)c->bytes.len,
                                {NULL, name.len},
                                {NULL, value.len}};
    buf_str(&c->bytes, name);
    if (value.at)
        buf_str(&c->bytes, value);
    buf_add(&c->writes, &write, sizeof(write));
    c->changed = true;
    c->grows |= e->parts.details.len == 0;
    detail_set(&e->parts.details, name, value);
    e->session.details_changes +=
        name.at[0] != 'a'; /* by this a build that caches parts one by one drops its copy */
}

void commit_add_ids(struct commit *c, const struct hash128 *ids, size_t count)
{
    struct ledger_entry *e = c->entry;
    uint16_t before = e->session.ids_changes;
    c->ids_dropped |= session_parts_add_ids(&e->parts, &e->session, ids, count);
    c->changed |= e->session.ids_changes != before;
}

void commit_resize_journal(struct commit *c, uint16_t max)
{
    struct ledger_entry *e = c->entry;
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
static void write_journal(struct commit *c)
{
    const struct session *s = &c->entry->session;
    struct str journal = buf_view(&c->entry->parts.journal);
    size_t count = s->journal_count - c->journal_from, most = s->journal_max;
    if (!c->journal_resized && (!count || !most))
        return;
    bool fills = c->journal_from < most && s->journal_count >= most;
    c->store.parts[PART_JOURNAL] = journal.at ? journal : STR_LIT("");
    c->grows |= c->journal_from == 0 || c->journal_resized;
    if (c->journal_resized || (fills && journal.len == most * CODEC_NOTE_BYTES)) {
        add_write(c, PART_JOURNAL, 0, c->store.parts[PART_JOURNAL], true);
        return;
    }
    if (count > most) /* the ones before are overwritten already */
        count = most;
    while (count) {
        size_t place = (s->journal_count - count) % most, run = count < most - place ? count : most - place;
        add_write(c, PART_JOURNAL, place * CODEC_NOTE_BYTES,
                  (struct str){journal.at + place * CODEC_NOTE_BYTES, run * CODEC_NOTE_BYTES}, false);
        count -= run;
    }
}

static void write_ids(struct commit *c)
{
    struct str ids = buf_view(&c->entry->parts.ids);
    bool whole = c->ids_dropped || c->ids_from == 0;
    if (!c->ids_dropped && ids.len == c->ids_from)
        return;
    c->store.parts[PART_IDS] = ids;
    c->grows |= whole;
    add_write(c, PART_IDS, whole ? 0 : c->ids_from, whole ? ids : str_from(ids, c->ids_from), whole);
}

void commit_finish(struct commit *c, uint32_t ttl_s, bool everything)
{
    struct ledger_entry *e = c->entry;
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
        if (c->writes.len)
            store->parts[PART_DETAILS] = buf_view(&e->parts.details);
        write_journal(c);
        write_ids(c);
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
    codec_update(s, everything ? UINT32_MAX : c->calls, &e->head_len, &e->core);
    store->parts[PART_CORE] = buf_view(&e->core);
}
