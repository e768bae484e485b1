/*
 * The rules as pure functions: what the model (model.c, which compares every rule) does not know or reach,
 * such as agents, outages, boundaries and the ends of ranges.
 */

#include "unit.h"
#include "ledger/session.h"

#define BEGAN_MS 1700000000000

struct rules_case {
    struct session session;
    struct ledger_place place;
    struct ledger_limits limits; /* of the tool that is called next */
    struct str call;
    const struct ledger_problem *problems;
    size_t problem_count;
    uint32_t rate_wait_ms;
    int64_t now_ms;
    uint64_t admission; /* the last one */
    char tool[32], arguments[32];
    bool under_way;     /* what the next results say */
    const char *masked; /* what is left of them; NULL: not known */
    struct ledger_answer answer;
    struct ledger_answer settled;
    struct session_changes changes; /* of the last request */
};

static int begin(void **state)
{
    struct rules_case *t = test_calloc(1, sizeof(*t));
    t->now_ms = BEGAN_MS;
    t->place = (struct ledger_place){.turn = 1, .anonymous_repeats = 8};
    t->limits = ledger_default_limits;
    session_begin(&t->session, 7, t->now_ms);
    *state = t;
    return 0;
}

static int end(void **state)
{
    test_free(*state);
    return 0;
}

FIXTURE_OF(begin, end)

#define STORY(name) TEST_OF(name, struct rules_case *t)

static struct hash128 hash(const char *text)
{
    return text ? hash_stable(str_of(text)) : (struct hash128){0, 0};
}

static struct ledger_call admit_request(struct rules_case *t)
{
    return (struct ledger_call){
        .place = t->place,
        .admission = t->admission,
        .tool = str_of(t->tool),
        .call = t->call,
        .ext = STR_LIT("crm"),
        .problems = t->problems,
        .problem_count = t->problem_count,
        .arguments = hash(t->arguments),
        .refused_as = STR_LIT("forbidden"),
        .limits = &t->limits,
    };
}

/* The verdict and its code: "run", "refuse loop". */
static const char *verdict(const struct ledger_answer *answer)
{
    static const char *const words[] = {"run", "repair", "refuse", "halt"};
    static char text[64];
    snprintf(text, sizeof(text), "%s%s" STR_FMT, words[answer->says], answer->code.len ? " " : "",
             STR_ARG(answer->code));
    return text;
}

static const char *asks_as(struct rules_case *t, const char *tool, const char *arguments,
                           enum ledger_so_far so_far)
{
    snprintf(t->tool, sizeof(t->tool), "%s", tool);
    snprintf(t->arguments, sizeof(t->arguments), "%s", arguments);
    t->admission++;
    struct ledger_call request = admit_request(t);
    request.so_far = so_far;
    memset(&t->changes, 0, sizeof(t->changes));
    session_admit(&t->session, &request, NULL, t->rate_wait_ms, t->now_ms, &t->answer, &t->changes);
    return verdict(&t->answer);
}

static const char *asks(struct rules_case *t, const char *tool, const char *arguments)
{
    return asks_as(t, tool, arguments, LEDGER_SO_FAR_VALID);
}

/* Of the last call. */
static bool settles(struct rules_case *t, enum ledger_class class, const char *result)
{
    struct ledger_call request = {
        .place = t->place,
        .admission = t->admission,
        .tool = str_of(t->tool),
        .call = t->call,
        .ext = STR_LIT("crm"),
        .problems = t->problems,
        .problem_count = t->problem_count,
        .arguments = hash(t->arguments),
        .class = class,
        .label = class == LEDGER_CLASS_OK ? STR_LIT("ok") : STR_LIT("tool_error"),
        .result = hash(result),
        .masked = hash(class == LEDGER_CLASS_TOOL_ERROR ? result : t->masked),
        .limits = &t->limits,
        .under_way = t->under_way,
    };
    memset(&t->changes, 0, sizeof(t->changes));
    return session_settle(&t->session, &request, t->now_ms, &t->settled, &t->changes);
}

/* A call that must be let run, and what comes of it. */
static void runs_as(struct rules_case *t, const char *tool, const char *arguments, enum ledger_class class,
                    const char *result)
{
    const char *said = asks(t, tool, arguments);
    if (strcmp(said, "run") != 0)
        fail_msg("%s(%s): %s", tool, arguments, said);
    assert_true(settles(t, class, result));
}

static void runs(struct rules_case *t, const char *tool, const char *arguments, const char *result)
{
    runs_as(t, tool, arguments, LEDGER_CLASS_OK, result);
}

static const char *invalid(struct rules_case *t, const char *tool, const char *arguments)
{
    return asks_as(t, tool, arguments, LEDGER_SO_FAR_INVALID);
}

static void effects(struct rules_case *t, enum ledger_effects effects, uint32_t same_call)
{
    t->limits.effects = effects;
    t->limits.same_call = same_call;
}

static bool turn(struct rules_case *t, const struct ledger_call *request, uint32_t id,
                 struct ledger_answer *turned)
{
    memset(&t->changes, 0, sizeof(t->changes));
    return session_turn(&t->session, request, id, t->now_ms, turned, &t->changes);
}

static void assert_note(const struct session_note *note, const char *label, enum session_code code,
                        uint32_t of_turn, unsigned retries)
{
    assert_true(str_is(ledger_label_name(note->label), label));
    assert_int_equal(note->code, code);
    assert_int_equal(note->turn, of_turn);
    assert_int_equal(note->retries, retries);
}

/* ---- progress in a chain ---------------------------------------------------------- */

#define PROBLEM(p, c)                                                                                        \
    {                                                                                                        \
        STR(p), STR(c)                                                                                       \
    }

static const char *invalid_for(struct rules_case *t, const char *arguments,
                               const struct ledger_problem *problems, size_t count)
{
    t->problems = problems;
    t->problem_count = count;
    return invalid(t, "create", arguments);
}

static const struct ledger_problem one[] = {PROBLEM("items[0]", "type")};
static const struct ledger_problem alike[] = {PROBLEM("items[0]name", "type")};
static const struct ledger_problem whole[] = {PROBLEM("", "type")};

STORY(a_path_goes_on_with_a_dot_or_a_bracket)
{
    invalid_for(t, "{1}", one, 1);
    invalid_for(t, "{2}", alike, 1);
    assert_int_equal(t->answer.attempt, 2);
    t->place.turn = 2;
    invalid_for(t, "{1}", whole, 1);
    invalid_for(t, "{2}", alike, 1); /* the arguments as a whole: any path extends that */
    assert_int_equal(t->answer.attempt, 1);
}

/* ---- whose chain it is ------------------------------------------------------------ */

STORY(a_chain_beyond_sixteen_is_given_up)
{
    char tool[16];
    for (unsigned i = 0; i <= SESSION_CHAINS_MAX; i++) {
        snprintf(tool, sizeof(tool), "create_%u", i);
        invalid(t, tool, "{1}");
        assert_int_equal(t->answer.gave_up, i == SESSION_CHAINS_MAX);
    }
    assert_int_equal(t->session.chain_count, SESSION_CHAINS_MAX);
    assert_memory_equal(t->changes.gave_up[0].name, "create_0", t->changes.gave_up[0].name_len);
    assert_memory_equal(t->changes.gave_up[0].ext, "crm", t->changes.gave_up[0].ext_len);
    assert_note(&t->changes.notes[0], "invalid_arguments", CODE_LLM_GAVE_UP, 1, 0);
}

/* ---- ran: runs and budgets -------------------------------------------------------- */

/* Results that differ in what is masked count half; two that do not differ at all make the others whole. */
STORY(results_nearly_alike_count_half)
{
    char result[24];
    effects(t, LEDGER_EFFECTS_READ, 5);
    t->masked = "r at #";
    for (int i = 0; i < 5; i++) {
        snprintf(result, sizeof(result), "r at %d", i);
        runs(t, "get", "{1}", result);
        assert_false(t->settled.unchanged);
    }
    for (int i = 0; i < 4; i++)
        assert_string_equal(asks(t, "get", "{1}"), "refuse loop");
    assert_string_equal(asks(t, "get", "{1}"), "halt loop");
    for (int i = 0; i < 3; i++)
        runs(t, "get", "{2}", i == 0 ? "r at 1" : "r at 2");
    assert_string_equal(asks(t, "get", "{2}"), "refuse loop");
    runs(t, "get", "{3}", "r at 1");
    t->masked = "s at #"; /* a new one */
    for (int i = 0; i < 5; i++) {
        snprintf(result, sizeof(result), "s at %d", i);
        runs(t, "get", "{3}", result);
    }
    assert_string_equal(asks(t, "get", "{3}"), "refuse loop");
}

/* ---- same failure ------------------------------------------------------------------ */

STORY(another_agents_failures_are_not_counted)
{
    char arguments[24];
    for (uint32_t i = 1; i < 12; i++) {
        t->place.agent = i % 3;
        snprintf(arguments, sizeof(arguments), "{%u}", i);
        runs_as(t, "pay", arguments, LEDGER_CLASS_TOOL_ERROR, "no funds");
        assert_int_equal(t->settled.same_failure, (i + 2 - (i % 3 == 0)) / 3);
    }
}

/* ---- rates, pace, limits ----------------------------------------------------------- */

STORY(a_rate_without_room_refuses_what_else_would_run)
{
    t->rate_wait_ms = 1500;
    assert_string_equal(asks(t, "search", "{1}"), "refuse rate_limit");
    assert_int_equal(t->answer.used, 1500);
    assert_int_equal(t->answer.no_progress, 0);
    assert_note(&t->changes.notes[0], "transient", CODE_RATE_LIMIT, 1, 0);
    t->limits.session.calls_per_turn = 1;
    t->rate_wait_ms = 0;
    runs(t, "search", "{2}", "r");
    t->rate_wait_ms = 1500;
    assert_string_equal(asks(t, "search", "{3}"), "refuse calls_per_turn");
    assert_string_equal(invalid(t, "create", "{}"), "repair");
}

STORY(polls_that_wait_do_not_count_until_the_200th)
{
    effects(t, LEDGER_EFFECTS_READ, 5);
    t->under_way = true;
    for (uint32_t i = 1; i <= LEDGER_POLLS_MAX; i++) {
        t->now_ms += 1000 * LEDGER_POLL_PACE_S;
        runs(t, "job_status", "{1}", "running");
        assert_int_equal(t->settled.asked, i);
    }
    t->now_ms += 1000 * LEDGER_POLL_PACE_S;
    assert_string_equal(asks(t, "job_status", "{1}"), "refuse poll_budget");
    t->place.turn = 2; /* the user asks again */
    runs(t, "job_status", "{1}", "running");
    assert_int_equal(t->settled.asked, 1);
}

STORY(tools_with_limits_beyond_the_counters_share_one)
{
    char tool[16];
    t->limits.tool.calls_per_turn = 2;
    for (unsigned i = 0; i < SESSION_COUNTERS_MAX + 1; i++) {
        snprintf(tool, sizeof(tool), "tool_%u", i);
        runs(t, tool, "{}", "r");
    }
    assert_string_equal(asks(t, "tool_99", "{}"), "refuse calls_per_turn");
    assert_string_equal(asks(t, "tool_0", "{2}"), "run");
}

/* ---- reservations ------------------------------------------------------------------ */

STORY(time_never_goes_back)
{
    t->now_ms += 100000;
    assert_string_equal(asks(t, "get", "{1}"), "run");
    t->now_ms -= 50000;
    assert_string_equal(asks(t, "get", "{2}"), "run");
    assert_int_equal(t->session.last_ms, BEGAN_MS + 100000);
    assert_int_equal(session_find(&t->session, t->admission)->deadline_ms,
                     BEGAN_MS + 100000 + LEDGER_RESERVATION_MS);
}

/* ---- at most once ------------------------------------------------------------------ */

static void admit_past(struct rules_case *t, const char *tool, enum ledger_so_far so_far,
                       enum ledger_says says, enum session_code code)
{
    struct session_past past = {says, code};
    snprintf(t->tool, sizeof(t->tool), "%s", tool);
    snprintf(t->arguments, sizeof(t->arguments), "{1}");
    t->admission++;
    struct ledger_call request = admit_request(t);
    request.so_far = so_far;
    session_admit(&t->session, &request, &past, 0, t->now_ms, &t->answer, &t->changes);
}

/* Attempts in no loop: the 20th that is refused ends a run of invalid calls. */
STORY(a_halt_of_invalid_calls_is_repeated_as_it_was)
{
    char arguments[8];
    for (unsigned i = 0; t->answer.says != LEDGER_HALT && i < 24; i++) {
        snprintf(arguments, sizeof(arguments), "{%u}", i);
        invalid(t, "create", arguments);
    }
    assert_string_equal(verdict(&t->answer), "halt retry_budget_exceeded");
    struct ledger_call request = admit_request(t);
    request.so_far = LEDGER_SO_FAR_INVALID;
    session_admit(&t->session, &request, NULL, 0, t->now_ms, &t->answer, &t->changes);
    assert_string_equal(verdict(&t->answer), "halt retry_budget_exceeded");
}

/* Those that were let run in this step have spent all attempts; the chain ends in a later one. */
STORY(a_sibling_of_calls_that_insist_ends_no_chain)
{
    t->place.step = STR_LIT("m1");
    assert_string_equal(invalid(t, "create", "{1}"), "repair");
    for (int i = 0; i < 3; i++)
        admit_past(t, "create", LEDGER_SO_FAR_INVALID, LEDGER_RUN, CODE_NONE);
    assert_string_equal(invalid(t, "create", "{2}"), "repair");
    assert_int_equal(t->answer.attempts_left, 0);
    struct ledger_call request = admit_request(t);
    request.so_far = LEDGER_SO_FAR_INVALID;
    session_admit(&t->session, &request, NULL, 0, t->now_ms, &t->answer, &t->changes);
    assert_string_equal(verdict(&t->answer), "repair");
    t->place.step = STR_LIT("m2");
    assert_string_equal(invalid(t, "create", "{3}"), "refuse retry_budget_exceeded");
}

STORY(a_turn_without_a_number_is_begun_once)
{
    struct ledger_answer turned;
    struct ledger_call next = {.goal = STR("find it")};
    assert_true(turn(t, &next, 17, &turned));
    assert_int_equal(turned.turn, 1);
    assert_false(turn(t, &next, 17, &turned));
    assert_int_equal(turned.turn, 1);
    assert_true(turn(t, &next, 18, &turned));
    assert_int_equal(turned.turn, 2);
}

/* ---- turns ------------------------------------------------------------------------- */

STORY(calls_of_a_turn_of_the_same_low_byte_are_dropped)
{
    runs(t, "get", "{1}", "r");
    t->place.turn = 2;
    runs(t, "get", "{2}", "r");
    t->place.turn = 257;
    assert_string_equal(asks(t, "get", "{1}"), "run");
    assert_int_equal(t->session.call_count, 2);
    assert_int_equal(t->answer.repeats, 0);
}

/* ---- turns guessed from silence ---------------------------------------------------- */

STORY(a_turn_after_a_pause_begins_runs_anew)
{
    for (uint32_t turn = 1; turn <= 12; turn++) {
        t->place.turn = turn;
        t->now_ms += LEDGER_ACROSS_WITHIN_MS;
        runs(t, "get", "{1}", "r");
    }
    for (uint32_t turn = 13; turn <= 15; turn++) {
        t->place.turn = turn;
        t->now_ms += LEDGER_ACROSS_WITHIN_MS - 1;
        runs(t, "get", "{1}", "r");
    }
    t->place.turn = 16;
    t->now_ms += LEDGER_ACROSS_WITHIN_MS - 1;
    assert_string_equal(asks(t, "get", "{1}"), "refuse loop");
}

/* ---- resets, outages, anonymous sessions ------------------------------------------- */

STORY(runs_start_anew_behind_a_boundary)
{
    runs(t, "get", "{1}", "r");
    runs(t, "get", "{1}", "r");
    session_boundary(&t->session);
    session_boundary(&t->session); /* is one */
    assert_int_equal(t->session.call_count, 3);
    runs(t, "get", "{1}", "r");
    assert_int_equal(t->settled.repeats, 1);
    assert_int_equal(t->answer.spent, 3); /* budgets stay */
}

STORY(calls_of_an_outage_count_and_refuse_nothing)
{
    t->limits.session.calls_per_turn = 1;
    for (unsigned i = 1; i <= 4; i++) {
        admit_past(t, "get", LEDGER_SO_FAR_VALID, LEDGER_RUN, CODE_NONE);
        assert_string_equal(verdict(&t->answer), "run");
        assert_int_equal(session_find(&t->session, t->admission)->class, CALL_PENDING);
        assert_int_equal(t->session.calls_in_turn, i);
        assert_true(settles(t, LEDGER_CLASS_OK, "r"));
    }
    admit_past(t, "get", LEDGER_SO_FAR_VALID, LEDGER_REFUSE, CODE_LOOP);
    const struct session_call *denied = session_find(&t->session, t->admission);
    assert_int_equal(denied->class, CALL_DENIED);
    assert_int_equal(denied->code, CODE_LOOP);
    admit_past(t, "get", LEDGER_SO_FAR_REFUSED, LEDGER_REFUSE, CODE_NONE);
    assert_int_equal(session_find(&t->session, t->admission)->class, CALL_REFUSED);
    t->place.turn = 2;
    runs(t, "get", "{2}", "r");
    t->place.turn = 1; /* late: counts in the current turn */
    admit_past(t, "get", LEDGER_SO_FAR_VALID, LEDGER_RUN, CODE_NONE);
    assert_int_equal(t->answer.turn, 2);
}

STORY(invalid_calls_of_an_outage_extend_their_chain)
{
    for (int i = 0; i < 3; i++) {
        admit_past(t, "create", LEDGER_SO_FAR_INVALID, LEDGER_REPAIR, CODE_NONE);
        assert_string_equal(verdict(&t->answer), "repair");
    }
    assert_true(str_is(t->answer.chain, "redundant"));
    assert_int_equal(t->answer.chain_retries, 2);
    assert_string_equal(invalid(t, "create", "{9}"), "refuse retry_budget_exceeded");
}

STORY(an_outage_begins_no_turn_by_silence)
{
    t->place.turn = 0;
    t->place.turn_idle_s = 90;
    runs(t, "get", "{1}", "r");
    t->now_ms += 1000000;
    admit_past(t, "get", LEDGER_SO_FAR_VALID, LEDGER_RUN, CODE_NONE);
    assert_int_equal(t->answer.turn, 0);
}

/* ---- what changed ------------------------------------------------------------------- */

STORY(changes_name_the_calls_that_changed)
{
    for (unsigned i = 0; i < SESSION_CALLS_MAX + 3; i++) {
        char arguments[24];
        snprintf(arguments, sizeof(arguments), "{%u}", i);
        assert_string_equal(asks(t, "get", arguments), "run");
        assert_int_equal(t->changes.new_tool, i == 0);
        settles(t, LEDGER_CLASS_OK, "r");
    }
    assert_int_equal(t->session.call_count, SESSION_CALLS_MAX);
    assert_int_equal(t->session.oldest, 3);
    assert_int_equal(t->session.journal_count, SESSION_CALLS_MAX + 3);
}

TEST(names_cover_all_numbers)
{
    for (unsigned i = 1; i < CODE_COUNT; i++)
        assert_true(ledger_code_name((enum session_code)i).len > 0);
    for (unsigned i = 1; i < OUTCOME_COUNT; i++)
        assert_true(ledger_outcome_name((enum session_outcome)i).len > 0);
    assert_int_equal(ledger_code_name(CODE_COUNT).len, 0);
    assert_true(str_is(ledger_label_name(255), "unknown"));
    assert_true(str_is(ledger_label_name(ledger_label_number(STR_LIT("policy_error"))), "policy_error"));
    assert_int_equal(ledger_label_number(STR_LIT("no such label")), 0);
}
