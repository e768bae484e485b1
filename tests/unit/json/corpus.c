/* Replays the corpus of fuzz_json. */
#include "../fuzz/fuzz_json.c"

#include "json/json_support.h"

#include "../fuzz/replay.h"

TEST(corpus_holds)
{
    replay_corpus("tests/fuzz/corpus/json", LLVMFuzzerTestOneInput, 20);
}
