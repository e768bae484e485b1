/*
 * Helpers for ledger tests: a ledger with its own clock, calls of one session,
 * and the answers to them. Include after the system headers that cmocka needs.
 */
#ifndef TOOLGATE_TESTS_LEDGER_CASE_H
#define TOOLGATE_TESTS_LEDGER_CASE_H

#include "unit.h"
#include "base/arena.h"
#include "ledger/ledger.h"
#include "result/result.h"

struct ledger_case {
    struct ledger *ledger;
    struct arena *arena;
    struct ledger_place place;
    struct ledger_limits limits;
    uint64_t admissions;
    struct ledger_answer answer;  /* of the last admit */
    struct ledger_answer settled; /* of the last settle */
};

static int64_t case_now;

static inline int64_t case_clock(void)
{
    return case_now;
}

static inline int case_begin(void **state)
{
    struct ledger_case *t = test_calloc(1, sizeof(*t));
    struct ledger_options options = {.now_ms = case_clock};
    case_now = 1700000000000;
    t->ledger = ledger_new_local(&options);
    t->arena = arena_new();
    t->place = (struct ledger_place){.session = STR("uid:1000/chat-7"), .anonymous_repeats = 8, .turn = 1};
    t->limits = ledger_default_limits;
    *state = t;
    return 0;
}

static inline int case_end(void **state)
{
    struct ledger_case *t = *state;
    ledger_free(t->ledger);
    arena_free(t->arena);
    test_free(t);
    return 0;
}

static inline struct hash128 case_hash(const char *text)
{
    return hash_stable(str_of(text));
}

static inline void case_admit_as(struct ledger_case *t, const char *tool, const char *args,
                                 enum ledger_so_far so_far)
{
    struct ledger_call request = {
        .place = t->place,
        .admission = ++t->admissions,
        .tool = str_of(tool),
        .ext = STR_LIT("it"),
        .arguments = case_hash(args),
        .so_far = so_far,
        .refused_as = STR_LIT("unknown_tool"),
        .limits = &t->limits,
    };
    assert_int_equal(ledger_ask(t->ledger, LEDGER_ADMIT, &request, t->arena, &t->answer, NULL, NULL),
                     LEDGER_DONE);
    if (t->answer.error != OK)
        fail_msg("%s", t->answer.why.text);
}

static inline void case_settle_as(struct ledger_case *t, const char *tool, const char *args,
                                  uint64_t admission, enum ledger_class class, const char *result)
{
    struct ledger_call request = {
        .place = t->place,
        .admission = admission,
        .tool = str_of(tool),
        .ext = STR_LIT("it"),
        .arguments = case_hash(args),
        .class = class,
        .label = class == LEDGER_CLASS_OK ? STR_LIT("ok") : STR_LIT("tool_error"),
        .result = result ? case_hash(result) : (struct hash128){0, 0},
        .masked = result_masked(t->arena, NULL, str_of(result ? result : ""), true),
        .limits = &t->limits,
    };
    assert_int_equal(ledger_ask(t->ledger, LEDGER_SETTLE, &request, t->arena, &t->settled, NULL, NULL),
                     LEDGER_DONE);
    if (t->settled.error != OK)
        fail_msg("%s", t->settled.why.text);
}

/* Admits a call; returns the verdict and its code as a string. */
static inline const char *case_told(struct ledger_case *t, const char *tool, const char *args,
                                    enum ledger_so_far so_far)
{
    static const char *const words[] = {"run", "repair", "refuse", "halt"};
    static char said[64];
    case_admit_as(t, tool, args, so_far);
    snprintf(said, sizeof(said), "%s%s" STR_FMT, words[t->answer.says], t->answer.code.len ? " " : "",
             STR_ARG(t->answer.code));
    return said;
}

static inline const char *case_asks(struct ledger_case *t, const char *tool, const char *args)
{
    return case_told(t, tool, args, LEDGER_SO_FAR_VALID);
}

static inline const char *case_invalid(struct ledger_case *t, const char *tool, const char *args)
{
    return case_told(t, tool, args, LEDGER_SO_FAR_INVALID);
}

/* Admits a call, which must be admitted, and settles it as ok with this result. */
static inline void case_runs(struct ledger_case *t, const char *tool, const char *args, const char *result)
{
    assert_string_equal(case_asks(t, tool, args), "run");
    case_settle_as(t, tool, args, t->admissions, LEDGER_CLASS_OK, result);
}

static inline void case_turn(struct ledger_case *t, uint32_t turn)
{
    t->place.turn = turn;
}

#endif
