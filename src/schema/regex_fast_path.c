/*
 * A part is a set of ASCII bytes and a count. Matching takes as many bytes as
 * it can, which is right if what follows begins with none of them: no other
 * division of the subject could match, so nothing needs backtracking.
 */
#include "schema/regex.h"

#include "base/arena.h"

#include <ctype.h>

#define PARTS_MAX  24u
#define COUNT_MAX  65535u
#define META_BYTES "\\^$.|?*+()[]{}"

struct set {
    uint64_t bits[2]; /* of ASCII */
};

struct part {
    struct set set;
    uint32_t min, max; /* max UINT32_MAX: no limit */
};

struct fast_regex {
    bool to_end; /* with $ */
    uint32_t count;
    struct part parts[PARTS_MAX];
};

static void set_add(struct set *set, char from, char to)
{
    for (unsigned char b = (unsigned char)from; b <= (unsigned char)to; b++)
        set->bits[b / 64] |= (uint64_t)1 << (b % 64);
}

static char byte_at(struct str s, size_t at)
{
    return at < s.len ? s.at[at] : '\0';
}

/* \d, \w or an escaped punctuation mark; *single: one character, which may begin a range. */
static size_t read_escape(struct str s, struct set *set, bool *single)
{
    char c = byte_at(s, 1);
    *single = false;
    if (c == 'd' || c == 'w')
        set_add(set, '0', '9');
    if (c == 'w') {
        set_add(set, 'A', 'Z');
        set_add(set, 'a', 'z');
        set_add(set, '_', '_');
    } else if (c > 0 && ispunct((unsigned char)c)) {
        set_add(set, c, c);
        *single = true;
    } else if (c != 'd') {
        return 0;
    }
    return 2;
}

/* A character, a range or an escape of a class. A dash is a character only at either end. */
static size_t read_class_item(struct str s, bool first, struct set *set)
{
    char c = byte_at(s, 0), next = byte_at(s, 1);
    bool single = true;
    size_t n = 1;
    if (c == '\\')
        n = read_escape(s, set, &single);
    else if (c == '-' ? first || next == ']' : c > 0 && c != '[' && c != '^')
        set_add(set, c, c);
    else
        return 0;
    if (!n || byte_at(s, n) != '-' || byte_at(s, n + 1) == ']')
        return n;
    char to = byte_at(s, n + 1);
    if (!single || n != 1 || to <= c || strchr("\\[]^-", to))
        return 0;
    set_add(set, c, to);
    return 3;
}

static size_t read_class(struct str s, struct set *set)
{
    size_t n = 1;
    while (n < s.len && byte_at(s, n) != ']') {
        size_t item = read_class_item(str_from(s, n), n == 1, set);
        if (!item)
            return 0;
        n += item;
    }
    return n > 1 && n < s.len ? n + 1 : 0;
}

static size_t read_set(struct str s, struct set *set)
{
    bool single;
    char c = byte_at(s, 0);
    if (c == '[')
        return read_class(s, set);
    if (c == '\\')
        return read_escape(s, set, &single);
    if (c <= 0 || c == 127 || strchr(META_BYTES, c))
        return 0;
    set_add(set, c, c);
    return 1;
}

static size_t read_number(struct str s, uint32_t *out)
{
    size_t n = 0;
    for (*out = 0; isdigit((unsigned char)byte_at(s, n)) && *out <= COUNT_MAX; n++)
        *out = *out * 10 + (uint32_t)(byte_at(s, n) - '0');
    return *out <= COUNT_MAX ? n : 0;
}

/* {3} {3,} {3,8} */
static size_t read_braces(struct str s, struct part *part)
{
    size_t digits = read_number(str_from(s, 1), &part->min), n = 1 + digits;
    part->max = part->min;
    if (!digits)
        return 0;
    if (byte_at(s, n) == ',') {
        digits = read_number(str_from(s, ++n), &part->max);
        if (!digits)
            part->max = UINT32_MAX;
        n += digits;
    }
    return byte_at(s, n) == '}' ? n + 1 : 0;
}

/* *simple: false for a malformed, lazy or possessive count. */
static size_t read_count(struct str s, struct part *part, bool *simple)
{
    size_t n = 0;
    char c = byte_at(s, 0);
    part->min = part->max = 1;
    if (c == '{') {
        n = read_braces(s, part);
        *simple = n > 0;
    } else if (c == '?' || c == '*' || c == '+') {
        part->min = c == '+';
        part->max = c == '?' ? 1 : UINT32_MAX;
        n = 1;
    }
    *simple &= !n || (byte_at(s, n) != '?' && byte_at(s, n) != '+');
    return n;
}

static bool read_parts(struct str s, struct fast_regex *regex)
{
    bool ok = byte_at(s, 0) == '^';
    s = str_from(s, 1);
    while (s.len && ok) {
        regex->to_end = s.len == 1 && s.at[0] == '$';
        if (regex->to_end)
            break;
        if (regex->count == PARTS_MAX)
            return false;
        struct part *part = &regex->parts[regex->count++];
        size_t n = read_set(s, &part->set);
        ok = n > 0;
        s = str_from(s, n);
        s = str_from(s, read_count(s, part, &ok));
    }
    return ok;
}

/* What may follow a part without a fixed count begins with none of its bytes. */
static bool leaves_no_choice(const struct fast_regex *regex)
{
    for (uint32_t i = 0; i < regex->count; i++) {
        const struct part *part = &regex->parts[i], *after = part;
        while (part->min != part->max && ++after < regex->parts + regex->count) {
            if ((part->set.bits[0] & after->set.bits[0]) || (part->set.bits[1] & after->set.bits[1]))
                return false;
            if (after->min)
                break;
        }
    }
    return true;
}

const struct fast_regex *regex_fast_path_compile(struct arena *arena, struct str expression)
{
    struct fast_regex regex = {0};
    if (!read_parts(expression, &regex) || !leaves_no_choice(&regex))
        return NULL;
    size_t size = offsetof(struct fast_regex, parts) + regex.count * sizeof(struct part);
    return memcpy(arena_alloc(arena, size), &regex, size);
}

bool regex_fast_path_matches(const struct fast_regex *regex, struct str subject)
{
    const char *p = subject.at, *end = p + subject.len;
    for (const struct part *part = regex->parts, *stop = part + regex->count; part < stop; part++) {
        size_t left = (size_t)(end - p), taken = 0, most = left < part->max ? left : part->max;
        for (; taken < most; taken++) {
            unsigned char b = (unsigned char)p[taken];
            if (b >= 128 || !(part->set.bits[b / 64] >> (b % 64) & 1))
                break;
        }
        if (taken < part->min)
            return false;
        p += taken;
    }
    return p == end || !regex->to_end;
}
