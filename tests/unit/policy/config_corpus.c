/* Replays the corpus of fuzz_config. */

#include "unit.h"
#include "../fuzz/fuzz_config.c"

#include "base/log.h"

#include "../fuzz/replay.h"

TEST(corpus_holds)
{
    log_quiet();
    replay_corpus("tests/fuzz/corpus/config", LLVMFuzzerTestOneInput, 7);
}
