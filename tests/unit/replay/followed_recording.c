/* Following a log through its rotations: each step of the writer happens where the reader has come to the
 * end. */

#include "folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "replay/recording.h"

#define NAMES 5 /* log, log.1, … */

static char names[NAMES][64], aside[64];
static const char *path;

static void begin(void)
{
    make_folder();
    for (int i = 0; i < NAMES; i++)
        snprintf(names[i], sizeof(names[i]), i ? "%s/log.%d" : "%s/log", folder, i);
    snprintf(aside, sizeof(aside), "%s/log-of-yesterday", folder);
    path = names[0];
}

FIXTURE(begin, remove_folder)

static void append(const char *text)
{
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* As the daemon does it, with `keep` rotated files. */
static void rotate(int keep)
{
    for (int i = keep; i > 0; i--)
        rename(names[i - 1], names[i]);
}

/* ---- the writer ---- */

typedef void writer_step(void);

struct writer {
    writer_step *const *steps; /* NULL ends them, and the reading */
};

static bool next_step(void *owner)
{
    struct writer *writer = owner;
    if (!*writer->steps)
        return false;
    (*writer->steps++)();
    return true;
}

static struct recording *follow(struct writer *writer)
{
    struct recording_options options = {.wait = next_step, .owner = writer};
    struct recording *recording;
    struct why why;
    assert_int_equal(recording_open(&path, 1, &options, &recording, &why), OK);
    return recording;
}

/* Reads until the writer has no more steps: the lines have these n. */
static void expect_lines(struct recording *recording, const char *expected)
{
    char got[256] = "";
    struct recording_line line;
    while (recording_next(recording, &line)) {
        int64_t n = 0;
        assert_true(json_int(json_get_text(line.value, "n"), &n));
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%lld ", (long long)n);
    }
    assert_string_equal(got, expected);
}

static uint64_t faults(const struct recording *recording)
{
    uint64_t count = 0;
    for (int i = 0; i < RECORDING_FAULTS; i++)
        count += recording_faults(recording)[i].count;
    return count;
}

/* ---- its steps ---- */

static void nothing(void)
{
}

static void write_1(void)
{
    append("{\"n\":1}\n");
}

static void write_half(void)
{
    append("{\"n\":");
}

static void write_the_other_half(void)
{
    append("2}\n");
}

static void rename_only(void)
{
    rotate(3);
}

static void write_3(void)
{
    append("{\"n\":3}\n");
}

static void rotate_three_times(void)
{
    append("{\"n\":4}\n");
    for (int n = 5; n < 8; n++) {
        char text[32];
        rotate(4);
        snprintf(text, sizeof(text), "{\"n\":%d}\n", n);
        append(text);
    }
}

static void truncate_and_write(void)
{
    write_file("log", "{\"n\":8}\n");
}

static void age(const char *name)
{
    struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    assert_int_equal(utimensat(AT_FDCWD, name, times, 0), 0);
}

/* Keeps two: the open file and the next are gone when the reader looks again. */
static void rotate_away(void)
{
    age(path);
    for (int n = 2; n < 6; n++) {
        char text[32];
        rotate(2);
        snprintf(text, sizeof(text), "{\"n\":%d}\n", n);
        append(text);
    }
}

/* By another program: a name that is not PATH.N, while older PATH.N lie about. */
static void move_aside(void)
{
    age(names[1]);
    assert_int_equal(rename(path, aside), 0);
    append("{\"n\":2}\n");
}

/* An operator takes the file between away, and older ones lie about. */
static void rotate_with_a_hole(void)
{
    rotate(4);
    append("{\"n\":2}\n");
    rotate(4);
    assert_int_equal(unlink(names[1]), 0);
    age(names[3]);
    append("{\"n\":3}\n");
}

/* ---- the cases ---- */

TEST(lines_that_come_later)
{
    static writer_step *const steps[] = {nothing, write_1, write_half, nothing, write_the_other_half, NULL};
    struct writer writer = {steps};
    struct recording *recording = follow(&writer); /* the file does not exist yet */
    expect_lines(recording, "1 2 ");
    assert_int_equal(faults(recording), 0);
    recording_close(recording);
}

TEST(each_rotation_once)
{
    static writer_step *const steps[] = {write_1, rename_only, nothing, write_3, rotate_three_times, NULL};
    struct writer writer = {steps};
    struct recording *recording = follow(&writer);
    expect_lines(recording, "1 3 4 5 6 7 ");
    assert_int_equal(faults(recording), 0);
    recording_close(recording);
}

TEST(a_truncated_file_begins_again)
{
    static writer_step *const steps[] = {write_1, write_half, truncate_and_write, NULL};
    struct writer writer = {steps};
    struct recording *recording = follow(&writer);
    expect_lines(recording, "1 8 ");
    assert_int_equal(recording_faults(recording)[RECORDING_CUT].count, 1);
    recording_close(recording);
}

TEST(files_that_were_rotated_away_are_a_fault)
{
    static writer_step *const steps[] = {write_1, rotate_away, NULL};
    struct writer writer = {steps};
    struct recording *recording = follow(&writer);
    expect_lines(recording, "1 3 4 5 ");
    assert_int_equal(recording_faults(recording)[RECORDING_FAILED].count, 1);
    recording_close(recording);
}

TEST(a_file_moved_aside_reads_no_older_ones)
{
    static writer_step *const steps[] = {move_aside, NULL};
    struct writer writer = {steps};
    append("{\"n\":9}\n");
    assert_int_equal(rename(path, names[1]), 0);
    append("{\"n\":1}\n");
    struct recording *recording = follow(&writer);
    expect_lines(recording, "1 2 ");
    assert_int_equal(faults(recording), 0);
    recording_close(recording);
}

TEST(a_hole_between_rotated_files_is_passed_over)
{
    static writer_step *const steps[] = {rotate_with_a_hole, nothing, NULL};
    struct writer writer = {steps};
    append("{\"n\":9}\n");
    assert_int_equal(rename(path, names[1]), 0);
    append("{\"n\":1}\n");
    struct recording *recording = follow(&writer);
    expect_lines(recording, "1 3 ");
    recording_close(recording);
}
