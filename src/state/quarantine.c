/* The list as a file that stays open: the watchdog writes from a signal handler, which cannot open one. */
#include "state/quarantine.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "io/file.h"
#include "sandbox/fault_record.h"
#include "state/state_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HASH_DIGITS 16u

/* One line. */
struct fault {
    struct str file;
    uint64_t text, caller; /* caller 0: while loading */
    int64_t at_s;
    bool crashed;
};

struct quarantine {
    struct arena *arena;
    const char *path;
    int fd; /* -1: not available */
    struct fault faults[QUARANTINE_MAX];
    size_t count;
    struct policy_stall stalls[QUARANTINE_MAX]; /* what quarantine_stalls returned last */
    size_t stall_count;
    struct policy_stall
        held[QUARANTINE_MAX]; /* what does not run: in the serving generation, at first in the list */
    size_t held_count;
};

static int64_t now_s(void)
{
    return clock_wall_ms() / 1000;
}

/* Takes 16 hex digits and a space from the front. */
static bool take_hash(struct str *line, uint64_t *out)
{
    *out = 0;
    if (line->len < HASH_DIGITS + 2 || line->at[HASH_DIGITS] != ' ')
        return false;
    for (size_t i = 0; i < HASH_DIGITS; i++) {
        const char *digit = memchr("0123456789abcdef", line->at[i], 16);
        if (!digit)
            return false;
        *out = *out << 4 | (uint64_t)(digit - "0123456789abcdef");
    }
    *line = str_from(*line, HASH_DIGITS + 1);
    return true;
}

/* Takes "1790000000 " from the front. */
static bool take_seconds(struct str *line, int64_t *out)
{
    size_t i = 0;
    for (*out = 0; i < line->len && i < 15 && line->at[i] >= '0' && line->at[i] <= '9'; i++)
        *out = *out * 10 + (line->at[i] - '0');
    if (!i || i == line->len || line->at[i] != ' ')
        return false;
    *line = str_from(*line, i + 1);
    return true;
}

static bool take_kind(struct str *line, bool *crashed)
{
    *crashed = str_starts(*line, "crash ");
    if (!*crashed && !str_starts(*line, "stall "))
        return false;
    *line = str_from(*line, 6);
    return true;
}

static void read_line(struct quarantine *q, struct str line)
{
    struct fault fault = {.at_s = 0};
    struct str rest = line;
    if (!line.len)
        return;
    if (!take_hash(&rest, &fault.text)) {
        log_event(
            LOG_WARN, "quarantine_line_ignored", LOG_TEXT("file", q->path), LOG_STR("line", line),
            LOG_TEXT("expected", "<16 hex digits> <seconds> <16 hex digits> stall|crash <policy's file>"));
        return;
    }
    struct str file = rest;
    if (take_seconds(&rest, &fault.at_s) && take_hash(&rest, &fault.caller) &&
        take_kind(&rest, &fault.crashed))
        file = rest;
    else
        fault = (struct fault){.text = fault.text, .at_s = now_s()};
    if (q->count == QUARANTINE_MAX) /* the newest lines are at the end */
        memmove(q->faults, q->faults + 1, --q->count * sizeof(q->faults[0]));
    fault.file = arena_dup(q->arena, file);
    q->faults[q->count++] = fault;
}

struct quarantine *quarantine_new(const struct config *config)
{
    struct arena *arena = arena_new();
    struct quarantine *q = ARENA_NEW(arena, struct quarantine);
    q->arena = arena;
    q->path = state_dir_path(arena, config, "quarantine");
    struct why why;
    q->fd = open(q->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (q->fd < 0) {
        err_set(&why, ERR_IO, "%s", strerror(errno));
    } else if (file_check_private_fd(q->fd, q->path, &why) != OK) {
        close(q->fd);
        q->fd = -1;
    }
    if (q->fd < 0) {
        log_event(LOG_WARN, "quarantine_unavailable", LOG_TEXT("file", q->path), LOG_TEXT("why", why.text),
                  LOG_TEXT("fix",
                           "give the daemon a folder it may write to (config state): without one, a policy "
                           "that stalls the process will do so again"));
        return q;
    }
    /* Of a larger file only the end is read: it has the newest lines. */
    char *text = arena_alloc(q->arena, QUARANTINE_FILE_MAX_BYTES);
    off_t size = lseek(q->fd, 0, SEEK_END), most = QUARANTINE_FILE_MAX_BYTES;
    ssize_t got = pread(q->fd, text, QUARANTINE_FILE_MAX_BYTES, size > most ? size - most : 0);
    struct str rest = {text, got > 0 ? (size_t)got : 0};
    while (rest.len) {
        const char *end = memchr(rest.at, '\n', rest.len);
        size_t len = end ? (size_t)(end - rest.at) : rest.len;
        read_line(q, (struct str){rest.at, len});
        rest = str_from(rest, len + 1);
    }
    fault_record_open(q->fd);
    quarantine_stalls(q, &q->held_count);
    memcpy(q->held, q->stalls, q->held_count * sizeof(q->held[0]));
    return q;
}

void quarantine_free(struct quarantine *q, bool remove_empty)
{
    if (!q)
        return;
    fault_record_open(0);
    if (q->fd >= 0 && remove_empty && lseek(q->fd, 0, SEEK_END) == 0)
        unlink(q->path);
    if (q->fd >= 0)
        close(q->fd);
    arena_free(q->arena);
}

static bool is_of(const struct fault *fault, struct str file, uint64_t text)
{
    return fault->text == text && str_eq(fault->file, file);
}

static bool still_counts(const struct fault *fault, int64_t now)
{
    return !fault->caller || now - fault->at_s < QUARANTINE_LASTS_S;
}

/* The first fault of the list with the same text and, if `caller` is not NULL, the same caller. */
static size_t first_like(const struct quarantine *q, const struct fault *fault, bool same_caller, int64_t now)
{
    size_t i = 0;
    while (!(is_of(&q->faults[i], fault->file, fault->text) && still_counts(&q->faults[i], now) &&
             (!same_caller || q->faults[i].caller == fault->caller)))
        i++;
    return i;
}

static bool is_enough(const struct quarantine_faults *f)
{
    return f->in_load || f->sessions >= QUARANTINE_SESSIONS || f->count >= QUARANTINE_FAULTS;
}

/* Sums up what counts at the time `now` of the text of `like`. */
static struct quarantine_faults sum_up(const struct quarantine *q, const struct fault *like, int64_t now)
{
    struct quarantine_faults sum = {.file = like->file, .text = like->text};
    for (size_t i = 0; i < q->count; i++) {
        const struct fault *fault = &q->faults[i];
        if (!is_of(fault, like->file, like->text) || !still_counts(fault, now))
            continue;
        sum.in_load |= !fault->caller;
        sum.crashed |= fault->crashed;
        sum.count += fault->caller != 0;
        sum.sessions += fault->caller && first_like(q, fault, true, now) == i;
        sum.last_s = fault->at_s > sum.last_s ? fault->at_s : sum.last_s;
    }
    sum.quarantined = is_enough(&sum);
    return sum;
}

/* When one fault after the other is forgotten, from when on is it no longer enough? */
static int64_t end_of(const struct quarantine *q, const struct quarantine_faults *sum, int64_t now)
{
    int64_t end = 0;
    if (sum->in_load)
        return 0;
    for (size_t i = 0; i < q->count; i++) {
        const struct fault *fault = &q->faults[i];
        int64_t at = fault->at_s + QUARANTINE_LASTS_S;
        if (!is_of(fault, sum->file, sum->text) || at <= now || (end && at >= end))
            continue;
        struct quarantine_faults then = sum_up(q, fault, at);
        if (!sum->quarantined ? !then.count : !then.quarantined)
            end = at;
    }
    return end;
}

size_t quarantine_list(const struct quarantine *q, struct quarantine_faults *out, size_t most)
{
    int64_t now = now_s();
    size_t count = 0;
    for (size_t i = 0; i < q->count && count < most; i++) {
        const struct fault *fault = &q->faults[i];
        if (!still_counts(fault, now) || first_like(q, fault, false, now) != i)
            continue;
        out[count] = sum_up(q, fault, now);
        out[count].until_s = end_of(q, &out[count], now);
        count++;
    }
    return count;
}

const struct policy_stall *quarantine_stalls(struct quarantine *q, size_t *count)
{
    struct arena *arena = arena_new();
    struct quarantine_faults *list = ARENA_ARRAY(arena, struct quarantine_faults, QUARANTINE_MAX);
    size_t all = quarantine_list(q, list, QUARANTINE_MAX);
    q->stall_count = 0;
    for (size_t i = 0; i < all; i++)
        if (list[i].quarantined)
            q->stalls[q->stall_count++] = (struct policy_stall){list[i].file, list[i].text};
    arena_free(arena);
    *count = q->stall_count;
    return q->stalls;
}

const char *quarantine_path(const struct quarantine *q)
{
    return q->path;
}

static bool has(const struct policy_stall *stalls, size_t count, const struct fault *fault)
{
    for (size_t i = 0; i < count; i++)
        if (is_of(fault, stalls[i].file, stalls[i].text))
            return true;
    return false;
}

static void write_list(const struct quarantine *q)
{
    struct buf text = {0};
    for (size_t i = 0; i < q->count; i++)
        buf_printf(&text, "%016" PRIx64 " %" PRId64 " %016" PRIx64 " %s " STR_FMT "\n", q->faults[i].text,
                   q->faults[i].at_s, q->faults[i].caller, q->faults[i].crashed ? "crash" : "stall",
                   STR_ARG(q->faults[i].file));
    struct str all = buf_view(&text);
    /* In place: the watchdog has this file open. */
    if (ftruncate(q->fd, 0) != 0 || (all.len && write(q->fd, all.at, all.len) != (ssize_t)all.len))
        log_event(LOG_ERROR, "quarantine_write_failed", LOG_TEXT("file", q->path),
                  LOG_TEXT("why", strerror(errno)));
    buf_clear(&text);
}

struct str quarantine_sentence(struct arena *arena, const struct quarantine_faults *f)
{
    const char *what = f->crashed ? "crashed" : "stalled";
    if (f->in_load)
        return arena_printf(arena, "it %s the process while it was loaded", what);
    return arena_printf(arena, "it %s the process %zu time%s within a day, in calls of %zu session%s", what,
                        f->count, f->count == 1 ? "" : "s", f->sessions, f->sessions == 1 ? "" : "s");
}

static void log_all(const struct quarantine *q)
{
    struct arena *arena = arena_new();
    struct quarantine_faults *list = ARENA_ARRAY(arena, struct quarantine_faults, QUARANTINE_MAX);
    size_t count = quarantine_list(q, list, QUARANTINE_MAX);
    for (size_t i = 0; i < count; i++) {
        struct str why = quarantine_sentence(arena, &list[i]);
        if (list[i].quarantined)
            log_event(LOG_ERROR, "policy_quarantined", LOG_STR("file", list[i].file), LOG_STR("why", why),
                      LOG_TEXT("effect", "its tool's calls fail"),
                      LOG_TEXT("fix", "change the file, or remove its lines from the list and restart"),
                      LOG_TEXT("list", q->path));
        else
            log_event(LOG_ERROR, "policy_suspected", LOG_STR("file", list[i].file), LOG_STR("why", why),
                      LOG_TEXT("effect", "it runs; after more such calls it is quarantined for a day"),
                      LOG_TEXT("fix", "change the file"), LOG_TEXT("list", q->path));
    }
    arena_free(arena);
}

void quarantine_keep(struct quarantine *q, const struct policy_stall *stalls, size_t count)
{
    size_t kept = 0, before = q->count;
    int64_t now = now_s();
    for (size_t i = 0; i < q->held_count; i++)
        if (!has(stalls, count, &(struct fault){.file = q->held[i].file, .text = q->held[i].text}))
            log_event(LOG_INFO, "quarantine_lifted", LOG_STR("file", q->held[i].file));
    for (size_t i = 0; i < before; i++) {
        const struct fault *fault = &q->faults[i];
        bool changed = has(q->stalls, q->stall_count, fault) && !has(stalls, count, fault);
        if (still_counts(fault, now) && !changed)
            q->faults[kept++] = *fault;
    }
    q->count = kept;
    q->held_count = 0;
    for (size_t i = 0; i < q->stall_count; i++) /* their names live as long as the list */
        if (has(stalls, count, &(struct fault){.file = q->stalls[i].file, .text = q->stalls[i].text}))
            q->held[q->held_count++] = q->stalls[i];
    log_all(q);
    if (kept != before && q->fd >= 0)
        write_list(q);
}

int64_t quarantine_next_s(const struct quarantine *q)
{
    int64_t now = now_s(), next = -1;
    for (size_t i = 0; i < q->count; i++) {
        if (!has(q->held, q->held_count, &q->faults[i]))
            continue;
        struct quarantine_faults sum = sum_up(q, &q->faults[i], now);
        int64_t end = sum.quarantined ? end_of(q, &sum, now) : now;
        int64_t left = end > now ? end - now : 0;
        if (!sum.in_load && (next < 0 || left < next))
            next = left;
    }
    return next;
}
