/*
 * How close two names are. Words are short (a field, an enum value, a tool),
 * and long ones are cut to what fits a machine word's bits.
 */
#include "base/suggest.h"

#include <stdint.h>

#define WORD_MAX_BYTES     64u  /* what is compared of a name: a bit each */
#define RATIO_ENOUGH       500u /* of 1000: 2 x matched / total length */
#define RATIO_CLEAR        700u /* from here on the letters' order alone convinces */
#define PREFIX_ENOUGH      3u   /* bytes a shorter name must share to count as an abbreviation */
#define SCORE_SAME_LETTERS 2000u
#define SCORE_PREFIX       1000u

/* A name in lower case without separators: dueDate, due-date and DUE_DATE are one. */
struct folded {
    char at[WORD_MAX_BYTES];
    size_t len;
};

static bool is_separator(char c)
{
    return c == '_' || c == '-' || c == ' ' || c == '.' || c == '/' || c == ':';
}

static struct folded fold(struct str word)
{
    struct folded f = {.len = 0};
    for (size_t i = 0; i < word.len && f.len < WORD_MAX_BYTES; i++) {
        char c = word.at[i];
        if (!is_separator(c))
            f.at[f.len++] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
    }
    return f;
}

/* The word that others are held against, with the places of each byte in it as bits. */
struct wanted {
    struct folded word;
    uint64_t places[256];
};

static void want(struct wanted *w, struct str word)
{
    w->word = fold(word);
    memset(w->places, 0, sizeof(w->places));
    for (size_t i = 0; i < w->word.len; i++)
        w->places[(unsigned char)w->word.at[i]] |= 1ull << i;
}

/* Length of the longest common subsequence, what both names have in the same order: a bit for each byte of
 * the word (Hyyrö's form of the bit-parallel algorithm), cleared where the subsequence has taken it. */
static size_t matched(const struct wanted *w, const struct folded *b)
{
    uint64_t left = ~0ull;
    for (size_t i = 0; i < b->len; i++) {
        uint64_t here = left & w->places[(unsigned char)b->at[i]];
        left = (left + here) | (left - here);
    }
    uint64_t of_word = w->word.len == 64 ? ~0ull : (1ull << w->word.len) - 1;
    return (size_t)__builtin_popcountll(~left & of_word);
}

/* A subsequence alone finds likeness in letters strewn about; names people mistype share a run of them too.
 */
static size_t longest_run(const struct folded *a, const struct folded *b)
{
    size_t best = 0;
    for (size_t i = 0; i < a->len; i++)
        for (size_t j = 0; j < b->len; j++) {
            size_t n = 0;
            while (i + n < a->len && j + n < b->len && a->at[i + n] == b->at[j + n])
                n++;
            best = n > best ? n : best;
        }
    return best;
}

static bool is_prefix(const struct folded *a, const struct folded *b)
{
    size_t n = a->len < b->len ? a->len : b->len;
    return n >= PREFIX_ENOUGH && memcmp(a->at, b->at, n) == 0;
}

/* 0: not close. The bigger, the closer. */
static unsigned closeness(const struct wanted *w, const struct folded *b)
{
    const struct folded *a = &w->word;
    if (a->len == 0 || b->len == 0)
        return 0;
    if (a->len == b->len && memcmp(a->at, b->at, a->len) == 0)
        return SCORE_SAME_LETTERS;
    unsigned ratio = (unsigned)(2000 * matched(w, b) / (a->len + b->len));
    size_t shorter = a->len < b->len ? a->len : b->len;
    if (ratio < RATIO_ENOUGH)
        return 0;
    if (is_prefix(a, b))
        return SCORE_PREFIX + ratio;
    if (ratio < RATIO_CLEAR && shorter < PREFIX_ENOUGH && memcmp(a->at, b->at, shorter) != 0)
        return 0; /* two letters are found in anything; where they begin it, they may be short for it */
    return ratio >= RATIO_CLEAR || longest_run(a, b) >= (shorter + 2) / 3 + 1 ? ratio : 0;
}

struct ranking {
    size_t count;
    unsigned scores[SUGGEST_MAX];
};

/* Equal scores keep the candidates' own order. */
static void rank(struct ranking *ranking, size_t out[SUGGEST_MAX], size_t candidate, unsigned score)
{
    size_t at = ranking->count;
    while (at > 0 && ranking->scores[at - 1] < score)
        at--;
    if (at == SUGGEST_MAX)
        return;
    if (ranking->count < SUGGEST_MAX)
        ranking->count++;
    for (size_t i = ranking->count - 1; i > at; i--) {
        out[i] = out[i - 1];
        ranking->scores[i] = ranking->scores[i - 1];
    }
    out[at] = candidate;
    ranking->scores[at] = score;
}

size_t suggest(struct str word, const struct str *candidates, size_t count, size_t out[SUGGEST_MAX])
{
    struct wanted wanted __attribute__((uninitialized)); /* 2 KB that `want` writes */
    struct ranking ranking = {.count = 0};
    want(&wanted, word);
    for (size_t i = 0; i < count; i++) {
        struct folded candidate = fold(candidates[i]);
        unsigned score = closeness(&wanted, &candidate);
        if (score)
            rank(&ranking, out, i, score);
    }
    return ranking.count;
}

struct str suggest_closest(struct str word, const struct str *candidates, size_t count)
{
    size_t best[SUGGEST_MAX];
    return suggest(word, candidates, count, best) ? candidates[best[0]] : STR_NONE;
}
