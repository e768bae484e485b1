/* JSON from a file: tool lists, schemas and arguments that an operator names. */
#include "base/arena.h"
#include "io/file.h"
#include "json/parse.h"

#define FILE_MAX_NODES 10000000u /* the operator's own file: a higher number is a mistake */

static char *end_of_string(char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        at += *at == '\\' && at + 1 < end;
    return at < end ? at + 1 : at;
}

/* The end of the comment at `at`, or NULL if none exists. */
static char *end_of_comment(char *at, char *end)
{
    if (end - at < 2 || at[0] != '/' || (at[1] != '/' && at[1] != '*'))
        return NULL;
    struct str rest = {at + 2, (size_t)(end - at - 2)};
    char *close = at[1] == '/' ? memchr(rest.at, '\n', rest.len) : memmem(rest.at, rest.len, "*/", 2);
    return !close ? end : at[1] == '/' ? close : close + 2;
}

static void blank(char *from, const char *to)
{
    for (; from < to; from++)
        if (*from != '\n')
            *from = ' ';
}

/* Replaces comments and trailing commas by spaces, in place, so that lines and offsets stay the same. */
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

typedef enum err file_reader(struct arena *arena, const char *path, size_t max_bytes, struct str *out,
                             struct why *why);

static enum err read_with(file_reader *read, bool commented, struct arena *arena, const char *path,
                          size_t max_bytes, struct json *out, struct why *why)
{
    const struct json_limits limits = {.nodes = FILE_MAX_NODES};
    struct json_error error;
    struct str text;
    size_t line = 1;
    enum err err = read(arena, path, max_bytes, &text, why);
    if (err)
        return err;
    if (commented) {
        char *plain = arena_copy(arena, text);
        blank_comments(plain, plain + text.len);
        text.at = plain;
    }
    err = json_parse(arena, text, &limits, out, &error);
    for (size_t i = 0; err && i < error.offset && i < text.len; i++)
        line += text.at[i] == '\n';
    if (err)
        err_set(why, err, "%s:%zu: %s", path, line, error.text);
    return commented && error.soft ? OK : err;
}

enum err json_read_file(struct arena *arena, const char *path, size_t max_bytes, struct json *out,
                        struct why *why)
{
    return read_with(file_read, false, arena, path, max_bytes, out, why);
}

enum err json_read_commented_file(struct arena *arena, const char *path, size_t max_bytes, struct json *out,
                                  struct why *why)
{
    return read_with(file_read, true, arena, path, max_bytes, out, why);
}

enum err json_read_input(struct arena *arena, const char *path, size_t max_bytes, struct json *out,
                         struct why *why)
{
    return read_with(file_read_input, false, arena, path, max_bytes, out, why);
}
