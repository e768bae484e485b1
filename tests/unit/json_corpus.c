/* Replays the fuzzer's corpus over the fuzzer's own function: what it once found stays found. */
#include "../fuzz/fuzz_json.c"

#include "json_support.h"

#include <dirent.h>

#define CORPUS "tests/fuzz/corpus/json"

static void replay(const char *name)
{
    char file_path[512], bytes[65536];
    snprintf(file_path, sizeof(file_path), CORPUS "/%s", name);
    FILE *file = fopen(file_path, "rb");
    assert_non_null(file);
    size_t len = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    assert_int_equal(LLVMFuzzerTestOneInput((const uint8_t *)bytes, len), 0);
    for (size_t cut = 0; cut < len && len < 512; cut++) /* and every half of a message */
        LLVMFuzzerTestOneInput((const uint8_t *)bytes, cut);
}

static void corpus_holds(void **state)
{
    (void)state;
    DIR *folder = opendir(CORPUS);
    int count = 0;
    if (!folder)
        fail_msg("%s is not here: run from the top of the tree", CORPUS);
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.') {
            replay(entry->d_name);
            count++;
        }
    closedir(folder);
    assert_true(count >= 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(corpus_holds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
