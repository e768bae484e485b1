/* The codec of sessions: both directions agree for any session, and no bytes are more than an error. */
#include "arena_case.h"

#include "base/buf.h"
#include "ledger/session.h"

#define ROUND_TRIPS 20000
#define MUTATIONS   100000

static uint64_t random_state = 20261122;

static uint64_t bits(unsigned count)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    uint64_t most = count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
    return (random_state * UINT64_C(0x2545f4914f6cdd1d) >> 3) & most;
}

static uint32_t below(uint32_t count)
{
    return (uint32_t)(bits(32) % count);
}

/* A number of so many bits: often none, all or one of them. */
static uint64_t any(unsigned count)
{
    uint64_t most = count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
    switch (below(4)) {
    case 0:
        return 0;
    case 1:
        return most;
    case 2:
        return UINT64_C(1) << below(count);
    default:
        return bits(count);
    }
}

static unsigned any_count(unsigned most)
{
    switch (below(4)) {
    case 0:
        return 0;
    case 1:
        return most;
    default:
        return below(most + 1);
    }
}

static void any_call(struct session_call *c)
{
    c->tool = (uint32_t)any(32);
    c->arguments = any(48);
    c->admission = any(40);
    c->class = below(CALL_CLASS_COUNT);
    c->effects = below(4);
    c->changed = below(2);
    c->may_settle = below(2);
    c->hard = below(2);
    c->hinted = below(2);
    c->edits_files = below(2);
    c->slot = (uint8_t)any(5);
    c->agent = (uint16_t)any(16);
    c->second = (uint32_t)any(32);
    c->masked = any(40);
    c->turn = (uint8_t)any(8);
    c->step = (uint8_t)any(8);
    if (c->class == CALL_PENDING) {
        c->deadline_ms = any(48);
    } else if (c->class == CALL_DENIED) {
        c->says = below(LEDGER_HALT + 1);
        c->code = below(CODE_COUNT);
        c->denied_asked = (uint8_t)any(8);
    } else {
        c->result = any(39);
        c->asked = any(8);
        c->under_way = below(2);
    }
}

static void any_chain(struct session_chain *c)
{
    c->tool = (uint32_t)any(32);
    c->call = (uint32_t)any(32);
    c->attempts = (uint8_t)any(8);
    c->free_attempts = (uint8_t)any(8);
    c->step = (uint8_t)any(8);
    c->ended = below(2);
    c->problems_cut = below(2);
    c->problem_count = (uint8_t)any_count(SESSION_PROBLEMS_MAX);
    for (unsigned i = 0; i < c->problem_count; i++) {
        c->problems[i].path = (uint32_t)any(32);
        c->problems[i].code = (uint32_t)any(32);
    }
    c->name_len = (uint8_t)any_count(SESSION_NAME_BYTES);
    c->ext_len = (uint8_t)any_count(SESSION_NAME_BYTES);
    for (unsigned i = 0; i < c->name_len; i++)
        c->name[i] = (char)any(8);
    for (unsigned i = 0; i < c->ext_len; i++)
        c->ext[i] = (char)any(8);
}

static void any_counter(struct session_counter *c)
{
    c->tool = (uint32_t)any(32);
    c->turn = (uint32_t)any(32);
    c->calls_turn = (uint32_t)any(32);
    c->calls = (uint32_t)any(32);
    c->cost_turn = any(48);
    c->cost = any(48);
    c->began_s = (uint32_t)any(32);
}

static void any_paced(struct session_paced *c)
{
    c->tool = (uint32_t)any(32);
    c->arguments = any(48);
    c->at_ms = any(48);
}

static void any_lax(struct session_lax *c)
{
    c->tool = (uint32_t)any(32);
    c->problem = (uint32_t)any(32);
    c->state = below(LAX_STATE_COUNT);
    c->step = (uint8_t)any(8);
    c->admission = any(40);
}

static void any_spent(struct session_spent *c)
{
    c->tool = (uint32_t)any(32);
    c->arguments = any(48);
    c->count = (uint8_t)any(8);
    c->effects = below(4) & 3;
    c->hard = below(2) & 1;
    c->hinted = below(2) & 1;
    c->edits_files = below(2) & 1;
    c->failed = below(2) & 1;
}

static void any_head(struct session *s)
{
    s->version = any(64);
    s->last_ms = any(48);
    s->renewed_s = (uint32_t)any(32);
    s->turn = (uint32_t)any(32);
    s->told_turn = (uint32_t)any(32);
    s->turn_began_s = (uint32_t)any(32);
    s->heard_s = (uint32_t)any(32);
    s->label = (uint32_t)any(32);
    s->step = (uint8_t)any(8);
    s->spoken = below(2);
    s->stuck = below(2);
    s->spent_full = below(2);
    for (unsigned i = 0; i < SESSION_AGENTS_MAX; i++)
        s->idle[i] = (struct session_idle){(uint16_t)any(16), (uint8_t)any(8)};
    s->calls_made = (uint32_t)any(32);
    s->calls_in_turn = (uint32_t)any(32);
    s->cost = any(48);
    s->cost_in_turn = any(48);
    s->has_goal = below(2);
    s->ids = below(IDS_FORGOTTEN + 1);
    s->journal_count = (uint32_t)any(32);
    s->journal_max = (uint16_t)any(16);
    s->ids_changes = (uint16_t)any(16);
    s->details_changes = (uint16_t)any(16);
    for (unsigned i = 0; i < SESSION_REQUESTS_MAX; i++)
        s->requests[i] = (uint32_t)any(32);
    for (unsigned i = 0; i < SESSION_MARKS_MAX; i++)
        s->marks[i] = (struct session_mark){(uint32_t)any(32), (uint32_t)any(32)};
    s->request_at = (uint8_t)below(SESSION_REQUESTS_MAX);
}

/* What is not set is zero, padding too, so that two sessions are equal if their bytes are. */
static void any_session(struct session *s)
{
    memset(s, 0, sizeof(*s));
    any_head(s);
    s->chain_count = (uint8_t)any_count(below(3) ? 2 : SESSION_CHAINS_MAX);
    s->counter_count = (uint8_t)any_count(SESSION_COUNTERS_MAX);
    s->paced_count = (uint8_t)any_count(SESSION_PACED_MAX);
    s->call_count = (uint8_t)any_count(SESSION_CALLS_MAX);
    if (s->call_count == SESSION_CALLS_MAX)
        s->oldest = (uint8_t)below(SESSION_CALLS_MAX);
    for (unsigned i = 0; i < s->chain_count; i++)
        any_chain(&s->chains[i]);
    for (unsigned i = 0; i < s->counter_count; i++)
        any_counter(&s->counters[i]);
    for (unsigned i = 0; i < s->paced_count; i++)
        any_paced(&s->paced[i]);
    s->lax_count = (uint8_t)(below(2) ? any_count(SESSION_LAX_MAX) : 0);
    for (unsigned i = 0; i < s->lax_count; i++)
        any_lax(&s->lax[i]);
    s->turn_text_count = (uint8_t)(below(3) ? 0 : any_count(SESSION_TURNS_MAX));
    for (unsigned i = 0; i < s->turn_text_count; i++)
        s->turn_texts[i] = 1 + below(1000000);
    s->spent_count = (uint16_t)(below(2) ? any_count(SESSION_SPENT_MAX) : 0);
    for (unsigned i = 0; i < s->spent_count; i++)
        any_spent(&s->spent[i]);
    for (unsigned i = 0; i < s->call_count; i++)
        any_call(&s->calls[i]);
}

/* Of a copy of exactly this size, so that a sanitizer sees a byte too far. */
static enum codec_result decode(struct str bytes, struct session *session)
{
    char *exact = malloc(bytes.len ? bytes.len : 1);
    assert_non_null(exact);
    if (bytes.len)
        memcpy(exact, bytes.at, bytes.len);
    enum codec_result result = codec_decode((struct str){exact, bytes.len}, session);
    free(exact);
    return result;
}

TEST(any_session_decodes_to_itself)
{
    static struct session before, after;
    struct buf bytes = {0}, again = {0};
    for (int round = 0; round < ROUND_TRIPS; round++) {
        any_session(&before);
        codec_encode(&before, &bytes);
        assert_true(bytes.len <= CODEC_MAX_BYTES);
        memset(&after, 0, sizeof(after));
        assert_int_equal(decode(buf_view(&bytes), &after), CODEC_OK);
        assert_memory_equal(&before, &after, sizeof(before));
        codec_encode(&after, &again);
        assert_true(str_eq(buf_view(&bytes), buf_view(&again)));
    }
    buf_clear(&bytes);
    buf_clear(&again);
}

TEST(the_largest_session_has_room)
{
    static struct session s;
    struct buf bytes = {0};
    s.chain_count = SESSION_CHAINS_MAX;
    s.counter_count = SESSION_COUNTERS_MAX;
    s.paced_count = SESSION_PACED_MAX;
    s.lax_count = SESSION_LAX_MAX;
    s.turn_text_count = SESSION_TURNS_MAX;
    memset(s.turn_texts, 1, sizeof(s.turn_texts));
    s.spent_count = SESSION_SPENT_MAX;
    s.call_count = SESSION_CALLS_MAX;
    for (unsigned i = 0; i < SESSION_CHAINS_MAX; i++) {
        s.chains[i].problem_count = SESSION_PROBLEMS_MAX;
        s.chains[i].name_len = s.chains[i].ext_len = SESSION_NAME_BYTES;
    }
    codec_encode(&s, &bytes);
    assert_in_range(bytes.len, 1, CODEC_MAX_BYTES);
    assert_int_equal(decode(buf_view(&bytes), &s), CODEC_OK);
    buf_clear(&bytes);
}

TEST(the_guard_begins_the_whole)
{
    static struct session s;
    struct buf whole = {0};
    char guard[CODEC_GUARD_BYTES];
    for (int round = 0; round < 100; round++) {
        any_session(&s);
        codec_encode(&s, &whole);
        codec_guard(CODEC_FORMAT, s.version, guard);
        assert_memory_equal(whole.at, guard, sizeof(guard));
    }
    buf_clear(&whole);
}

static bool is_untouched(const void *from, const void *to)
{
    for (const char *p = from; p < (const char *)to; p++)
        if (*p != 0x5a)
            return false;
    return true;
}

TEST(unused_places_are_not_touched)
{
    static struct session s, after;
    struct buf bytes = {0};
    for (int round = 0; round < 100; round++) {
        any_session(&s);
        codec_encode(&s, &bytes);
        memset(&after, 0x5a, sizeof(after));
        assert_int_equal(decode(buf_view(&bytes), &after), CODEC_OK);
        assert_true(is_untouched(&after.calls[s.call_count], after.chains));
        assert_true(is_untouched(&after.chains[s.chain_count], after.counters));
        assert_true(is_untouched(&after.counters[s.counter_count], after.paced));
        assert_true(is_untouched(&after.paced[s.paced_count], &after.paced[SESSION_PACED_MAX]));
    }
    buf_clear(&bytes);
}

TEST(what_was_cut_is_damaged)
{
    static struct session s;
    struct buf bytes = {0};
    for (int round = 0; round < 30; round++) {
        any_session(&s);
        codec_encode(&s, &bytes);
        for (size_t len = 0; len < bytes.len; len++)
            assert_int_equal(decode((struct str){bytes.at, len}, &s), CODEC_DAMAGED);
        buf_byte(&bytes, 0);
        assert_int_equal(decode(buf_view(&bytes), &s), CODEC_DAMAGED);
    }
    buf_clear(&bytes);
}

static void mutate(struct buf *bytes)
{
    for (unsigned i = 0, count = 1 + below(8); i < count; i++) {
        size_t at = below(2) ? below(100) : below((uint32_t)bytes->len);
        if (at < bytes->len)
            bytes->at[at] = (char)any(8);
    }
    if (below(8) == 0)
        bytes->len = below((uint32_t)bytes->len + 1);
}

/* What decodes is encoded as the same bytes: two daemons never differ about a stored value. */
TEST(mutated_bytes_decode_to_themselves_or_not_at_all)
{
    static struct session s;
    struct buf original = {0}, bytes = {0}, again = {0};
    int decoded = 0, damaged = 0, newer = 0, older = 0;
    for (int round = 0; round < MUTATIONS; round++) {
        if (round % 100 == 0) {
            any_session(&s);
            codec_encode(&s, &original);
        }
        bytes.len = again.len = 0;
        buf_str(&bytes, buf_view(&original));
        mutate(&bytes);
        enum codec_result result = decode(buf_view(&bytes), &s);
        decoded += result == CODEC_OK;
        damaged += result == CODEC_DAMAGED;
        newer += result == CODEC_NEWER;
        older += result == CODEC_OLDER;
        if (result == CODEC_NEWER)
            assert_true((uint8_t)bytes.at[0] > CODEC_FORMAT);
        if (result != CODEC_OK)
            continue;
        codec_encode(&s, &again);
        assert_true(str_eq(buf_view(&bytes), buf_view(&again)));
    }
    assert_int_equal(decoded + damaged + newer + older, MUTATIONS);
    assert_true(decoded > 1000 && damaged > 1000 && newer > 100 && older > 10);
    buf_clear(&original);
    buf_clear(&bytes);
    buf_clear(&again);
}

TEST(another_format_is_told_apart)
{
    static struct session s;
    struct buf bytes = {0};
    s.version = 42;
    codec_encode(&s, &bytes);
    for (int format = 0; format < 256; format++) {
        bytes.at[0] = (char)format;
        s.version = 0;
        enum codec_result expected = format > CODEC_FORMAT    ? CODEC_NEWER
                                     : format == CODEC_FORMAT ? CODEC_OK
                                     : format                 ? CODEC_OLDER
                                                              : CODEC_DAMAGED;
        assert_int_equal(decode(buf_view(&bytes), &s), expected);
        if (expected == CODEC_OLDER)
            assert_int_equal(s.version, 42);
    }
    assert_int_equal(decode((struct str){"\010", 1}, &s), CODEC_NEWER);
    assert_int_equal(decode((struct str){"\002", 1}, &s), CODEC_DAMAGED);
    assert_int_equal(decode(STR_NONE, &s), CODEC_DAMAGED);
    buf_clear(&bytes);
}

/* ---- the format ----------------------------------------------------------- */

static void set_example(struct session *s)
{
    *s = (struct session){
        .version = 0x0807060504030201,
        .last_ms = 1700000000123,
        .renewed_s = 1700000000,
        .turn = 7,
        .told_turn = 6,
        .turn_began_s = 1699999990,
        .heard_s = 1700000000,
        .label = 0x11223344,
        .step = 5,
        .spoken = true,
        .idle = {{0, 2}, {0x0d0c, 3}},
        .calls_made = 40,
        .calls_in_turn = 3,
        .cost = 5000000,
        .cost_in_turn = 1000000,
        .has_goal = true,
        .ids = IDS_COMPLETE,
        .journal_count = 41,
        .journal_max = 100,
        .ids_changes = 8,
        .details_changes = 9,
        .requests = {0xa1, 0xa2},
        .marks = {{0xb1, 0xb2}, {0xb3, 0xb4}},
        .request_at = 2,
        .chain_count = 1,
        .counter_count = 1,
        .paced_count = 1,
        .call_count = 3,
        .chains = {{.tool = 0x21,
                    .call = 0x22,
                    .attempts = 2,
                    .free_attempts = 1,
                    .step = 4,
                    .ended = true,
                    .problem_count = 1,
                    .problems = {{0x31, 0x32}},
                    .name_len = 6,
                    .ext_len = 2,
                    .name = "create",
                    .ext = "it"}},
        .counters = {{0x41, 7, 2, 9, 1000000, 5000000, 1699999991}},
        .paced = {{0x51, 0x52, 1700000000100}},
        .lax_count = 2,
        .lax = {{0x91, 0x92, LAX_ACCEPTED, 5, 0}, {0xa1, 0xa2, LAX_ASKED, 6, 0x0504030201}},
        .turn_text_count = 2,
        .turn_texts = {0xc1, 0xc2},
        .spent_count = 1,
        .spent = {{.tool = 0xd2,
                   .arguments = 0xd1,
                   .count = 3,
                   .effects = LEDGER_EFFECTS_DESTRUCTIVE,
                   .hard = true,
                   .failed = true}},
        .calls =
            {{.tool = 0x61, .arguments = 0x62, .deadline_ms = 1700000060123, .admission = 0x63, .step = 5},
             {.tool = 0x71,
              .arguments = 0x72,
              .result = 0x73,
              .asked = 7,
              .under_way = true,
              .admission = 0x74,
              .class = CALL_TOOL_ERROR,
              .effects = LEDGER_EFFECTS_WRITE,
              .changed = true,
              .hard = true,
              .edits_files = true,
              .slot = 9,
              .second = 1699999992,
              .masked = 0x75,
              .agent = 0x0d0c,
              .turn = 7,
              .step = 4},
             {.tool = 0x81,
              .arguments = 0x82,
              .admission = 0x83,
              .class = CALL_DENIED,
              .turn = 7,
              .step = 5,
              .says = LEDGER_HALT,
              .code = CODE_TOO_SOON,
              .denied_asked = 2}},
    };
}

static const char example[] = "07010203040506070801010103007b68e5cf8b0100f153650700000006000000\n"
                              "f6f0536500f1536544332211050d0000020c0d03000000280000000300000040\n"
                              "4b4c00000040420f00000029000000640008000900b1000000b2000000b30000\n"
                              "00b40000000000000000000000000000000000000002a1000000a20000000000\n"
                              "0000000000000202010021000000220000000201040101060231000000320000\n"
                              "0063726561746569744100000007000000020000000900000040420f00000040\n"
                              "4b4c000000f7f05365510000005200000000006468e5cf8b0191000000920000\n"
                              "0001050000000000a1000000a200000000060102030405c1000000c2000000d2\n"
                              "000000d100000000000327000000000000000000000000000000000000000000\n"
                              "61000000620000000000db52e6cf8b0100000005630000000000000000000000\n"
                              "0000000071000000720000000000730000008083654d07047400000000f8f053\n"
                              "6575000000000c0d81000000820000000000030f020000000c00070583000000\n"
                              "000000000000000000000000\n";

static void to_hex(struct str bytes, struct buf *out)
{
    for (size_t i = 0; i < bytes.len; i++)
        buf_printf(out, "%02x%s", (uint8_t)bytes.at[i], i % 32 == 31 || i + 1 == bytes.len ? "\n" : "");
    buf_byte(out, '\0');
}

/* Bytes that are stored somewhere: whoever changes them raises CODEC_FORMAT. */
TEST(the_format_stays)
{
    static struct session s;
    struct buf bytes = {0}, hex = {0};
    set_example(&s);
    codec_encode(&s, &bytes);
    to_hex(buf_view(&bytes), &hex);
    assert_string_equal(hex.at, example);
    buf_clear(&bytes);
    buf_clear(&hex);
}

TEST(the_format_of_notes_stays)
{
    struct buf bytes = {0}, hex = {0};
    struct session_note note = {.second = 0x04030201,
                                .tool = 0x070605,
                                .label = 8,
                                .code = CODE_CYCLE,
                                .turn = 0x0b0a,
                                .step = 12,
                                .retries = 13};
    buf_add(&bytes, &note, sizeof(note));
    to_hex(buf_view(&bytes), &hex);
    assert_string_equal(hex.at, "0102030405060788340a0b0c\n");
    buf_clear(&bytes);
    buf_clear(&hex);
}

/* A session without chains, counters or paced calls: what every commit of most sessions writes. */
TEST(the_head_is_short)
{
    static struct session s;
    struct buf bytes = {0};
    codec_encode(&s, &bytes);
    assert_int_equal(bytes.len, 160);
    buf_clear(&bytes);
}
