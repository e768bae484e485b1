/*
 * Similarity of names by their longest common subsequence. Names are short (a
 * field, an enum value, a tool); only the first 64 bytes are compared, a bit of
 * a machine word each.
 */
#include "base/suggest.h"

#include <stdint.h>

#define WORD_MAX_BYTES   64u
#define RATIO_MIN        500u /* of 1000: 2 x common length / total length */
#define RATIO_CLEAR      700u /* from here on the subsequence alone is sufficient */
#define PREFIX_MIN_BYTES 3u   /* that a shorter name must share to count as an abbreviation */
#define SCORE_EQUAL      2000u
#define SCORE_PREFIX     1000u

/* A name in lower case without separators: dueDate, due-date and DUE_DATE are equal. */
struct folded_name {
    char at[WORD_MAX_BYTES];
    size_t len;
};

static struct folded_name fold(struct str word)
{
    struct folded_name f = {.len = 0};
    for (size_t i = 0; i < word.len && f.len < WORD_MAX_BYTES; i++) {
        char c = word.at[i];
        if (!c || !strchr("_- ./:", c))
            f.at[f.len++] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
    }
    return f;
}

/* The name that candidates are compared with, and for each byte value the bits of its positions in it. */
struct query {
    struct folded_name word;
    uint64_t positions[256];
};

/* Length of the longest common subsequence, bit-parallel (Hyyrö): a bit of `unmatched` is cleared where the
 * subsequence uses that byte of the query. */
static size_t common_length(const struct query *q, const struct folded_name *b)
{
    uint64_t unmatched = ~0ull;
    for (size_t i = 0; i < b->len; i++) {
        uint64_t here = unmatched & q->positions[(unsigned char)b->at[i]];
        unmatched = (unmatched + here) | (unmatched - here);
    }
    uint64_t word = q->word.len == 64 ? ~0ull : (1ull << q->word.len) - 1;
    return (size_t)__builtin_popcountll(~unmatched & word);
}

/* A subsequence alone also matches scattered letters; mistyped names share a run of them, too. */
static size_t longest_run(const struct folded_name *a, const struct folded_name *b)
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

/* 0: not close. A higher score is closer. */
static unsigned score_of(const struct query *q, const struct folded_name *b)
{
    const struct folded_name *a = &q->word;
    if (a->len == 0 || b->len == 0)
        return 0;
    size_t shorter = a->len < b->len ? a->len : b->len;
    bool prefix = memcmp(a->at, b->at, shorter) == 0;
    if (prefix && a->len == b->len)
        return SCORE_EQUAL;
    unsigned ratio = (unsigned)(2000 * common_length(q, b) / (a->len + b->len));
    if (ratio < RATIO_MIN)
        return 0;
    if (prefix && shorter >= PREFIX_MIN_BYTES)
        return SCORE_PREFIX + ratio;
    if (ratio < RATIO_CLEAR && shorter < PREFIX_MIN_BYTES && !prefix)
        return 0; /* two letters occur in almost any name, unless they begin it */
    return ratio >= RATIO_CLEAR || longest_run(a, b) >= (shorter + 2) / 3 + 1 ? ratio : 0;
}

size_t suggest_ranked(struct str word, const struct str *candidates, size_t count, size_t out[SUGGEST_MAX])
{
    struct query query __attribute__((uninitialized)); /* 2 KB, all written below */
    unsigned scores[SUGGEST_MAX];
    size_t found = 0;
    query.word = fold(word);
    memset(query.positions, 0, sizeof(query.positions));
    for (size_t i = 0; i < query.word.len; i++)
        query.positions[(unsigned char)query.word.at[i]] |= 1ull << i;
    for (size_t i = 0; i < count; i++) {
        struct folded_name candidate = fold(candidates[i]);
        unsigned score = score_of(&query, &candidate);
        size_t rank = found;
        while (rank > 0 && scores[rank - 1] < score) /* equal scores keep the candidates' order */
            rank--;
        if (!score || rank == SUGGEST_MAX)
            continue;
        found += found < SUGGEST_MAX;
        for (size_t k = found - 1; k > rank; k--) {
            out[k] = out[k - 1];
            scores[k] = scores[k - 1];
        }
        out[rank] = i;
        scores[rank] = score;
    }
    return found;
}

struct str suggest_closest(struct str word, const struct str *candidates, size_t count)
{
    size_t best[SUGGEST_MAX];
    return suggest_ranked(word, candidates, count, best) ? candidates[best[0]] : STR_NONE;
}

#define SLIPS_ONE_MIN_BYTES 4u  /* shorter names differ in one letter by intention */
#define SLIPS_TWO_MIN_BYTES 12u /* from here on two slips are still a misspelling */

/* A bit per letter: two names that differ in n slips differ in at most 2n bits. */
static uint64_t letters_of(const struct folded_name *f)
{
    uint64_t letters = 0;
    for (size_t i = 0; i < f->len; i++)
        letters |= 1ull << (f->at[i] & 63);
    return letters;
}

static bool has_same_digits(const struct folded_name *a, const struct folded_name *b)
{
    size_t i = 0, j = 0;
    for (;; i++, j++) {
        while (i < a->len && !(a->at[i] >= '0' && a->at[i] <= '9'))
            i++;
        while (j < b->len && !(b->at[j] >= '0' && b->at[j] <= '9'))
            j++;
        if (i == a->len || j == b->len)
            return i == a->len && j == b->len;
        if (a->at[i] != b->at[j])
            return false;
    }
}

/* Letters added, left out, replaced, or swapped with their neighbour (optimal string alignment). */
static size_t slips_between(const struct folded_name *a, const struct folded_name *b)
{
    uint8_t rows[3][WORD_MAX_BYTES + 1];
    for (size_t j = 0; j <= b->len; j++)
        rows[0][j] = (uint8_t)j;
    for (size_t i = 1; i <= a->len; i++) {
        uint8_t *now = rows[i % 3], *last = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
        now[0] = (uint8_t)i;
        for (size_t j = 1; j <= b->len; j++) {
            uint8_t best = (uint8_t)(last[j - 1] + (a->at[i - 1] != b->at[j - 1]));
            if (last[j] + 1 < best)
                best = (uint8_t)(last[j] + 1);
            if (now[j - 1] + 1 < best)
                best = (uint8_t)(now[j - 1] + 1);
            bool swapped = i > 1 && j > 1 && a->at[i - 1] == b->at[j - 2] && a->at[i - 2] == b->at[j - 1];
            if (swapped && before[j - 2] + 1 < best)
                best = (uint8_t)(before[j - 2] + 1);
            now[j] = best;
        }
    }
    return rows[a->len % 3][b->len];
}

struct str suggest_misspelled(struct str word, const struct str *candidates, size_t count)
{
    struct folded_name name = fold(word);
    uint64_t letters = letters_of(&name);
    size_t most = name.len >= SLIPS_TWO_MIN_BYTES ? 2 : name.len >= SLIPS_ONE_MIN_BYTES ? 1 : 0;
    struct str closest = STR_NONE;
    for (size_t i = 0; i < count && name.len; i++) {
        struct folded_name other = fold(candidates[i]);
        size_t longer = name.len > other.len ? name.len - other.len : other.len - name.len;
        if (longer > most || (size_t)__builtin_popcountll(letters ^ letters_of(&other)) > 2 * most ||
            !has_same_digits(&name, &other))
            continue;
        size_t slips = slips_between(&name, &other);
        if (slips > most)
            continue;
        closest = candidates[i];
        if (!slips)
            break;
        most = slips - 1; /* only a closer one replaces it */
    }
    return closest;
}
