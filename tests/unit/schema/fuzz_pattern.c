/* Replays the corpus of fuzz_pattern. */
#include "../fuzz/fuzz_pattern.c"

#include "schema/schema_support.h"

#include "../fuzz/replay.h"

TEST(corpus_holds)
{
    replay_corpus("tests/fuzz/corpus/pattern", LLVMFuzzerTestOneInput, 12);
}
