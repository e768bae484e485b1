/* Formats an event as one line; log_writer.c writes it. */
#include "base/log.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/log_writer.h"
#include "base/printable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static const char *const level_names[] = {"debug", "info", "warn", "error", "off"};

static struct {
    enum log_level level;
    enum log_format format;
} logger = {LOG_INFO, LOG_FORMAT_TEXT};

enum err log_open(enum log_level level, enum log_format format, const char *path, struct why *why)
{
    int fd = STDERR_FILENO;
    int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC;
    if (path &&
        (fd = open(path, flags | O_NONBLOCK, 0640)) < 0) /* a FIFO without a reader fails, not waits */
        return err_set(why, ERR_IO, "log file %s: %s", path,
                       errno == ENXIO ? "nobody reads this FIFO" : strerror(errno));
    if (path)
        fcntl(fd, F_SETFL, flags & O_APPEND);
    log_writer_set(fd);
    logger.level = level;
    logger.format = format;
    return OK;
}

enum log_level log_quiet(void)
{
    enum log_level level = logger.level;
    logger.level = LOG_OFF;
    return level;
}

void log_level_set(enum log_level level)
{
    logger.level = level;
}

enum err log_level_named(struct str name, enum log_level *out)
{
    for (size_t i = 0; i < sizeof(level_names) / sizeof(level_names[0]); i++)
        if (str_is(name, level_names[i])) {
            *out = (enum log_level)i;
            return OK;
        }
    return ERR_NOT_FOUND;
}

/* A JSON string, in either format; invalid UTF-8 becomes U+FFFD, and what a terminal would obey or hide an
 * escape. */
static void put_quoted(struct buf *out, struct str s)
{
    const char *end = s.at + s.len;
    buf_byte(out, '"');
    for (const char *p = s.at; p < end;) {
        const char *from = p;
        while (p < end && *p != '"' && *p != '\\' && (unsigned char)*p >= ' ')
            p++;
        printable_write_json(out, (struct str){from, (size_t)(p - from)});
        if (p < end && (unsigned char)*p < ' ')
            buf_printf(out, "\\u%04x", (unsigned)*p);
        else if (p < end)
            buf_printf(out, "\\%c", *p);
        p++;
    }
    buf_byte(out, '"');
}

static void put_field(struct buf *out, const struct log_field *field)
{
    bool json = logger.format == LOG_FORMAT_JSON;
    struct str text = str_cut(field->text, LOG_VALUE_MAX_BYTES);
    bool quoted = json || !printable_is_plain(text);
    buf_printf(out, json ? ",\"%s\":" : " %s=", field->key);
    if (field->is_number) {
        buf_int(out, field->number);
        return;
    }
    for (size_t i = 0; i < text.len && !quoted;
         i++) { /* what is hard to read, or could forge a field or line */
        unsigned char c = (unsigned char)text.at[i];
        quoted = c == ' ' || c == '"' || c == '=' || c == '\\';
    }
    if (quoted)
        put_quoted(out, text);
    else
        buf_str(out, text);
}

bool log_wants(enum log_level level)
{
    return level >= logger.level;
}

static void put_event(struct buf *line, enum log_level level, const char *event,
                      const struct log_field *fields)
{
    bool json = logger.format == LOG_FORMAT_JSON;
    int64_t now = clock_wall_ms();
    time_t seconds = (time_t)(now / 1000);
    struct tm tm;
    char stamp[32];
    gmtime_r(&seconds, &tm);
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
    buf_printf(line, json ? "{\"time\":\"%s.%03dZ\",\"level\":\"%s\",\"event\":\"%s\"" : "%s.%03dZ %s %s",
               stamp, (int)(now % 1000), level_names[level], event);
    for (; fields->key; fields++)
        if (fields->is_number || fields->text.len)
            put_field(line, fields);
    buf_text(line, json ? "}\n" : "\n");
}

void log_write(enum log_level level, const char *event, const struct log_field *fields)
{
    struct buf line = {0};
    if (!log_wants(level))
        return;
    put_event(&line, level, event, fields);
    log_writer_write(buf_view(&line));
    buf_clear(&line);
}

static void put_dropped(struct buf *line, uint64_t count)
{
    put_event(line, LOG_WARN, "log_lines_dropped",
              (const struct log_field[]){LOG_NUM("lines", count), {.key = NULL}});
}

void log_never_wait(void)
{
    log_writer_never_wait(put_dropped);
}

uint64_t log_lines_dropped(void)
{
    return log_writer_dropped();
}
