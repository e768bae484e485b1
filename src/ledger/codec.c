/* The struct is the layout: lists are copied as they are, and checked when they are read. Beside the core:
 * the parts of a session, and the names of what is stored as numbers. */
#include "ledger/session.h"

#include "ledger/store.h"

#include <stddef.h>

/* ---- the core ---- */

#define HEAD_BYTES offsetof(struct session, calls)
_Static_assert(1 + HEAD_BYTES <= 5 * CODEC_PAD_BYTES, "a session without chains has a short head");
_Static_assert(offsetof(struct session, version) == 0, "the version follows the format");

/* The lists behind the chains, in this order. */
#define LISTS(F)                                                                                             \
    F(counters, s->counter_count, SESSION_COUNTERS_MAX)                                                      \
    F(paced, s->paced_count, SESSION_PACED_MAX)                                                              \
    F(lax, s->lax_count, SESSION_LAX_MAX)                                                                    \
    F(turn_texts, s->turn_text_count, SESSION_TURNS_MAX)                                                     \
    F(spent, s->spent_count, SESSION_SPENT_MAX)

static size_t padding(size_t len)
{
    return (CODEC_PAD_BYTES - len % CODEC_PAD_BYTES) % CODEC_PAD_BYTES;
}

void codec_encode(const struct session *s, struct buf *core)
{
    static const char zeros[CODEC_PAD_BYTES];
    core->len = 0;
    buf_byte(core, CODEC_FORMAT);
    buf_add(core, s, HEAD_BYTES);
    for (unsigned i = 0; i < s->chain_count; i++) {
        const struct session_chain *c = &s->chains[i];
        buf_add(core, c, offsetof(struct session_chain, problems));
        buf_add(core, c->problems, c->problem_count * sizeof(*c->problems));
        buf_add(core, c->name, c->name_len);
        buf_add(core, c->ext, c->ext_len);
    }
#define ENCODE(list, count, most) buf_add(core, s->list, (count) * sizeof(*s->list));
    LISTS(ENCODE)
    buf_add(core, zeros, padding(core->len));
    buf_add(core, s->calls, s->call_count * sizeof(*s->calls));
}

void codec_guard(uint8_t format, uint64_t version, char out[CODEC_GUARD_BYTES])
{
    out[0] = (char)format;
    memcpy(out + CODEC_VERSION_AT, &version, sizeof(version));
}

/* Whether this many bytes are left; the reader takes them. */
static bool take(struct str *bytes, void *to, size_t count)
{
    if (bytes->len < count)
        return false;
    if (count)
        memcpy(to, bytes->at, count);
    *bytes = str_from(*bytes, count);
    return true;
}

static bool take_chain(struct str *bytes, struct session_chain *c)
{
    return take(bytes, c, offsetof(struct session_chain, problems)) && !c->unused &&
           c->problem_count <= SESSION_PROBLEMS_MAX && c->name_len <= SESSION_NAME_BYTES &&
           c->ext_len <= SESSION_NAME_BYTES &&
           take(bytes, c->problems, c->problem_count * sizeof(*c->problems)) &&
           take(bytes, c->name, c->name_len) && take(bytes, c->ext, c->ext_len);
}

/* What the rules rely on, of a session whose bytes were all there. */
static bool is_sound(const struct session *s)
{
    for (unsigned i = 0; i < s->lax_count; i++)
        if (s->lax[i].state >= LAX_STATE_COUNT)
            return false;
    for (unsigned i = 0; i < s->turn_text_count; i++)
        if (!s->turn_texts[i])
            return false;
    for (unsigned i = 0; i < s->spent_count; i++)
        if (s->spent[i].unused)
            return false;
    for (unsigned i = 0; i < s->call_count; i++) {
        const struct session_call *c = &s->calls[i];
        if (c->class >= CALL_CLASS_COUNT ||
            (c->class == CALL_DENIED && (c->says > LEDGER_HALT || c->code >= CODE_COUNT || c->denied_unused)))
            return false;
    }
    /* The order of the calls, too, must be one that session_call_at reads nothing else by. */
    return !s->unused && s->ids <= IDS_FORGOTTEN && s->oldest < SESSION_CALLS_MAX &&
           (s->oldest == 0 || s->call_count == SESSION_CALLS_MAX) && s->request_at < SESSION_REQUESTS_MAX;
}

enum codec_result codec_decode(struct str bytes, struct session *s)
{
    uint8_t format;
    size_t whole = bytes.len;
    char zeros[CODEC_PAD_BYTES];
    if (whole > CODEC_MAX_BYTES || !take(&bytes, &format, 1))
        return CODEC_DAMAGED;
    if (format > CODEC_FORMAT)
        return CODEC_NEWER;
    if (format && format < CODEC_FORMAT && take(&bytes, s, sizeof(s->version)))
        return CODEC_OLDER;
    if (format != CODEC_FORMAT || !take(&bytes, s, HEAD_BYTES) || s->chain_count > SESSION_CHAINS_MAX ||
        s->call_count > SESSION_CALLS_MAX)
        return CODEC_DAMAGED;
    for (unsigned i = 0; i < s->chain_count; i++)
        if (!take_chain(&bytes, &s->chains[i]))
            return CODEC_DAMAGED;
#define DECODE(list, count, most)                                                                            \
    if ((count) > (most) || !take(&bytes, s->list, (count) * sizeof(*s->list)))                              \
        return CODEC_DAMAGED;
    LISTS(DECODE)
    size_t pad = padding(whole - bytes.len);
    if (!take(&bytes, zeros, pad))
        return CODEC_DAMAGED;
    for (size_t i = 0; i < pad; i++)
        if (zeros[i])
            return CODEC_DAMAGED;
    size_t calls = s->call_count * sizeof(*s->calls);
    return bytes.len == calls && take(&bytes, s->calls, calls) && is_sound(s) ? CODEC_OK : CODEC_DAMAGED;
}

/* ---- parts ---- */

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
    size_t at = s->journal_max ? number % s->journal_max * sizeof(*note) : 0;
    if (!s->journal_max)
        return;
    while (p->journal.len < at + sizeof(*note))
        buf_byte(&p->journal, '\0');
    memcpy(p->journal.at + at, note, sizeof(*note));
}

/* ---- details ---- */

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

struct str detail_find_keyed(struct str details, struct str name, uint64_t key)
{
    struct str kept = detail_find(details, name);
    return kept.len > sizeof(key) && memcmp(kept.at, &key, sizeof(key)) == 0 ? str_from(kept, sizeof(key))
                                                                             : STR_NONE;
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

/* ---- names ---- */

#define NAME(number, name) [number] = STR(name),
static const struct str codes[CODE_COUNT] = {SESSION_CODES(NAME)};
static const struct str outcomes[OUTCOME_COUNT] = {SESSION_OUTCOMES(NAME)};

/* Their numbers are stored, too. */
static const struct str labels[] = {
    STR("unknown"),
    STR("ok"),
    STR("partial_data"),
    STR("semantic_garbage"),
    STR("schema_mismatch"),
    STR("tool_error"),
    STR("transient"),
    STR("invalid_arguments"),
    STR("fabricated_id"),
    STR("unknown_tool"),
    STR("forbidden"),
    STR("policy_error"),
    STR("loop"),
    STR("retry_budget"),
    STR("unavailable"),
    STR("need_user_input"),
    STR("agent_runs_this"),
    STR("cancelled"),
    STR("ask"),
    STR("refused"),
};

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

struct str ledger_code_name(enum session_code code)
{
    return (unsigned)code < CODE_COUNT ? codes[code] : STR_NONE;
}

struct str ledger_outcome_name(enum session_outcome outcome)
{
    return (unsigned)outcome < OUTCOME_COUNT ? outcomes[outcome] : STR_NONE;
}

struct str ledger_label_name(uint8_t label)
{
    return labels[label < COUNT(labels) ? label : 0];
}

uint8_t ledger_label_number(struct str label)
{
    for (size_t i = 0; i < COUNT(labels); i++)
        if (str_eq(labels[i], label))
            return (uint8_t)i;
    return 0;
}
