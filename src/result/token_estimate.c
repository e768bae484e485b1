/* Runs of one kind of byte, each at its own rate. */
#include "result/compact_internal.h"

#define LETTERS_A_TOKEN 6u /* a shorter word is mostly one token, its space included */
#define DIGITS_A_TOKEN  3u
#define SIGNS_A_TOKEN   2u /* "," and ":" pair with their quotes */
#define OTHERS_A_TOKEN  3u /* bytes beyond ASCII: a Chinese character, or two Greek letters */

enum kind { SPACE, LETTER, DIGIT, SIGN, OTHER };

static const unsigned rates[] = {[SPACE] = 0,
                                 [LETTER] = LETTERS_A_TOKEN,
                                 [DIGIT] = DIGITS_A_TOKEN,
                                 [SIGN] = SIGNS_A_TOKEN,
                                 [OTHER] = OTHERS_A_TOKEN};

static enum kind kind_of(unsigned char c)
{
    unsigned char lower = c | 32;
    if (c >= 0x80)
        return OTHER;
    if (lower >= 'a' && lower <= 'z')
        return LETTER;
    if (c >= '0' && c <= '9')
        return DIGIT;
    return c <= ' ' ? SPACE : SIGN;
}

size_t token_estimate(struct str text)
{
    size_t tokens = 0, run = 0;
    enum kind kind = SPACE;
    for (size_t i = 0; i <= text.len; i++) {
        enum kind next = i < text.len ? kind_of((unsigned char)text.at[i]) : SPACE;
        if (i < text.len && next == kind) {
            run++;
            continue;
        }
        if (rates[kind])
            tokens += (run + rates[kind] - 1) / rates[kind];
        kind = next;
        run = 1;
    }
    return tokens;
}
