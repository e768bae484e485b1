/* The sinks of the records, and what the log says of them. */
#include "gate/decision_log.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/log.h"
#include "gate/call.h"
#include "gate/decision_mask.h"
#include "gate/decision_record.h"
#include "io/file.h"
#include "io/record_sink.h"
#include "json/write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SINKS_MAX       2u /* a file, journald */
#define KEY_BYTES       (2 * SIPHASH_KEY_BYTES)
#define LINE_KEPT_BYTES 1048576u
#define BYTES_PER_MB    1048576u

struct decision_log {
    struct loop *loop;
    struct config_decisions config;
    struct record_sink *sinks[SINKS_MAX];
    size_t sink_count;
    struct decision_record_options record;
    uint8_t key[KEY_BYTES];
    struct buf line; /* of the last record; its memory is used again */
    uint64_t lost;   /* by sinks that a reload has closed */
    decision_log_tap *tap;
    void *tap_owner;
};

/* ---- the key of the hashes ---- */

/* The key of `file`, or a new one that is kept there. Half a key, or another user's, is replaced. */
static enum err load_key(const char *file, uint8_t key[KEY_BYTES], struct why *why)
{
    struct stat st;
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0)
        return err_set(why, ERR_IO, "%s: %s", file, strerror(errno));
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid()) {
        close(fd);
        return err_set(why, ERR_IO, "%s: expected a file of the daemon's user: remove it", file);
    }
    bool ok = read(fd, key, KEY_BYTES) == (ssize_t)KEY_BYTES && !(st.st_mode & 0077);
    for (size_t i = 0; !ok && i < KEY_BYTES; i += sizeof(uint64_t)) {
        uint64_t random = hash_random();
        memcpy(key + i, &random, sizeof(random));
    }
    if (!ok && (fchmod(fd, 0600) != 0 || ftruncate(fd, 0) != 0 ||
                pwrite(fd, key, KEY_BYTES, 0) != (ssize_t)KEY_BYTES || fsync(fd) != 0))
        err_set(why, ERR_IO, "%s: %s", file, strerror(errno));
    else
        ok = true;
    close(fd);
    return ok ? OK : ERR_IO;
}

/* Without the kept key, hashes of this daemon's life still match each other. */
static void open_key(struct decision_log *log, const char *file)
{
    struct why why;
    bool hashes = log->config.arguments != DECISIONS_FULL || log->config.results != DECISIONS_NONE;
    if (log->config.on && hashes && load_key(file, log->key, &why) != OK)
        log_event(
            LOG_WARN, "decision_key_not_kept", LOG_TEXT("why", why.text),
            LOG_TEXT("effect",
                     "arguments_hash, result.hash and the tags of masked values differ after a restart"));
}

/* ---- sinks ---- */

static const char *kind_name(enum record_sink_kind kind)
{
    return kind == RECORD_SINK_FILE ? "file" : "journald";
}

static void on_sink_changed(void *owner, const struct record_sink_status *s)
{
    (void)owner;
    if (s->down)
        log_event(LOG_ERROR, "decision_log_down", LOG_TEXT("sink", kind_name(s->kind)),
                  LOG_TEXT("why", s->why.text), LOG_NUM("dropped", s->dropped),
                  LOG_TEXT("effect", "calls go on; records are kept for a while, then dropped and counted"));
    else
        log_event(LOG_WARN, "decision_log_up", LOG_TEXT("sink", kind_name(s->kind)),
                  LOG_TEXT("path", s->path), LOG_NUM("dropped", s->dropped));
}

/* Those of the configuration. A default file in a folder that cannot be written to is no reason not to start.
 */
static size_t list_sinks(const struct config_decisions *c, const struct decision_log_files *files,
                         struct record_sink_options list[SINKS_MAX])
{
    size_t count = 0;
    uint32_t mb = c->max_mb                          ? c->max_mb
                  : !c->file && files->beside_socket ? DECISIONS_SOCKET_MB
                                                     : DECISIONS_FILE_MB;
    if (c->on && c->to_file)
        list[count++] = (struct record_sink_options){.kind = RECORD_SINK_FILE,
                                                     .path = c->file ? c->file : files->records,
                                                     .max_bytes = (uint64_t)mb * BYTES_PER_MB,
                                                     .keep = c->keep};
    if (c->on && c->journald)
        list[count++] = (struct record_sink_options){
            .kind = RECORD_SINK_JOURNAL, .path = c->journald, .identifier = "toolgate-decisions"};
    return count;
}

static void open_sinks(struct decision_log *log, const struct decision_log_files *files)
{
    struct record_sink_options list[SINKS_MAX];
    size_t count = list_sinks(&log->config, files, list);
    for (size_t i = 0; i < count; i++) {
        struct record_sink *sink = record_sink_new(log->loop, &list[i], on_sink_changed, log);
        log->sinks[log->sink_count++] = sink;
        record_sink_reopen(sink); /* now, so that it is known whether it can be written to */
    }
}

static void close_sinks(struct decision_log *log)
{
    for (size_t i = 0; i < log->sink_count; i++) {
        struct record_sink_status status;
        record_sink_status(log->sinks[i], &status);
        uint64_t lost = record_sink_free(log->sinks[i]);
        log->lost += status.dropped + lost;
        if (lost)
            log_event(LOG_ERROR, "decision_log_lost", LOG_NUM("records", lost));
    }
    log->sink_count = 0;
}

/* ---- the log ---- */

static void take_config(struct decision_log *log, const struct config_decisions *config)
{
    log->config = *config;
    decision_mask_free(log->record.mask);
    log->record.mask = decision_mask_new(config->mask, config->mask_count, log->key);
    log->record.arguments = (enum decisions_detail)config->arguments;
    log->record.results = (enum decisions_detail)config->results;
    log->record.key = log->key;
}

enum err decision_log_new(struct loop *loop, const struct config_decisions *config,
                          const struct decision_log_files *files, struct decision_log **out, struct why *why)
{
    *out = NULL;
    struct record_sink_options list[SINKS_MAX];
    list_sinks(config, files, list);
    if (config->on && config->to_file && config->file && record_sink_check(&list[0], why) != OK) {
        err_prefix(why, "decisions.file");
        return ERR_IO;
    }
    struct decision_log *log = calloc(1, sizeof(*log));
    if (!log)
        abort();
    log->loop = loop;
    take_config(log, config);
    open_key(log, files->key);
    open_sinks(log, files);
    *out = log;
    return OK;
}

void decision_log_configure(struct decision_log *log, const struct config_decisions *config,
                            const struct decision_log_files *files)
{
    bool same = config_decisions_same_sinks(&log->config, config);
    if (!same)
        close_sinks(log);
    take_config(log, config);
    open_key(log, files->key);
    if (!same)
        open_sinks(log, files);
}

bool decision_log_is_on(const struct decision_log *log)
{
    return log && (log->sink_count || log->tap);
}

void decision_log_reopen(struct decision_log *log)
{
    for (size_t i = 0; i < log->sink_count; i++)
        record_sink_reopen(log->sinks[i]);
}

void decision_log_leave_loop(struct decision_log *log)
{
    for (size_t i = 0; i < log->sink_count; i++)
        record_sink_leave_loop(log->sinks[i]);
}

void decision_log_free(struct decision_log *log)
{
    if (!log)
        return;
    close_sinks(log);
    decision_mask_free(log->record.mask);
    buf_clear(&log->line);
    free(log);
}

void decision_log_call(struct decision_log *log, struct call *call)
{
    if (!log->sink_count && !log->tap)
        return;
    log->line.len = 0;
    decision_record_write(&log->line, &log->record, call);
    for (size_t i = 0; i < log->sink_count; i++)
        record_sink_add(log->sinks[i], buf_view(&log->line));
    if (log->tap)
        log->tap(log->tap_owner, buf_view(&log->line));
    if (log->line.cap > LINE_KEPT_BYTES)
        buf_clear(&log->line);
}

void decision_log_set_tap(struct decision_log *log, decision_log_tap *tap, void *owner)
{
    log->tap = tap;
    log->tap_owner = owner;
}

uint64_t decision_log_dropped(const struct decision_log *log)
{
    uint64_t dropped = log ? log->lost : 0;
    for (size_t i = 0; log && i < log->sink_count; i++) {
        struct record_sink_status status;
        record_sink_status(log->sinks[i], &status);
        dropped += status.dropped;
    }
    return dropped;
}

uint32_t decision_log_sinks_down(const struct decision_log *log)
{
    uint32_t down = 0;
    for (size_t i = 0; log && i < log->sink_count; i++) {
        struct record_sink_status status;
        record_sink_status(log->sinks[i], &status);
        down += status.down;
    }
    return down;
}

void decision_log_write_status(struct json_out *out, const struct decision_log *log)
{
    json_field_open(out, "decisions", '{');
    json_field_bool(out, "on", decision_log_is_on(log));
    json_field_int(out, "dropped", (int64_t)decision_log_dropped(log));
    json_field_open(out, "sinks", '[');
    for (size_t i = 0; log && i < log->sink_count; i++) {
        struct record_sink_status s;
        record_sink_status(log->sinks[i], &s);
        json_open(out, '{');
        json_field_text(out, "kind", kind_name(s.kind));
        json_field_text(out, "path", s.path);
        json_field_text(out, "state", s.down ? "down" : "up");
        if (s.down)
            json_field_text(out, "why", s.why.text);
        json_field_int(out, "written", (int64_t)s.written);
        json_field_int(out, "dropped", (int64_t)s.dropped);
        json_field_int(out, "waiting_bytes", (int64_t)s.waiting_bytes);
        json_close(out, '}');
    }
    json_close(out, ']');
    json_close(out, '}');
}
