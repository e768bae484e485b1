/*
 * From a regular expression to a string it matches: the first alternative, the
 * first character of a class, as few repetitions as allowed. Lookaround and
 * back references are not tried; the caller validates the string.
 */
#include "schema/sample.h"

#include "base/arena.h"
#include "base/buf.h"

#define REPEAT_MAX 64u

struct scan {
    const char *at, *end;
    struct buf *out;
    bool hard;
};

static void alternatives(struct scan *s, unsigned depth);

static char class_letter(char c)
{
    static const char letters[][2] = {{'d', '0'}, {'w', 'a'}, {'D', 'a'},  {'S', 'a'},
                                      {'s', ' '}, {'W', ' '}, {'n', '\n'}, {'t', '\t'}};
    for (size_t i = 0; i < sizeof(letters) / sizeof(*letters); i++)
        if (letters[i][0] == c)
            return letters[i][1];
    return c;
}

static bool class_has(const char *from, const char *to, char c)
{
    for (const char *p = from; p < to; p++) {
        if (*p == '\\' && p + 1 < to) {
            char kind = *++p;
            bool digit = c >= '0' && c <= '9', letter = (c | 32) >= 'a' && (c | 32) <= 'z';
            if ((kind == 'd' && digit) || (kind == 'w' && (digit || letter || c == '_')) ||
                (kind == 's' && c == ' ') || kind == c)
                return true;
        } else if (p + 2 < to && p[1] == '-') {
            if (c >= p[0] && c <= p[2])
                return true;
            p += 2;
        } else if (*p == c) {
            return true;
        }
    }
    return false;
}

static char from_class(struct scan *s)
{
    bool negated = s->at < s->end && *s->at == '^';
    const char *from = s->at += negated;
    while (s->at < s->end && (*s->at != ']' || s->at == from))
        s->at += *s->at == '\\' ? 2 : 1;
    if (s->at >= s->end) {
        s->hard = true;
        return 'a';
    }
    const char *to = s->at++;
    static const char tried[] = "aA0_-. x:/@,b1cZ";
    for (size_t i = 0; tried[i]; i++)
        if (class_has(from, to, tried[i]) != negated)
            return tried[i];
    if (!negated && (unsigned char)*from < 0x80 && *from != '\\')
        return *from;
    s->hard = true;
    return 'a';
}

/* The minimum of a quantifier "{2,5}", "+", "*" or "?". */
static unsigned repetitions(struct scan *s)
{
    unsigned least = 1;
    if (s->at >= s->end)
        return 1;
    if (*s->at == '*' || *s->at == '?') {
        s->at++;
        least = 0;
    } else if (*s->at == '+') {
        s->at++;
    } else if (*s->at == '{' && s->at + 1 < s->end && s->at[1] >= '0' && s->at[1] <= '9') {
        least = 0;
        for (s->at++; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++)
            least = least > REPEAT_MAX ? least : least * 10 + (unsigned)(*s->at - '0');
        while (s->at < s->end && *s->at != '}')
            s->at++;
        s->at += s->at < s->end;
    }
    if (s->at < s->end && *s->at == '?')
        s->at++; /* lazy */
    if (least > REPEAT_MAX)
        s->hard = true;
    return least > REPEAT_MAX ? 1 : least;
}

static void atom(struct scan *s, unsigned depth)
{
    char c = *s->at++;
    if (c == '^' || c == '$')
        return;
    if (c == '(') {
        if (s->at + 1 < s->end && s->at[0] == '?') {
            s->hard |= s->at[1] != ':' && s->at[1] != '<';
            s->hard |= s->at[1] == '<' && s->at + 2 < s->end && (s->at[2] == '=' || s->at[2] == '!');
            if (s->at[1] == ':')
                s->at += 2;
            else
                while (s->at < s->end && *s->at++ != '>')
                    continue;
        }
        alternatives(s, depth + 1);
        s->hard |= s->at >= s->end || *s->at != ')';
        s->at += s->at < s->end;
    } else if (c == '[') {
        buf_byte(s->out, from_class(s));
    } else if (c == '\\' && s->at < s->end) {
        char kind = *s->at++;
        s->hard |= strchr("123456789kpPuxcBb", kind) != NULL;
        buf_byte(s->out, class_letter(kind));
    } else {
        buf_byte(s->out, c == '.' ? 'a' : c);
    }
}

static void sequence(struct scan *s, unsigned depth)
{
    while (s->at < s->end && *s->at != '|' && *s->at != ')' && !s->hard) {
        size_t before = s->out->len;
        atom(s, depth);
        size_t made = s->out->len - before;
        unsigned times = repetitions(s);
        s->hard |= before + made * times > SAMPLE_TEXT_MAX_BYTES;
        if (times == 0 || s->hard)
            s->out->len = before;
        for (unsigned i = 1; i < times && !s->hard; i++) {
            buf_reserve(s->out, made);
            buf_add(s->out, s->out->at + before, made);
        }
    }
}

/* Keeps the first; the others are read to skip them. */
static void alternatives(struct scan *s, unsigned depth)
{
    s->hard |= depth > SAMPLE_DEPTH_MAX;
    sequence(s, depth);
    while (s->at < s->end && *s->at == '|' && !s->hard) {
        size_t kept = s->out->len;
        s->at++;
        sequence(s, depth);
        s->out->len = kept;
    }
}

struct str sample_pattern(struct arena *arena, struct str pattern)
{
    struct buf text = buf_in(arena);
    struct scan s = {pattern.at, pattern.at + pattern.len, &text, pattern.len > SAMPLE_TEXT_MAX_BYTES};
    buf_reserve(&text, 1);
    alternatives(&s, 0);
    return s.hard || s.at < s.end ? STR_NONE : buf_view(&text);
}
