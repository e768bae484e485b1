/* See exec_argv.h. */
#include "upstream/exec/exec_argv.h"

#include "base/arena.h"
#include "json/write.h"

#include <ctype.h>
#include <stdio.h>

/* ---- pieces -------------------------------------------------------------------------------------- */

static bool begins_name(char c)
{
    return isalpha((unsigned char)c) || c == '_';
}

static bool goes_on(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

/* Bytes of "{path}" at the beginning of `s`; 0: there is none. */
static size_t place_length(struct str s)
{
    size_t n = 1;
    if (s.len < 3 || s.at[0] != '{' || !begins_name(s.at[1]))
        return 0;
    while (n < s.len && goes_on(s.at[n]))
        n++;
    return n < s.len && s.at[n] == '}' && s.at[n - 1] != '.' ? n + 1 : 0;
}

/* Of "{{path}}". */
static size_t escaped_length(struct str s)
{
    size_t n = s.len && s.at[0] == '{' ? place_length(str_from(s, 1)) : 0;
    return n && s.len > n + 1 && s.at[n + 1] == '}' ? n + 2 : 0;
}

/* Of "${" and all up to its "}". */
static size_t dollar_length(struct str s)
{
    const char *end = str_starts(s, "${") ? memchr(s.at, '}', s.len) : NULL;
    return end ? (size_t)(end - s.at) + 1 : 0;
}

/* The one that begins here; its length, 0: plain text does. */
static size_t special(struct str s, struct exec_piece *piece)
{
    size_t n;
    if ((n = escaped_length(s)) != 0)
        *piece = (struct exec_piece){EXEC_PIECE_TEXT, {s.at + 1, n - 2}};
    else if ((n = place_length(s)) != 0)
        *piece = (struct exec_piece){EXEC_PIECE_ARGUMENT, {s.at + 1, n - 2}};
    else if ((n = dollar_length(s)) != 0)
        *piece = (struct exec_piece){EXEC_PIECE_TEXT, {s.at, n}};
    return n;
}

bool exec_argv_next_piece(struct str *rest, struct exec_piece *piece)
{
    struct exec_piece other;
    size_t n = special(*rest, piece);
    if (!n) {
        while (n < rest->len && !special(str_from(*rest, n), &other))
            n++;
        *piece = (struct exec_piece){EXEC_PIECE_TEXT, {rest->at, n}};
    }
    *rest = str_from(*rest, n);
    return n > 0;
}

bool exec_argv_has_argument(struct str word)
{
    struct exec_piece piece;
    while (exec_argv_next_piece(&word, &piece))
        if (piece.kind == EXEC_PIECE_ARGUMENT)
            return true;
    return false;
}

size_t exec_argv_option_values(struct str word)
{
    static const char *const pairs[] = {"--arg", "--argjson", "--slurpfile", "--rawfile"}; /* jq's */
    struct exec_piece piece = {0};
    struct str rest = word;
    exec_argv_next_piece(&rest, &piece);
    if (word.len < 2 || word.at[0] != '-' || str_is(word, "--") || rest.len)
        return 0; /* what follows within the word is its value */
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        if (str_is(word, pairs[i]))
            return 2;
    return memchr(word.at, '=', word.len) ? 0 : 1;
}

const struct json *exec_argv_argument(const struct json *arguments, struct str path)
{
    const struct json *value = json_get(arguments, path);
    const char *dot = value || !path.len ? NULL : memchr(path.at, '.', path.len);
    if (dot) {
        size_t n = (size_t)(dot - path.at);
        value = exec_argv_argument(json_get(arguments, (struct str){path.at, n}), str_from(path, n + 1));
    }
    if (!value || value->type == JSON_NULL || (value->type == JSON_ARRAY && !value->len))
        return NULL;
    return value;
}

/* ---- filled -------------------------------------------------------------------------------------- */

struct filler {
    struct arena *arena;
    const struct exec_spec *spec;
    const struct json *arguments;
    struct exec_argv_error *fault;
    struct buf argv; /* of pointers */
    size_t count;
    bool literal;         /* a word "--" went in: nothing after it is an option */
    size_t option_values; /* the next words are values of an option */
};

static bool say(struct filler *f, const char *code, struct str path, const char *words)
{
    f->fault->code = code;
    f->fault->detail = arena_printf(f->arena, "the argument '" STR_FMT "' %s", STR_ARG(path), words);
    return false;
}

static void write_value(struct buf *out, const struct json *value)
{
    if (value->type == JSON_STRING || value->type == JSON_NUMBER)
        buf_add(out, value->text, value->len);
    else if (value->type != JSON_NULL)
        json_write(out, value);
}

/* One word; `item` stands for the list at `list`. */
static void write_word(struct filler *f, struct buf *out, struct str rest, const struct json *list,
                       const struct json *item)
{
    struct exec_piece piece;
    while (exec_argv_next_piece(&rest, &piece)) {
        const struct json *value = NULL;
        if (piece.kind == EXEC_PIECE_ARGUMENT)
            value = exec_argv_argument(f->arguments, piece.text);
        if (value)
            write_value(out, value == list ? item : value);
        else if (piece.kind == EXEC_PIECE_TEXT)
            buf_str(out, piece.text);
    }
    buf_byte(out, '\0');
}

/* What the arguments made of it: is it fit for a command line? */
static bool check_word(struct filler *f, struct str word, struct str text)
{
    struct exec_piece piece = {0};
    struct str rest = word, path = STR_NONE;
    exec_argv_next_piece(&rest, &piece);
    bool free_start = piece.kind == EXEC_PIECE_ARGUMENT;
    for (rest = word; exec_argv_next_piece(&rest, &piece);)
        if (piece.kind == EXEC_PIECE_ARGUMENT && !path.len)
            path = piece.text;
    if (text.len && memchr(text.at, '\0', text.len))
        return say(f, "nul_byte", path, "holds a NUL byte, which no command can be given");
    if (text.len > EXEC_ARG_MAX_BYTES)
        return say(f, "argument_too_long", path, "is longer than the 131071 bytes a command can be given");
    if (free_start && text.len && text.at[0] == '-' && !f->literal && !f->option_values && !f->spec->dashes)
        return say(
            f, "looks_like_option", path,
            "begins with '-', and the command would take it for an option: send it without, or a file's "
            "name as './-name'");
    return true;
}

static bool add_word(struct filler *f, struct str word, const struct json *list, const struct json *item)
{
    struct buf out = buf_in(f->arena);
    if (f->count == EXEC_LINE_WORDS_MAX) {
        f->fault->code = "too_many_items";
        f->fault->detail = STR_LIT("the lists in the arguments have more than 4096 items together");
        return false;
    }
    write_word(f, &out, word, list, item);
    struct str text = {out.at, out.len - 1};
    if (!check_word(f, word, text))
        return false;
    f->literal |= str_is(word, "--") && !f->option_values;
    f->option_values = f->option_values ? f->option_values - 1 : exec_argv_option_values(word);
    buf_add(&f->argv, &out.at, sizeof(out.at));
    f->count++;
    return true;
}

/* Its first list, and whether all that it names is there. */
static bool all_there(const struct json *arguments, struct str word, const struct json **list)
{
    struct exec_piece piece;
    *list = NULL;
    while (exec_argv_next_piece(&word, &piece)) {
        if (piece.kind != EXEC_PIECE_ARGUMENT)
            continue;
        const struct json *value = exec_argv_argument(arguments, piece.text);
        if (!value)
            return false;
        if (!*list && value->type == JSON_ARRAY)
            *list = value;
    }
    return true;
}

static bool add_words(struct filler *f, struct str word)
{
    const struct json *list;
    if (!all_there(f->arguments, word, &list)) {
        f->option_values = 0;
        return true;
    }
    if (!list)
        return add_word(f, word, NULL, NULL);
    for (size_t i = 0; i < list->len; i++)
        if (list->items[i].type != JSON_NULL && !add_word(f, word, list, &list->items[i]))
            return false;
    return true;
}

/* The group that begins at `at`; is it wanted? */
static bool group_goes_in(const struct filler *f, size_t at)
{
    const struct exec_word *words = f->spec->words;
    const struct json *list;
    if (!words[at].group)
        return true;
    if (words[at].when.len) {
        const struct json *when = exec_argv_argument(f->arguments, words[at].when);
        return when && !(when->type == JSON_BOOL && !when->truth);
    }
    for (size_t i = at; i < f->spec->word_count && words[i].group == words[at].group; i++)
        if (!all_there(f->arguments, words[i].text, &list))
            return false;
    return true;
}

static bool fill(struct filler *f)
{
    bool goes_in = true;
    for (size_t i = 0; i < f->spec->word_count; i++) {
        const struct exec_word *word = &f->spec->words[i];
        if (!i || !word->group || word->group != word[-1].group)
            goes_in = group_goes_in(f, i);
        f->literal |= f->spec->plain_from && i >= f->spec->plain_from;
        if (goes_in && !add_words(f, word->text))
            return false;
    }
    return true;
}

const char *const *exec_argv_build(struct arena *arena, const struct exec_spec *spec,
                                   const struct json *arguments, struct exec_argv_error *fault)
{
    struct filler f = {.arena = arena, .spec = spec, .arguments = arguments, .fault = fault};
    const char *end = NULL;
    f.argv = buf_in(arena);
    if (!fill(&f))
        return NULL;
    buf_add(&f.argv, &end, sizeof(end));
    return (const char *const *)(void *)f.argv.at;
}
