/* Replays the corpus of fuzz_spelled. */
#include "../fuzz/fuzz_spelled.c"

#include "json/json_support.h"

#include "../fuzz/replay.h"

static void corpus_holds(void **state)
{
    (void)state;
    replay_corpus("tests/fuzz/corpus/spelled", LLVMFuzzerTestOneInput, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(corpus_holds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
