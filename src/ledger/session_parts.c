#include "ledger/session_parts.h"

#include "ledger/codec.h"
#include "ledger/session_store.h"

#define FIELD_HEAD_BYTES 8u /* lengths of name and value */

void session_parts_clear(struct session_parts *p)
{
    buf_clear(&p->journal);
    buf_clear(&p->ids);
    buf_clear(&p->details);
}

/* A call leaves the name of its tool. */
unsigned session_parts_with(const struct session *s)
{
    return (s->journal_count && s->journal_max ? PART_BIT(PART_JOURNAL) : 0) |
           (s->ids != IDS_NONE ? PART_BIT(PART_IDS) : 0) |
           (s->calls_made || s->call_count || s->details_changes ? PART_BIT(PART_DETAILS) : 0);
}

/* ---- journal ---- */

/* Notes that are missing before it, in a journal that was cut short, are zeros, as Redis' SETRANGE has it. */
void session_parts_add_note(struct session_parts *p, const struct session *s, uint32_t number,
                            const struct session_note *note)
{
    size_t at = s->journal_max ? (size_t)(number % s->journal_max) * CODEC_NOTE_BYTES : 0;
    if (!s->journal_max)
        return;
    while (p->journal.len < at)
        buf_byte(&p->journal, '\0');
    size_t len = p->journal.len;
    p->journal.len = at;
    codec_encode_note(note, &p->journal);
    if (p->journal.len < len)
        p->journal.len = len;
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
    s->journal_count = (uint32_t)(ordered.len / CODEC_NOTE_BYTES);
}

/* ---- ids ---- */

static bool has_id(const struct buf *ids, uint64_t id)
{
    for (size_t at = 0; at + SESSION_ID_BYTES <= ids->len; at += SESSION_ID_BYTES)
        if (memcmp(ids->at + at, &id, sizeof(id)) == 0)
            return true;
    return false;
}

bool session_parts_add_ids(struct session_parts *p, struct session *s, const struct hash128 *ids,
                           size_t count)
{
    const size_t most = LEDGER_SEEN_IDS_MAX * SESSION_ID_BYTES, before = p->ids.len;
    for (size_t i = 0; i < count; i++)
        if (!has_id(&p->ids, ids[i].low))
            buf_add(&p->ids, &ids[i].low, SESSION_ID_BYTES);
    if (p->ids.len == before)
        return false;
    s->ids_changes++;
    if (s->ids == IDS_NONE)
        s->ids = IDS_COMPLETE;
    if (p->ids.len <= most)
        return false;
    buf_drop(&p->ids, p->ids.len - most);
    s->ids = IDS_FORGOTTEN;
    return true;
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

bool detail_next(struct str *rest, struct detail *detail)
{
    uint32_t lengths[2];
    if (rest->len < sizeof(lengths))
        return false;
    memcpy(lengths, rest->at, sizeof(lengths));
    const char *name = rest->at + FIELD_HEAD_BYTES;
    size_t bytes = FIELD_HEAD_BYTES + (size_t)lengths[0] + lengths[1];
    if (rest->len < bytes)
        return false;
    *detail = (struct detail){{name, lengths[0]}, {name + lengths[0], lengths[1]}};
    *rest = str_from(*rest, bytes);
    return true;
}

void detail_add(struct buf *details, struct str name, struct str value)
{
    uint32_t lengths[2] = {(uint32_t)name.len, (uint32_t)value.len};
    buf_add(details, lengths, sizeof(lengths));
    buf_str(details, name);
    buf_str(details, value);
}

struct str detail_find(struct str details, struct str name)
{
    struct detail detail;
    while (detail_next(&details, &detail))
        if (str_eq(detail.name, name))
            return detail.value;
    return STR_NONE;
}

void detail_set(struct buf *details, struct str name, struct str value)
{
    struct str rest = buf_view(details);
    struct detail detail;
    while (detail_next(&rest, &detail)) {
        if (!str_eq(detail.name, name))
            continue;
        if (value.at && value.len == detail.value.len) {
            memcpy(details->at + (detail.value.at - details->at), value.at, value.len);
            return;
        }
        char *at = details->at + (detail.name.at - FIELD_HEAD_BYTES - details->at);
        if (rest.len)
            memmove(at, rest.at, rest.len);
        details->len = (size_t)(at - details->at) + rest.len;
        break;
    }
    if (value.at)
        detail_add(details, name, value);
}

bool session_parts_fact_fits(const struct session_parts *p, struct str name, struct str value)
{
    size_t size = name.len + value.len, others = 0;
    struct str rest = buf_view(&p->details);
    struct detail detail;
    while (detail_next(&rest, &detail))
        if (str_starts(detail.name, "f") && !str_eq(detail.name, name)) {
            size += detail.name.len + detail.value.len;
            others++;
        }
    return size <= LEDGER_FACTS_MAX_BYTES && others < SESSION_FACTS_MAX;
}

size_t session_parts_names(const struct session_parts *p)
{
    size_t count = 0;
    struct str rest = buf_view(&p->details);
    struct detail detail;
    while (detail_next(&rest, &detail))
        count += str_starts(detail.name, "t");
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
