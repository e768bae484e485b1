/* See secrets.h. */
#include "upstream/secrets.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/write.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct secret_value {
    struct secret_value *next;
    struct str value;
};

struct filling {
    struct arena *arena;
    struct secrets *used;
    struct buf out;
    struct why *why;
};

/* The longest first: one that another begins with would leave the other's rest to be seen. */
static void mask_from_now(struct filling *f, struct str value)
{
    struct secret_value **at = &f->used->first, *used = ARENA_NEW(f->arena, struct secret_value);
    while (*at && (*at)->value.len > value.len)
        at = &(*at)->next;
    *used = (struct secret_value){*at, value};
    *at = used;
}

/* As it stands inside a text of JSON, without the quotes. */
static struct str as_json(struct arena *arena, struct str value)
{
    struct buf text = buf_in(arena);
    json_write_string(&text, value);
    return (struct str){text.at + 1, text.len - 2};
}

/* A key of many lines is printed line by line. */
static void mask_lines(struct filling *f, struct str value)
{
    while (value.len) {
        const char *end = memchr(value.at, '\n', value.len);
        size_t n = end ? (size_t)(end - value.at) : value.len;
        struct str line = str_trim((struct str){value.at, n});
        struct str escaped = as_json(f->arena, line);
        if (line.len >= SECRET_REDACT_MIN_BYTES)
            mask_from_now(f, line);
        if (line.len >= SECRET_REDACT_MIN_BYTES && !str_eq(escaped, line))
            mask_from_now(f, escaped);
        value = str_from(value, end ? n + 1 : n);
    }
}

static enum err add(struct filling *f, struct str value)
{
    buf_str(&f->out, value);
    if (f->used)
        mask_lines(f, value);
    return OK;
}

/* ---- ${file:/path} ------------------------------------------------------------------------------ */

/* Never waits, as opening a pipe would. */
static int open_file(const char *path)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)))
        return fd;
    close(fd);
    errno = EINVAL;
    return -1;
}

static enum err read_file(struct filling *f, const char *path, struct str *out)
{
    char *bytes = arena_alloc(f->arena, SECRET_FILE_MAX_BYTES + 1);
    size_t len = 0;
    ssize_t n = 0;
    int fd = open_file(path);
    if (fd < 0)
        return err_set(f->why, ERR_IO, "cannot read the file %s: %s", path,
                       errno == EINVAL ? "it is no plain file" : strerror(errno));
    while (len <= SECRET_FILE_MAX_BYTES && (n = read(fd, bytes + len, SECRET_FILE_MAX_BYTES + 1 - len)) > 0)
        len += (size_t)n;
    int error = errno;
    close(fd);
    if (n < 0)
        return err_set(f->why, ERR_IO, "cannot read the file %s: %s", path, strerror(error));
    if (len > SECRET_FILE_MAX_BYTES)
        return err_set(f->why, ERR_LIMIT, "the file %s has more than %u bytes, too many for a secret", path,
                       SECRET_FILE_MAX_BYTES);
    while (len && (bytes[len - 1] == '\n' || bytes[len - 1] == '\r'))
        len--;
    *out = (struct str){bytes, len};
    if (memchr(bytes, '\0', len))
        return err_set(f->why, ERR_PARSE, "the file %s holds a NUL byte: it is no text", path);
    return OK;
}

static enum err fill_file(struct filling *f, struct str path)
{
    struct str text = STR_NONE, name = arena_dup(f->arena, path);
    if (!str_starts(name, "/"))
        return err_set(f->why, ERR_PARSE, "'${file:" STR_FMT "}': expected the file's whole path, from / on",
                       STR_ARG(str_cut(path, 200)));
    enum err err = read_file(f, name.at, &text);
    return err ? err : add(f, text);
}

/* ---- ${NAME} ------------------------------------------------------------------------------------- */

static size_t name_length(struct str s)
{
    size_t n = 0;
    while (n < s.len && (isalnum((unsigned char)s.at[n]) || s.at[n] == '_'))
        n++;
    return n && isdigit((unsigned char)s.at[0]) ? 0 : n;
}

/* What follows the name may be a secret. */
static enum err wrong_form(struct filling *f, struct str inside)
{
    return err_set(f->why, ERR_PARSE,
                   "'${" STR_FMT "…}': expected ${NAME}, ${NAME:-otherwise}, ${env:NAME} or ${file:/path}; "
                   "write $${ for the signs themselves",
                   STR_ARG(str_cut((struct str){inside.at, name_length(inside)}, 60)));
}

static enum err fill_variable(struct filling *f, struct str inside)
{
    size_t n = name_length(inside);
    struct str rest = str_from(inside, n), name = arena_dup(f->arena, (struct str){inside.at, n});
    if (!n || (rest.len && !str_starts(rest, ":-")))
        return wrong_form(f, inside);
    struct str value = str_of(getenv(name.at));
    if (value.len)
        return add(f, value);
    if (!rest.len)
        return err_set(f->why, ERR_NOT_FOUND, "the environment variable %s is %s", name.at,
                       value.at ? "empty" : "not set");
    buf_str(&f->out, str_from(rest, 2));
    return OK;
}

/* ---- all ------------------------------------------------------------------------------------------ */

static enum err fill_one(struct filling *f, struct str inside)
{
    if (str_starts(inside, "file:"))
        return fill_file(f, str_from(inside, 5));
    return fill_variable(f, str_starts(inside, "env:") ? str_from(inside, 4) : inside);
}

static size_t find_sign(struct str s)
{
    const char *at = s.len ? memmem(s.at, s.len, "${", 2) : NULL;
    return at ? (size_t)(at - s.at) : s.len;
}

/* One of them, at the beginning of `rest`. */
static enum err fill_next(struct filling *f, struct str *rest)
{
    const char *end = memchr(rest->at, '}', rest->len);
    if (!end)
        return err_set(f->why, ERR_PARSE, "'${' without its '}'; write $${ for the signs themselves");
    struct str inside = {rest->at + 2, (size_t)(end - rest->at) - 2};
    *rest = str_from(*rest, inside.len + 3);
    return fill_one(f, inside);
}

enum err secrets_expand(struct arena *arena, struct str text, struct secrets *used, struct str *out,
                        struct why *why)
{
    struct filling f = {.arena = arena, .used = used, .out = buf_in(arena), .why = why};
    enum err err = OK;
    *out = text;
    if (find_sign(text) == text.len)
        return OK;
    while (!err && text.len) {
        size_t n = find_sign(text);
        bool escaped = n > 0 && n < text.len && text.at[n - 1] == '$';
        buf_add(&f.out, text.at, escaped ? n - 1 : n);
        text = str_from(text, n);
        if (escaped) {
            buf_text(&f.out, "${");
            text = str_from(text, 2);
        } else if (text.len) {
            err = fill_next(&f, &text);
        }
    }
    buf_byte(&f.out, '\0');
    *out = err ? STR_NONE : (struct str){f.out.at, f.out.len - 1};
    return err;
}

/* ---- masked ---------------------------------------------------------------------------------------- */

static struct str mask_one(struct arena *arena, struct str secret, struct str text)
{
    const char *at;
    struct buf out = buf_in(arena);
    if (!text.len || !memmem(text.at, text.len, secret.at, secret.len))
        return text;
    while (text.len && (at = memmem(text.at, text.len, secret.at, secret.len)) != NULL) {
        buf_add(&out, text.at, (size_t)(at - text.at));
        buf_text(&out, "***");
        text = str_from(text, (size_t)(at - text.at) + secret.len);
    }
    buf_str(&out, text);
    return buf_view(&out);
}

struct str secrets_redact(struct arena *arena, const struct secrets *used, struct str text)
{
    for (const struct secret_value *s = used->first; s; s = s->next)
        text = mask_one(arena, s->value, text);
    return text;
}
