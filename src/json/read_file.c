/* JSON from a file, for tool lists and schemas that an operator names. */
#include "base/arena.h"
#include "json/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX_NODES 10000000u /* a file is its operator's own; only a mistake is bigger */

static size_t line_of(struct str text, size_t offset)
{
    size_t line = 1;
    for (size_t i = 0; i < offset && i < text.len; i++)
        line += text.at[i] == '\n';
    return line;
}

/* One byte more than allowed is asked for, so that too much is noticed whatever the file claims its size is.
 */
static enum err read_all(struct arena *arena, FILE *file, const char *path, size_t max_bytes, struct str *out,
                         struct why *why)
{
    size_t room = 65536 < max_bytes ? 65536 : max_bytes + 1, len = 0;
    char *at = arena_alloc(arena, room);
    for (;;) {
        len += fread(at + len, 1, room - len, file);
        if (len < room || room > max_bytes)
            break;
        size_t more = room * 2 < max_bytes ? room * 2 : max_bytes + 1;
        char *bigger = arena_alloc(arena, more);
        memcpy(bigger, at, len);
        at = bigger;
        room = more;
    }
    if (ferror(file))
        return err_set(why, ERR_IO, "%s: %s", path, strerror(errno));
    if (len > max_bytes)
        return err_set(why, ERR_LIMIT, "%s: expected at most %zu bytes, found more — split it", path,
                       max_bytes);
    *out = (struct str){at, len};
    return OK;
}

/* Opened without waiting: a FIFO would wait for its writer for ever. */
static FILE *open_file(const char *path, struct why *why)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *file = NULL;
    if (fd < 0 || fstat(fd, &st) != 0)
        err_set(why, ERR_IO, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        err_set(why, ERR_IO, "%s: expected a file, got %s", path,
                S_ISDIR(st.st_mode)    ? "a folder"
                : S_ISFIFO(st.st_mode) ? "a FIFO"
                                       : "a device");
    else if (!(file = fdopen(fd, "r")))
        err_set(why, ERR_IO, "%s: %s", path, strerror(errno));
    if (!file && fd >= 0)
        close(fd);
    return file;
}

/* ---- comments ------------------------------------------------------------- */

static char *end_of_string(char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        at += *at == '\\' && at + 1 < end;
    return at < end ? at + 1 : at;
}

static void blank(char *from, const char *to)
{
    for (; from < to; from++)
        if (*from != '\n')
            *from = ' ';
}

/* The end of the comment at `at`; NULL: there is none. */
static char *end_of_comment(char *at, char *end)
{
    if (end - at < 2 || at[0] != '/' || (at[1] != '/' && at[1] != '*'))
        return NULL;
    struct str rest = {at + 2, (size_t)(end - at - 2)};
    char *close = at[1] == '/' ? memchr(rest.at, '\n', rest.len) : memmem(rest.at, rest.len, "*/", 2);
    return !close ? end : at[1] == '/' ? close : close + 2;
}

/* In place and by spaces, so that lines and offsets stay what they are. */
static void blank_comments(char *at, char *end)
{
    char *comma = NULL;
    if (end - at >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
        blank(at, at + 3);
    while (at < end) {
        char *past = end_of_comment(at, end);
        if (past)
            blank(at, past);
        else if (comma && (*at == '}' || *at == ']'))
            *comma = ' ';
        if (!past && !strchr(" \t\r\n", *at))
            comma = *at == ',' ? at : NULL;
        at = past ? past : *at == '"' ? end_of_string(at, end) : at + 1;
    }
}

/* ---- the whole ------------------------------------------------------------ */

static enum err parse_all(struct arena *arena, FILE *file, const char *path, size_t max_bytes, bool commented,
                          struct json *out, struct why *why)
{
    const struct json_limits limits = {.nodes = FILE_MAX_NODES};
    struct json_error fault;
    struct str text = STR_NONE;
    enum err err = read_all(arena, file, path, max_bytes, &text, why);
    fclose(file);
    if (!err && commented)
        blank_comments((char *)text.at, (char *)text.at + text.len);
    if (!err && (err = json_parse(arena, text, &limits, out, &fault)))
        err_set(why, err, "%s:%zu: %s", path, line_of(text, fault.offset), fault.text);
    return err;
}

enum err json_read_file(struct arena *arena, const char *path, size_t max_bytes, struct json *out,
                        struct why *why)
{
    FILE *file = open_file(path, why);
    return file ? parse_all(arena, file, path, max_bytes, false, out, why) : ERR_IO;
}

enum err json_read_commented_file(struct arena *arena, const char *path, size_t max_bytes, struct json *out,
                                  struct why *why)
{
    FILE *file = open_file(path, why);
    return file ? parse_all(arena, file, path, max_bytes, true, out, why) : ERR_IO;
}

enum err json_read_input(struct arena *arena, const char *path, size_t max_bytes, struct json *out,
                         struct why *why)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return err_set(why, ERR_IO, "%s: %s", path, strerror(errno));
    return parse_all(arena, file, path, max_bytes, false, out, why);
}
