/* Replays the corpus of fuzz_policy. */
#include "../fuzz/fuzz_policy.c"

#include "policy/policy_support.h"

#include "../fuzz/replay.h"

static void corpus_holds(void **state)
{
    (void)state;
    replay_corpus("tests/fuzz/corpus/policy", LLVMFuzzerTestOneInput, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(corpus_holds, set_up, tear_down)};
    return cmocka_run_group_tests_name("policy_corpus", tests, NULL, NULL);
}
