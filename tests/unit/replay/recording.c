/* Reading recordings: lines, documents, and everything that is neither. */

#include "folder.h"

#include "replay/recording.h"

static const char *paths[3];

FIXTURE(make_folder, remove_folder)

static struct recording *open_files(size_t count, bool documents)
{
    struct recording_options options = {.documents = documents};
    struct recording *recording;
    struct why why;
    assert_int_equal(recording_open(paths, count, &options, &recording, &why), OK);
    return recording;
}

/* The next line has this number and this "n". */
static void expect_line(struct recording *recording, const char *file, uint64_t number, int64_t n)
{
    struct recording_line line;
    int64_t got;
    assert_true(recording_next(recording, &line));
    assert_string_equal(line.file, file);
    assert_int_equal(line.number, number);
    assert_true(json_int(json_get_text(line.value, "n"), &got));
    assert_int_equal(got, n);
}

static void expect_end(struct recording *recording)
{
    struct recording_line line;
    assert_false(recording_next(recording, &line));
}

static void expect_fault(struct recording *recording, enum recording_fault fault, uint64_t count,
                         uint64_t first)
{
    const struct recording_count *faults = recording_faults(recording);
    assert_int_equal(faults[fault].count, count);
    if (count)
        assert_int_equal(faults[fault].places[0].number, first);
}

TEST(several_files)
{
    paths[0] = write_file("a", "{\"n\":1}\r\n\n{\"n\":2}\n");
    paths[1] = write_file("b", "");
    paths[2] = write_file("c", "\xEF\xBB\xBF{\"n\":3}");
    struct recording *recording = open_files(3, false);
    uint64_t total, position;
    expect_line(recording, paths[0], 1, 1);
    expect_line(recording, paths[0], 3, 2);
    expect_line(recording, paths[2], 1, 3);
    expect_end(recording);
    assert_int_equal(recording_lines(recording), 3);
    position = recording_position(recording, &total);
    assert_int_equal(position, total);
    for (int i = 0; i < RECORDING_FAULTS; i++)
        assert_int_equal(recording_faults(recording)[i].count, 0);
    recording_close(recording);
}

TEST(faults_are_counted_and_skipped)
{
    paths[0] = write_file(
        "a",
        "no json\n{\"n\":1}\n[1]\n7\n{\"v\":2,\"decision_id\":\"x\",\"n\":9}\n{\"v\":2,\"n\":2}\n{\"n\":3},\n"
        "{\"n\":4,\"s\":\"cut o");
    struct recording *recording = open_files(1, false);
    expect_line(recording, paths[0], 2, 1);
    expect_line(recording, paths[0], 6, 2); /* not a record of ours: its `v` means something else */
    expect_end(recording);
    expect_fault(recording, RECORDING_NOT_JSON, 2, 1);
    expect_fault(recording, RECORDING_NOT_OBJECT, 2, 3);
    expect_fault(recording, RECORDING_NEWER, 1, 5);
    expect_fault(recording, RECORDING_CUT, 1, 8);
    recording_close(recording);
}

TEST(what_others_have_written_wrongly_is_read_where_it_has_one_reading)
{
    paths[0] =
        write_file("log.ndjson",
                   "{\"n\":1,\"result\":\"caf\xe9\"}\n{\"n\":2,\"score\":NaN}\n{\"n\":3,\"text\":\"a\tb\"}\n{"
                   "\"n\":4,\xe9}\n");
    struct recording *r = open_files(1, true);
    for (int n = 1; n <= 3; n++)
        expect_line(r, paths[0], (uint64_t)n, n);
    expect_end(r);
    expect_fault(r, RECORDING_NOT_JSON, 1, 4);
    recording_close(r);
}

TEST(hostile_nesting_is_a_fault)
{
    FILE *file = fopen(paths[0] = in_folder("a"), "w");
    for (int i = 0; i < 100000; i++)
        fputs("{\"a\":", file);
    fputs("\n{\"n\":1}\n", file);
    fclose(file);
    struct recording *recording = open_files(1, true);
    expect_line(recording, paths[0], 2, 1);
    expect_end(recording);
    expect_fault(recording, RECORDING_NOT_JSON, 1, 1);
    recording_close(recording);
}

TEST(a_line_that_is_too_long_is_skipped)
{
    char block[65536];
    memset(block, 'x', sizeof(block));
    FILE *file = fopen(paths[0] = in_folder("a"), "w");
    fputs("{\"n\":1}\n{\"n\":\"", file);
    for (size_t i = 0; i < RECORDING_LINE_MAX_BYTES / sizeof(block) + 2; i++)
        fwrite(block, 1, sizeof(block), file);
    fputs("\"}\n{\"n\":3}\n", file);
    fclose(file);
    struct recording *recording = open_files(1, false);
    expect_line(recording, paths[0], 1, 1);
    expect_line(recording, paths[0], 3, 3);
    expect_end(recording);
    expect_fault(recording, RECORDING_TOO_LONG, 1, 2);
    recording_close(recording);
}

TEST(documents)
{
    paths[0] = write_file("a", "{\n  \"n\": 1\n}\n");
    paths[1] = write_file("b", "[{\"n\":1}]\n{\"n\":2}\n");
    paths[2] = write_file("c", "{\n\n{\"n\":3}\n");
    struct recording *recording = open_files(3, true);
    struct recording_line line;
    expect_line(recording, paths[0], 1, 1);
    assert_true(recording_next(recording, &line));
    assert_int_equal(line.value->type, JSON_ARRAY);
    expect_line(recording, paths[1], 2, 2);
    expect_line(recording, paths[2], 3, 3);
    expect_end(recording);
    expect_fault(recording, RECORDING_NOT_JSON, 1, 1);
    recording_close(recording);
}

TEST(a_document_without_its_end_is_one_fault)
{
    paths[0] = write_file("a", "{\n  \"n\": [\n1,\n2\n");
    paths[1] = write_file("b", "{\"n\":3}\n");
    struct recording *recording = open_files(2, true);
    expect_line(recording, paths[1], 1, 3);
    expect_end(recording);
    expect_fault(recording, RECORDING_CUT, 1, 0);
    expect_fault(recording, RECORDING_NOT_JSON, 0, 0);
    recording_close(recording);
}

TEST(a_missing_file_is_an_error_at_once)
{
    struct recording *recording;
    struct why why;
    paths[0] = write_file("a", "{\"n\":1}\n");
    paths[1] = strdup("/nonexistent/b");
    assert_int_equal(recording_open(paths, 2, NULL, &recording, &why), ERR_IO);
    assert_null(recording);
    assert_non_null(strstr(why.text, "/nonexistent/b"));
}
