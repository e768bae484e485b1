/* Reads the decision log, and reports what of it could not be read. */
#include "review/decision_input.h"

#include "base/arena.h"
#include "base/printable.h"
#include "cli/term.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_BYTES 65536u

struct input_file {
    const char *name; /* as given */
    const char *path; /* what is opened */
    FILE *copy;       /* of a pipe; NULL: none */
};

struct decision_input {
    const struct command *command;
    struct arena *arena;
    struct input_file *files;
    const char **paths;
    size_t count;
    uint64_t records;
    bool cut_short; /* a file could not be read to its end */
};

/* ---- pipes ---- */

static bool copy_all(int from, FILE *to)
{
    char bytes[COPY_BYTES];
    ssize_t n;
    while ((n = read(from, bytes, sizeof(bytes))) > 0 || (n < 0 && errno == EINTR))
        if (n > 0 && fwrite(bytes, 1, (size_t)n, to) != (size_t)n)
            return false;
    return n == 0 && fflush(to) == 0;
}

/* What follows a refusal is known only at the end, so the records are read twice. */
static bool copy_pipe(struct decision_input *input, struct input_file *file)
{
    bool is_stdin = strcmp(file->name, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(file->name, O_RDONLY | O_CLOEXEC);
    file->copy = fd < 0 ? NULL : tmpfile();
    bool copied = file->copy && copy_all(fd, file->copy);
    if (!copied)
        term_error(input->command->name, "%s: %s", is_stdin ? "stdin" : file->name, strerror(errno));
    if (fd > STDIN_FILENO)
        close(fd);
    if (copied)
        file->path = arena_printf(input->arena, "/proc/self/fd/%d", fileno(file->copy)).at;
    if (is_stdin)
        file->name = "stdin";
    return copied;
}

struct decision_input *decision_input_open(const struct command *command, const char *const *files,
                                           size_t count)
{
    struct arena *arena = arena_new();
    struct decision_input *input = ARENA_NEW(arena, struct decision_input);
    *input = (struct decision_input){.command = command, .arena = arena, .count = count};
    input->files = ARENA_ARRAY(arena, struct input_file, count);
    input->paths = ARENA_ARRAY(arena, const char *, count);
    for (size_t i = 0; i < count; i++) {
        struct stat st;
        struct input_file *file = &input->files[i];
        *file = (struct input_file){.name = files[i], .path = files[i]};
        bool piped = strcmp(files[i], "-") == 0 || (stat(files[i], &st) == 0 && S_ISFIFO(st.st_mode));
        if (piped && !copy_pipe(input, file)) {
            decision_input_close(input);
            return NULL;
        }
        input->paths[i] = file->path;
    }
    return input;
}

void decision_input_close(struct decision_input *input)
{
    if (!input)
        return;
    for (size_t i = 0; i < input->count; i++)
        if (input->files[i].copy)
            fclose(input->files[i].copy);
    arena_free(input->arena);
}

/* ---- what could not be read ---- */

static const char *name_of(const struct decision_input *input, const char *path)
{
    for (size_t i = 0; i < input->count; i++)
        if (strcmp(input->files[i].path, path) == 0)
            return input->files[i].name;
    return path;
}

/* "toolgate decisions: lines that are not JSON: 2, at a.log:7 (…), a.log:9 (…)" */
static void report_fault(const struct decision_input *input, enum recording_fault fault,
                         const struct recording_count *count)
{
    struct buf text = {0};
    buf_printf(&text, "%s: %llu, at", recording_fault_text(fault), (unsigned long long)count->count);
    for (size_t i = 0; i < RECORDING_PLACES && i < count->count; i++) {
        const struct recording_place *place = &count->places[i];
        buf_text(&text, i ? ", " : " ");
        printable_write(&text, str_of(name_of(input, place->file)));
        if (place->number)
            buf_printf(&text, ":%llu", (unsigned long long)place->number);
        if (*place->why) {
            buf_text(&text, " (");
            printable_write(&text, str_of(place->why));
            buf_byte(&text, ')');
        }
    }
    if (count->count > RECORDING_PLACES)
        buf_text(&text, ", …");
    term_error(input->command->name, STR_FMT, STR_ARG(buf_view(&text)));
    buf_clear(&text);
}

static void report_faults(const struct decision_input *input, const struct recording *recording)
{
    const struct recording_count *faults = recording_faults(recording);
    for (int fault = 0; fault < RECORDING_FAULTS; fault++)
        if (faults[fault].count)
            report_fault(input, (enum recording_fault)fault, &faults[fault]);
}

static void visit_all(struct decision_input *input, struct recording *recording, decision_visit *visit,
                      void *owner)
{
    struct recording_line line;
    struct decision decision;
    const char *missing;
    bool going = true;
    input->records = 0;
    while (going && recording_next(recording, &line)) {
        if (!decision_read(line.value, &decision, &missing)) {
            recording_add_fault(recording, RECORDING_NOT_OBJECT, &line, missing);
            continue;
        }
        input->records++;
        going = visit(owner, &decision, &line);
    }
}

bool decision_input_walk(struct decision_input *input, bool report, decision_visit *visit, void *owner)
{
    struct recording *recording;
    struct why why;
    if (recording_open(input->paths, input->count, NULL, &recording, &why) != OK) {
        term_error(input->command->name, "%s", why.text);
        return false;
    }
    visit_all(input, recording, visit, owner);
    input->cut_short |= recording_faults(recording)[RECORDING_FAILED].count > 0;
    if (report)
        report_faults(input, recording);
    recording_close(recording);
    return true;
}

/* ---- a log that is being written ---- */

struct following {
    struct decision_input *input;
    const struct recording *recording;
    uint64_t reported; /* faults */
    recording_wait *wait;
    void *owner;
};

/* What cannot be read is reported when it comes, since there is no end at which it could be. */
static bool report_and_wait(void *owner)
{
    struct following *f = owner;
    const struct recording_count *faults = f->recording ? recording_faults(f->recording) : NULL;
    uint64_t count = 0;
    for (int fault = 0; faults && fault < RECORDING_FAULTS; fault++)
        count += faults[fault].count;
    if (count > f->reported)
        report_faults(f->input, f->recording);
    f->reported = count;
    return f->wait(f->owner);
}

bool decision_input_follow(struct decision_input *input, recording_wait *wait, decision_visit *visit,
                           void *owner)
{
    struct recording *recording;
    struct following following = {.input = input, .wait = wait, .owner = owner};
    struct recording_options options = {.wait = report_and_wait, .owner = &following};
    struct why why;
    if (recording_open(input->paths, input->count, &options, &recording, &why) != OK) {
        term_error(input->command->name, "%s", why.text);
        return false;
    }
    following.recording = recording;
    visit_all(input, recording, visit, owner);
    recording_close(recording);
    return true;
}

void decision_input_report_left_out(const struct decision_input *input,
                                    const struct decision_outcomes *outcomes)
{
    uint64_t count = decision_outcomes_left_out(outcomes);
    if (count)
        term_error(input->command->name,
                   "what followed on %llu refusals is not known: at most %u of a session at the same time, "
                   "and %u in all, are followed up",
                   (unsigned long long)count, OUTCOME_OPEN_MAX, OUTCOME_REFUSALS_MAX);
}

uint64_t decision_input_records(const struct decision_input *input)
{
    return input->records;
}

bool decision_input_is_cut_short(const struct decision_input *input)
{
    return input->cut_short;
}
