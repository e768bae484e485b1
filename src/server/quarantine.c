/* The list as a file that stays open: the watchdog writes from a signal handler, which cannot open one. */
#include "server/quarantine.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"
#include "io/file.h"
#include "json/write.h"
#include "policy/policy_hooks.h"
#include "sandbox/deadline.h"
#include "server/state_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define HASH_DIGITS 16u

struct quarantine {
    struct arena *arena;
    const char *path;
    int fd; /* -1: not available */
    struct fault {
        struct policy_stall stall;
        unsigned count;
        bool crashed;
    } faults[QUARANTINE_MAX]; /* one for each text */
    size_t count;
    struct policy_stall stalls[QUARANTINE_MAX]; /* the texts that do not run */
    size_t stall_count;
};

static bool same_text(const struct policy_stall *a, const struct policy_stall *b)
{
    return a->text == b->text && str_eq(a->file, b->file);
}

static struct fault *find_or_add(struct quarantine *q, struct policy_stall stall)
{
    for (size_t i = 0; i < q->count; i++)
        if (same_text(&q->faults[i].stall, &stall))
            return &q->faults[i];
    if (q->count == QUARANTINE_MAX) /* the newest are at the end */
        memmove(q->faults, q->faults + 1, --q->count * sizeof(q->faults[0]));
    stall.file = arena_dup(q->arena, stall.file);
    q->faults[q->count] = (struct fault){.stall = stall};
    return &q->faults[q->count++];
}

/* "<16 hex digits> stall|crash <file>" */
static bool parse_line(struct str line, struct policy_stall *stall, bool *crashed)
{
    for (size_t i = 0; i < HASH_DIGITS; i++) {
        const char *digit = i < line.len ? memchr("0123456789abcdef", line.at[i], 16) : NULL;
        if (!digit)
            return false;
        stall->text = stall->text << 4 | (uint64_t)(digit - "0123456789abcdef");
    }
    line = str_from(line, HASH_DIGITS);
    *crashed = str_starts(line, " crash ");
    stall->file = str_from(line, sizeof(" crash ") - 1);
    return (*crashed || str_starts(line, " stall ")) && stall->file.len;
}

static void read_line(struct quarantine *q, struct str line)
{
    struct policy_stall stall = {.text = 0};
    bool crashed;
    if (!line.len)
        return;
    if (!parse_line(line, &stall, &crashed)) {
        log_event(LOG_WARN, "quarantine_line_ignored", LOG_TEXT("file", q->path), LOG_STR("line", line),
                  LOG_TEXT("expected", "<16 hex digits> stall|crash <policy's file>"));
        return;
    }
    struct fault *fault = find_or_add(q, stall);
    fault->crashed |= crashed;
    if (++fault->count == QUARANTINE_FAULTS)
        q->stalls[q->stall_count++] = fault->stall;
}

/* Of a larger file only the end is read: it has the newest lines. */
static void read_list(struct quarantine *q)
{
    char *text = arena_alloc(q->arena, QUARANTINE_FILE_MAX_BYTES);
    off_t size = lseek(q->fd, 0, SEEK_END), most = QUARANTINE_FILE_MAX_BYTES;
    ssize_t got = pread(q->fd, text, QUARANTINE_FILE_MAX_BYTES, size > most ? size - most : 0);
    struct str rest = {text, got > 0 ? (size_t)got : 0};
    while (rest.len && q->stall_count < QUARANTINE_MAX) {
        const char *end = memchr(rest.at, '\n', rest.len);
        size_t len = end ? (size_t)(end - rest.at) : rest.len;
        read_line(q, (struct str){rest.at, len});
        rest = str_from(rest, len + 1);
    }
}

struct quarantine *quarantine_new(const struct config *config)
{
    struct arena *arena = arena_new();
    struct quarantine *q = ARENA_NEW(arena, struct quarantine);
    struct why why;
    q->arena = arena;
    q->path = state_dir_path(arena, config, "quarantine");
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
    read_list(q);
    fault_record_open(q->fd);
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

const struct policy_stall *quarantine_stalls(const struct quarantine *q, size_t *count)
{
    *count = q->stall_count;
    return q->stalls;
}

static void write_list(const struct quarantine *q)
{
    struct buf text = {0};
    for (size_t i = 0; i < q->count; i++)
        for (unsigned n = 0; n < q->faults[i].count && n < QUARANTINE_FAULTS; n++)
            buf_printf(&text, "%016" PRIx64 " %s " STR_FMT "\n", q->faults[i].stall.text,
                       q->faults[i].crashed ? "crash" : "stall", STR_ARG(q->faults[i].stall.file));
    struct str all = buf_view(&text);
    /* In place: the watchdog has this file open. */
    if (ftruncate(q->fd, 0) != 0 || (all.len && write(q->fd, all.at, all.len) != (ssize_t)all.len))
        log_event(LOG_ERROR, "quarantine_write_failed", LOG_TEXT("file", q->path),
                  LOG_TEXT("why", strerror(errno)));
    buf_clear(&text);
}

static bool is_held(const struct policy_set *policies, const struct fault *fault)
{
    size_t count;
    const struct policy_stall *stalls = policy_set_stalls(policies, &count);
    for (size_t i = 0; i < count; i++)
        if (same_text(&stalls[i], &fault->stall))
            return true;
    return false;
}

/* A policy of this file has another text by now. */
static bool has_changed(const struct policy_set *policies, const struct fault *fault)
{
    for (size_t i = 0; i < policy_set_count(policies); i++)
        if (str_eq(policy_set_at(policies, i)->file, fault->stall.file))
            return policy_set_at(policies, i)->source_hash != fault->stall.text;
    return false;
}

static struct str how_often(struct arena *arena, const struct fault *fault)
{
    return arena_printf(arena, "it %s the process %u time%s", fault->crashed ? "crashed" : "stalled",
                        fault->count, fault->count == 1 ? "" : "s");
}

static void log_fault(const struct quarantine *q, const struct fault *fault)
{
    struct arena *arena = arena_new();
    bool held = fault->count >= QUARANTINE_FAULTS;
    log_event(LOG_ERROR, held ? "policy_quarantined" : "policy_suspected", LOG_STR("file", fault->stall.file),
              LOG_STR("why", how_often(arena, fault)),
              LOG_TEXT("effect", held ? "its tool's calls fail" : "it runs until it does so again"),
              LOG_TEXT("fix", held ? "change the file, or remove its lines from the list and restart"
                                   : "change the file"),
              LOG_TEXT("list", q->path));
    arena_free(arena);
}

void quarantine_keep(struct quarantine *q, const struct policy_set *policies)
{
    size_t kept = 0, before = q->count;
    q->stall_count = 0;
    for (size_t i = 0; i < before; i++) {
        const struct fault *fault = &q->faults[i];
        bool enough = fault->count >= QUARANTINE_FAULTS;
        if (enough && !is_held(policies, fault)) {
            log_event(LOG_INFO, "quarantine_lifted", LOG_STR("file", fault->stall.file));
            continue;
        }
        if (has_changed(policies, fault))
            continue;
        log_fault(q, fault);
        if (enough)
            q->stalls[q->stall_count++] = fault->stall;
        q->faults[kept++] = *fault;
    }
    q->count = kept;
    if (kept != before && q->fd >= 0)
        write_list(q);
}

static void write_one(const struct quarantine *q, struct json_out *out, const struct policy_set *policies,
                      const struct fault *fault)
{
    struct arena *arena = arena_new();
    json_open(out, '{');
    for (size_t n = 0; n < policy_set_count(policies); n++)
        if (str_eq(policy_set_at(policies, n)->file, fault->stall.file))
            json_field_str(out, "tool", policy_set_at(policies, n)->name);
    json_fields(out, FIELD_STR("file", fault->stall.file),
                FIELD_STR("why", ARENA_JOIN(arena, how_often(arena, fault),
                                            STR_LIT(", so it does not run, and its tool's calls fail"))),
                FIELD_TEXT("fix", "change the file, or remove its lines from the list and restart"),
                FIELD_TEXT("list", q->path));
    json_close(out, '}');
    arena_free(arena);
}

void quarantine_write_status(const struct quarantine *q, struct json_out *out,
                             const struct policy_set *policies)
{
    size_t shown = 0;
    for (size_t i = 0; i < q->count; i++) {
        if (!is_held(policies, &q->faults[i]))
            continue;
        if (!shown++)
            json_field_open(out, "quarantined", '[');
        write_one(q, out, policies, &q->faults[i]);
    }
    if (shown)
        json_close(out, ']');
}
