/*
 * Guesses, each told as one: what a tool's name says of its effects, which
 * parameters look like ids, and which sentences of a description are advice.
 */
#include "cli/cmd_new.h"

#include "base/arena.h"

#include <ctype.h>

#define NAME_WORDS_MAX 32u

/* ---- effects ---- */

static const struct verb {
    const char *word, *effects;
} verbs[] = {
    {"delete", "destructive"}, {"remove", "destructive"}, {"drop", "destructive"},
    {"purge", "destructive"},  {"cancel", "destructive"}, {"destroy", "destructive"},
    {"erase", "destructive"},  {"wipe", "destructive"},   {"revoke", "destructive"},
    {"kill", "destructive"},   {"reset", "destructive"},  {"terminate", "destructive"},
    {"toggle", "toggle"},      {"create", "write"},       {"add", "write"},
    {"update", "write"},       {"set", "write"},          {"put", "write"},
    {"post", "write"},         {"send", "write"},         {"write", "write"},
    {"edit", "write"},         {"modify", "write"},       {"book", "write"},
    {"upload", "write"},       {"insert", "write"},       {"append", "write"},
    {"save", "write"},         {"move", "write"},         {"rename", "write"},
    {"merge", "write"},        {"push", "write"},         {"assign", "write"},
    {"enable", "write"},       {"disable", "write"},      {"pay", "write"},
    {"order", "write"},        {"buy", "write"},          {"exchange", "write"},
    {"return", "write"},       {"transfer", "write"},     {"schedule", "write"},
    {"close", "write"},        {"reply", "write"},        {"get", "read"},
    {"list", "read"},          {"search", "read"},        {"find", "read"},
    {"lookup", "read"},        {"look", "read"},          {"read", "read"},
    {"fetch", "read"},         {"query", "read"},         {"show", "read"},
    {"describe", "read"},      {"check", "read"},         {"count", "read"},
    {"view", "read"},          {"calculate", "read"},     {"compute", "read"},
    {"compare", "read"},       {"convert", "read"},       {"analyze", "read"},
    {"analyse", "read"},       {"estimate", "read"},      {"retrieve", "read"},
    {"validate", "read"},      {"verify", "read"},        {"predict", "read"},
    {"summarize", "read"},     {"recommend", "read"},     {"think", "read"},
};

/* "getUserById", "get_user-by.id": get, user, by, id. */
static size_t words_of(struct arena *arena, struct str name, struct str words[NAME_WORDS_MAX])
{
    char *low = arena_alloc(arena, name.len + 1);
    size_t count = 0, from = 0;
    for (size_t i = 0; i <= name.len; i++) {
        char c = i < name.len ? name.at[i] : '_', before = i ? name.at[i - 1] : '_';
        bool ends =
            !isalnum((unsigned char)c) || (isupper((unsigned char)c) && islower((unsigned char)before));
        low[i] = i < name.len ? (char)tolower((unsigned char)c) : '\0';
        if (!ends)
            continue;
        if (i > from && count < NAME_WORDS_MAX)
            words[count++] = (struct str){low + from, i - from};
        from = isalnum((unsigned char)c) ? i : i + 1;
    }
    return count;
}

static const struct verb *verb_in(struct arena *arena, struct str name)
{
    struct str words[NAME_WORDS_MAX];
    size_t count = words_of(arena, name, words);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < sizeof(verbs) / sizeof(verbs[0]); k++)
            if (str_is(words[i], verbs[k].word))
                return &verbs[k];
    return NULL;
}

struct new_effects new_guess_effects(struct arena *arena, const struct new_tool *tool)
{
    const struct verb *verb = verb_in(arena, tool->name);
    bool writes = !verb || strcmp(verb->effects, "read") != 0;
    if (json_is_true(json_get_text(tool->annotations, "readOnlyHint")))
        return (struct new_effects){"read", STR_LIT("the definition's readOnlyHint says so"), true};
    if (verb && writes)
        return (struct new_effects){verb->effects,
                                    arena_printf(arena, "a guess: its name says '%s'", verb->word), false};
    if (json_is_true(json_get_text(tool->annotations, "destructiveHint")))
        return (struct new_effects){"write", STR_LIT("a guess: its definition has a destructiveHint"), false};
    if (verb)
        return (struct new_effects){"read", arena_printf(arena, "a guess: its name says '%s'", verb->word),
                                    false};
    return (struct new_effects){0};
}

/* ---- ids ---- */

static bool ends_with(struct str s, const char *end)
{
    size_t n = strlen(end);
    return s.len >= n && memcmp(s.at + s.len - n, end, n) == 0;
}

bool new_looks_like_id(struct str parameter)
{
    static const char *const ends[] = {"_id", "_ids", "Id", "Ids", "ID", "IDs", "_uuid", "Uuid", "UUID"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (ends_with(parameter, ends[i]))
            return true;
    return str_is(parameter, "id") || str_is(parameter, "ids") || str_is(parameter, "uuid");
}

/* ---- advice ---- */

static const char *const for_use[] = {"Use this tool when ", "Use this when ", "Use it when ", "Use when "};
static const char *const against[] = {"Do not use this tool when ",
                                      "Don't use this tool when ",
                                      "Do not use this when ",
                                      "Don't use this when ",
                                      "Do not use it when ",
                                      "Don't use it when ",
                                      "Do not use when ",
                                      "Don't use when ",
                                      "Avoid this when ",
                                      "Avoid it when ",
                                      "Avoid when "};

/* A sentence ends at ". ", at a line's end, and with the text. */
static size_t sentence_length(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] == '\n' ||
            (text.at[i] == '.' && (i + 1 == text.len || text.at[i + 1] == ' ' || text.at[i + 1] == '\n')))
            return i + 1;
    return text.len;
}

static struct str without_stop(struct str s)
{
    s = str_trim(s);
    if (s.len && s.at[s.len - 1] == '.')
        s.len--;
    return s;
}

/* What follows the opening; STR_NONE where the sentence opens otherwise. */
static struct str behind(struct str sentence, const char *const *openings, size_t count)
{
    struct str s = str_trim(sentence);
    for (size_t i = 0; i < count; i++)
        if (str_starts(s, openings[i]))
            return without_stop(str_from(s, strlen(openings[i])));
    return STR_NONE;
}

static void join(struct arena *arena, struct str *to, struct str more)
{
    *to = to->len ? arena_printf(arena, STR_FMT "; " STR_FMT, STR_ARG(*to), STR_ARG(more)) : more;
}

struct new_advice new_split_description(struct arena *arena, struct str description)
{
    struct new_advice advice = {0};
    struct buf rest = buf_in(arena);
    while (description.len) {
        struct str sentence = {description.at, sentence_length(description)};
        struct str use = behind(sentence, for_use, sizeof(for_use) / sizeof(for_use[0]));
        struct str avoid = behind(sentence, against, sizeof(against) / sizeof(against[0]));
        if (use.len)
            join(arena, &advice.use_when, use);
        else if (avoid.len)
            join(arena, &advice.avoid_when, avoid);
        else
            buf_str(&rest, sentence);
        description = str_from(description, sentence.len);
    }
    advice.description = str_trim(buf_view(&rest));
    return advice;
}
