/*
 * Similarity of names, word by word. A word matches an equal one, one that it abbreviates, one with the same
 * stem, or one that is a typing error away. Only the first 64 bytes of a name are compared.
 */
#include "base/suggest.h"

#include "base/hash.h"

#define NAME_MAX_BYTES    64u
#define WORDS_MAX         12u
#define ABBREVIATION_MIN  3u  /* bytes that a shorter word must have to stand for a longer one */
#define STEM_MIN          4u  /* bytes that two words must share at their beginning … */
#define STEM_PERCENT      60u /* … and how much of the longer one that must be */
#define TYPO_EVERY        4u  /* bytes of the longer word for each typing error */
#define TYPOS_MAX         3u
#define FIRST_LETTER_UPTO 6u   /* in shorter words, a typing error spares the first letter */
#define LIKE_PLURAL       950u /* of 1000: the words differ in a final s */
#define COVERED_MIN       500u /* of 1000: how much of both names the matching words must be */

/* A name in lower case, cut at separators, and where a capital or a digit begins a word. */
struct words {
    char text[NAME_MAX_BYTES];
    struct str at[WORDS_MAX];
    size_t count, len;
};

enum kind { OTHER, LOWER, UPPER, DIGIT, SEPARATOR };

static const uint8_t kinds[256] = {
    ['a' ... 'z'] = LOWER, ['A' ... 'Z'] = UPPER, ['0' ... '9'] = DIGIT, [0] = SEPARATOR,
    ['_'] = SEPARATOR,     ['-'] = SEPARATOR,     [' '] = SEPARATOR,     ['.'] = SEPARATOR,
    ['/'] = SEPARATOR,     [':'] = SEPARATOR};

/* "dueDate", "HTTPServer" (before the last capital) and "item10" have a word's beginning inside. */
static void split(struct str name, struct words *out)
{
    enum kind before = SEPARATOR, kind;
    out->count = out->len = 0;
    for (size_t i = 0; i < name.len && out->len < NAME_MAX_BYTES; i++, before = kind) {
        char c = name.at[i];
        kind = kinds[(unsigned char)c];
        if (kind == SEPARATOR)
            continue;
        bool next_is_lower = i + 1 < name.len && kinds[(unsigned char)name.at[i + 1]] == LOWER;
        bool begins = before == SEPARATOR || (kind == DIGIT) != (before == DIGIT) ||
                      (kind == UPPER && (before != UPPER || next_is_lower));
        if (begins && out->count < WORDS_MAX)
            out->at[out->count++].at = out->text + out->len;
        out->text[out->len++] = kind == UPPER ? (char)(c + 32) : c;
    }
    for (size_t i = 0; i < out->count; i++)
        out->at[i].len =
            (size_t)((i + 1 < out->count ? out->at[i + 1].at : out->text + out->len) - out->at[i].at);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Letters that must be replaced, left out, added or swapped with their neighbour; more than `most` if they
 * are more. The lengths differ by at most `most`. Only the cells that far from the diagonal can have so few,
 * and the two beside them count as far too many. */
static size_t edit_distance(struct str a, struct str b, size_t most)
{
    size_t rows[3][NAME_MAX_BYTES + 2];
    for (size_t j = 0; j <= b.len; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t *now = rows[i % 3], *last = rows[(i + 2) % 3], *older = rows[(i + 1) % 3];
        size_t from = i > most ? i - most : 1, to = least(i + most, b.len);
        now[from - 1] = from == 1 ? i : NAME_MAX_BYTES;
        for (size_t j = from; j <= to; j++) {
            bool same = a.at[i - 1] == b.at[j - 1];
            now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + !same);
            if (i > 1 && j > 1 && a.at[i - 1] == b.at[j - 2] && a.at[i - 2] == b.at[j - 1])
                now[j] = least(now[j], older[j - 2] + 1);
        }
        now[to + 1] = NAME_MAX_BYTES;
    }
    return rows[a.len % 3][b.len];
}

/* A bit per letter: two names that differ in n slips differ in at most 2n bits. */
static uint64_t letters_of(struct str word)
{
    uint64_t letters = 0;
    for (size_t i = 0; i < word.len; i++)
        letters |= 1ull << (word.at[i] & 63);
    return letters;
}

/* Of 1000: 1000 for equal words, 0 for different ones. */
static unsigned likeness(struct str a, struct str b)
{
    size_t longer = a.len > b.len ? a.len : b.len, shorter = least(a.len, b.len);
    size_t prefix = str_same(a, b);
    if (prefix == longer)
        return 1000;
    if (!shorter || ascii_is_digit(a.at[0]) || ascii_is_digit(b.at[0]))
        return 0;
    if (prefix == shorter && longer == shorter + 1 && (a.len > b.len ? a : b).at[shorter] == 's')
        return LIKE_PLURAL;
    size_t allowed = least(longer / TYPO_EVERY, TYPOS_MAX);
    bool first_letter = prefix > 0 || longer >= FIRST_LETTER_UPTO;
    if (allowed && first_letter && longer - shorter <= allowed &&
        (size_t)__builtin_popcountll(letters_of(a) ^ letters_of(b)) <= 2 * allowed &&
        edit_distance(a, b, allowed) <= allowed)
        return 800;
    if (prefix == shorter && (shorter >= ABBREVIATION_MIN || (shorter > 1 && 2 * shorter >= longer)))
        return 750;
    return prefix >= STEM_MIN && 100 * prefix >= STEM_PERCENT * longer ? 700 : 0;
}

/* The numbers of `a` are among those of `b`, in their order. */
static bool has_numbers_of(const struct words *b, const struct words *a)
{
    size_t at = 0;
    for (size_t i = 0; i < a->count; i++) {
        if (!ascii_is_digit(a->at[i].at[0]))
            continue;
        while (at < b->count && !str_eq(a->at[i], b->at[at]))
            at++;
        if (at++ == b->count)
            return false;
    }
    return true;
}

/* Each word of the name with fewer words takes its best match among the others. */
static unsigned compare(const struct words *a, const struct words *b)
{
    const struct words *few = a->count <= b->count ? a : b, *many = few == a ? b : a;
    bool used[WORDS_MAX] = {false};
    size_t matched_bytes = 0, matched = 0, last = WORDS_MAX, bytes = a->len + b->len;
    for (size_t i = 0; i < few->count; i++) {
        unsigned best = 0;
        size_t at = 0;
        for (size_t k = 0; k < many->count; k++) {
            unsigned here = used[k] ? 0 : likeness(few->at[i], many->at[k]);
            if (here > best) {
                best = here;
                at = k;
            }
        }
        if (!best)
            continue;
        used[at] = true;
        matched++;
        last = at;
        matched_bytes += (few->at[i].len + many->at[at].len) * best / 100;
    }
    if (!matched || !bytes)
        return 0;
    unsigned covered = (unsigned)(100 * matched_bytes / bytes);
    bool says_less = matched == few->count && (covered >= COVERED_MIN || last == many->count - 1);
    if (says_less && few->count == many->count && covered == 1000)
        return SUGGEST_SAME - (few->count > 1);
    return says_less ? SUGGEST_CLOSE + covered : covered / 2;
}

static unsigned score_of(const struct words *a, struct str candidate)
{
    struct words b __attribute__((uninitialized)); /* `count` and `len` say how much is written */
    split(candidate, &b);
    /* Names with different numbers name different things; one may lack a number that the other has. */
    if (!a->count || !b.count || (!has_numbers_of(&b, a) && !has_numbers_of(a, &b)))
        return 0;
    struct str whole_a = {a->text, a->len}, whole_b = {b.text, b.len};
    unsigned whole = likeness(whole_a, whole_b);            /* `filename` and `file_name` */
    if (whole < LIKE_PLURAL && a->count > 1 && b.count > 1) /* `min_price` is no mistyped `max_price` */
        whole = 0;
    unsigned score = whole == 1000 ? SUGGEST_SAME : whole ? SUGGEST_CLOSE + whole : 0;
    if (a->count == 1 && b.count == 1) /* the same by words */
        return score;
    unsigned by_words = compare(a, &b);
    return by_words > score ? by_words : score;
}

unsigned suggest_score(struct str a, struct str b)
{
    struct words words __attribute__((uninitialized));
    split(a, &words);
    return score_of(&words, b);
}

/* Inserts a candidate into the `found` best of at most `max`; equal scores keep their order. Returns how many
 * there are now. */
static size_t insert(size_t candidate, unsigned score, size_t found, size_t max, size_t *out,
                     unsigned *scores)
{
    size_t place = found;
    while (place > 0 && scores[place - 1] < score)
        place--;
    if (place == max)
        return found;
    found += found < max;
    for (size_t k = found - 1; k > place; k--) {
        out[k] = out[k - 1];
        scores[k] = scores[k - 1];
    }
    out[place] = candidate;
    scores[place] = score;
    return found;
}

size_t suggest_ranked(struct str word, const struct str *candidates, size_t count, size_t out[SUGGEST_MAX])
{
    struct words words __attribute__((uninitialized));
    unsigned scores[SUGGEST_MAX];
    size_t found = 0;
    split(word, &words);
    for (size_t i = 0; i < count; i++) {
        unsigned score = score_of(&words, candidates[i]);
        if (score)
            found = insert(i, score, found, SUGGEST_MAX, out, scores);
    }
    return found;
}

struct str suggest_closest(struct str word, const struct str *candidates, size_t count)
{
    size_t best[SUGGEST_MAX], found = suggest_ranked(word, candidates, count, best);
    unsigned score = found ? suggest_score(word, candidates[best[0]]) : 0;
    bool tied = found > 1 && suggest_score(word, candidates[best[1]]) == score;
    return score >= SUGGEST_CLOSE && !tied ? candidates[best[0]] : STR_NONE;
}

/* ---- tools that do not exist ---- */

#define LIKE_SYNONYM 650u /* of 1000 */

/* Words that tools are called by in place of each other. */
static const char *const synonyms[] = {
    "get read fetch retrieve show view load open look lookup list search find query browse check see ls cat",
    "create add new make insert generate init register write save put store append upload",
    "update edit modify change set patch replace rewrite write put adjust configure",
    "delete remove drop destroy erase clear discard rm cancel close",
    "send post publish submit notify share reply",
    "run execute exec call invoke start launch trigger evaluate eval perform do",
    "stop end terminate halt kill finish abort close",
    "move rename mv transfer relocate",
    "copy duplicate clone cp",
    "goto navigate open visit go browse",
    "click press tap push select",
    "type fill enter input write",
    "book reserve order buy purchase",
    "pay charge bill checkout",
    "summarize summarise summary digest extract",
    "compute calculate calc solve sum",
    "file document doc text page",
    "folder directory dir path",
    "mail email message msg",
    "user customer account person profile member client",
    "image picture photo screenshot png capture snapshot",
    "shell bash terminal command cmd console",
    "weather forecast",
    "web internet website site url webpage page",
    "ticket issue bug task todo",
    "repo repository project",
    "pr pull merge",
    "js javascript code script",
    "history log logs commits",
    "price quote cost rate",
};

/* The groups of a word, a bit each. Names are compared with those of all tools: the words of all groups with
 * each word of each name would be most of that. The table is filled once. */
#define GROUP_SLOTS 512u /* a power of two, more than twice the words of all groups */

struct grouped_word {
    struct str word; /* empty: the slot is free */
    uint32_t groups;
};

static struct grouped_word *slot_of(struct grouped_word *table, struct str word)
{
    size_t at = hash_stable(word).low % GROUP_SLOTS;
    while (table[at].word.len && !str_eq(table[at].word, word))
        at = (at + 1) % GROUP_SLOTS;
    return &table[at];
}

/* Those of the word that it is the plural of, too. */
static uint32_t groups_of(struct str word)
{
    static struct grouped_word table[GROUP_SLOTS];
    static bool filled;
    for (size_t g = 0; !filled && g < sizeof(synonyms) / sizeof(*synonyms); g++)
        for (struct str rest = str_of(synonyms[g]); rest.len;) {
            struct str one = str_split(&rest, ' ');
            struct grouped_word *slot = slot_of(table, one);
            slot->word = one;
            slot->groups |= 1u << g;
        }
    filled = true;
    bool plural = word.len > 3 && word.at[word.len - 1] == 's';
    return slot_of(table, word)->groups | (plural ? slot_of(table, str_cut(word, word.len - 1))->groups : 0);
}

/* A name, and the groups of each of its words. */
struct meaning {
    struct words words;
    uint32_t groups[WORDS_MAX];
};

static void read_meaning(struct str name, struct meaning *out)
{
    split(name, &out->words);
    for (size_t i = 0; i < out->words.count; i++)
        out->groups[i] = groups_of(out->words.at[i]);
}

/* How much of both names' letters the other one has, by words: at most 3000, what was sent counts double. */
static unsigned coverage(const struct meaning *sent, const struct meaning *other)
{
    const struct words *said = &sent->words, *there = &other->words;
    unsigned best_of_other[WORDS_MAX] = {0};
    size_t of_sent = 0, of_other = 0;
    for (size_t i = 0; i < said->count; i++) {
        unsigned best = 0;
        for (size_t k = 0; k < there->count; k++) {
            unsigned here = likeness(said->at[i], there->at[k]);
            if (here < LIKE_SYNONYM && sent->groups[i] & other->groups[k])
                here = LIKE_SYNONYM;
            best = here > best ? here : best;
            best_of_other[k] = here > best_of_other[k] ? here : best_of_other[k];
        }
        of_sent += best * said->at[i].len;
    }
    for (size_t k = 0; k < there->count; k++)
        of_other += best_of_other[k] * there->at[k].len;
    return (unsigned)((said->len ? 2 * of_sent / said->len : 0) + (there->len ? of_other / there->len : 0));
}

/* Pairs of letters of the shorter name that the other has, of 100: for names that share no word. */
static unsigned shared_pairs(struct str a, struct str b)
{
    size_t shared = 0;
    for (size_t i = 0; i + 1 < a.len; i++)
        shared += memmem(b.at, b.len, a.at + i, 2) != NULL;
    return a.len > 1 ? (unsigned)(100 * shared / (a.len - 1)) : 0;
}

size_t suggest_meant(struct str word, const struct str *candidates, size_t count, size_t out[SUGGEST_MEANT])
{
    struct meaning sent, other __attribute__((uninitialized)); /* the counts say how much is written */
    unsigned scores[SUGGEST_MEANT] = {0};
    size_t found = 0;
    read_meaning(word, &sent);
    for (size_t i = 0; i < count; i++) {
        read_meaning(candidates[i], &other);
        struct str a = {sent.words.text, sent.words.len}, b = {other.words.text, other.words.len};
        unsigned slip =
            3 * likeness(a, b); /* the whole name, but for a letter or two: whatever its words are */
        unsigned by_words = coverage(&sent, &other);
        unsigned score = 1 + (slip > by_words ? slip : by_words) + shared_pairs(a, b);
        found = insert(i, score, found, SUGGEST_MEANT, out, scores);
    }
    return found;
}

/* ---- misspellings ---- */

#define SLIPS_ONE_MIN_BYTES 4u  /* shorter names differ in one letter by intention */
#define SLIPS_TWO_MIN_BYTES 12u /* from here on two slips are still a misspelling */

static bool has_same_digits(struct str a, struct str b)
{
    size_t i = 0, j = 0;
    for (;; i++, j++) {
        while (i < a.len && !ascii_is_digit(a.at[i]))
            i++;
        while (j < b.len && !ascii_is_digit(b.at[j]))
            j++;
        if (i == a.len || j == b.len)
            return i == a.len && j == b.len;
        if (a.at[i] != b.at[j])
            return false;
    }
}

struct str suggest_misspelled(struct str word, const struct str *candidates, size_t count)
{
    struct words name, other;
    split(word, &name);
    struct str whole = {name.text, name.len};
    uint64_t letters = letters_of(whole);
    size_t most = name.len >= SLIPS_TWO_MIN_BYTES ? 2 : name.len >= SLIPS_ONE_MIN_BYTES ? 1 : 0;
    struct str closest = STR_NONE;
    for (size_t i = 0; i < count && name.len; i++) {
        split(candidates[i], &other);
        struct str candidate = {other.text, other.len};
        size_t longer = name.len > other.len ? name.len - other.len : other.len - name.len;
        if (longer > most || (size_t)__builtin_popcountll(letters ^ letters_of(candidate)) > 2 * most ||
            !has_same_digits(whole, candidate))
            continue;
        size_t slips = edit_distance(whole, candidate, most);
        if (slips > most)
            continue;
        closest = candidates[i];
        if (!slips)
            break;
        most = slips - 1; /* only a closer one replaces it */
    }
    return closest;
}
