/* Replays the corpus of fuzz_http. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../fuzz/fuzz_http.c"

#include "base/log.h"

#include "../fuzz/replay.h"

static void corpus_holds(void **state)
{
    (void)state;
    log_quiet();
    replay_corpus("tests/fuzz/corpus/http", LLVMFuzzerTestOneInput, 14);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(corpus_holds)};
    return cmocka_run_group_tests_name("http_corpus", tests, NULL, NULL);
}
