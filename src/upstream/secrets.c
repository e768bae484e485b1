/* Expanding references, and redacting what they stood for. */
#include "upstream/secrets.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/write.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORD_MAX_BYTES    16u
#define ACRONYM_MAX_BYTES 6u

struct secret_value {
    struct secret_value *next;
    struct str value;
};

struct expansion {
    struct arena *arena;
    struct secrets *used;
    struct buf out;
    struct why *why;
};

/* Longest first: redacting a prefix of another secret would leave the rest of that one visible. */
static void remember(struct expansion *x, struct str value)
{
    struct secret_value **at = &x->used->first, *secret = ARENA_NEW(x->arena, struct secret_value);
    while (*at && (*at)->value.len > value.len)
        at = &(*at)->next;
    *secret = (struct secret_value){*at, value};
    *at = secret;
}

/* Line by line, since programs print a key of several lines that way; and as JSON escapes it. */
static void add_lines(struct expansion *x, struct str value)
{
    while (x->used && value.len) {
        struct str line = str_trim(str_split(&value, '\n'));
        struct buf json = buf_in(x->arena);
        json_write_string(&json, line);
        struct str escaped = {json.at + 1, json.len - 2};
        if (line.len >= SECRET_REDACT_MIN_BYTES) {
            remember(x, line);
            if (!str_eq(escaped, line))
                remember(x, escaped);
        }
    }
}

/* SORT_KEY = createdAt and AUTH_TYPE = OAuth2 are no secrets, and results may hold them. */
static bool is_word(struct str value)
{
    static const char *const sizes[] = {"256", "384", "512"}; /* HS256 */
    size_t capitals = 0, len = value.len;
    if (len > 3 && STR_IS_ONE_OF(str_from(value, len - 3), sizes))
        len -= 3;
    else if (len && ascii_is_digit(value.at[len - 1]))
        len--;
    for (size_t i = 0; i < len; i++) {
        if (!ascii_is_letter(value.at[i]) && value.at[i] != '_')
            return false;
        capitals += value.at[i] >= 'A' && value.at[i] <= 'Z';
    }
    return value.len < WORD_MAX_BYTES && (capitals <= 2 || (capitals == len && len <= ACRONYM_MAX_BYTES));
}

static bool is_one_of(struct str word, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (word.len == strlen(list[i]) && str_starts_nocase(word, list[i]))
            return true;
    return false;
}

/* By whole words: AUTHOR and KEYBOARD name no secret, nor does TOKEN_URL; and a path, a number or a switch is
 * none. The value of AUTH_HEADER is one. */
static bool is_named_secret(struct str name, struct str value)
{
    /* The first two only before what is no plain word. */
    static const char *const words[] = {
        "key",        "auth",          "apikey",      "token",      "secret",      "password",
        "passwd",     "pwd",           "pass",        "passphrase", "cookie",      "pat",
        "credential", "authorization", "credentials", "dsn",        "clientsecret"};
    static const char *const about[] = {"url", "uri",  "endpoint", "host",   "file", "path",
                                        "dir", "type", "mode",     "method", "alg",  "algorithm"};
    size_t digits = 0, first = is_word(value) ? 2 : 0;
    bool found = false, is_about = false; /* its last word says what of a secret it is */
    while (digits < value.len && ascii_is_digit(value.at[digits]))
        digits++;
    for (size_t from = 0, at = 0; at <= name.len; at++)
        if (at == name.len || name.at[at] == '_' || name.at[at] == '-') {
            struct str word = {name.at + from, at - from};
            found |= is_one_of(word, words + first, sizeof(words) / sizeof(words[0]) - first);
            is_about = is_one_of(word, about, sizeof(about) / sizeof(about[0]));
            from = at + 1;
        }
    return found && !is_about && digits != value.len && !memchr("/~.", *value.at, 3);
}

static void add_if_named(struct expansion *x, struct str name, struct str value)
{
    static const char *const schemes[] = {"bearer ", "basic ", "token "};
    if (!is_named_secret(name, value))
        return;
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
        if (str_starts_nocase(value, schemes[i]))
            value = str_from(value, strlen(schemes[i]));
    add_lines(x, value);
}

/* Of an address, such as postgres://user:password@host. */
static void add_password(struct expansion *x, struct str value)
{
    const char *scheme = value.len ? memmem(value.at, value.len, "://", 3) : NULL;
    struct str rest = scheme ? str_from(value, (size_t)(scheme + 3 - value.at)) : STR_NONE;
    const char *at = rest.len ? memchr(rest.at, '@', rest.len) : NULL;
    const char *colon = at ? memchr(rest.at, ':', (size_t)(at - rest.at)) : NULL;
    if (!colon)
        return;
    struct str password = {colon + 1, (size_t)(at - colon) - 1}, port = password;
    while (port.len && ascii_is_digit(*port.at))
        port = str_from(port, 1);
    if (port.len == password.len || !str_starts(port, "/")) /* http://localhost:8080/@scope has none */
        add_lines(x, password);
}

void secrets_add_named(struct arena *arena, struct secrets *used, struct str name, struct str value)
{
    struct expansion x = {.arena = arena, .used = used};
    struct str rest = value, header = str_split(&rest, ':'); /* of --header "Authorization: Bearer …" */
    if (!used)
        return;
    add_password(&x, value);
    add_if_named(&x, name, value);
    if (!str_starts(rest, "//") && !str_has(header, ' ')) /* no address, no sentence */
        add_if_named(&x, header, str_trim(rest));
}

/* What is wrong with an opened file; NULL: nothing. `uid`: whose credentials it holds, perhaps in a folder of
 * theirs: no other user may plant them. */
static const char *fault_of(int fd, const uid_t *uid)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return strerror(errno);
    if (!S_ISREG(info.st_mode))
        return "it is no regular file";
    if (!uid)
        return NULL;
    if (info.st_nlink != 1)
        return "it has a second name (a hard link)";
    if (info.st_uid != 0 && info.st_uid != geteuid() && info.st_uid != *uid)
        return "it belongs to another user; expected root, toolgate's user or the user it is for";
    if (info.st_mode & (S_IWGRP | S_IWOTH))
        return "others may write to it; set its mode to 0600";
    return NULL;
}

/* `uid`: whose file it must be; NULL: anybody's. */
static enum err expand_file(struct expansion *x, struct str path, const uid_t *uid)
{
    char *bytes = arena_alloc(x->arena, SECRET_FILE_MAX_BYTES + 1);
    const char *name = arena_dup(x->arena, path).at;
    size_t len = 0;
    ssize_t n = 0;
    if (!str_starts(path, "/"))
        return err_set(x->why, ERR_PARSE, "'${file:" STR_FMT "}': expected an absolute path",
                       STR_ARG(str_cut(path, 200)));
    /* Opening a named pipe must not block the loop; no user may borrow another's credentials by a link. */
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
                           .resolve = uid ? RESOLVE_NO_SYMLINKS : 0};
    int fd = uid ? (int)syscall(SYS_openat2, AT_FDCWD, name, &how, sizeof(how)) : open(name, (int)how.flags);
    if (fd < 0)
        return err_set(x->why, ERR_IO, "cannot read the file %s: %s", name,
                       uid && errno == ELOOP
                           ? "a symbolic link leads there; a user's file needs a path without one"
                           : strerror(errno));
    const char *fault = fault_of(fd, uid);
    if (fault) {
        close(fd);
        return err_set(x->why, ERR_IO, "cannot %s the file %s: %s", uid ? "use" : "read", name, fault);
    }
    while (len <= SECRET_FILE_MAX_BYTES && (n = read(fd, bytes + len, SECRET_FILE_MAX_BYTES + 1 - len)) > 0)
        len += (size_t)n;
    int error = errno;
    close(fd);
    if (n < 0)
        return err_set(x->why, ERR_IO, "cannot read the file %s: %s", name, strerror(error));
    if (len > SECRET_FILE_MAX_BYTES)
        return err_set(x->why, ERR_LIMIT, "the file %s has more than %u bytes, too many for a secret", name,
                       SECRET_FILE_MAX_BYTES);
    if (memchr(bytes, '\0', len))
        return err_set(x->why, ERR_PARSE, "the file %s holds a NUL byte", name);
    while (len && (bytes[len - 1] == '\n' || bytes[len - 1] == '\r'))
        len--;
    if (uid && !len)
        return err_set(x->why, ERR_NOT_FOUND, "the file %s is empty", name);
    buf_add(&x->out, bytes, len);
    add_lines(x, (struct str){bytes, len});
    return OK;
}

static enum err expand_variable(struct expansion *x, struct str inside)
{
    size_t n = 0;
    while (n < inside.len && (isalnum((unsigned char)inside.at[n]) || inside.at[n] == '_'))
        n++;
    if (n && isdigit((unsigned char)inside.at[0]))
        n = 0;
    struct str rest = str_from(inside, n), name = arena_dup(x->arena, (struct str){inside.at, n});
    if (!n || (rest.len && !str_starts(rest, ":-"))) /* `rest` may be a secret: not quoted */
        return err_set(x->why, ERR_PARSE,
                       "'${" STR_FMT "…}': expected ${NAME}, ${NAME:-default}, ${env:NAME} or ${file:/path}; "
                       "write $${ for a literal ${",
                       STR_ARG(str_cut(name, 60)));
    struct str value = str_of(getenv(name.at));
    buf_str(&x->out, value);
    add_lines(x, value);
    if (value.len)
        return OK;
    if (!rest.len)
        return err_set(x->why, ERR_NOT_FOUND, "the environment variable %s is %s", name.at,
                       value.at ? "empty" : "not set");
    buf_str(&x->out, str_from(rest, 2));
    return OK;
}

enum err secrets_expand(struct arena *arena, struct str text, struct secrets *used, struct str *out,
                        struct why *why)
{
    struct expansion x = {.arena = arena, .used = used, .out = buf_in(arena), .why = why};
    enum err err = OK;
    *out = text;
    if (!text.len || !memmem(text.at, text.len, "${", 2))
        return OK;
    while (!err && text.len) {
        const char *sign = memmem(text.at, text.len, "${", 2);
        size_t n = sign ? (size_t)(sign - text.at) : text.len;
        bool escaped = sign && n > 0 && sign[-1] == '$';
        buf_add(&x.out, text.at, escaped ? n - 1 : n);
        text = str_from(text, n);
        if (escaped) {
            buf_text(&x.out, "${");
            text = str_from(text, 2);
        } else if (text.len) {
            const char *end = memchr(text.at, '}', text.len);
            if (!end) {
                *out = STR_NONE;
                return err_set(why, ERR_PARSE, "'${' without '}'; write $${ for a literal ${");
            }
            struct str inside = {text.at + 2, (size_t)(end - text.at) - 2};
            text = str_from(text, inside.len + 3);
            if (str_starts(inside, "file:")) {
                err = expand_file(&x, str_from(inside, 5), NULL);
            } else if (str_starts(inside, "user-file:")) { /* "1000:/path" */
                struct str rest = str_from(inside, 10);
                uid_t uid = 0;
                size_t digits = 0;
                while (digits < rest.len && ascii_is_digit(rest.at[digits]))
                    uid = uid * 10 + (uid_t)(rest.at[digits++] - '0');
                if (!digits || digits == rest.len || rest.at[digits] != ':')
                    err = err_set(why, ERR_PARSE, "'${user-file:…}': expected a uid, ':' and a path");
                else
                    err = expand_file(&x, str_from(rest, digits + 1), &uid);
            } else {
                err = expand_variable(&x, str_starts(inside, "env:") ? str_from(inside, 4) : inside);
            }
        }
    }
    buf_byte(&x.out, '\0');
    *out = err ? STR_NONE : (struct str){x.out.at, x.out.len - 1};
    return err;
}

struct str secrets_redact(struct arena *arena, const struct secrets *used, struct str text)
{
    for (const struct secret_value *secret = used->first; secret; secret = secret->next) {
        struct str value = secret->value, rest = text;
        struct buf out = buf_in(arena);
        for (const char *at; rest.len && (at = memmem(rest.at, rest.len, value.at, value.len));) {
            buf_add(&out, rest.at, (size_t)(at - rest.at));
            buf_text(&out, "***");
            rest = str_from(rest, (size_t)(at - rest.at) + value.len);
        }
        if (!out.len)
            continue;
        buf_str(&out, rest);
        text = buf_view(&out);
    }
    return text;
}
