/*
 * Builds what a store commits: most calls write the head and one call of the core and one note of the
 * journal, in place; where more has changed, the whole.
 */
#include "base/log.h"
#include "ledger/codec.h"
#include "ledger/ledger_internal.h"

#include <assert.h>
#define RENEWALS 32u /* of the time to live, in its length: not with every commit */

void commit_begin(struct commit *c)
{
    c->changed = c->whole = c->grows = false;
    c->calls = 0;
    c->parts = 0;
    c->notes.len = c->bytes.len = c->gave_up.len = 0;
    c->write_count = 0;
    c->journal_from = c->entry->begun ? c->entry->session.journal_count : 0;
    c->window_fills = !c->entry->begun || c->entry->session.call_count < SESSION_CALLS_MAX;
    c->changes.calls = 0;
    c->changes.whole = c->changes.new_tool = false;
    c->changes.note_count = c->changes.gave_up_count = 0;
}

static void take_notes(struct commit *c)
{
    struct ledger_entry *e = c->entry;
    uint32_t first = e->session.journal_count - c->changes.note_count; /* the rules have counted them */
    c->parts |= c->changes.note_count ? PART_BIT(PART_JOURNAL) : 0;
    for (uint32_t i = 0; i < c->changes.note_count; i++) {
        codec_encode_note(&c->changes.notes[i], &c->notes);
        session_parts_add_note(&e->parts, &e->session, first + i, &c->changes.notes[i]);
    }
    c->changes.note_count = 0;
}

void commit_take_changes(struct commit *c)
{
    c->changed = true;
    c->calls |= c->changes.calls;
    c->whole |= c->changes.whole;
    if (c->changes.gave_up_count)
        buf_add(&c->gave_up, c->changes.gave_up, c->changes.gave_up_count * sizeof(*c->changes.gave_up));
    take_notes(c);
    c->changes.calls = 0;
    c->changes.whole = c->changes.new_tool = false;
    c->changes.gave_up_count = 0;
}

/* The name and then the value of a write stand at `from` in `bytes`, which move as they grow: commit_finish
 * says where they are. */
static void add_write(struct commit *c, struct store_write write, size_t from)
{
    c->from[c->write_count] = (uint32_t)from;
    c->writes[c->write_count++] = write;
}

void commit_write(struct commit *c, enum store_write_kind kind, enum session_part part, size_t at,
                  struct str name, struct str value)
{
    size_t from = c->bytes.len;
    c->changed = true;
    c->parts |= PART_BIT(part);
    assert(c->write_count < STORE_WRITES_MAX); /* transaction.c ends a batch before (WRITES_OF_ONE_REQUEST) */
    buf_str(&c->bytes, name);
    buf_str(&c->bytes, value);
    add_write(c, (struct store_write){kind, part, (uint32_t)at, {NULL, name.len}, {NULL, value.len}}, from);
}

/* ---- parts ---- */

void commit_set_field(struct commit *c, struct str name, struct str value)
{
    struct ledger_entry *e = c->entry;
    commit_write(c, WRITE_FIELD, PART_DETAILS, 0, name, value);
    c->grows |= e->parts.field_count == 0;
    session_parts_set_field(&e->parts, name, value);
    e->parts.details_changes = ++e->session.details_changes;
}

void commit_drop_field(struct commit *c, struct str name)
{
    commit_write(c, WRITE_NO_FIELD, PART_DETAILS, 0, name, STR_NONE);
    session_parts_drop_field(&c->entry->parts, name);
}

void commit_set_open(struct commit *c, struct str name, struct str value)
{
    commit_write(c, WRITE_FIELD, PART_DETAILS, 0, name, value);
    c->grows |= c->entry->parts.field_count == 0;
    session_parts_set_field(&c->entry->parts, name, value);
}

void commit_add_ids(struct commit *c, const struct hash128 *ids, size_t count)
{
    struct session_parts *parts = &c->entry->parts;
    size_t from;
    enum ids_added added = session_parts_add_ids(parts, &c->entry->session, ids, count, &from);
    if (added == IDS_APPENDED)
        commit_write(c, WRITE_AT, PART_IDS, from, STR_NONE,
                     (struct str){parts->ids.at + from, parts->ids.len - from});
    if (added == IDS_REPLACED) {
        commit_write(c, WRITE_SET, PART_IDS, 0, STR_NONE, buf_view(&parts->ids));
        c->grows = true;
    }
}

void commit_resize_journal(struct commit *c, uint16_t max)
{
    struct ledger_entry *e = c->entry;
    session_parts_resize_journal(&e->parts, &e->session, max);
    commit_write(c, WRITE_SET, PART_JOURNAL, 0, STR_NONE, buf_view(&e->parts.journal));
    c->journal_from = e->session.journal_count;
    c->grows = true;
}

/* ---- core and journal ---- */

/* Redis gives a string that grows in place twice the memory it needs. When the ring is full it is written as
 * a whole, once, and then takes no more than its length. */
static bool write_full_journal(struct commit *c, size_t count)
{
    const struct session_parts *parts = &c->entry->parts;
    size_t most = c->entry->session.journal_max;
    bool fills = c->journal_from < most && c->journal_from + count >= most;
    if (!fills || !(parts->known & PART_BIT(PART_JOURNAL)) || parts->journal.len != most * CODEC_NOTE_BYTES)
        return false;
    commit_write(c, WRITE_SET, PART_JOURNAL, 0, STR_NONE, buf_view(&parts->journal));
    return true;
}

/* Notes in the order of the ring: a run of places that follow each other is one write. */
static void write_journal(struct commit *c)
{
    const struct session *s = &c->entry->session;
    size_t count = c->notes.len / CODEC_NOTE_BYTES, most = s->journal_max;
    if (!count || !most)
        return;
    size_t first = count > most ? count - most : 0; /* the ones before are overwritten already */
    c->grows |= c->journal_from == 0;
    if (write_full_journal(c, count))
        return;
    while (first < count) {
        size_t place = (c->journal_from + first) % most;
        size_t run = count - first < most - place ? count - first : most - place;
        commit_write(c, WRITE_AT, PART_JOURNAL, place * CODEC_NOTE_BYTES, STR_NONE,
                     (struct str){c->notes.at + first * CODEC_NOTE_BYTES, run * CODEC_NOTE_BYTES});
        first += run;
    }
}

static void write_whole(struct commit *c)
{
    size_t from = c->bytes.len;
    codec_encode(&c->entry->session, &c->bytes);
    add_write(c, (struct store_write){WRITE_SET, PART_CORE, 0, STR_NONE, {NULL, c->bytes.len - from}}, from);
}

static void write_call(struct commit *c, unsigned place)
{
    size_t from = c->bytes.len, at = c->entry->head_len + place * CODEC_CALL_BYTES;
    codec_encode_call(&c->entry->session.calls[place], &c->bytes);
    add_write(c, (struct store_write){WRITE_AT, PART_CORE, (uint32_t)at, STR_NONE, {NULL, CODEC_CALL_BYTES}},
              from);
}

/* How much of a new head must be written over the one that is stored: its end rarely changes, and Redis sends
 * each byte to its append-only file and its replicas. Keeps the new one. */
static size_t changed_len(struct ledger_entry *e, const char *head, size_t len)
{
    size_t changed = len;
    if (!e->ledger->redis || e->local)
        return len;
    if (e->head.len == len)
        while (changed && e->head.at[changed - 1] == head[changed - 1])
            changed--;
    e->head.len = 0;
    buf_add(&e->head, head, len);
    return changed;
}

static void write_core(struct commit *c)
{
    struct ledger_entry *e = c->entry;
    size_t from = c->bytes.len, len = codec_encode_head(&e->session, &c->bytes);
    c->window_fills &= e->session.call_count == SESSION_CALLS_MAX; /* as write_full_journal */
    if (!e->stored || c->whole || c->window_fills || len != e->head_len) {
        c->bytes.len = from;
        write_whole(c);
        e->head_len = len;
        e->head.len = 0;
        return;
    }
    size_t changed = changed_len(e, c->bytes.at + from, len);
    add_write(c, (struct store_write){WRITE_AT, PART_CORE, 0, STR_NONE, {NULL, changed}}, from);
    for (uint32_t calls = c->calls; calls; calls &= calls - 1)
        write_call(c, (unsigned)__builtin_ctz(calls));
}

static void set_addresses(struct commit *c)
{
    for (size_t i = 0; i < c->write_count; i++) {
        c->writes[i].name.at = c->bytes.at + c->from[i];
        c->writes[i].value.at = c->writes[i].name.at + c->writes[i].name.len;
    }
}

void commit_finish(struct commit *c, uint32_t ttl_s)
{
    struct ledger_entry *e = c->entry;
    struct session *s = &e->session;
    struct store_request *store = &c->store;
    uint32_t now_s = (uint32_t)(s->last_ms / 1000);
    codec_guard(e->format, s->version, c->guard);
    e->format = CODEC_FORMAT;
    store->guard = e->stored ? (struct str){c->guard, sizeof(c->guard)} : STR_NONE;
    s->version++;
    write_journal(c);
    bool renew = !e->stored || c->grows || now_s - s->renewed_s > ttl_s / RENEWALS;
    if (renew)
        s->renewed_s = now_s;
    write_core(c);
    set_addresses(c);
    store->id = e->id;
    store->writes = c->writes;
    store->write_count = c->write_count;
    store->renew_ttl_s = renew ? ttl_s : 0;
    store->forget = false;
}

void commit_finish_everything(struct commit *c, uint32_t ttl_s)
{
    struct ledger_entry *e = c->entry;
    const struct session_parts *parts = &e->parts;
    c->write_count = 0;
    c->bytes.len = c->notes.len = 0;
    e->stored = false;
    if ((parts->known & PART_BIT(PART_JOURNAL)) && parts->journal.len)
        commit_write(c, WRITE_SET, PART_JOURNAL, 0, STR_NONE, buf_view(&parts->journal));
    if ((parts->known & PART_BIT(PART_IDS)) && parts->ids.len)
        commit_write(c, WRITE_SET, PART_IDS, 0, STR_NONE, buf_view(&parts->ids));
    size_t room = STORE_WRITES_MAX - c->write_count - SESSION_CALLS_MAX - 1;
    size_t count = parts->known & PART_BIT(PART_DETAILS) ? parts->field_count : 0;
    if (count > room)
        log_event(LOG_WARN, "ledger_details_dropped",
                  LOG_STR("session", ((struct str){e->name, e->name_len})), LOG_NUM("count", count - room),
                  LOG_NUM("limit", room),
                  LOG_TEXT("why", "a session has too many facts and names of tools to be kept whole while "
                                  "Redis is away"));
    for (size_t i = 0; i < count && i < room; i++)
        commit_write(c, WRITE_FIELD, PART_DETAILS, 0, parts->fields[i].name, parts->fields[i].value);
    commit_finish(c, ttl_s);
}
