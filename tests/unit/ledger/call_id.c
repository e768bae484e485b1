/* Call ids: what they carry, which are refused, and the file of their key. */
#include "unit.h"
#include "ledger/ledger.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct ledger_call_id id = {.session = {0x0123456789abcdefu, 0xfedcba9876543210u},
                                         .admission = 0x1122334455667788u,
                                         .uid = 1000,
                                         .marks = 2};
static struct ledger *ledger, *other; /* with another key */

static void begin(void)
{
    ledger = ledger_new_local(&(struct ledger_options){0});
    other = ledger_new_local(&(struct ledger_options){0});
}

static void end(void)
{
    ledger_free(ledger);
    ledger_free(other);
}

FIXTURE(begin, end)

static bool reads(const struct ledger *by, const char *text, uint32_t uid)
{
    struct ledger_call_id out = {.uid = uid};
    return ledger_call_id_read(by, str_of(text), &out) == OK;
}

TEST(an_id_names_its_session_and_admission)
{
    char text[LEDGER_CALL_ID_CHARS + 1];
    for (uint8_t marks = 0; marks < 4; marks++) {
        struct ledger_call_id marked = id, out = {.uid = 1000};
        marked.marks = marks;
        ledger_call_id_write(ledger, &marked, text);
        assert_int_equal(strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
                         LEDGER_CALL_ID_CHARS);
        assert_int_equal(ledger_call_id_read(ledger, str_of(text), &out), OK);
        assert_memory_equal(&out.session, &id.session, sizeof(id.session));
        assert_true(out.admission == id.admission && out.marks == marks);
    }
}

TEST(what_is_changed_or_of_others_is_refused)
{
    char text[LEDGER_CALL_ID_CHARS + 2] = "";
    ledger_call_id_write(ledger, &id, text);
    assert_false(reads(other, text, 1000));
    assert_false(reads(ledger, text, 1001));
    for (size_t i = 0; i < LEDGER_CALL_ID_CHARS; i++) {
        char kept = text[i];
        for (int c = 1; c < 256; c++) {
            text[i] = (char)c;
            assert_int_equal(reads(ledger, text, 1000), text[i] == kept);
        }
        text[i] = kept;
    }
    text[LEDGER_CALL_ID_CHARS] = 'A';
    assert_false(reads(ledger, text, 1000));
    text[LEDGER_CALL_ID_CHARS - 1] = '\0';
    assert_false(reads(ledger, text, 1000));
    assert_false(reads(ledger, "", 1000));
}

TEST(the_key_of_a_file_stays_the_same)
{
    char folder[] = "/tmp/toolgate-call-id-XXXXXX", file[64];
    uint8_t first[SIPHASH_KEY_BYTES], again[SIPHASH_KEY_BYTES];
    bool replaced;
    struct stat info;
    struct why why;
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof(file), "%s/key", folder);
    assert_int_equal(key_file_load(file, first, sizeof(first), &replaced, &why), OK);
    assert_int_equal(stat(file, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(key_file_load(file, again, sizeof(again), &replaced, &why), OK);
    assert_memory_equal(first, again, sizeof(first));
    assert_false(replaced);
    assert_int_equal(truncate(file, 5), 0); /* damaged: replaced */
    assert_int_equal(key_file_load(file, again, sizeof(again), &replaced, &why), OK);
    assert_memory_not_equal(first, again, sizeof(first));
    assert_true(replaced);
    assert_int_equal(chmod(file, 0640), 0); /* others may have read it: replaced */
    assert_int_equal(key_file_load(file, first, sizeof(first), &replaced, &why), OK);
    assert_memory_not_equal(first, again, sizeof(first));
    unlink(file);
    assert_int_equal(mkdir(file, 0700), 0);
    assert_int_not_equal(key_file_load(file, again, sizeof(again), &replaced, &why), OK);
    assert_non_null(strstr(why.text, file));
    rmdir(file);
    rmdir(folder);
    assert_int_equal(key_file_load(file, again, sizeof(again), &replaced, &why), ERR_IO);
}

TEST(processes_that_begin_together_share_the_key_of_a_file)
{
    enum { PROCESSES = 16 };
    char folder[] = "/tmp/toolgate-call-id-XXXXXX", file[64];
    uint8_t keys[PROCESSES][SIPHASH_KEY_BYTES];
    int starts[2], ends[2];
    struct why why;
    bool replaced;
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof(file), "%s/key", folder);
    assert_int_equal(pipe(starts) | pipe(ends), 0);
    for (int i = 0; i < PROCESSES; i++) {
        if (fork())
            continue;
        char byte;
        close(starts[1]);
        bool fine = read(starts[0], &byte, 1) == 0 && /* all wait for the end of this pipe */
                    key_file_load(file, keys[0], sizeof(keys[0]), &replaced, &why) == OK &&
                    write(ends[1], keys[0], sizeof(keys[0])) == sizeof(keys[0]);
        _exit(!fine);
    }
    close(ends[1]);
    close(starts[1]);
    for (int i = 0; i < PROCESSES; i++) {
        assert_int_equal(read(ends[0], keys[i], sizeof(keys[i])), sizeof(keys[i]));
        assert_memory_equal(keys[i], keys[0], sizeof(keys[i]));
    }
    while (wait(NULL) > 0)
        continue;
    close(starts[0]);
    close(ends[0]);
    unlink(file);
    rmdir(folder);
}
