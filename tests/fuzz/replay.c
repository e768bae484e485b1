/* Replays a fuzzer's corpus with the fuzzer's own function, so that its findings stay fixed. The Makefile
 * builds it for each target: FUZZ_SOURCE is its file, FUZZ_CORPUS its folder. */
#include FUZZ_SOURCE

#include "base/log.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define REPLAY_CUT_BYTES 512 /* an input this short is replayed cut at every byte, too */
#define CORPUS_MIN       8   /* files, of the smallest corpus */

static void replay_file(const char *path)
{
    static char bytes[65536];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t len = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    assert_int_equal(LLVMFuzzerTestOneInput((const uint8_t *)bytes, len), 0);
    for (size_t cut = 0; cut < len && len < REPLAY_CUT_BYTES; cut++)
        LLVMFuzzerTestOneInput((const uint8_t *)bytes, cut);
}

static void corpus_holds(void **state)
{
    (void)state;
    DIR *open = opendir(FUZZ_CORPUS);
    int count = 0;
    log_quiet();
    if (!open)
        fail_msg("%s is not here: run from the top of the tree", FUZZ_CORPUS);
    for (struct dirent *entry; (entry = readdir(open));) {
        char path[512];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", FUZZ_CORPUS, entry->d_name);
        replay_file(path);
        count++;
    }
    closedir(open);
    assert_true(count >= CORPUS_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(corpus_holds)};
    return cmocka_run_group_tests_name(FUZZ_CORPUS, tests, NULL, NULL);
}
