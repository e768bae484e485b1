/* Replays the corpus of fuzz_schema. */
#include "../fuzz/fuzz_schema.c"

#include "schema/schema_support.h"

#include "../fuzz/replay.h"

TEST(corpus_holds)
{
    replay_corpus("tests/fuzz/corpus/schema", LLVMFuzzerTestOneInput, 16);
}
