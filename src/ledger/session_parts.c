#include "ledger/session_parts.h"

#include "base/arena.h"
#include "ledger/codec.h"

#include <stdlib.h>

#define VERSIONS_OF_A_SESSION UINT32_MAX

/* ---- loading and forgetting ---- */

static void clear_fields(struct session_parts *p)
{
    for (size_t i = 0; i < p->field_count; i++)
        free((char *)p->fields[i].name.at); /* the value stands behind it */
    p->field_count = 0;
}

void session_parts_clear(struct session_parts *p)
{
    clear_fields(p);
    free(p->fields);
    buf_clear(&p->journal);
    buf_clear(&p->ids);
    *p = (struct session_parts){.known = 0};
}

static void mark(struct session_parts *p, const struct session *s)
{
    p->version = s->version;
    p->journal_count = s->journal_count;
    p->ids_changes = s->ids_changes;
    p->details_changes = s->details_changes;
}

void session_parts_begin(struct session_parts *p, const struct session *s)
{
    clear_fields(p);
    p->journal.len = p->ids.len = 0;
    p->known = PART_BIT(PART_JOURNAL) | PART_BIT(PART_IDS) | PART_BIT(PART_DETAILS);
    mark(p, s);
}

static void replace(struct buf *buf, struct str bytes)
{
    buf->len = 0;
    buf_str(buf, bytes);
}

void session_parts_load(struct session_parts *p, const struct session *s, unsigned loaded,
                        const struct store_request *request)
{
    session_parts_check(p, s);
    if (loaded & PART_BIT(PART_JOURNAL)) {
        replace(&p->journal, request->journal);
        p->journal_count = s->journal_count;
    }
    if (loaded & PART_BIT(PART_IDS)) {
        replace(&p->ids, request->ids);
        p->ids.len -= p->ids.len % SESSION_ID_BYTES;
        p->ids_changes = s->ids_changes;
    }
    if (loaded & PART_BIT(PART_DETAILS)) {
        clear_fields(p);
        for (size_t i = 0; i < request->field_count && i < SESSION_FIELDS_MAX; i++)
            session_parts_set_field(p, request->fields[i].name, request->fields[i].value);
        p->details_changes = s->details_changes;
    }
    p->known |= loaded & ~PART_BIT(PART_CORE);
}

/* Versions begin at random and go up by one: a session that was begun anew has one far away. */
static bool is_the_same(const struct session_parts *p, const struct session *s)
{
    return s->version - p->version <= VERSIONS_OF_A_SESSION;
}

void session_parts_check(struct session_parts *p, const struct session *s)
{
    if (!is_the_same(p, s))
        p->known = 0;
    p->version = s->version;
    if (p->journal_count != s->journal_count)
        p->known &= ~PART_BIT(PART_JOURNAL);
    if (p->ids_changes != s->ids_changes)
        p->known &= ~PART_BIT(PART_IDS);
    if (p->details_changes != s->details_changes)
        p->known &= ~PART_BIT(PART_DETAILS);
}

/* ---- journal ---- */

void session_parts_add_note(struct session_parts *p, const struct session *s, uint32_t number,
                            const struct session_note *note)
{
    size_t at = s->journal_max ? (size_t)(number % s->journal_max) * CODEC_NOTE_BYTES : 0;
    p->journal_count = number + 1;
    if (!s->journal_max || !(p->known & PART_BIT(PART_JOURNAL)))
        return;
    if (at >= p->journal.len) {
        codec_encode_note(note, &p->journal);
        return;
    }
    char bytes[2 * CODEC_NOTE_BYTES];
    struct buf one = {.at = bytes, .cap = sizeof(bytes)};
    codec_encode_note(note, &one);
    memcpy(p->journal.at + at, bytes, CODEC_NOTE_BYTES);
}

void session_parts_resize_journal(struct session_parts *p, struct session *s, uint16_t max)
{
    struct buf ordered = {.at = NULL};
    uint32_t kept = s->journal_count < s->journal_max ? s->journal_count : s->journal_max;
    if (kept > max)
        kept = max;
    for (uint32_t i = s->journal_count - kept; i < s->journal_count; i++) {
        size_t at = (size_t)(i % s->journal_max) * CODEC_NOTE_BYTES;
        if (at + CODEC_NOTE_BYTES <= p->journal.len)
            buf_add(&ordered, p->journal.at + at, CODEC_NOTE_BYTES);
    }
    buf_clear(&p->journal);
    p->journal = ordered;
    s->journal_max = max;
    s->journal_count = p->journal_count = (uint32_t)(ordered.len / CODEC_NOTE_BYTES);
}

/* ---- ids ---- */

static bool has_id(const struct buf *ids, uint64_t id)
{
    for (size_t at = 0; at < ids->len; at += SESSION_ID_BYTES)
        if (memcmp(ids->at + at, &id, sizeof(id)) == 0)
            return true;
    return false;
}

enum ids_added session_parts_add_ids(struct session_parts *p, struct session *s, const struct hash128 *ids,
                                     size_t count, size_t *from)
{
    const size_t most = LEDGER_SEEN_IDS_MAX * SESSION_ID_BYTES;
    *from = p->ids.len;
    for (size_t i = 0; i < count; i++)
        if (!has_id(&p->ids, ids[i].low))
            buf_add(&p->ids, &ids[i].low, SESSION_ID_BYTES);
    if (p->ids.len == *from)
        return IDS_SAME;
    s->ids_changes++;
    p->ids_changes = s->ids_changes;
    if (s->ids == IDS_NONE)
        s->ids = IDS_COMPLETE;
    if (p->ids.len <= most)
        return *from ? IDS_APPENDED : IDS_REPLACED;
    buf_drop(&p->ids, p->ids.len - most);
    s->ids = IDS_FORGOTTEN;
    return IDS_REPLACED;
}

uint64_t session_parts_unseen(const struct session_parts *p, const struct hash128 *ids, size_t count)
{
    uint64_t unseen = 0;
    for (size_t i = 0; i < count && i < LEDGER_IDS_MAX; i++)
        if (!has_id(&p->ids, ids[i].low))
            unseen |= (uint64_t)1 << i;
    return unseen;
}

/* ---- details ---- */

static struct store_field *find_field(const struct session_parts *p, struct str name)
{
    for (size_t i = 0; i < p->field_count; i++)
        if (str_eq(p->fields[i].name, name))
            return &p->fields[i];
    return NULL;
}

struct str session_parts_field(const struct session_parts *p, struct str name)
{
    const struct store_field *field = find_field(p, name);
    return field ? field->value : STR_NONE;
}

static struct store_field copied(struct str name, struct str value)
{
    char *bytes = malloc(name.len + value.len + 1);
    if (!bytes)
        abort();
    memcpy(bytes, name.at, name.len);
    if (value.len)
        memcpy(bytes + name.len, value.at, value.len);
    return (struct store_field){{bytes, name.len}, {bytes + name.len, value.len}};
}

void session_parts_set_field(struct session_parts *p, struct str name, struct str value)
{
    struct store_field *field = find_field(p, name), fresh = copied(name, value);
    if (field) {
        free((char *)field->name.at);
        *field = fresh;
        return;
    }
    if (p->field_count == p->field_room) {
        p->field_room = p->field_room ? p->field_room * 2 : 8;
        p->fields = realloc(p->fields, p->field_room * sizeof(*p->fields));
        if (!p->fields)
            abort();
    }
    p->fields[p->field_count++] = fresh;
}

void session_parts_drop_field(struct session_parts *p, struct str name)
{
    struct store_field *field = find_field(p, name);
    if (!field)
        return;
    free((char *)field->name.at);
    size_t behind = p->field_count - (size_t)(field - p->fields) - 1;
    memmove(field, field + 1, behind * sizeof(*field));
    p->field_count--;
}

bool session_parts_fact_fits(const struct session_parts *p, struct str name, struct str value)
{
    size_t size = name.len + value.len, others = 0;
    for (size_t i = 0; i < p->field_count; i++) {
        const struct store_field *field = &p->fields[i];
        if (field->name.at[0] == 'f' && !str_eq(field->name, name)) {
            size += field->name.len + field->value.len;
            others++;
        }
    }
    return size <= LEDGER_FACTS_MAX_BYTES && others < SESSION_FACTS_MAX;
}

size_t session_parts_names(const struct session_parts *p)
{
    size_t count = 0;
    for (size_t i = 0; i < p->field_count; i++)
        count += p->fields[i].name.at[0] == 't';
    return count;
}

struct str session_field_tool(uint32_t tool, char out[SESSION_FIELD_BYTES])
{
    out[0] = 't';
    memcpy(out + 1, &tool, sizeof(tool));
    return (struct str){out, 1 + sizeof(tool)};
}

struct str session_field_open(unsigned slot, char out[SESSION_FIELD_BYTES])
{
    out[0] = 'a';
    out[1] = (char)slot;
    return (struct str){out, 2};
}
