/* Splitting words into pieces, and filling in the arguments. */
#include "upstream/exec/exec.h"

#include "base/arena.h"
#include "json/write.h"

#include <ctype.h>

/* Bytes of "{path}" at the front of `s`; 0: none exists. */
static size_t placeholder_length(struct str s)
{
    size_t n = 1;
    if (s.len < 3 || s.at[0] != '{' || !(isalpha((unsigned char)s.at[1]) || s.at[1] == '_'))
        return 0;
    while (n < s.len && (isalnum((unsigned char)s.at[n]) || strchr("_-.", s.at[n])))
        n++;
    return n < s.len && s.at[n] == '}' && s.at[n - 1] != '.' ? n + 1 : 0;
}

/* A piece that is not plain text, at the front of `s`; its length, or 0 if there is no such piece. */
static size_t special_piece(struct str s, struct exec_piece *piece)
{
    size_t n = s.len && s.at[0] == '{' ? placeholder_length(str_from(s, 1)) : 0;
    if (n && s.len > n + 1 && s.at[n + 1] == '}') {
        *piece = (struct exec_piece){EXEC_PIECE_TEXT, {s.at + 1, n}};
        return n + 2;
    }
    n = placeholder_length(s);
    if (n) {
        *piece = (struct exec_piece){EXEC_PIECE_ARGUMENT, {s.at + 1, n - 2}};
        return n;
    }
    const char *end = str_starts(s, "${") ? memchr(s.at, '}', s.len) : NULL;
    if (!end)
        return 0;
    n = (size_t)(end - s.at) + 1;
    *piece = (struct exec_piece){EXEC_PIECE_TEXT, {s.at, n}};
    return n;
}

bool exec_argv_next_piece(struct str *rest, struct exec_piece *piece)
{
    struct exec_piece other;
    size_t n = special_piece(*rest, piece);
    if (!n) {
        while (n < rest->len && !special_piece(str_from(*rest, n), &other))
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
    static const char *const two_values[] = {"--arg", "--argjson", "--slurpfile", "--rawfile"}; /* jq's */
    struct exec_piece piece = {0};
    struct str rest = word;
    exec_argv_next_piece(&rest, &piece);
    if (word.len < 2 || word.at[0] != '-' || str_is(word, "--") || rest.len)
        return 0; /* with an argument in it the word has its value */
    for (size_t i = 0; i < sizeof(two_values) / sizeof(two_values[0]); i++)
        if (str_is(word, two_values[i]))
            return 2;
    return str_has(word, '=') ? 0 : 1;
}

/* The argument at "item.id"; NULL: missing, null or an empty list. */
static const struct json *argument_at(const struct json *arguments, struct str path)
{
    const struct json *value = json_get(arguments, path);
    const char *dot = value || !path.len ? NULL : memchr(path.at, '.', path.len);
    if (dot) {
        size_t n = (size_t)(dot - path.at);
        value = argument_at(json_get(arguments, (struct str){path.at, n}), str_from(path, n + 1));
    }
    if (!value || value->type == JSON_NULL || (value->type == JSON_ARRAY && !value->len))
        return NULL;
    return value;
}

struct argv_builder {
    struct arena *arena;
    const struct exec_spec *spec;
    const struct json *arguments;
    struct exec_argv_error *error;
    struct buf argv; /* of pointers */
    size_t count;
    bool after_dashes;    /* a word "--" went in: nothing after it is an option */
    size_t option_values; /* how many of the next words are values of an option */
};

static bool fail(struct argv_builder *b, const char *code, struct str path, const char *problem)
{
    b->error->code = code;
    b->error->detail = arena_printf(b->arena, "the argument '" STR_FMT "' %s", STR_ARG(path), problem);
    return false;
}

/* One word; `item` replaces the list `list`. False: it does not fit a command line. */
static bool add_word(struct argv_builder *b, struct str word, const struct json *list,
                     const struct json *item)
{
    struct buf out = buf_in(b->arena);
    struct exec_piece piece;
    struct str rest = word, path = STR_NONE;
    bool begins_with_argument = false;
    if (b->count == EXEC_LINE_WORDS_MAX) {
        b->error->code = "too_many_items";
        b->error->detail = STR_LIT("the lists in the arguments have more than 4096 items together");
        return false;
    }
    for (bool first = true; exec_argv_next_piece(&rest, &piece); first = false) {
        if (piece.kind == EXEC_PIECE_TEXT) {
            buf_str(&out, piece.text);
            continue;
        }
        const struct json *value = argument_at(b->arguments, piece.text);
        begins_with_argument |= first;
        path = path.len ? path : piece.text;
        value = value == list && list ? item : value;
        if (value && (value->type == JSON_STRING || value->type == JSON_NUMBER))
            buf_add(&out, value->text, value->len);
        else if (value && value->type != JSON_NULL)
            json_write(&out, value);
    }
    struct str text = buf_view(&out);
    if (str_has(text, '\0'))
        return fail(b, "nul_byte", path, "holds a NUL byte: remove it");
    if (text.len > EXEC_ARG_MAX_BYTES)
        return fail(b, "argument_too_long", path, "is longer than the 131071 bytes a command can be given");
    if (begins_with_argument && text.len && text.at[0] == '-' && !b->after_dashes && !b->option_values &&
        !b->spec->dashes)
        return fail(b, "looks_like_option", path,
                    "begins with '-', and the command would take it for an option: send it without, or a "
                    "file's name as './-name'");
    b->after_dashes |= str_is(word, "--") && !b->option_values;
    b->option_values = b->option_values ? b->option_values - 1 : exec_argv_option_values(word);
    buf_byte(&out, '\0');
    buf_add(&b->argv, &out.at, sizeof(out.at));
    b->count++;
    return true;
}

/* True: every argument that the word names is present; *list: the first one that is a list. */
static bool has_all(const struct json *arguments, struct str word, const struct json **list)
{
    struct exec_piece piece;
    *list = NULL;
    while (exec_argv_next_piece(&word, &piece)) {
        if (piece.kind != EXEC_PIECE_ARGUMENT)
            continue;
        const struct json *value = argument_at(arguments, piece.text);
        if (!value)
            return false;
        if (!*list && value->type == JSON_ARRAY)
            *list = value;
    }
    return true;
}

/* Is the group included that begins at word `at`? */
static bool includes_group(const struct argv_builder *b, size_t at)
{
    const struct exec_word *words = b->spec->words;
    const struct json *list;
    if (!words[at].group)
        return true;
    if (words[at].when.len) {
        const struct json *when = argument_at(b->arguments, words[at].when);
        return when && !(when->type == JSON_BOOL && !when->truth);
    }
    for (size_t i = at; i < b->spec->word_count && words[i].group == words[at].group; i++)
        if (!has_all(b->arguments, words[i].text, &list))
            return false;
    return true;
}

const char *const *exec_argv_build(struct arena *arena, const struct exec_spec *spec,
                                   const struct json *arguments, struct exec_argv_error *error)
{
    struct argv_builder b = {
        .arena = arena, .spec = spec, .arguments = arguments, .error = error, .argv = buf_in(arena)};
    const char *end = NULL;
    bool included = true;
    for (size_t i = 0; i < spec->word_count; i++) {
        const struct exec_word *word = &spec->words[i];
        const struct json *list;
        if (!i || !word->group || word->group != word[-1].group)
            included = includes_group(&b, i);
        b.after_dashes |= spec->plain_from && i >= spec->plain_from;
        if (!included)
            continue;
        if (!has_all(arguments, word->text, &list)) {
            b.option_values = 0;
            continue;
        }
        if (!list && !add_word(&b, word->text, NULL, NULL))
            return NULL;
        for (size_t k = 0; list && k < list->len; k++) /* a list makes one word of each item */
            if (list->items[k].type != JSON_NULL && !add_word(&b, word->text, list, &list->items[k]))
                return NULL;
    }
    buf_add(&b.argv, &end, sizeof(end));
    return (const char *const *)(void *)b.argv.at;
}
