/*
 * The log is read once: up to its end the last matching lines are kept, then they are printed, then each new
 * one. A second reading could meet another file, because the daemon rotates the log meanwhile.
 */
#include "review/decision_follow.h"

#include "base/arena.h"
#include "json/parse.h"
#include "review/decision_print.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <unistd.h>

#define FOLLOW_LOOK_MS 200 /* how often the file is looked at */

struct kept_line {
    TAILQ_ENTRY(kept_line) entry;
    size_t len;
    char text[];
};

struct follow {
    const struct follow_options *options;
    TAILQ_HEAD(, kept_line) kept;
    unsigned kept_count, shown;
    bool live; /* the end was reached once */
};

static void keep(struct follow *f, struct str text)
{
    struct kept_line *line = malloc(sizeof(*line) + text.len);
    if (!line)
        abort();
    line->len = text.len;
    memcpy(line->text, text.at, text.len);
    TAILQ_INSERT_TAIL(&f->kept, line, entry);
    f->kept_count++;
}

static void drop_first(struct follow *f)
{
    struct kept_line *first = TAILQ_FIRST(&f->kept);
    TAILQ_REMOVE(&f->kept, first, entry);
    f->kept_count--;
    free(first);
}

/* False: nobody reads, or the limit is reached. */
static bool show(struct follow *f, const struct decision *d, struct str text)
{
    const struct follow_options *o = f->options;
    if (o->json) {
        fwrite(text.at, 1, text.len, stdout);
        putchar('\n');
    } else {
        decision_print(d, NULL, o->full);
    }
    f->shown++;
    return !ferror(stdout) && (!o->limit || f->shown < o->limit);
}

static bool show_kept_line(struct follow *f, const struct kept_line *line)
{
    struct arena *arena = arena_new();
    struct json value;
    struct json_error error;
    struct decision decision;
    const char *missing;
    struct str text = {line->text, line->len};
    bool read = json_parse(arena, text, NULL, &value, &error) == OK || error.soft;
    bool going = !read || !decision_read(&value, &decision, &missing) || show(f, &decision, text);
    arena_free(arena);
    return going;
}

static bool show_kept(struct follow *f)
{
    bool going = true;
    struct kept_line *line;
    /* NOLINTBEGIN(clang-analyzer-unix.Malloc): the line that is freed is out of the queue */
    while ((line = TAILQ_FIRST(&f->kept))) {
        going = going && show_kept_line(f, line);
        drop_first(f);
    }
    /* NOLINTEND(clang-analyzer-unix.Malloc) */
    return going;
}

static bool on_record(void *owner, const struct decision *d, const struct recording_line *line)
{
    struct follow *f = owner;
    if (!decision_filter_matches(f->options->filter, d))
        return true;
    if (f->live || f->options->history == FOLLOW_HISTORY_ALL)
        return show(f, d, line->text);
    keep(f, line->text);
    if (f->kept_count > f->options->history)
        drop_first(f);
    return true;
}

/* A reader of our output that has gone, such as `head`, ends the wait. */
static bool on_end(void *owner)
{
    struct follow *f = owner;
    bool going = f->live || show_kept(f);
    struct pollfd out = {.fd = STDOUT_FILENO};
    f->live = true;
    return going && fflush(stdout) == 0 && poll(&out, 1, FOLLOW_LOOK_MS) <= 0;
}

bool decision_follow(struct decision_input *input, const struct follow_options *options)
{
    struct follow f = {.options = options};
    TAILQ_INIT(&f.kept);
    bool opened = decision_input_follow(input, on_end, on_record, &f);
    while (f.kept_count)
        drop_first(&f);
    return opened && fflush(stdout) == 0;
}
