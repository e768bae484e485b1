/* Replays the corpus of fuzz_dispatch. */

#include "unit.h"
#include "../fuzz/fuzz_dispatch.c"

#include "base/log.h"

#include "../fuzz/replay.h"

TEST(corpus_holds)
{
    log_quiet();
    replay_corpus("tests/fuzz/corpus/dispatch", LLVMFuzzerTestOneInput, 9);
}
