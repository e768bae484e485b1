/* Each event is one line written by one write(2), so that the lines of several daemons never mix. */
#include "base/log.h"

#include "base/buf.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static const char *const level_names[] = {"debug", "info", "warn", "error", "off"};

static struct {
    enum log_level level;
    enum log_format format;
    int fd;
} logger = {LOG_INFO, LOG_FORMAT_TEXT, STDERR_FILENO};

enum err log_open(enum log_level level, enum log_format format, const char *path, struct why *why)
{
    int fd = STDERR_FILENO;
    if (path && (fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640)) < 0)
        return err_set(why, ERR_IO, "log file %s: %s", path, strerror(errno));
    if (logger.fd != STDERR_FILENO)
        close(logger.fd);
    logger.level = level;
    logger.format = format;
    logger.fd = fd;
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

/* A JSON string, in either format; invalid UTF-8 becomes U+FFFD. */
static void put_quoted(struct buf *out, struct str s)
{
    const char *end = s.at + s.len;
    buf_byte(out, '"');
    for (const char *p = s.at; p < end;) {
        size_t len = str_utf8_length(p, end);
        unsigned char c = (unsigned char)*p;
        if (!len)
            buf_text(out, "\xEF\xBF\xBD");
        else if (c == '"' || c == '\\')
            buf_printf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            buf_printf(out, "\\u%04x", c);
        else
            buf_add(out, p, len);
        p += len ? len : 1;
    }
    buf_byte(out, '"');
}

static void put_field(struct buf *out, const struct log_field *field)
{
    bool json = logger.format == LOG_FORMAT_JSON;
    struct str text = str_cut(field->text, LOG_VALUE_MAX_BYTES);
    bool quoted = json;
    buf_printf(out, json ? ",\"%s\":" : " %s=", field->key);
    if (field->is_number) {
        buf_int(out, field->number);
        return;
    }
    for (size_t i = 0; i < text.len && !quoted;
         i++) { /* what is hard to read, or could forge a field or line */
        unsigned char c = (unsigned char)text.at[i];
        quoted = c <= 0x20 || c == '"' || c == '=' || c == '\\' || c == 0x7f;
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

void log_write(enum log_level level, const char *event, const struct log_field *fields)
{
    if (!log_wants(level))
        return;
    bool json = logger.format == LOG_FORMAT_JSON;
    struct buf line = {0};
    int64_t now = clock_wall_ms();
    time_t seconds = (time_t)(now / 1000);
    struct tm tm;
    char stamp[32];
    gmtime_r(&seconds, &tm);
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
    buf_printf(&line, json ? "{\"time\":\"%s.%03dZ\",\"level\":\"%s\",\"event\":\"%s\"" : "%s.%03dZ %s %s",
               stamp, (int)(now % 1000), level_names[level], event);
    for (; fields->key; fields++)
        if (fields->is_number || fields->text.len)
            put_field(&line, fields);
    buf_text(&line, json ? "}\n" : "\n");
    ssize_t written = write(logger.fd, line.at, line.len);
    (void)written; /* the daemon goes on if its log cannot be written */
    buf_clear(&line);
}
