/* Replays a fuzzer's corpus with the fuzzer's own function, so that its findings stay fixed. */
#ifndef TOOLGATE_TESTS_REPLAY_H
#define TOOLGATE_TESTS_REPLAY_H

#include "base/log.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

typedef int replay_function(const uint8_t *data, size_t size);

#define REPLAY_CUT_BYTES 512 /* an input this short is replayed cut at every byte, too */

static inline void replay_file(const char *path, replay_function *function)
{
    static char bytes[65536];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t len = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    assert_int_equal(function((const uint8_t *)bytes, len), 0);
    for (size_t cut = 0; cut < len && len < REPLAY_CUT_BYTES; cut++)
        function((const uint8_t *)bytes, cut);
}

/* Fails if the folder has fewer than `least` files. */
static inline void replay_corpus(const char *folder, replay_function *function, int least)
{
    DIR *open = opendir(folder);
    int count = 0;
    if (!open)
        fail_msg("%s is not here: run from the top of the tree", folder);
    for (struct dirent *entry; (entry = readdir(open));) {
        char path[512];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        replay_file(path, function);
        count++;
    }
    closedir(open);
    assert_true(count >= least);
}

/* The unit test of a target's corpus. */
#define REPLAY_MAIN(target, least)                                                                           \
    static void corpus_holds(void **state)                                                                   \
    {                                                                                                        \
        (void)state;                                                                                         \
        log_quiet();                                                                                         \
        replay_corpus("tests/fuzz/corpus/" target, LLVMFuzzerTestOneInput, least);                           \
    }                                                                                                        \
    int main(void)                                                                                           \
    {                                                                                                        \
        const struct CMUnitTest tests[] = {cmocka_unit_test(corpus_holds)};                                  \
        return cmocka_run_group_tests_name("fuzz_" target, tests, NULL, NULL);                               \
    }

#endif
