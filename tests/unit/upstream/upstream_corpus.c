/* Replays the corpus of fuzz_upstream. */

#include "unit.h"
#include "../fuzz/fuzz_upstream.c"

#include "base/log.h"

#include "../fuzz/replay.h"

TEST(corpus_holds)
{
    log_quiet();
    replay_corpus("tests/fuzz/corpus/upstream", LLVMFuzzerTestOneInput, 7);
}
