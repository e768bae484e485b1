/* The list as a file that stays open: the watchdog writes from a signal handler, which cannot open one. */
#include "state/quarantine.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"
#include "sandbox/deadline.h"
#include "state/state_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define QUARANTINE_HASH_DIGITS 16u

struct quarantine {
    struct arena *arena;
    const char *path;
    int fd; /* -1: not available */
    struct policy_stall list[QUARANTINE_MAX];
    size_t count;
};

/* False: the line does not begin with a hash. */
static bool read_hash(struct str line, uint64_t *out)
{
    *out = 0;
    if (line.len < QUARANTINE_HASH_DIGITS + 2 || line.at[QUARANTINE_HASH_DIGITS] != ' ')
        return false;
    for (size_t i = 0; i < QUARANTINE_HASH_DIGITS; i++) {
        const char *digit = memchr("0123456789abcdef", line.at[i], 16);
        if (!digit)
            return false;
        *out = *out << 4 | (uint64_t)(digit - "0123456789abcdef");
    }
    return true;
}

static void read_line(struct quarantine *q, struct str line)
{
    uint64_t text;
    if (!line.len)
        return;
    if (!read_hash(line, &text))
        log_event(LOG_WARN, "quarantine_line_ignored", LOG_TEXT("file", q->path), LOG_STR("line", line),
                  LOG_TEXT("expected", "<16 hex digits> <policy's file>"));
    else if (q->count < QUARANTINE_MAX)
        q->list[q->count++] =
            (struct policy_stall){arena_dup(q->arena, str_from(line, QUARANTINE_HASH_DIGITS + 1)), text};
}

struct quarantine *quarantine_new(const struct config *config)
{
    struct arena *arena = arena_new();
    struct quarantine *q = ARENA_NEW(arena, struct quarantine);
    q->arena = arena;
    q->path = state_dir_path(arena, config, "quarantine");
    q->fd = open(q->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (q->fd < 0) {
        log_event(
            LOG_WARN, "quarantine_unavailable", LOG_TEXT("file", q->path), LOG_TEXT("why", strerror(errno)),
            LOG_TEXT("fix", "give the daemon a folder it may write to (config state): without one, a policy "
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
    deadline_set_stall_fd(q->fd);
    return q;
}

void quarantine_free(struct quarantine *q, bool remove_empty)
{
    if (!q)
        return;
    deadline_set_stall_fd(0);
    if (q->fd >= 0 && remove_empty && lseek(q->fd, 0, SEEK_END) == 0)
        unlink(q->path);
    if (q->fd >= 0)
        close(q->fd);
    arena_free(q->arena);
}

const struct policy_stall *quarantine_stalls(const struct quarantine *q, size_t *count)
{
    *count = q->count;
    return q->list;
}

const char *quarantine_path(const struct quarantine *q)
{
    return q->path;
}

void quarantine_keep(struct quarantine *q, const struct policy_stall *stalls, size_t count)
{
    size_t kept = 0, before = q->count;
    for (size_t i = 0; i < q->count; i++) {
        size_t n = 0;
        while (n < count && !(stalls[n].text == q->list[i].text && str_eq(stalls[n].file, q->list[i].file)))
            n++;
        if (n < count)
            q->list[kept++] = q->list[i];
        else
            log_event(LOG_INFO, "quarantine_lifted", LOG_STR("file", q->list[i].file));
    }
    q->count = kept;
    for (size_t i = 0; i < kept; i++)
        log_event(LOG_ERROR, "policy_quarantined", LOG_STR("file", q->list[i].file),
                  LOG_TEXT("why", "it stalled the process: its tool's calls fail"),
                  LOG_TEXT("fix", "change the file, or remove its line from the list and restart"),
                  LOG_TEXT("list", q->path));
    if (kept == before || q->fd < 0)
        return;
    struct buf text = {0};
    for (size_t i = 0; i < kept; i++)
        buf_printf(&text, "%016" PRIx64 " " STR_FMT "\n", q->list[i].text, STR_ARG(q->list[i].file));
    struct str all = buf_view(&text);
    /* In place: the watchdog has this file open. */
    if (ftruncate(q->fd, 0) != 0 || (all.len && write(q->fd, all.at, all.len) != (ssize_t)all.len))
        log_event(LOG_ERROR, "quarantine_write_failed", LOG_TEXT("file", q->path),
                  LOG_TEXT("why", strerror(errno)));
    buf_clear(&text);
}
