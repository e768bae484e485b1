/* Replays the corpus of fuzz_recording. */

#include "unit.h"
#include "../fuzz/fuzz_recording.c"

#include "base/log.h"

#include "../fuzz/replay.h"

TEST(corpus_holds)
{
    log_quiet();
    replay_corpus("tests/fuzz/corpus/recording", LLVMFuzzerTestOneInput, 7);
}
