/* Names as servers spell them, each in its own way. */
#include "result/failure_envelope_internal.h"

struct str envelope_name(struct str key, char out[ENVELOPE_NAME_MAX_BYTES])
{
    size_t n = 0;
    for (size_t i = 0; i < key.len; i++) {
        char c = key.at[i];
        if (c == '_' || c == '-' || c == ' ')
            continue;
        if (n == ENVELOPE_NAME_MAX_BYTES)
            return STR_NONE;
        out[n++] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
    }
    return (struct str){out, n};
}

static size_t index_of(struct str text, const struct str *words, size_t count)
{
    char small[ENVELOPE_NAME_MAX_BYTES];
    struct str plain = envelope_name(text, small);
    size_t i = 0;
    while (i < count && !str_eq(plain, words[i]))
        i++;
    return i;
}

bool envelope_is_one_of(struct str text, const struct str *words, size_t count)
{
    return index_of(text, words, count) < count;
}

const struct json *envelope_find(const struct json *object, const struct str *words, size_t count)
{
    const struct json *found = NULL;
    size_t best = count;
    for (uint32_t i = 0; json_is(object, JSON_OBJECT) && i < object->len; i++) {
        const struct json_member *member = &object->members[i];
        size_t at = index_of(member->key, words, best);
        if (at == best || result_is_empty(&member->value))
            continue;
        best = at;
        found = &member->value;
    }
    return found;
}

bool envelope_is_no_error(const struct json *value)
{
    static const struct str nothing[] = {STR("none"),  STR("null"), STR("noerror"), STR("no"),
                                         STR("false"), STR("0"),    STR("n/a"),     STR("ok")};
    int64_t n;
    return result_is_empty(value) || (value->type == JSON_BOOL && !value->truth) ||
           (json_int(value, &n) && n == 0) ||
           (value->type == JSON_STRING && IS_ONE_OF(json_str(value), nothing));
}
