/* Comparing, cutting and matching strings. */
#include "base/str.h"

struct str str_cut(struct str s, size_t max)
{
    if (s.len <= max)
        return s;
    size_t end = max;
    while (end > 0 && ((unsigned char)s.at[end] & 0xC0) == 0x80)
        end--;
    return (struct str){s.at, end};
}

struct str str_cut_front(struct str s, size_t max)
{
    size_t from = s.len > max ? s.len - max : 0;
    while (from < s.len && ((unsigned char)s.at[from] & 0xC0) == 0x80)
        from++;
    return str_from(s, from);
}

size_t str_utf8_length(const char *at, const char *end)
{
    const unsigned char *p = (const unsigned char *)at;
    size_t left = (size_t)(end - at);
    unsigned char lead = left ? p[0] : 0xFF;
    if (lead < 0x80)
        return 1;
    size_t len = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
    if (!len || left < len)
        return 0;
    unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < len; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    return len;
}

size_t str_characters(struct str s)
{
    size_t count = 0;
    for (size_t i = 0; i < s.len; i++)
        count += ((unsigned char)s.at[i] & 0xC0) != 0x80;
    return count;
}

struct str str_trim(struct str s)
{
    while (s.len && ascii_is_space(s.at[0]))
        s.at++, s.len--;
    while (s.len && ascii_is_space(s.at[s.len - 1]))
        s.len--;
    return s;
}

bool str_contains_nocase(struct str haystack, struct str needle)
{
    for (size_t i = 0; i + needle.len <= haystack.len; i++) {
        size_t k = 0;
        while (k < needle.len && ascii_lower(haystack.at[i + k]) == ascii_lower(needle.at[k]))
            k++;
        if (k == needle.len)
            return true;
    }
    return false;
}

static bool is_of_word(struct str text, size_t at)
{
    return at < text.len && (ascii_is_alnum(text.at[at]) || text.at[at] == '_');
}

/* By Knuth, Morris and Pratt, as peers choose both texts: each byte is looked at once, or twice. restart[k]:
 * how many of the word's first bytes are also the last of its first k. */
bool str_contains_word(struct str haystack, struct str word)
{
    uint8_t restart[STR_WORD_MAX_BYTES + 1] = {0};
    if (!word.len || word.len > STR_WORD_MAX_BYTES)
        return false;
    for (size_t i = 1, k = 0; i < word.len; i++) {
        while (k && ascii_lower(word.at[i]) != ascii_lower(word.at[k]))
            k = restart[k];
        k += ascii_lower(word.at[i]) == ascii_lower(word.at[k]);
        restart[i + 1] = (uint8_t)k;
    }
    for (size_t i = 0, k = 0; i < haystack.len; i++) {
        while (k && (k == word.len || ascii_lower(haystack.at[i]) != ascii_lower(word.at[k])))
            k = restart[k];
        k += ascii_lower(haystack.at[i]) == ascii_lower(word.at[k]);
        if (k == word.len && !is_of_word(haystack, i - k) && !is_of_word(haystack, i + 1))
            return true;
    }
    return false;
}

bool str_is_glob(struct str pattern)
{
    return str_has(pattern, '*') || str_has(pattern, '?');
}

/* On a mismatch only the latest star has to match more: no exponential backtracking. */
bool str_glob(struct str pattern, struct str s)
{
    size_t p = 0, i = 0, star = (size_t)-1, resume = 0;
    while (i < s.len) {
        if (p < pattern.len && pattern.at[p] == '*') {
            star = p++;
            resume = i;
        } else if (p < pattern.len && (pattern.at[p] == '?' || pattern.at[p] == s.at[i])) {
            p++, i++;
        } else if (star != (size_t)-1) {
            p = star + 1;
            i = ++resume;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.at[p] == '*')
        p++;
    return p == pattern.len;
}

bool str_is_name(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!ascii_is_alnum(s.at[i]) && s.at[i] != '_' && s.at[i] != '-')
            return false;
    return s.len > 0;
}
