/* Replays the corpus of fuzz_spelled. */
#include "../fuzz/fuzz_spelled.c"

#include "json/json_support.h"

#include "../fuzz/replay.h"

TEST(corpus_holds)
{
    replay_corpus("tests/fuzz/corpus/spelled", LLVMFuzzerTestOneInput, 12);
}
