/* Replays the corpus of fuzz_lua_pattern. */
#include "../fuzz/fuzz_lua_pattern.c"

#include "policy/policy_support.h"

#include "../fuzz/replay.h"

static void corpus_holds(void **state)
{
    (void)state;
    replay_corpus("tests/fuzz/corpus/lua_pattern", LLVMFuzzerTestOneInput, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(corpus_holds, set_up, tear_down)};
    return cmocka_run_group_tests_name("policy_pattern_corpus", tests, NULL, NULL);
}
