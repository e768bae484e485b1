/*
 * The log: events, not sentences. `time level event key=value …`, one line
 * each, to stderr or a file. It has no argument values and no
 * secrets; arguments are in the decision log (gate/decision_log.h).
 */
#ifndef TOOLGATE_BASE_LOG_H
#define TOOLGATE_BASE_LOG_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_OFF };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

#define LOG_VALUE_MAX_BYTES 1024u /* a longer value is cut */

/* A field with an empty string is left out of the line. */
struct log_field {
    const char *key; /* NULL ends the list */
    bool is_number;
    struct str text;
    int64_t number;
};

#define LOG_STR(name, value)  ((struct log_field){.key = (name), .text = (value)})
#define LOG_TEXT(name, value) ((struct log_field){.key = (name), .text = str_of(value)})
#define LOG_NUM(name, value)                                                                                 \
    ((struct log_field){.key = (name), .is_number = true, .number = (int64_t)(value)})

/* log_event(LOG_WARN, "policy_error", LOG_STR("tool", name), LOG_TEXT("why", why.text)). The fields of an
 * event that is not logged are not evaluated. */
#define log_event(level, event, ...)                                                                         \
    (log_wants(level) ? log_write((level), (event),                                                          \
                                  (const struct log_field[]){{.key = ""}, ##__VA_ARGS__, {.key = NULL}} + 1) \
                      : (void)0)

bool log_wants(enum log_level level);
void log_write(enum log_level level, const char *event, const struct log_field *fields);

/* The default is LOG_INFO as text on stderr. `path` NULL selects stderr; an existing file is appended to, and
 * reopened by calling again (log rotation). */
enum err log_open(enum log_level level, enum log_format format, const char *path, struct why *why);

#define LOG_QUEUE_MAX_BYTES 1048576u /* of lines that wait for a reader */
#define LOG_CLOSE_MS        1000u    /* how long log_flush waits for a reader that stalls */

/* From now on no line waits for the process that reads the log. For a daemon: until then each line is written
 * at once, however long that takes. */
void log_never_wait(void);

/* Waits for the queued lines, at most LOG_CLOSE_MS. */
void log_flush(void);

/* Since the start, because the reader stalled or the log could not be written. */
uint64_t log_lines_dropped(void);

/* Turns the log off and returns the level to pass to log_level_set later. */
enum log_level log_quiet(void);
void log_level_set(enum log_level level);

#endif
