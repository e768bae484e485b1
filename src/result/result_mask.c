/* One walk over the value; texts are read token by token, each once. */
#include "result/result_mask.h"

#include "base/buf.h"
#include "json/parse.h"
#include "json/write.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define UUID_CHARS 36u
#define MASK       '#'

/* ---- texts ---- */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-' || c == ':' || c == '.' || c == '+';
}

static size_t digits_at(struct str text, size_t at)
{
    size_t end = at;
    while (end < text.len && isdigit((unsigned char)text.at[end]))
        end++;
    return end - at;
}

static bool is_uuid(struct str token)
{
    bool fits = token.len == UUID_CHARS;
    for (size_t i = 0; fits && i < token.len; i++)
        fits = i == 8 || i == 13 || i == 18 || i == 23 ? token.at[i] == '-'
                                                       : isxdigit((unsigned char)token.at[i]) != 0;
    return fits;
}

static bool is_hex(struct str token)
{
    bool letter = false;
    for (size_t i = 0; i < token.len; i++) {
        if (!isxdigit((unsigned char)token.at[i]))
            return false;
        letter |= !isdigit((unsigned char)token.at[i]);
    }
    return letter && token.len >= RESULT_MASK_HEX_CHARS;
}

/* Only digits and the signs of a time follow: "T10:00:00.5Z", "+02:00". */
static bool is_time_tail(struct str rest)
{
    for (size_t i = 0; i < rest.len; i++)
        if (!isdigit((unsigned char)rest.at[i]) && !strchr("TZtz:.+-", rest.at[i]))
            return false;
    return true;
}

/* 2026-05-03, with or without a time behind it. */
static bool is_date(struct str token)
{
    return digits_at(token, 0) == 4 && token.len >= 10 && token.at[4] == '-' && digits_at(token, 5) == 2 &&
           token.at[7] == '-' && digits_at(token, 8) == 2 && is_time_tail(str_from(token, 10));
}

/* 9:05, 09:05:07.250Z */
static bool is_time(struct str token)
{
    size_t hours = digits_at(token, 0);
    return (hours == 1 || hours == 2) && token.len >= hours + 3 && token.at[hours] == ':' &&
           digits_at(token, hours + 1) == 2 && is_time_tail(str_from(token, hours + 3));
}

static void put_digits_masked(struct buf *out, struct str token)
{
    for (size_t i = 0; i < token.len;) {
        size_t digits = digits_at(token, i);
        buf_byte(out, digits ? MASK : token.at[i]);
        i += digits ? digits : 1;
    }
}

static void put_token(struct buf *out, struct str token, bool digits)
{
    size_t len = token.len;
    while (len && strchr(".:-+", token.at[len - 1])) /* the sentence's */
        len--;
    struct str word = {token.at, len};
    if (is_uuid(word) || is_hex(word) || is_date(word) || is_time(word))
        buf_byte(out, MASK);
    else if (digits)
        put_digits_masked(out, word);
    else
        buf_str(out, word);
    buf_str(out, str_from(token, len));
}

void result_mask_text(struct buf *out, struct str text, bool digits)
{
    for (size_t i = 0; i < text.len;) {
        size_t end = i;
        while (end < text.len && is_word(text.at[end]))
            end++;
        if (end > i)
            put_token(out, (struct str){text.at + i, end - i}, digits);
        else
            buf_byte(out, text.at[end++]);
        i = end;
    }
}

/* ---- values ---- */

static bool starts_ignoring_case(struct str name, struct str with)
{
    return name.len >= with.len && strncasecmp(name.at, with.at, with.len) == 0;
}

static bool ends_ignoring_case(struct str name, struct str with)
{
    return name.len >= with.len && strncasecmp(name.at + name.len - with.len, with.at, with.len) == 0;
}

/* "createdAt", "created_at" and "at"; "flat" is none. */
static bool ends_with_at(struct str name)
{
    return str_is(name, "at") || str_is(name, "ts") || ends_ignoring_case(name, STR_LIT("_at")) ||
           (name.len > 2 && name.at[name.len - 2] == 'A' && name.at[name.len - 1] == 't');
}

static bool names_time(struct str name)
{
    static const struct str beginnings[] = {STR("time"), STR("elapsed"), STR("duration"), STR("trace"),
                                            STR("nonce")};
    static const struct str ends[] = {STR("_ms"), STR("request_id"), STR("requestid"), STR("timestamp")};
    bool found = ends_with_at(name);
    for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
        found |= starts_ignoring_case(name, beginnings[i]);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        found |= ends_ignoring_case(name, ends[i]);
    return found;
}

static bool is_scalar(const struct json *value)
{
    return value->type == JSON_NUMBER || value->type == JSON_STRING;
}

static void put_string(struct buf *out, struct arena *scratch, struct str text, bool digits)
{
    struct json inner;
    struct json_error fault;
    struct str trimmed = str_trim(text);
    bool looks = trimmed.len > 1 && (trimmed.at[0] == '{' || trimmed.at[0] == '[');
    if (looks && json_parse(scratch, trimmed, NULL, &inner, &fault) == OK)
        result_mask_write(out, scratch, &inner, digits);
    else
        result_mask_text(out, text, digits);
}

static void put_members(struct buf *out, struct arena *scratch, const struct json *object, bool digits)
{
    for (uint32_t i = 0; i < object->len; i++) {
        const struct json_member *member = &object->members[i];
        buf_str(out, member->key);
        buf_byte(out, ':');
        if (is_scalar(&member->value) && names_time(member->key))
            buf_byte(out, MASK);
        else
            result_mask_write(out, scratch, &member->value, digits);
        buf_byte(out, ',');
    }
}

void result_mask_write(struct buf *out, struct arena *scratch, const struct json *value, bool digits)
{
    switch (value->type) {
    case JSON_OBJECT:
        buf_byte(out, '{');
        put_members(out, scratch, value, digits);
        buf_byte(out, '}');
        break;
    case JSON_ARRAY:
        buf_byte(out, '[');
        for (uint32_t i = 0; i < value->len; i++) {
            result_mask_write(out, scratch, &value->items[i], digits);
            buf_byte(out, ',');
        }
        buf_byte(out, ']');
        break;
    case JSON_STRING:
        buf_byte(out, '"');
        put_string(out, scratch, json_str(value), digits);
        buf_byte(out, '"');
        break;
    case JSON_NUMBER:
        if (digits)
            buf_byte(out, MASK);
        else
            buf_str(out, (struct str){value->text, value->len});
        break;
    default:
        json_write(out, value);
    }
}

struct hash128 result_mask_error(struct arena *arena, const struct json *result, struct str text)
{
    struct buf masked = buf_in(arena);
    if (result)
        result_mask_write(&masked, arena, result, true);
    else
        result_mask_text(&masked, text, true);
    return masked.len ? hash_stable(buf_view(&masked)) : (struct hash128){0};
}
