/* Replays the corpus of fuzz_lua_pattern. */
#include "../fuzz/fuzz_lua_pattern.c"

#include "policy/policy_support.h"

#include "../fuzz/replay.h"

TEST(corpus_holds)
{
    replay_corpus("tests/fuzz/corpus/lua_pattern", LLVMFuzzerTestOneInput, 20);
}
