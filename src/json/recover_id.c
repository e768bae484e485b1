/*
 * The id of a message that cannot be parsed, so that its sender gets an answer
 * instead of a timeout. Scans tokens without a grammar, and accepts the id only
 * at the top level and only if it is complete and valid itself.
 */
#include "base/arena.h"
#include "json/parse.h"

#define RECOVER_MAX_BYTES 65536u

struct scan {
    const char *at, *end;
};

static void skip_space(struct scan *s)
{
    while (s->at < s->end && ascii_is_space(*s->at))
        s->at++;
}

/* Skips a string from its opening quote and returns it with both quotes, or STR_NONE if it is not closed. */
static struct str take_string(struct scan *s)
{
    const char *start = s->at++;
    while (s->at < s->end && *s->at != '"')
        s->at += *s->at == '\\' ? 2 : 1;
    if (s->at >= s->end) {
        s->at = s->end;
        return STR_NONE;
    }
    s->at++;
    return (struct str){start, (size_t)(s->at - start)};
}

/* An integer that is followed by its separator: a truncated one would be another id. */
static struct str take_integer(struct scan *s)
{
    const char *start = s->at;
    s->at += s->at < s->end && *s->at == '-';
    const char *digits = s->at;
    while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
        s->at++;
    size_t count = (size_t)(s->at - digits);
    bool padded = count > 1 && *digits == '0';
    const char *stop = s->at;
    skip_space(s);
    bool ended = s->at < s->end && (*s->at == ',' || *s->at == '}');
    return count && !padded && ended ? (struct str){start, (size_t)(stop - start)} : STR_NONE;
}

struct str json_recover_id(struct str text)
{
    size_t len = text.len < RECOVER_MAX_BYTES ? text.len : RECOVER_MAX_BYTES;
    if (!len)
        return STR_NONE;
    struct scan s = {text.at, text.at + len};
    int depth = 0;
    char before = 0; /* the last character that was neither white space nor in a string */
    skip_space(&s);
    if (s.at < s.end && *s.at != '{')
        return STR_NONE;
    while (s.at < s.end) {
        char c = *s.at;
        if (c == '"') {
            struct str key = take_string(&s);
            skip_space(&s);
            bool is_key = depth == 1 && (before == '{' || before == ',') && s.at < s.end && *s.at == ':';
            before = '"';
            if (!is_key || !str_is(key, "\"id\""))
                continue;
            s.at++;
            skip_space(&s);
            if (s.at == s.end || *s.at != '"')
                return take_integer(&s);
            struct str literal = take_string(&s);
            if (!literal.len)
                return STR_NONE;
            /* It is echoed byte for byte, so it must be a valid literal. */
            struct arena *scratch = arena_new();
            struct json value;
            bool valid = json_parse(scratch, literal, NULL, &value, NULL) == OK;
            arena_free(scratch);
            return valid ? literal : STR_NONE;
        }
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        if (depth < 1 && !ascii_is_space(c))
            return STR_NONE;
        if (!ascii_is_space(c))
            before = c;
        s.at++;
    }
    return STR_NONE;
}
