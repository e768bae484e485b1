/* Replays the corpus of fuzz_policy. */
#include "../fuzz/fuzz_policy.c"

#include "policy/policy_support.h"

#include "../fuzz/replay.h"

TEST(corpus_holds)
{
    replay_corpus("tests/fuzz/corpus/policy", LLVMFuzzerTestOneInput, 20);
}
