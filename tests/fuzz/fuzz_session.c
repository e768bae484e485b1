/*
 * Any bytes as a stored session, and requests on it: the first byte says how many requests follow
 * (REQUEST_BYTES each) and whether they are anonymous, the rest is the session. Bytes are damaged or decode,
 * and then they are encoded as the same again. A request that comes again changes nothing and is answered as
 * before.
 */
#include "ledger/session.h"
#include "require.h"

#define REQUEST_BYTES 5u
#define REQUESTS_MASK 63u
#define ANONYMOUS_BIT 64u

enum request_kind {
    REQUEST_ADMIT,
    REQUEST_SETTLE,
    REQUEST_TURN,
    REQUEST_RESET,
    REQUEST_BOUNDARY,
    REQUEST_COUNT
};

/* One request: what it is, and four numbers to make it of. */
struct request {
    uint8_t kind, tool, how, place, time;
};

struct play {
    struct session session, again;
    struct session_changes changes, none;
    struct ledger_answer answer; /* of the last admit, and likewise */
    struct ledger_answer settled;
    struct ledger_answer turned;
    struct buf stored, next;
    bool anonymous;
    int64_t now_ms;
    uint64_t admissions;
};

static const struct str tool_names[] = {STR("get_order"), STR("list"),  STR("create_order"), STR("delete"),
                                        STR("shell"),     STR("watch"), STR("pay"),          STR("costly")};

/* The usual limits but for these. */
#define LIMITS(repairs, calls, polls_most, failures, ...)                                                    \
    {                                                                                                        \
        .repair = repairs, .same_call = calls, .poll_max = polls_most, .same_failure = failures,             \
        .transient = 3, .repeats = 3, .halt = 5, .across_turns = 5, __VA_ARGS__                              \
    }

static const struct ledger_limits tool_limits[] = {
    LIMITS(2, 5, 20, LEDGER_UNLIMITED, .effects = LEDGER_EFFECTS_READ),
    LIMITS(2, 5, 20, LEDGER_SAME_FAILURE_REFUSED, .effects = LEDGER_EFFECTS_READ, .compare_arguments = true),
    LIMITS(2, 2, 20, LEDGER_UNLIMITED, .effects = LEDGER_EFFECTS_WRITE),
    LIMITS(1, 1, 20, LEDGER_UNLIMITED, .effects = LEDGER_EFFECTS_DESTRUCTIVE),
    LIMITS(2, 3, 20, 3, .effects = LEDGER_EFFECTS_UNKNOWN),
    LIMITS(2, 3, 3, LEDGER_UNLIMITED, .polls = true, .poll_every_ms = 5000),
    {.same_failure = LEDGER_UNLIMITED},
    {.repair = LEDGER_UNLIMITED,
     .same_call = LEDGER_UNLIMITED,
     .transient = LEDGER_UNLIMITED,
     .repeats = LEDGER_UNLIMITED,
     .halt = LEDGER_UNLIMITED,
     .across_turns = LEDGER_UNLIMITED,
     .poll_max = LEDGER_UNLIMITED,
     .same_failure = LEDGER_UNLIMITED,
     .costs = true,
     .cost = LEDGER_COST_MAX,
     .tool = {5, 20, 60, 3 * LEDGER_COST_UNIT, LEDGER_COST_MAX},
     .session = {8, 30, 90, LEDGER_COST_MAX, LEDGER_COST_MAX}},
};

#define TOOL_COUNT (sizeof(tool_names) / sizeof(*tool_names))
_Static_assert(sizeof(tool_limits) / sizeof(*tool_limits) == TOOL_COUNT, "each tool has its limits");

static const struct ledger_problem problems[] = {{STR("items[0].price"), STR("type")},
                                                 {STR("items"), STR("missing")},
                                                 {STR(""), STR("type")},
                                                 {STR("items[0]"), STR("unknown_field")}};

static struct ledger_place place_of(const struct play *t, struct request r)
{
    static const char *const steps[] = {"", "m1", "m2"};
    struct ledger_place place = {.step = str_of(steps[r.place % 3]), .anonymous_repeats = 8};
    place.anonymous = t->anonymous;
    place.turn_idle_s = r.place & 64 ? 90 : 0;
    if (r.place & 128)
        place.turn = t->session.turn + r.place / 3 % 4;
    return place;
}

/* Of the call that settles refer to: one of the window, as far as its admission can be told from what is kept
 * of it, or one that nobody admitted. The factor is the inverse of the rules'. */
static uint64_t admission_of(const struct play *t, struct request r)
{
    uint64_t factor = 0x9e3779b97f4a7c15u, inverse = factor;
    if (r.time % 16 == 15 || !t->session.call_count)
        return 0xabcdef0000u + r.time;
    for (int i = 0; i < 6; i++)
        inverse *= 2 - factor * inverse;
    return ((uint64_t)t->session.calls[r.how % t->session.call_count].admission << 24) * inverse;
}

/* A call that was made during an outage; NULL: it is judged now. */
static const struct session_past *past_of(struct request r)
{
    static const struct session_past pasts[] = {
        {LEDGER_RUN, CODE_NONE}, {LEDGER_REPAIR, CODE_NONE}, {LEDGER_REFUSE, CODE_SAME_CALL}};
    return r.how / 32 > 4 ? &pasts[r.how / 32 - 5] : NULL;
}

static void admit(struct play *t, struct session *session, struct request r, struct session_changes *changes)
{
    struct ledger_call request = {
        .place = place_of(t, r),
        .admission = t->admissions,
        .tool = tool_names[r.tool % TOOL_COUNT],
        .call = r.tool & 64 ? STR_LIT("call_1") : STR_NONE,
        .problems = &problems[r.how % 3],
        .problem_count = r.tool / 8 % 3,
        .ext = r.tool & 128 ? STR_LIT("billing") : STR_NONE,
        .arguments = {r.how % 4, r.how % 4 + 1},
        .so_far = r.how / 4 % 8 < 4 ? r.how / 4 % 8 : LEDGER_SO_FAR_VALID,
        .refused_as = STR_LIT("unknown_tool"),
        .limits = &tool_limits[r.tool % TOOL_COUNT],
    };
    bool was_known = session_find(session, request.admission); /* then what is stored of it is answered */
    session_admit(session, &request, past_of(r), r.how / 32 == 4 ? 1500 : 0, t->now_ms, &t->answer, changes);
    REQUIRE(t->answer.error == OK && t->answer.says <= LEDGER_HALT);
    REQUIRE(t->answer.says != LEDGER_HALT || t->answer.code.len > 0 || was_known);
    REQUIRE(t->answer.turn == session->turn);
}

static void settle(struct play *t, struct session *session, struct request r, uint64_t admission,
                   struct session_changes *changes)
{
    static const struct str labels[] = {STR("ok"), STR("tool_error"), STR("ask"), STR("no label at all")};
    struct ledger_call request = {
        .place = place_of(t, r),
        .admission = admission,
        .tool = tool_names[r.tool % TOOL_COUNT],
        .call = r.tool & 64 ? STR_LIT("call_1") : STR_NONE,
        .problems = &problems[r.time % 3],
        .problem_count = r.tool / 8 % 3,
        .arguments = {r.how % 4, r.how % 4 + 1},
        .class = r.how / 4 % LEDGER_CLASS_COUNT,
        .label = labels[r.how % 4],
        .result = {r.tool / 8 % 4, r.tool / 8 % 4},
        .limits = &tool_limits[r.tool % TOOL_COUNT],
        .not_begun = r.time % 16 == 14,
        .cost_told = r.time % 16 == 13,
        .cost = r.time % 2 ? LEDGER_COST_MAX : 1,
    };
    session_settle(session, &request, t->now_ms, &t->settled, changes);
    REQUIRE(t->settled.error == OK && t->settled.says <= LEDGER_HALT);
}

static void turn(struct play *t, struct session *session, struct request r, struct session_changes *changes)
{
    struct ledger_call request = {.place.turn = r.how % 3 == 0 ? 0 : session->turn + r.how % 5,
                                  .goal = r.how & 64 ? STR_LIT("ship it") : STR_NONE,
                                  .end = r.how >= 224};
    session_turn(session, &request, (uint32_t)t->admissions, t->now_ms, &t->turned, changes);
    REQUIRE(t->turned.turn == session->turn);
}

static void apply(struct play *t, struct session *session, struct request r, uint64_t admission,
                  struct session_changes *changes)
{
    changes->note_count = changes->gave_up_count = 0;
    changes->new_tool = false;
    t->answer = (struct ledger_answer){0};
    t->settled = (struct ledger_answer){0};
    t->turned = (struct ledger_answer){0};
    switch (r.kind % REQUEST_COUNT) {
    case REQUEST_ADMIT:
        admit(t, session, r, changes);
        break;
    case REQUEST_SETTLE:
        settle(t, session, r, admission, changes);
        break;
    case REQUEST_TURN:
        turn(t, session, r, changes);
        break;
    case REQUEST_RESET:
        session_reset(session, tool_names[r.tool % TOOL_COUNT], (uint32_t)t->admissions, t->now_ms, changes);
        break;
    case REQUEST_BOUNDARY:
        session_boundary(session);
        break;
    }
    REQUIRE(changes->note_count <= SESSION_NOTES_MAX && changes->gave_up_count <= SESSION_CHAINS_MAX);
}

/* Another daemon, which reads what was written, is asked the same again. */
static void changes_nothing_again(struct play *t, struct request r, uint64_t admission, bool was_open)
{
    REQUIRE(codec_decode(buf_view(&t->stored), &t->again) == CODEC_OK);
    codec_encode(&t->again, &t->next);
    REQUIRE(str_eq(buf_view(&t->stored), buf_view(&t->next)));
    if (r.kind % REQUEST_COUNT == REQUEST_TURN && r.how % 3)
        return; /* the number of another turn by now */
    const struct ledger_answer answer = t->answer;
    const struct ledger_answer settled = t->settled;
    apply(t, &t->again, r, admission, &t->none);
    codec_encode(&t->again, &t->next);
    REQUIRE(str_eq(buf_view(&t->stored), buf_view(&t->next)));
    if (r.kind % REQUEST_COUNT == REQUEST_ADMIT && !t->anonymous && !past_of(r)) {
        REQUIRE(answer.says == t->answer.says && str_eq(answer.code, t->answer.code));
        REQUIRE(answer.says != LEDGER_REPAIR ||
                (answer.attempt == t->answer.attempt && answer.attempts_left == t->answer.attempts_left));
    }
    if (r.kind % REQUEST_COUNT == REQUEST_SETTLE && was_open) {
        REQUIRE(settled.says == t->settled.says);
        REQUIRE(settled.says == LEDGER_RUN ||
                (settled.attempt == t->settled.attempt && settled.attempts_left == t->settled.attempts_left));
    }
}

static void play(struct play *t, const uint8_t *requests, size_t count)
{
    t->now_ms = 1700000000000;
    for (size_t i = 0; i < count; i++, requests += REQUEST_BYTES) {
        struct request r = {requests[0], requests[1], requests[2], requests[3], requests[4]};
        t->now_ms += (int64_t)r.time * r.time * 2;
        t->admissions = 1000 + i;
        uint64_t admission = admission_of(t, r);
        const struct session_call *call = session_find(&t->session, admission);
        bool was_open = call && call->class == CALL_PENDING;
        apply(t, &t->session, r, admission, &t->changes);
        t->session.version++;
        codec_encode(&t->session, &t->stored);
        REQUIRE(t->stored.len <= CODEC_MAX_BYTES);
        changes_nothing_again(t, r, admission, was_open);
    }
}

static void clear(struct play *t)
{
    buf_clear(&t->stored);
    buf_clear(&t->next);
    free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t count = size ? data[0] & REQUESTS_MASK : 0, from = 1 + count * REQUEST_BYTES;
    if (size < from)
        return 0;
    struct play *t = calloc(1, sizeof(*t));
    char *exact = malloc(size > from ? size - from : 1); /* of the exact size, for the address sanitizer */
    REQUIRE(t && exact);
    t->anonymous = data[0] & ANONYMOUS_BIT;
    memcpy(exact, data + from, size - from);
    struct str bytes = {exact, size - from};
    if (bytes.len == 0)
        session_begin(&t->session, 1, 1700000000000);
    if (bytes.len == 0 || codec_decode(bytes, &t->session) == CODEC_OK) {
        codec_encode(&t->session, &t->stored);
        REQUIRE(bytes.len == 0 || str_eq(bytes, buf_view(&t->stored)));
        play(t, data + 1, count);
    }
    free(exact);
    clear(t);
    return 0;
}
