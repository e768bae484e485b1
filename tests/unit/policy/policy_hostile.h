/* Helpers for the tests of hostile policies. */
#ifndef TOOLGATE_TESTS_POLICY_HOSTILE_H
#define TOOLGATE_TESTS_POLICY_HOSTILE_H

#include "policy/policy_support.h"
#include "golden.h"

#define LATE   "ran longer than its"
#define MEMORY "out of memory"
#define STATE  "keeps state between calls: "

/* The hook ends with an error (the watchdog would end this process if it were late), which names its place;
 * the state that all policies share works as before. */
static inline void dies(const char *body, const char *why)
{
    const char *guarded = arena_printf(arena, "if not args.harmless then %s end", body).at;
    const struct policy *p = with_hook("check", "args, call", guarded);
    if (check(p, "{}") != OUTCOME_POLICY_ERROR)
        fail_msg("it lives: %s", body);
    assert_has(said.why.text, why);
    assert_has(said.why.text, "p.lua:");
    if (check(p, "{\"harmless\":true}") != OUTCOME_PASS)
        fail_msg("after %s: %s", body, said.why.text);
}

/* The file is a load error that names its line; the test ends with golden_check_rows. */
static inline void is_refused(const char *source)
{
    const char *fault = fault_of(source);
    if (!fault)
        fail_msg("it loads: %s", source);
    assert_has(fault, "p.lua:");
    golden_row(source, fault);
}

static inline void body_is_refused(const char *body)
{
    is_refused(arena_printf(arena, "return tool 't' { check = function(args, call) %s end }", body).at);
}

#endif
