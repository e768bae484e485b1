/* Replays the corpus of fuzz_schema. */
#include "../fuzz/fuzz_schema.c"

#include "schema/schema_support.h"

#include "../fuzz/replay.h"

static void corpus_holds(void **state)
{
    (void)state;
    replay_corpus("tests/fuzz/corpus/schema", LLVMFuzzerTestOneInput, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(corpus_holds)};
    return cmocka_run_group_tests_name("schema fuzz schema", tests, NULL, NULL);
}
