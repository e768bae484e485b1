/* Texts that follow from what the ledger answers, whichever store it has. */
#include "golden.h"

#include "base/arena.h"
#include "gate/feedback.h"
#include "gate/verdict.h"

static struct arena *arena;
static struct tool tool;
static struct ledger_limits limits;
static struct verdict verdict;

static void begin(void)
{
    arena = arena_new();
    limits = ledger_default_limits;
    tool = (struct tool){.name = STR_LIT("charge_card"), .limits = &limits};
    verdict = (struct verdict){.after_s = -1, .cost = -1};
    problems_init(&verdict.problems, arena);
}

static void end(void)
{
    arena_free(arena);
}

FIXTURE(begin, end)

static void reads(const char *key, struct str (*text_of)(struct arena *, struct feedback *))
{
    struct feedback f = {.verdict = &verdict, .tool = &tool, .name = tool.name};
    golden_check("feedback", key, arena_dup(arena, text_of(arena, &f)).at);
}

static void is_refused(const char *code, uint64_t used)
{
    struct ledger_answer answer = {.says = LEDGER_REFUSE, .code = str_of(code), .used = used, .repeats = 2};
    verdict_from_ledger(&verdict, &answer);
}

TEST(a_failure_that_comes_again_says_how_often)
{
    struct ledger_answer settled = {.same_failure = 4};
    verdict_set(&verdict, CLASS_TOOL_ERROR, STR_NONE, STR_NONE, STR_NONE);
    verdict.quoted = STR_LIT("no card on file");
    verdict_from_settle(&verdict, &settled, true);
    reads("same failure: the note of the fourth", feedback_text);
}

TEST(the_sixth_failure_has_advice)
{
    struct ledger_answer settled = {.same_failure = LEDGER_SAME_FAILURE_ADVISED};
    verdict_set(&verdict, CLASS_TOOL_ERROR, STR_NONE, STR_NONE, STR_NONE);
    verdict.quoted = STR_LIT("no card on file");
    verdict_from_settle(&verdict, &settled, true);
    reads("same failure: the note of the sixth", feedback_text);
}

TEST(the_sixth_failure_is_refused)
{
    is_refused("same_failure", 5);
    assert_true(verdict.class == CLASS_RETRY_BUDGET && verdict.kind == VERDICT_REFUSE);
    reads("same failure: refused", feedback_text);
}

TEST(a_rate_makes_the_call_wait)
{
    is_refused("rate_limit", 12001);
    assert_true(verdict.class == CLASS_TRANSIENT && verdict.kind == VERDICT_WAIT);
    assert_int_equal(verdict.after_s, 13);
    reads("rate: a call that comes too early", feedback_text);
}

TEST(a_loop_of_writes_speaks_of_no_result)
{
    is_refused("loop", 0);
    reads("loop: of a tool that reads", feedback_text);
    limits.effects = LEDGER_EFFECTS_WRITE;
    reads("loop: of a tool that writes", feedback_text);
}

TEST(a_read_in_a_guessed_turn_is_advised)
{
    struct ledger_answer answer = {.says = LEDGER_RUN, .would = STR_LIT("same_call")};
    verdict_from_ledger(&verdict, &answer);
    assert_true(verdict.kind == VERDICT_PASS && str_is(verdict.would, "same_call"));
    reads("budget: advice to a read in a guessed turn", feedback_advice);
}

TEST(a_forgotten_call_must_be_repeated_in_the_report)
{
    tool.name = STR_NONE;
    verdict_set(&verdict, CLASS_UNKNOWN_TOOL, STR_LIT("call_forgotten"), STR_NONE, STR_NONE);
    reads("report: of a call that is no longer known", feedback_text);
}
