/*
 * The tables of fields, and what both directions make of them. Each table is the layout: one line per field,
 * in order, with its width. PUT and GET turn a table into straight-line code, as a window is decoded whenever
 * a session comes into the cache.
 */
#include "ledger/codec.h"

#include <endian.h>

/* ---- widths -------------------------------------------------------------- */

enum {
    BYTES_u8 = 1,
    BYTES_u16 = 2,
    BYTES_u24 = 3,
    BYTES_u32 = 4,
    BYTES_u40 = 5,
    BYTES_u48 = 6,
    BYTES_u64 = 8
};
enum { BYTES_low8 = 1, BYTES_low16 = 2, BYTES_cost = 6 };

#define MAX_u48 0xffffffffffffu

static inline char *put(char *p, uint64_t v, size_t bytes)
{
    v = htole64(v);
    memcpy(p, &v, bytes);
    return p + bytes;
}

static inline uint64_t get(const char *p, size_t bytes)
{
    uint64_t v = 0;
    memcpy(&v, p, bytes);
    return le64toh(v);
}

#define put_u8(p, v)  put(p, (uint8_t)(v), 1)
#define put_u16(p, v) put(p, (uint16_t)(v), 2)
#define put_u24(p, v) put(p, v, 3)
#define put_u32(p, v) put(p, (uint32_t)(v), 4)
#define put_u40(p, v) put(p, v, 5)
#define put_u48(p, v) put(p, v, 6)
#define put_u64(p, v) put(p, v, 8)
/* A sum of costs stops at what 48 bits hold: nearly three times the largest limit, LEDGER_COST_MAX. */
#define put_cost(p, v) put(p, (v) < MAX_u48 ? (v) : MAX_u48, 6)

#define get_u8(p)  ((uint8_t)get(p, 1))
#define get_u16(p) ((uint16_t)get(p, 2))
#define get_u24(p) ((uint32_t)get(p, 3))
#define get_u32(p) ((uint32_t)get(p, 4))
#define get_u64(p) get(p, 8)
/* No such field is among the first bytes: one load that begins before it is half the instructions of two. */
#define get_u40(p)  (get((p)-3, 8) >> 24)
#define get_u48(p)  (get((p)-2, 8) >> 16)
#define get_cost(p) get_u48(p)
/* Of enums, and of turns in the journal. */
#define put_low8  put_u8
#define put_low16 put_u16
#define get_low8  get_u8
#define get_low16 get_u16

/* ---- the tables ---------------------------------------------------------- */

/* What stands in the head but for the format, always. */
#define HEAD_FIELDS(F)                                                                                       \
    F(u64, s->version)                                                                                       \
    F(u8, s->chain_count)                                                                                    \
    F(u8, s->counter_count)                                                                                  \
    F(u8, s->paced_count)                                                                                    \
    F(u8, s->call_count)                                                                                     \
    F(u8, s->oldest)                                                                                         \
    F(u48, s->last_ms)                                                                                       \
    F(u32, s->renewed_s)                                                                                     \
    F(u32, s->turn)                                                                                          \
    F(u32, s->told_turn)                                                                                     \
    F(u32, s->turn_began_s)                                                                                  \
    F(u32, s->heard_s)                                                                                       \
    F(u32, s->label)                                                                                         \
    F(u8, s->step)                                                                                           \
    F(low8, bits)                                                                                            \
    F(u16, s->idle[0].agent)                                                                                 \
    F(u8, s->idle[0].calls)                                                                                  \
    F(u16, s->idle[1].agent)                                                                                 \
    F(u8, s->idle[1].calls)                                                                                  \
    F(u16, s->idle[2].agent)                                                                                 \
    F(u8, s->idle[2].calls)                                                                                  \
    F(u32, s->calls_made)                                                                                    \
    F(u32, s->calls_in_turn)                                                                                 \
    F(cost, s->cost)                                                                                         \
    F(cost, s->cost_in_turn)                                                                                 \
    F(u32, s->journal_count)                                                                                 \
    F(u16, s->journal_max)                                                                                   \
    F(u16, s->ids_changes)                                                                                   \
    F(u16, s->details_changes)                                                                               \
    F(u32, s->marks[0].daemon)                                                                               \
    F(u32, s->marks[0].request)                                                                              \
    F(u32, s->marks[1].daemon)                                                                               \
    F(u32, s->marks[1].request)                                                                              \
    F(u32, s->marks[2].daemon)                                                                               \
    F(u32, s->marks[2].request)                                                                              \
    F(u32, s->marks[3].daemon)                                                                               \
    F(u32, s->marks[3].request)                                                                              \
    F(u8, s->request_at)                                                                                     \
    F(u32, s->requests[0])                                                                                   \
    F(u32, s->requests[1])                                                                                   \
    F(u32, s->requests[2])                                                                                   \
    F(u32, s->requests[3])
_Static_assert(SESSION_CALLS_MAX == 1 << 5, "CALL_FLAGS has a slot's bits");
_Static_assert(SESSION_REQUESTS_MAX == 4 && SESSION_MARKS_MAX == 4 && SESSION_AGENTS_MAX == 3,
               "each has its line");

/* The counts of the lists behind them. */
#define HEAD_COUNTS(F)                                                                                       \
    F(u8, s->lax_count)                                                                                      \
    F(u8, s->turn_text_count)                                                                                \
    F(u16, s->spent_count)

/* Of a byte: the lowest bit, how many. */
#define HEAD_FLAGS(F)                                                                                        \
    F(s->spoken, 0, 1)                                                                                       \
    F(s->stuck, 1, 1)                                                                                        \
    F(s->has_goal, 2, 1)                                                                                     \
    F(s->ids, 3, 2)                                                                                          \
    F(s->spent_full, 5, 1)

/* Its problems follow, then its name and ext. */
#define CHAIN_FIELDS(F)                                                                                      \
    F(u32, c->tool)                                                                                          \
    F(u32, c->call)                                                                                          \
    F(u8, c->attempts)                                                                                       \
    F(u8, c->free_attempts)                                                                                  \
    F(u8, c->step)                                                                                           \
    F(low8, bits)                                                                                            \
    F(u8, c->problem_count)                                                                                  \
    F(u8, c->name_len)                                                                                       \
    F(u8, c->ext_len)

#define CHAIN_FLAGS(F)                                                                                       \
    F(c->ended, 0, 1)                                                                                        \
    F(c->problems_cut, 1, 1)

#define PROBLEM_FIELDS(F)                                                                                    \
    F(u32, problem->path)                                                                                    \
    F(u32, problem->code)

#define COUNTER_FIELDS(F)                                                                                    \
    F(u32, c->tool)                                                                                          \
    F(u32, c->turn)                                                                                          \
    F(u32, c->calls_turn)                                                                                    \
    F(u32, c->calls)                                                                                         \
    F(cost, c->cost_turn)                                                                                    \
    F(cost, c->cost)                                                                                         \
    F(u32, c->began_s)

#define PACED_FIELDS(F)                                                                                      \
    F(u32, c->tool)                                                                                          \
    F(u48, c->arguments)                                                                                     \
    F(u48, c->at_ms)

#define LAX_FIELDS(F)                                                                                        \
    F(u32, c->tool)                                                                                          \
    F(u32, c->problem)                                                                                       \
    F(low8, c->state)                                                                                        \
    F(u8, c->step)                                                                                           \
    F(u40, c->admission)

/* Each is different from 0. */
#define TURN_TEXT_FIELDS(F) F(u32, *c)

#define SPENT_FIELDS(F)                                                                                      \
    F(u32, c->tool)                                                                                          \
    F(u48, c->arguments)                                                                                     \
    F(u8, c->count)                                                                                          \
    F(low8, bits)

#define SPENT_FLAGS(F)                                                                                       \
    F(c->effects, 0, 2)                                                                                      \
    F(c->hard, 2, 1)                                                                                         \
    F(c->hinted, 3, 1)                                                                                       \
    F(c->edits_files, 4, 1)                                                                                  \
    F(c->failed, 5, 1)

/* outcome: of CALL_PENDING the deadline in ms, of CALL_DENIED OUTCOME_FIELDS, else the hash of the result */
#define CALL_FIELDS(F)                                                                                       \
    F(u32, c->tool)                                                                                          \
    F(u48, c->arguments)                                                                                     \
    F(u48, outcome)                                                                                          \
    F(low16, bits)                                                                                           \
    F(u8, c->turn)                                                                                           \
    F(u8, c->step)                                                                                           \
    F(u40, c->admission)                                                                                     \
    F(u32, c->second)                                                                                        \
    F(u40, c->masked)                                                                                        \
    F(u16, c->agent)

#define CALL_FLAGS(F)                                                                                        \
    F(c->class, 0, 4)                                                                                        \
    F(c->effects, 4, 2)                                                                                      \
    F(c->changed, 6, 1)                                                                                      \
    F(c->may_settle, 7, 1)                                                                                   \
    F(c->hard, 8, 1)                                                                                         \
    F(c->hinted, 9, 1)                                                                                       \
    F(c->edits_files, 10, 1)                                                                                 \
    F(c->slot, 11, 5)

#define DENIAL_BITS(F)                                                                                       \
    F(c->says, 0, 8)                                                                                         \
    F(c->code, 8, 8)                                                                                         \
    F(c->early, 16, 8)

/* What came of it, in 16 bits: a session keeps a hundred notes. */
#define NOTE_LABEL_BITS  5u
#define NOTE_CODE_BITS   5u
#define NOTE_RETRIES_MAX 63u
_Static_assert(CODE_COUNT <= 1u << NOTE_CODE_BITS, "a code fits");

#define NOTE_FIELDS(F)                                                                                       \
    F(u32, n->second)                                                                                        \
    F(u24, n->tool)                                                                                          \
    F(u16, outcome)                                                                                          \
    F(low16, n->turn)                                                                                        \
    F(u8, n->step)

/* ---- what both directions make of them ----------------------------------- */

#define BYTES(width, field) BYTES_##width + /* NOLINT(bugprone-macro-parentheses): a term of a sum */
#define PUT(width, field)   p = put_##width(p, field);
#define GET(width, field)   field = get_##width(p), p += BYTES_##width;

/* `bits` is a variable of the caller's, initially 0. */
#define PACK(field, lowest, count)   bits |= ((uint32_t)(field) & ((1u << (count)) - 1)) << (lowest);
#define UNPACK(field, lowest, count) field = (bits >> (lowest)) & ((1u << (count)) - 1);
#define MASK(field, lowest, count)   | ((1u << (count)) - 1) << (lowest)

enum {
    HEAD_BYTES = 1 + (HEAD_FIELDS(BYTES) HEAD_COUNTS(BYTES) 0),
    CHAIN_BYTES = CHAIN_FIELDS(BYTES) 0,
    PROBLEM_BYTES = PROBLEM_FIELDS(BYTES) 0,
    COUNTER_BYTES = COUNTER_FIELDS(BYTES) 0,
    PACED_BYTES = PACED_FIELDS(BYTES) 0,
    LAX_BYTES = LAX_FIELDS(BYTES) 0,
    SPENT_BYTES = SPENT_FIELDS(BYTES) 0
};
_Static_assert(HEAD_BYTES <= 5 * CODEC_PAD_BYTES, "a session without chains has a short head");
_Static_assert((CALL_FIELDS(BYTES) 0) == CODEC_CALL_BYTES, "see codec.h");
_Static_assert((NOTE_FIELDS(BYTES) 0) == CODEC_NOTE_BYTES, "see codec.h");
_Static_assert(CODEC_VERSION_AT == 1 && CODEC_GUARD_BYTES == 1 + BYTES_u64, "the version is the first field");

/* ---- encode -------------------------------------------------------------- */

static char *put_chain(char *p, const struct session_chain *c)
{
    uint32_t bits = 0;
    CHAIN_FLAGS(PACK)
    CHAIN_FIELDS(PUT)
    for (unsigned i = 0; i < c->problem_count; i++) {
        const struct session_problem *problem = &c->problems[i];
        PROBLEM_FIELDS(PUT)
    }
    memcpy(p, c->name, c->name_len);
    memcpy(p + c->name_len, c->ext, c->ext_len);
    return p + c->name_len + c->ext_len;
}

/* The elements of a list that are all alike. */
#define PUT_LIST(list, count, FIELDS)                                                                        \
    for (unsigned i = 0; i < (count); i++) {                                                                 \
        const __typeof__(*(list)) *c = &(list)[i];                                                           \
        FIELDS(PUT)                                                                                          \
    }

static char *put_call(char *p, const struct session_call *c)
{
    uint32_t bits = 0;
    uint64_t outcome = c->class == CALL_PENDING ? c->deadline_ms : c->result;
    if (c->class == CALL_DENIED) {
        DENIAL_BITS(PACK)
        outcome = bits;
        bits = 0;
    }
    CALL_FLAGS(PACK)
    CALL_FIELDS(PUT)
    return p;
}

static size_t padded(size_t len)
{
    return (len + CODEC_PAD_BYTES - 1) / CODEC_PAD_BYTES * CODEC_PAD_BYTES;
}

static size_t head_length(const struct session *s)
{
    size_t len = HEAD_BYTES + s->counter_count * (size_t)COUNTER_BYTES +
                 s->paced_count * (size_t)PACED_BYTES + s->lax_count * (size_t)LAX_BYTES +
                 s->turn_text_count * (size_t)BYTES_u32 + s->spent_count * (size_t)SPENT_BYTES;
    for (unsigned i = 0; i < s->chain_count; i++) {
        const struct session_chain *c = &s->chains[i];
        len += CHAIN_BYTES + c->problem_count * (size_t)PROBLEM_BYTES + c->name_len + c->ext_len;
    }
    return len;
}

/* Inline, as it is done with every commit. */
static inline __attribute__((always_inline)) char *put_head(char *p, const struct session *s)
{
    uint32_t bits = 0;
    HEAD_FLAGS(PACK)
    p = put_u8(p, CODEC_FORMAT);
    HEAD_FIELDS(PUT)
    HEAD_COUNTS(PUT)
    for (unsigned i = 0; i < s->chain_count; i++)
        p = put_chain(p, &s->chains[i]);
    PUT_LIST(s->counters, s->counter_count, COUNTER_FIELDS)
    PUT_LIST(s->paced, s->paced_count, PACED_FIELDS)
    PUT_LIST(s->lax, s->lax_count, LAX_FIELDS)
    PUT_LIST(s->turn_texts, s->turn_text_count, TURN_TEXT_FIELDS)
    for (unsigned i = 0; i < s->spent_count; i++) {
        const struct session_spent *c = &s->spent[i];
        bits = 0;
        SPENT_FLAGS(PACK)
        SPENT_FIELDS(PUT)
    }
    return p;
}

void codec_update(const struct session *session, uint32_t changed, size_t *head, struct buf *core)
{
    size_t len = head_length(session), whole = padded(len), count = session->call_count;
    size_t bytes = whole + count * CODEC_CALL_BYTES;
    if (whole != *head || core->len > bytes || core->len < whole)
        changed = UINT32_MAX;
    if (bytes > core->len)
        buf_reserve(core, bytes - core->len);
    core->len = bytes;
    char *start = core->at;
    *head = whole;
    put_head(start, session);
    memset(start + len, 0, whole - len);
    for (; changed; changed &= changed - 1) {
        unsigned i = (unsigned)__builtin_ctz(changed);
        if (i >= count)
            return;
        put_call(start + whole + i * (size_t)CODEC_CALL_BYTES, &session->calls[i]);
    }
}

void codec_guard(uint8_t format, uint64_t version, char out[CODEC_GUARD_BYTES])
{
    put_u64(put_u8(out, format), version);
}

void codec_encode_note(const struct session_note *n, struct buf *out)
{
    char *p = buf_reserve(out, CODEC_NOTE_BYTES);
    unsigned retries = n->retries < NOTE_RETRIES_MAX ? n->retries : NOTE_RETRIES_MAX;
    unsigned label = n->label & ((1u << NOTE_LABEL_BITS) - 1);
    uint16_t outcome = (uint16_t)(label | (unsigned)n->code << NOTE_LABEL_BITS |
                                  retries << (NOTE_LABEL_BITS + NOTE_CODE_BITS));
    NOTE_FIELDS(PUT)
    out->len += CODEC_NOTE_BYTES;
}

/* ---- decode -------------------------------------------------------------- */

/* Whether so many bytes are left; the reader takes them. */
static inline bool take(struct str *bytes, size_t count, const char **p)
{
    if (bytes->len < count)
        return false;
    *p = bytes->at;
    *bytes = (struct str){bytes->at + count, bytes->len - count};
    return true;
}

static bool get_fixed(struct str *bytes, struct session *s)
{
    const char *p;
    uint32_t bits;
    if (!take(bytes, HEAD_BYTES - 1, &p))
        return false;
    HEAD_FIELDS(GET)
    HEAD_COUNTS(GET)
    HEAD_FLAGS(UNPACK)
    /* The order of the calls, too, must be one that session_call_at reads nothing else by. */
    return !(bits & ~(0u HEAD_FLAGS(MASK))) && s->ids <= IDS_FORGOTTEN &&
           s->chain_count <= SESSION_CHAINS_MAX && s->counter_count <= SESSION_COUNTERS_MAX &&
           s->paced_count <= SESSION_PACED_MAX && s->call_count <= SESSION_CALLS_MAX &&
           s->oldest < SESSION_CALLS_MAX && (s->oldest == 0 || s->call_count == SESSION_CALLS_MAX) &&
           s->request_at < SESSION_REQUESTS_MAX && s->lax_count <= SESSION_LAX_MAX &&
           s->turn_text_count <= SESSION_TURNS_MAX && s->spent_count <= SESSION_SPENT_MAX;
}

static bool get_chain_name(struct str *bytes, uint8_t len, char name[SESSION_NAME_BYTES])
{
    const char *p;
    if (len > SESSION_NAME_BYTES || !take(bytes, len, &p))
        return false;
    memcpy(name, p, len);
    return true;
}

static bool get_chain(struct str *bytes, struct session_chain *c)
{
    const char *p;
    uint32_t bits;
    if (!take(bytes, CHAIN_BYTES, &p))
        return false;
    CHAIN_FIELDS(GET)
    CHAIN_FLAGS(UNPACK)
    if (bits & ~(0u CHAIN_FLAGS(MASK)) || c->problem_count > SESSION_PROBLEMS_MAX ||
        !take(bytes, c->problem_count * (size_t)PROBLEM_BYTES, &p))
        return false;
    for (unsigned i = 0; i < c->problem_count; i++) {
        struct session_problem *problem = &c->problems[i];
        PROBLEM_FIELDS(GET)
    }
    return get_chain_name(bytes, c->name_len, c->name) && get_chain_name(bytes, c->ext_len, c->ext);
}

/* The elements of a list that are all alike; `sound` is true of each. */
#define GET_LIST(list, count, FIELDS, sound)                                                                 \
    if (!take(bytes, (count) * (size_t)(FIELDS(BYTES) 0), &p))                                               \
        return false;                                                                                        \
    for (unsigned i = 0; i < (count); i++) {                                                                 \
        __typeof__(*(list)) *c = &(list)[i];                                                                 \
        FIELDS(GET)                                                                                          \
        if (!(sound))                                                                                        \
            return false;                                                                                    \
    }

/* All fields are set for every class: the rules compare some of them without looking at the class. */
static inline bool get_call(const char *p, struct session_call *c)
{
    uint32_t bits;
    uint64_t outcome;
    CALL_FIELDS(GET)
    CALL_FLAGS(UNPACK)
    bool is_denied = c->class == CALL_DENIED;
    c->deadline_ms = c->class == CALL_PENDING ? outcome : 0;
    c->result = c->class == CALL_PENDING || is_denied ? 0 : outcome;
    c->says = LEDGER_RUN;
    c->code = CODE_NONE;
    c->early = 0;
    if (c->class >= CALL_CLASS_COUNT || bits & ~(0u CALL_FLAGS(MASK)))
        return false;
    if (!is_denied)
        return true;
    bits = (uint32_t)outcome;
    DENIAL_BITS(UNPACK)
    return outcome <= (0u DENIAL_BITS(MASK)) && c->says <= LEDGER_HALT && c->code < CODE_COUNT;
}

static bool get_head(struct str *bytes, struct session *s)
{
    const char *p;
    uint32_t bits;
    size_t before = bytes->len;
    if (!get_fixed(bytes, s))
        return false;
    for (unsigned i = 0; i < s->chain_count; i++)
        if (!get_chain(bytes, &s->chains[i]))
            return false;
    GET_LIST(s->counters, s->counter_count, COUNTER_FIELDS, true)
    GET_LIST(s->paced, s->paced_count, PACED_FIELDS, true)
    GET_LIST(s->lax, s->lax_count, LAX_FIELDS, c->state < LAX_STATE_COUNT)
    GET_LIST(s->turn_texts, s->turn_text_count, TURN_TEXT_FIELDS, *c)
    if (!take(bytes, s->spent_count * (size_t)SPENT_BYTES, &p))
        return false;
    for (unsigned i = 0; i < s->spent_count; i++) {
        struct session_spent *c = &s->spent[i];
        SPENT_FIELDS(GET)
        SPENT_FLAGS(UNPACK)
        if (bits & ~(0u SPENT_FLAGS(MASK)))
            return false;
    }
    size_t head = 1 + before - bytes->len;
    if (!take(bytes, padded(head) - head, &p))
        return false;
    for (size_t i = 0; i < padded(head) - head; i++) /* zeros up to the calls */
        if (p[i] != 0)
            return false;
    return true;
}

enum codec_result codec_decode(struct str bytes, struct session *session)
{
    const char *format;
    if (!take(&bytes, 1, &format) || bytes.len >= CODEC_MAX_BYTES)
        return CODEC_DAMAGED;
    uint8_t number = get_u8(format);
    if (number > CODEC_FORMAT)
        return CODEC_NEWER;
    if (number && number < CODEC_FORMAT && take(&bytes, BYTES_u64, &format)) {
        session->version = get_u64(format);
        return CODEC_OLDER;
    }
    if (number != CODEC_FORMAT)
        return CODEC_DAMAGED;
    if (!get_head(&bytes, session) || bytes.len != session->call_count * (size_t)CODEC_CALL_BYTES)
        return CODEC_DAMAGED;
    for (unsigned i = 0; i < session->call_count; i++)
        if (!get_call(bytes.at + i * (size_t)CODEC_CALL_BYTES, &session->calls[i]))
            return CODEC_DAMAGED;
    return CODEC_OK;
}

bool codec_decode_note(struct str *bytes, struct session_note *n)
{
    const char *p;
    uint16_t outcome;
    if (!take(bytes, CODEC_NOTE_BYTES, &p))
        return false;
    NOTE_FIELDS(GET)
    n->label = outcome & ((1u << NOTE_LABEL_BITS) - 1);
    n->code = outcome >> NOTE_LABEL_BITS & ((1u << NOTE_CODE_BITS) - 1);
    n->retries = (uint8_t)(outcome >> (NOTE_LABEL_BITS + NOTE_CODE_BITS));
    return n->code < CODE_COUNT;
}
