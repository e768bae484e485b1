/* Replays the corpus of fuzz_session. */
#include "../fuzz/fuzz_session.c"

#include "json/json_support.h"

#include "../fuzz/replay.h"

TEST(corpus_holds)
{
    replay_corpus("tests/fuzz/corpus/session", LLVMFuzzerTestOneInput, 30);
}
