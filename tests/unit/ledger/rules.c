/* The rules as pure functions: the rows of the ledger's table, and what is decided beside it. */

#include "unit.h"
#include "ledger/rules.h"

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
    struct ledger_settled settled;
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

FIXTURE(begin, end)

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

static bool settle_admission(struct rules_case *t, uint64_t admission, enum ledger_class class,
                             const char *result)
{
    struct ledger_call request = {
        .place = t->place,
        .admission = admission,
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

/* Of the last call. */
static bool settles(struct rules_case *t, enum ledger_class class, const char *result)
{
    return settle_admission(t, t->admission, class, result);
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

/* A call of another tool with these effects. */
static void runs_other(struct rules_case *t, enum ledger_effects kind, const char *tool,
                       const char *arguments)
{
    struct ledger_limits limits = t->limits;
    effects(t, kind, LEDGER_UNLIMITED);
    runs(t, tool, arguments, arguments);
    t->limits = limits;
}

static bool turn(struct rules_case *t, const struct ledger_turn *request, uint32_t id,
                 struct ledger_turned *turned)
{
    memset(&t->changes, 0, sizeof(t->changes));
    return session_turn(&t->session, request, id, t->now_ms, turned, &t->changes);
}

static void assert_outcome(struct str chain, uint32_t retries, const char *expected,
                           uint32_t expected_retries)
{
    if (!str_is(chain, expected) || retries != expected_retries)
        fail_msg("expected '%s' after %u retries, got '" STR_FMT "' after %u", expected, expected_retries,
                 STR_ARG(chain), retries);
}

#define ASSERT_ASKED(t, outcome, retries)                                                                    \
    assert_outcome((t)->answer.chain, (t)->answer.chain_retries, outcome, retries)
#define ASSERT_SETTLED(t, outcome, retries)                                                                  \
    assert_outcome((t)->settled.chain, (t)->settled.chain_retries, outcome, retries)

static void assert_note(const struct session_note *note, const char *label, enum session_code code,
                        uint32_t of_turn, unsigned retries)
{
    assert_true(str_is(ledger_label_name(note->label), label));
    assert_int_equal(note->code, code);
    assert_int_equal(note->turn, of_turn);
    assert_int_equal(note->retries, retries);
}

/* ---- invalid: repair, repair, exhausted ------------------------------------------ */

STORY(two_repairs_then_the_chain_is_exhausted)
{
    assert_string_equal(invalid(t, "create", "{1}"), "repair");
    assert_int_equal(t->answer.attempts_left, 2);
    assert_int_equal(t->changes.note_count, 0); /* one entry for the logical call, at its end */
    assert_string_equal(invalid(t, "create", "{2}"), "repair");
    assert_int_equal(t->answer.attempts_left, 1);
    assert_string_equal(invalid(t, "create", "{3}"), "refuse retry_budget_exceeded");
    ASSERT_ASKED(t, "exhausted", 2);
    assert_int_equal(t->answer.no_progress, 3);
    assert_note(&t->changes.notes[0], "invalid_arguments", CODE_RETRY_BUDGET, 1, 2);
    runs(t, "create", "{4}", "made"); /* valid arguments always pass */
    ASSERT_SETTLED(t, "no_retry", 0);
}

STORY(the_same_invalid_arguments_again_are_redundant)
{
    invalid(t, "create", "{1}");
    invalid(t, "create", "{2}");
    assert_string_equal(invalid(t, "create", "{1}"), "refuse retry_budget_exceeded");
    ASSERT_ASKED(t, "redundant", 2);
}

STORY(identical_invalid_calls_are_a_loop)
{
    invalid(t, "create", "{1}");
    invalid(t, "create", "{1}");
    assert_string_equal(invalid(t, "create", "{1}"), "refuse loop");
    ASSERT_ASKED(t, "redundant", 2);
    assert_string_equal(invalid(t, "create", "{1}"), "refuse loop");
    assert_string_equal(invalid(t, "create", "{1}"), "halt loop");
}

STORY(asking_what_was_invalid_just_now_is_an_attempt)
{
    t->limits.repair = 3;
    invalid(t, "create", "{1}");
    invalid(t, "create", "{1}");
    assert_string_equal(asks(t, "create", "{1}"), "refuse loop");
    assert_int_equal(t->answer.attempt, 3);
    assert_int_equal(t->answer.attempts_left, 1);
}

STORY(a_check_may_find_arguments_invalid_after_admit)
{
    for (uint32_t i = 0; i < 3; i++) {
        char arguments[24];
        snprintf(arguments, sizeof(arguments), "{%u}", i);
        assert_string_equal(asks(t, "create", arguments), "run");
        settles(t, LEDGER_CLASS_INVALID, NULL);
        assert_int_equal(t->settled.attempt, i + 1);
        assert_int_equal(t->settled.says, i < 2 ? LEDGER_REPAIR : LEDGER_REFUSE);
    }
    ASSERT_SETTLED(t, "exhausted", 2);
    assert_int_equal(t->session.calls_made, 0); /* given back */
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

static const struct ledger_problem both[] = {PROBLEM("name", "missing"), PROBLEM("items[0]", "type")};
static const struct ledger_problem one[] = {PROBLEM("items[0]", "type")};
static const struct ledger_problem deeper[] = {PROBLEM("items[0].price", "type")};
static const struct ledger_problem elsewhere[] = {PROBLEM("items", "type")};
static const struct ledger_problem alike[] = {PROBLEM("items[0]name", "type")};
static const struct ledger_problem whole[] = {PROBLEM("", "type")};

STORY(an_attempt_that_leaves_fewer_problems_is_free)
{
    assert_string_equal(invalid_for(t, "{1}", both, 2), "repair");
    assert_int_equal(t->answer.no_progress, 1);
    assert_string_equal(invalid_for(t, "{2}", one, 1), "repair");
    assert_int_equal(t->answer.attempt, 1);
    assert_int_equal(t->answer.attempts_left, 2);
    assert_int_equal(t->answer.no_progress, 0);
    assert_string_equal(invalid_for(t, "{3}", deeper, 1), "repair"); /* it extends the path */
    assert_int_equal(t->answer.attempt, 1);
    runs(t, "create", "{4}", "made");
    ASSERT_SETTLED(t, "success", 1); /* free attempts are no retries */
}

STORY(other_problems_are_no_progress)
{
    invalid_for(t, "{1}", one, 1);
    invalid_for(t, "{2}", one, 1); /* the same set */
    assert_int_equal(t->answer.attempt, 2);
    assert_string_equal(invalid_for(t, "{3}", elsewhere, 1), "refuse retry_budget_exceeded");
}

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

STORY(at_most_four_attempts_of_a_chain_are_free)
{
    static const struct ledger_problem *const sets[] = {both, one, deeper};
    static const struct ledger_problem longer[] = {PROBLEM("items[0].price.unit", "type")};
    static const struct ledger_problem longest[] = {PROBLEM("items[0].price.unit.x", "type")};
    static const struct ledger_problem too_long[] = {PROBLEM("items[0].price.unit.x.y", "type")};
    invalid_for(t, "{0}", sets[0], 2);
    invalid_for(t, "{1}", sets[1], 1);
    invalid_for(t, "{2}", sets[2], 1);
    invalid_for(t, "{3}", longer, 1);
    invalid_for(t, "{4}", longest, 1);
    assert_int_equal(t->answer.attempt, 1);
    invalid_for(t, "{5}", too_long, 1);
    assert_int_equal(t->answer.attempt, 2);
}

STORY(problems_of_one_step_are_one_set)
{
    t->place.step = STR_LIT("m1");
    invalid_for(t, "{1}", one, 1);
    static const struct ledger_problem name[] = {PROBLEM("name", "missing")};
    invalid_for(t, "{2}", name, 1);
    assert_int_equal(t->answer.attempt, 1);
    t->place.step = STR_LIT("m2");
    invalid_for(t, "{3}", name, 1); /* of two, one is left */
    assert_int_equal(t->answer.attempt, 1);
    assert_int_equal(t->answer.no_progress, 0);
}

STORY(more_problems_than_are_kept_are_never_progress)
{
    struct ledger_problem many[SESSION_PROBLEMS_MAX + 1];
    char paths[SESSION_PROBLEMS_MAX + 1][24];
    for (size_t i = 0; i <= SESSION_PROBLEMS_MAX; i++) {
        snprintf(paths[i], sizeof(paths[i]), "p%zu", i);
        many[i] = (struct ledger_problem){.path = str_of(paths[i]), .code = STR("type")};
    }
    invalid_for(t, "{1}", many, SESSION_PROBLEMS_MAX + 1);
    invalid_for(t, "{2}", many, 2);
    assert_int_equal(t->answer.attempt, 2);
    t->place.turn = 2;
    invalid_for(t, "{1}", many, SESSION_PROBLEMS_MAX);
    invalid_for(t, "{2}", many, 2);
    assert_int_equal(t->answer.attempt, 1);
}

STORY(a_check_makes_progress_too)
{
    t->problems = both, t->problem_count = 2;
    runs_as(t, "create", "{1}", LEDGER_CLASS_INVALID, NULL);
    t->problems = one, t->problem_count = 1;
    runs_as(t, "create", "{2}", LEDGER_CLASS_INVALID, NULL);
    assert_int_equal(t->settled.attempt, 1);
    assert_int_equal(t->settled.says, LEDGER_REPAIR);
    assert_int_equal(t->settled.no_progress, 0);
}

/* ---- whose chain it is ------------------------------------------------------------ */

/* Providers give each call an id of its own. */
TEST(a_call_with_a_new_id_continues_the_chain)
{
    static const char *const arguments[] = {"{1}", "{2}", "{3}", "{4}"};
    static const char *const ids[] = {"toolu_1", "toolu_2", "toolu_3", "toolu_4"};
    struct rules_case *t = *state;
    for (unsigned i = 0; i < 4; i++) {
        t->call = str_of(ids[i]);
        invalid(t, "create", arguments[i]);
        assert_int_equal(t->answer.attempt, i + 1);
        assert_string_equal(verdict(&t->answer), i < 2 ? "repair" : "refuse retry_budget_exceeded");
    }
    t->call = STR_LIT("toolu_5");
    runs(t, "create", "{5}", "made");
    t->call = STR_LIT("toolu_6"); /* a valid one ran: the next begins anew */
    invalid(t, "create", "{6}");
    assert_int_equal(t->answer.attempt, 1);
}

static void invalid_as(struct rules_case *t, const char *step, const char *call, const char *arguments)
{
    t->place.step = str_of(step);
    t->call = str_of(call);
    invalid(t, "create", arguments);
}

TEST(siblings_with_ids_have_chains_side_by_side)
{
    static const struct ledger_problem a[] = {{STR("a"), STR("required")}}, b[] = {{STR("b"), STR("type")}};
    struct rules_case *t = *state;
    t->problem_count = 1;
    t->problems = a;
    invalid_as(t, "m1", "toolu_1", "{1}");
    t->problems = b;
    invalid_as(t, "m1", "toolu_2", "{2}");
    assert_int_equal(t->answer.attempt, 1);
    assert_int_equal(t->session.chain_count, 2);
    invalid_as(t, "m2", "toolu_3", "{3}"); /* goes on with the one that had the same problem */
    assert_int_equal(t->answer.attempt, 2);
    invalid_as(t, "m3", "toolu_2",
               "{4}"); /* opens none: the client repeats an id that has gone on as another */
    assert_int_equal(t->session.chain_count, 2);
    for (unsigned i = 0; i < 20; i++) { /* of one step */
        char call[16], arguments[16];
        snprintf(call, sizeof(call), "toolu_m%u", i);
        snprintf(arguments, sizeof(arguments), "{1%u}", i);
        invalid_as(t, "m4", call, arguments);
    }
    assert_in_range(t->session.chain_count, 2, SESSION_SIBLINGS_MAX);
}

STORY(siblings_of_a_step_are_one_attempt)
{
    t->place.step = STR_LIT("m1");
    invalid(t, "create", "{1}");
    invalid(t, "create", "{2}");
    assert_int_equal(t->answer.attempt, 1);
    runs(t, "create", "{3}", "made"); /* admitted before that feedback: it ends no chain */
    ASSERT_SETTLED(t, "no_retry", 0);
    t->place.step = STR_LIT("m2");
    runs(t, "create", "{4}", "made");
    ASSERT_SETTLED(t, "success", 1);
}

STORY(a_fabricated_id_in_a_retry_ends_the_chain)
{
    assert_string_equal(asks_as(t, "read", "{0}", LEDGER_SO_FAR_FABRICATED), "refuse");
    ASSERT_ASKED(t, "", 0);
    assert_note(&t->changes.notes[0], "fabricated_id", CODE_NONE, 1, 0);
    invalid(t, "read", "{1}");
    asks_as(t, "read", "{2}", LEDGER_SO_FAR_FABRICATED);
    ASSERT_ASKED(t, "fabricated_id_on_retry", 1);
    invalid(t, "read", "{3}");
    assert_int_equal(t->answer.attempt, 1);
    runs_as(t, "read", "{4}", LEDGER_CLASS_FABRICATED, NULL);
    ASSERT_SETTLED(t, "fabricated_id_on_retry", 1);
}

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

/* ---- refused by the gate ---------------------------------------------------------- */

STORY(refusals_of_the_gate_count_in_runs)
{
    assert_string_equal(asks_as(t, "get_ordr", "{1}", LEDGER_SO_FAR_REFUSED), "refuse");
    assert_note(&t->changes.notes[0], "forbidden", CODE_NONE, 1, 0);
    asks_as(t, "get_ordr", "{1}", LEDGER_SO_FAR_REFUSED);
    assert_string_equal(asks_as(t, "get_ordr", "{1}", LEDGER_SO_FAR_REFUSED), "refuse loop");
    assert_int_equal(t->answer.no_progress, 3);
    asks_as(t, "get_ordr", "{1}", LEDGER_SO_FAR_REFUSED);
    assert_string_equal(asks_as(t, "get_ordr", "{1}", LEDGER_SO_FAR_REFUSED), "halt loop");
}

STORY(a_cancelled_call_was_never_asked)
{
    effects(t, LEDGER_EFFECTS_DESTRUCTIVE, 1);
    t->limits.tool.calls_per_turn = 1;
    for (int i = 0; i < 4; i++)
        runs_as(t, "delete", "{1}", LEDGER_CLASS_RELEASED, NULL);
    assert_int_equal(t->settled.no_progress, 0);
    assert_int_equal(t->session.calls_made, 0);
}

/* ---- ran: runs and budgets -------------------------------------------------------- */

STORY(the_third_identical_call_is_refused_and_the_fifth_halts)
{
    runs(t, "get", "{1}", "r");
    assert_int_equal(t->settled.no_progress, 0);
    runs(t, "get", "{1}", "r");
    assert_true(t->settled.unchanged);
    assert_int_equal(t->settled.repeats, 2);
    assert_int_equal(t->settled.no_progress, 1);
    assert_string_equal(asks(t, "get", "{1}"), "refuse loop");
    assert_note(&t->changes.notes[0], "loop", CODE_LOOP, 1, 0);
    assert_string_equal(asks(t, "get", "{1}"), "refuse loop");
    assert_string_equal(asks(t, "get", "{1}"), "halt loop");
}

STORY(classes_that_bring_nothing_new)
{
    static const struct {
        enum ledger_class class;
        unsigned no_progress;
    } rows[] = {{LEDGER_CLASS_PARTIAL, 0},    {LEDGER_CLASS_GARBAGE, 1},   {LEDGER_CLASS_SCHEMA_MISMATCH, 2},
                {LEDGER_CLASS_TOOL_ERROR, 3}, {LEDGER_CLASS_TRANSIENT, 3}, {LEDGER_CLASS_OK, 0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char arguments[24];
        snprintf(arguments, sizeof(arguments), "{%zu}", i);
        runs_as(t, "get", arguments, rows[i].class, "r");
        assert_int_equal(t->settled.no_progress, rows[i].no_progress);
    }
}

STORY(a_session_is_stuck_from_the_sixth_call_on)
{
    for (unsigned i = 0; i < LEDGER_STUCK; i++) {
        char tool[24];
        assert_false(t->session.stuck);
        snprintf(tool, sizeof(tool), "t%u", i);
        runs_as(t, tool, "{}", LEDGER_CLASS_TOOL_ERROR, "no");
    }
    assert_true(t->session.stuck);
    runs(t, "get", "{1}", "new");
    assert_true(t->session.stuck); /* for the rest of the turn */
    t->place.turn = 2;
    runs(t, "get", "{1}", "new");
    assert_false(t->session.stuck);
}

STORY(a_new_result_excuses_a_read)
{
    char result[24];
    effects(t, LEDGER_EFFECTS_READ, 5);
    for (int i = 0; i < 12; i++) {
        snprintf(result, sizeof(result), "%d%%", i);
        runs(t, "job_status", "{7}", result);
        assert_int_equal(t->settled.no_progress, 0);
        assert_int_equal(t->settled.repeats, 1);
    }
    assert_int_equal(t->answer.spent, 2);
}

STORY(a_new_result_excuses_no_write)
{
    effects(t, LEDGER_EFFECTS_WRITE, 2);
    runs(t, "create", "{1}", "id 1");
    runs(t, "create", "{1}", "id 2");
    assert_false(t->settled.unchanged);
    assert_int_equal(t->settled.no_progress, 0);
    assert_int_equal(t->settled.repeats, 2);
    assert_string_equal(asks(t, "create", "{1}"), "refuse loop");
    assert_int_equal(t->answer.spent, 3);
}

STORY(compare_arguments_ignores_results_of_any_tool)
{
    effects(t, LEDGER_EFFECTS_READ, 5);
    t->limits.compare_arguments = true;
    runs(t, "get", "{1}", "r");
    runs(t, "get", "{1}", "q");
    assert_string_equal(asks(t, "get", "{1}"), "refuse loop");
}

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

STORY(an_error_and_a_result_are_never_nearly_alike)
{
    effects(t, LEDGER_EFFECTS_READ, LEDGER_UNLIMITED);
    t->masked = "n";
    for (int i = 0; i < 8; i++) {
        runs(t, "get", "{1}", i % 2 ? "k" : "m");
        runs_as(t, "get", "{1}", LEDGER_CLASS_TOOL_ERROR, "n");
    }
}

STORY(new_results_end_with_the_poll_budget)
{
    char result[24];
    t->limits.poll_max = 4;
    for (int i = 0; i < 5; i++) {
        snprintf(result, sizeof(result), "%d%%", i);
        runs(t, "job_status", "{7}", result);
    }
    assert_string_equal(asks(t, "job_status", "{7}"), "refuse poll_budget");
}

STORY(a_schema_mismatch_is_not_repeated_in_its_turn)
{
    runs_as(t, "fetch", "{1}", LEDGER_CLASS_SCHEMA_MISMATCH, "{");
    runs_other(t, LEDGER_EFFECTS_WRITE, "set", "{}"); /* re-arms budgets, but not a broken tool */
    assert_string_equal(asks(t, "fetch", "{1}"), "refuse already_broken");
    t->place.turn = 2;
    assert_string_equal(asks(t, "fetch", "{1}"), "run");
}

STORY(transient_failures_have_their_own_budget)
{
    for (uint32_t i = 1; i <= 3; i++) {
        runs_as(t, "fetch", "{1}", LEDGER_CLASS_TRANSIENT, NULL);
        assert_int_equal(t->settled.transient_count, i);
        assert_int_equal(t->settled.no_progress, 0);
        assert_int_equal(t->answer.spent, 1);
    }
    assert_string_equal(asks(t, "fetch", "{1}"), "refuse transient_budget");
}

STORY(budgets_by_effects)
{
    static const struct {
        enum ledger_effects effects;
        uint32_t same_call;
    } rows[] = {{LEDGER_EFFECTS_READ, 5},
                {LEDGER_EFFECTS_UNKNOWN, 3},
                {LEDGER_EFFECTS_WRITE, 2},
                {LEDGER_EFFECTS_DESTRUCTIVE, 1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char tool[24], other[24];
        snprintf(tool, sizeof(tool), "t%zu", i);
        effects(t, rows[i].effects, rows[i].same_call);
        for (uint32_t n = 0; n < rows[i].same_call; n++) {
            runs(t, tool, "{1}", "r");
            snprintf(other, sizeof(other), "%zu.%u", i, n);
            runs_other(t, LEDGER_EFFECTS_READ, "look", other); /* ends the run, re-arms nothing */
        }
        assert_string_equal(asks(t, tool, "{1}"), "refuse same_call");
    }
}

STORY(one_of_identical_writes_in_a_step_runs)
{
    effects(t, LEDGER_EFFECTS_WRITE, 2);
    t->place.step = STR_LIT("m1");
    assert_string_equal(asks(t, "write", "{1}"), "run");
    assert_string_equal(asks(t, "write", "{1}"), "refuse duplicate_in_step");
    t->place.step = STR_LIT("m2");
    assert_string_equal(asks(t, "write", "{1}"), "run");
}

/* ---- cycles ----------------------------------------------------------------------- */

STORY(a_cycle_of_two_is_refused_in_its_third_round)
{
    effects(t, LEDGER_EFFECTS_READ, 5);
    for (int i = 0; i < 5; i++)
        runs(t, i % 2 ? "b" : "a", "{}", i % 2 ? "rb" : "ra");
    assert_string_equal(asks(t, "b", "{}"), "refuse cycle");
}

STORY(new_results_of_writes_end_no_cycle)
{
    char result[24];
    for (int i = 0; i < 5; i++) {
        effects(t, i % 2 ? LEDGER_EFFECTS_WRITE : LEDGER_EFFECTS_READ, 5);
        snprintf(result, sizeof(result), "%d", i);
        runs(t, i % 2 ? "create" : "get", "{}", i % 2 ? result : "r");
    }
    effects(t, LEDGER_EFFECTS_WRITE, 5);
    assert_string_equal(asks(t, "create", "{}"), "refuse cycle");
}

/* ---- re-arming -------------------------------------------------------------------- */

STORY(a_success_of_another_tool_re_arms_unless_it_reads)
{
    for (int i = 0; i < 2; i++)
        runs(t, "get", "{1}", "r");
    runs_other(t, LEDGER_EFFECTS_UNKNOWN, "set", "{1}");
    for (int i = 0; i < 2; i++)
        runs(t, "get", "{1}", "r");
    assert_string_equal(asks(t, "get", "{1}"), "refuse loop");
}

STORY(other_arguments_of_a_shell_re_arm)
{
    for (int i = 0; i < 8; i++) { /* test, edit, test again */
        char arguments[24];
        snprintf(arguments, sizeof(arguments), "edit %d", i);
        runs(t, "shell", "make test", "failed");
        runs(t, "shell", arguments, "done");
    }
    effects(t, LEDGER_EFFECTS_READ, 2); /* a tool that only reads changes nothing */
    runs(t, "list", "a", "r");
    runs(t, "list", "b", "r");
    runs(t, "list", "a", "r");
    runs(t, "list", "c", "r");
    assert_string_equal(asks(t, "list", "a"), "refuse same_call");
}

/* A test fails alike until something was changed: by an edit, or by a shell that may have changed anything.
 */
STORY(after_an_error_all_but_a_read_re_arms)
{
    t->limits.same_call = 2;
    runs_as(t, "pay", "{1}", LEDGER_CLASS_TOOL_ERROR, "no funds");
    runs_other(t, LEDGER_EFFECTS_READ, "look", "{1}");
    runs_as(t, "pay", "{1}", LEDGER_CLASS_TOOL_ERROR, "no funds");
    runs_other(t, LEDGER_EFFECTS_READ, "look", "{2}");
    assert_string_equal(asks(t, "pay", "{1}"), "refuse same_call");
    runs_other(t, LEDGER_EFFECTS_UNKNOWN, "shell", "{1}");
    runs_as(t, "pay", "{1}", LEDGER_CLASS_TOOL_ERROR, "no funds");
    runs(t, "pay", "{2}", "paid"); /* the same tool with other arguments, too */
    assert_string_equal(asks(t, "pay", "{1}"), "run");
}

/* ---- same failure ------------------------------------------------------------------ */

STORY(failures_with_one_text_are_counted)
{
    t->limits.same_failure = LEDGER_SAME_FAILURE_REFUSED;
    char arguments[24];
    for (uint32_t i = 1; i < LEDGER_SAME_FAILURE_REFUSED; i++) {
        snprintf(arguments, sizeof(arguments), "{%u}", i);
        runs_as(t, "pay", arguments, LEDGER_CLASS_TOOL_ERROR, "no funds");
        assert_int_equal(t->settled.same_failure, i);
        runs_as(t, "think", arguments, LEDGER_CLASS_TOOL_ERROR, "no idea"); /* ends nothing */
    }
    assert_string_equal(asks(t, "pay", "{9}"), "refuse same_failure");
    assert_int_equal(t->answer.used, LEDGER_SAME_FAILURE_REFUSED - 1);
    assert_note(&t->changes.notes[0], "retry_budget", CODE_SAME_FAILURE, 1, 0);
    assert_string_equal(asks(t, "pay", "{10}"), "refuse same_failure");
    runs_other(t, LEDGER_EFFECTS_READ, "balance", "{100}"); /* one success of any tool reopens it */
    runs_as(t, "pay", "{9}", LEDGER_CLASS_TOOL_ERROR, "no funds");
    assert_int_equal(t->settled.same_failure, 1);
}

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

STORY(the_tenth_same_failure_is_refused_by_default)
{
    char arguments[24];
    for (uint32_t i = 1; i < 9; i++) {
        snprintf(arguments, sizeof(arguments), "{%u}", i);
        runs_as(t, "pay", arguments, LEDGER_CLASS_TOOL_ERROR, "no funds");
        assert_int_equal(t->settled.same_failure, i);
    }
    runs_as(t, "pay", "{a}", LEDGER_CLASS_TRANSIENT, NULL); /* is not heard of */
    runs_as(t, "pay", "{b}", LEDGER_CLASS_TOOL_ERROR, "no funds");
    assert_int_equal(t->settled.same_failure, 9);
    assert_string_equal(asks(t, "pay", "{c}"), "refuse same_failure");
    t->limits.same_failure = LEDGER_UNLIMITED;
    runs_as(t, "pay", "{c}", LEDGER_CLASS_TOOL_ERROR, "no such account");
    assert_int_equal(t->settled.same_failure, 1);
    t->place.turn = 2;
    runs_as(t, "pay", "{d}", LEDGER_CLASS_TOOL_ERROR, "no such account");
    assert_int_equal(t->settled.same_failure, 1);
    runs(t, "pay", "{e}", "paid");
    assert_int_equal(t->settled.same_failure, 0);
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

STORY(an_early_poll_waits_and_never_halts)
{
    t->limits.polls = true;
    t->limits.poll_every_ms = 5000;
    runs(t, "job_status", "{1}", "running");
    t->now_ms += 2000;
    assert_string_equal(asks(t, "job_status", "{1}"), "refuse too_soon");
    assert_int_equal(t->answer.used, 3000);
    assert_int_equal(t->answer.no_progress, 0);
    for (int i = 0; i < 30; i++)
        assert_string_equal(asks(t, "job_status", "{1}"), "refuse too_soon");
    assert_int_equal(t->session.call_count, 2); /* each takes the place of the one before */
    t->now_ms += 3000;
    runs(t, "job_status", "{1}", "done");
}

/* What is under way may be asked for again, and its end is a result like any other. */
STORY(a_result_that_says_under_way_makes_a_poll)
{
    effects(t, LEDGER_EFFECTS_READ, 5);
    t->under_way = true;
    for (uint32_t i = 1; i <= 20; i++) {
        runs(t, "job_status", "{1}", "running");
        assert_int_equal(t->settled.asked, i);
    }
    for (uint32_t i = 20; i < 40; i++) {
        assert_string_equal(asks(t, "job_status", "{1}"), "refuse poll_budget");
        assert_int_equal(t->answer.used, i);
    }
    t->now_ms += 1000 * LEDGER_POLL_PACE_S;
    t->under_way = false;
    runs(t, "job_status", "{1}", "done");
    runs(t, "job_status", "{1}", "done");
    assert_string_equal(asks(t, "job_status", "{1}"), "refuse loop");
}

STORY(polls_in_flight_and_hard_budgets_are_no_polls)
{
    effects(t, LEDGER_EFFECTS_READ, 2);
    t->under_way = true;
    for (int i = 0; i < 4; i++)
        runs(t, "job_status", "{1}", "running");
    assert_string_equal(asks(t, "job_status", "{1}"), "run");
    assert_string_equal(asks(t, "job_status", "{1}"), "run");
    assert_string_equal(asks(t, "job_status", "{1}"), "refuse same_call");
    t->limits.same_call_hard = true;
    runs(t, "job_status", "{2}", "running");
    runs(t, "job_status", "{2}", "running");
    assert_string_equal(asks(t, "job_status", "{2}"), "refuse same_call");
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

STORY(a_poll_that_waits_is_let_run_after_those_that_did_not)
{
    t->limits.polls = true;
    t->limits.poll_max = 3;
    for (int round = 0; round < 3; round++) {
        t->now_ms += 1000 * LEDGER_POLL_PACE_S;
        runs(t, "job_status", "{1}", "running");
    }
    runs(t, "job_status", "{1}", "running"); /* one of those counts, and this one */
    runs(t, "job_status", "{1}", "running");
    t->now_ms += 1000 * LEDGER_POLL_PACE_S - 1000;
    assert_string_equal(asks(t, "job_status", "{1}"), "refuse poll_budget");
    t->now_ms += 1000 * LEDGER_POLL_PACE_S;
    runs(t, "job_status", "{1}", "running");
}

STORY(what_is_under_way_is_asked_for_turn_after_turn)
{
    t->under_way = true;
    for (uint32_t turn = 1; turn < 12; turn++) {
        t->place.turn = turn;
        runs(t, "job_status", "{1}", "running");
    }
}

STORY(limits_count_calls_and_costs)
{
    t->limits.costs = true;
    t->limits.cost = 300000;
    t->limits.tool.cost_per_session = LEDGER_COST_UNIT;
    for (int i = 0; i < 3; i++) {
        char arguments[24];
        snprintf(arguments, sizeof(arguments), "{%d}", i);
        assert_string_equal(asks(t, "search", arguments), "run");
    }
    assert_string_equal(asks(t, "search", "{4}"), "refuse cost_per_session");
    assert_int_equal(t->answer.used, 900000);
    assert_false(t->answer.of_session);
    assert_true(settle_admission(t, 1, LEDGER_CLASS_REFUSED, NULL)); /* gives its cost back */
    assert_string_equal(asks(t, "search", "{5}"), "run");
    t->limits.session.calls_per_session = 3;
    assert_string_equal(asks(t, "fetch", "{1}"), "refuse calls_per_session");
    assert_true(t->answer.of_session);
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

STORY(a_reservation_that_is_never_settled_expires)
{
    effects(t, LEDGER_EFFECTS_WRITE, 1);
    assert_string_equal(asks(t, "write", "{1}"), "run");
    uint64_t late = t->admission;
    assert_string_equal(asks(t, "look", "{}"), "run");
    t->now_ms += LEDGER_RESERVATION_MS;
    assert_string_equal(asks(t, "write", "{1}"), "refuse same_call");
    t->now_ms++;
    assert_string_equal(asks(t, "write", "{1}"), "run");
    assert_int_equal(t->changes.note_count, 2);
    assert_note(&t->changes.notes[0], "unknown", CODE_NONE, 1, 0);
    assert_int_equal(session_find(&t->session, late)->class, CALL_UNKNOWN);
    assert_true(settle_admission(t, late, LEDGER_CLASS_OK, "r")); /* a late settle counts */
    assert_int_equal(session_find(&t->session, late)->class, CALL_OK);
}

STORY(an_unsettled_destructive_call_keeps_its_budget)
{
    effects(t, LEDGER_EFFECTS_DESTRUCTIVE, 1);
    t->place.step = STR_LIT("m1");
    assert_string_equal(asks(t, "delete", "{1}"), "run");
    t->now_ms += LEDGER_RESERVATION_MS + 1;
    t->place.step = STR_LIT("m2");
    assert_string_equal(asks(t, "delete", "{1}"), "refuse same_call");
}

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

STORY(a_repeated_admit_changes_nothing)
{
    static const enum ledger_so_far kinds[] = {LEDGER_SO_FAR_VALID, LEDGER_SO_FAR_INVALID,
                                               LEDGER_SO_FAR_FABRICATED, LEDGER_SO_FAR_REFUSED};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        struct ledger_answer again = {0};
        char first[64];
        snprintf(first, sizeof(first), "%s", asks_as(t, "get", "{1}", kinds[i]));
        struct ledger_call request = admit_request(t);
        request.so_far = kinds[i];
        struct session before = t->session;
        memset(&t->changes, 0, sizeof(t->changes));
        session_admit(&t->session, &request, NULL, 0, t->now_ms + 5000, &again, &t->changes);
        assert_string_equal(verdict(&again), first);
        if (kinds[i] != LEDGER_SO_FAR_FABRICATED) /* that ended the chain */
            assert_int_equal(again.attempt, t->answer.attempt);
        assert_memory_equal(&t->session, &before, sizeof(before));
    }
}

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

STORY(a_repeated_settle_changes_nothing)
{
    t->limits.cost = 5;
    runs(t, "get", "{1}", "r");
    struct session before = t->session;
    assert_false(settles(t, LEDGER_CLASS_OK, "r"));
    assert_int_equal(t->changes.note_count, 0);
    assert_memory_equal(&t->session, &before, sizeof(before));
}

STORY(a_refusal_is_repeated_as_it_was)
{
    runs(t, "get", "{1}", "r");
    runs(t, "get", "{1}", "r");
    assert_string_equal(asks(t, "get", "{1}"), "refuse loop");
    struct ledger_call request = admit_request(t);
    runs_other(t, LEDGER_EFFECTS_WRITE, "set", "{1}"); /* now it would run */
    request.tool = STR_LIT("get");
    request.arguments = hash("{1}");
    session_admit(&t->session, &request, NULL, 0, t->now_ms, &t->answer, &t->changes);
    assert_string_equal(verdict(&t->answer), "refuse loop");
}

STORY(a_settle_without_its_admit_is_unknown)
{
    snprintf(t->tool, sizeof(t->tool), "get");
    snprintf(t->arguments, sizeof(t->arguments), "{1}");
    assert_true(settle_admission(t, 99, LEDGER_CLASS_OK, "r"));
    assert_int_equal(session_find(&t->session, 99)->class, CALL_UNKNOWN);
    assert_true(t->changes.new_tool);
    assert_note(&t->changes.notes[0], "unknown", CODE_NONE, 0, 0);
    assert_false(settle_admission(t, 99, LEDGER_CLASS_OK, "r"));
}

STORY(a_turn_without_a_number_is_begun_once)
{
    struct ledger_turned turned;
    struct ledger_turn next = {.goal = STR("find it")};
    assert_true(turn(t, &next, 17, &turned));
    assert_int_equal(turned.turn, 1);
    assert_false(turn(t, &next, 17, &turned));
    assert_int_equal(turned.turn, 1);
    assert_true(turn(t, &next, 18, &turned));
    assert_int_equal(turned.turn, 2);
}

/* ---- turns ------------------------------------------------------------------------- */

STORY(a_turn_gives_up_open_chains)
{
    struct ledger_turned turned;
    invalid(t, "create", "{1}");
    invalid(t, "update", "{1}");
    assert_false(turn(t, &(struct ledger_turn){.turn = 2}, 1, &turned));
    assert_int_equal(turned.turn, 2);
    assert_int_equal(turned.gave_up, 2);
    assert_int_equal(t->changes.note_count, 2);
    assert_note(&t->changes.notes[0], "invalid_arguments", CODE_LLM_GAVE_UP, 1, 0);
    assert_int_equal(t->session.chain_count, 0);
    assert_false(turn(t, &(struct ledger_turn){.turn = 1, .goal = STR("late")}, 2, &turned));
    assert_int_equal(turned.turn, 2);
    assert_false(t->session.has_goal);
}

STORY(the_end_of_a_conversation_gives_up_open_chains)
{
    struct ledger_turned turned;
    struct ledger_turn goal = {.turn = 1, .goal = STR("find it")};
    assert_true(turn(t, &goal, 1, &turned));
    runs(t, "get", "{1}", "r");
    invalid(t, "create", "{1}");
    assert_false(turn(t, &(struct ledger_turn){.end = true}, 2, &turned));
    assert_int_equal(turned.turn, 1);
    assert_int_equal(turned.gave_up, 1);
    assert_note(&t->changes.notes[0], "invalid_arguments", CODE_LLM_GAVE_UP, 1, 0);
    assert_true(t->session.has_goal);
    runs(t, "get", "{1}", "r"); /* the turn and its budgets go on */
    assert_int_equal(t->answer.spent, 2);
    assert_true(t->settled.unchanged);
}

STORY(a_run_over_many_turns_is_refused)
{
    for (uint32_t i = 1; i <= 4; i++) {
        t->place.turn = i;
        runs(t, "transfer", "{1}", "done");
        assert_int_equal(t->settled.repeats, 1);
    }
    t->place.turn = 5;
    assert_string_equal(asks(t, "transfer", "{1}"), "refuse loop");
}

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

STORY(silence_begins_a_turn_where_none_was_ever_told)
{
    t->place.turn = 0;
    t->place.turn_idle_s = 90;
    invalid(t, "create", "{1}");
    t->now_ms += 89000;
    runs(t, "get", "{1}", "r");
    assert_int_equal(t->answer.turn, 0);
    t->now_ms += 90000;
    runs(t, "get", "{2}", "r");
    assert_int_equal(t->answer.turn, 1);
    assert_int_equal(t->answer.gave_up, 1);
    t->place.turn = 2; /* told: from now on silence says nothing */
    runs(t, "get", "{3}", "r");
    t->place.turn = 0;
    t->now_ms += 1000000;
    runs(t, "get", "{4}", "r");
    assert_int_equal(t->answer.turn, 2);
}

STORY(a_guessed_turn_re_arms_no_destructive_call)
{
    t->place.turn = 0;
    t->place.turn_idle_s = 90;
    effects(t, LEDGER_EFFECTS_DESTRUCTIVE, 1);
    runs(t, "delete", "{1}", "gone");
    t->now_ms += 100000;
    assert_string_equal(asks(t, "delete", "{1}"), "refuse same_call");
    assert_int_equal(t->answer.turn, 1);
    runs_other(t, LEDGER_EFFECTS_WRITE, "create", "{1}"); /* neither does a write */
    assert_string_equal(asks(t, "delete", "{1}"), "refuse same_call");
}

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

STORY(a_read_in_a_guessed_turn_is_only_advised)
{
    t->place.turn = 0;
    t->place.turn_idle_s = 90;
    effects(t, LEDGER_EFFECTS_READ, 2);
    for (int i = 0; i < 3; i++) {
        char arguments[24];
        runs(t, "get", "{1}", "r");
        assert_true(i < 2 ? t->answer.would.len == 0 : str_is(t->answer.would, "same_call"));
        snprintf(arguments, sizeof(arguments), "{%d}", i);
        runs_other(t, LEDGER_EFFECTS_READ, "look", arguments);
    }
    t->rate_wait_ms = 10; /* the other budgets are looked at all the same */
    assert_string_equal(asks(t, "get", "{1}"), "refuse rate_limit");
    assert_int_equal(t->answer.would.len, 0);
}

/* ---- resets, outages, anonymous sessions ------------------------------------------- */

STORY(a_reset_ends_a_run_once)
{
    runs(t, "get", "{1}", "r");
    runs(t, "get", "{1}", "r");
    invalid(t, "get", "{x}");
    memset(&t->changes, 0, sizeof(t->changes));
    session_reset(&t->session, STR_LIT("get"), 5, t->now_ms, &t->changes);
    assert_int_equal(t->session.chain_count, 0);
    runs(t, "get", "{1}", "r");
    assert_int_equal(t->settled.repeats, 1);
    session_reset(&t->session, STR_LIT("get"), 5, t->now_ms, &t->changes);
    runs(t, "get", "{1}", "r");
    assert_int_equal(t->settled.repeats, 2);
}

STORY(a_reset_ends_a_row_of_failures)
{
    t->limits.same_failure = 2;
    runs_as(t, "pay", "{1}", LEDGER_CLASS_TOOL_ERROR, "no funds");
    assert_string_equal(asks(t, "pay", "{2}"), "refuse same_failure");
    session_reset(&t->session, STR_LIT("pay"), 5, t->now_ms, &t->changes);
    runs_as(t, "pay", "{2}", LEDGER_CLASS_TOOL_ERROR, "no funds");
    assert_int_equal(t->settled.same_failure, 1);
}

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
    ASSERT_ASKED(t, "redundant", 2);
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

STORY(an_anonymous_session_is_advised_and_refused_at_eight)
{
    t->place.anonymous = true;
    t->place.turn = 0;
    for (int i = 1; i <= 7; i++) {
        runs(t, "get", "{1}", "r");
        assert_true(i < 3 ? t->answer.would.len == 0 : str_is(t->answer.would, "loop"));
    }
    assert_string_equal(asks(t, "get", "{1}"), "refuse loop");
    for (int i = 0; i < 4; i++)
        assert_string_equal(invalid(t, "create", "{}"), "repair");
    assert_true(t->answer.would.len > 0);
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
