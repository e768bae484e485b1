/* Two walks over a value: one writes it masked, the other leaves members out. Texts are read token by token,
 * each once. */
#include "result/result_mask.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define UUID_CHARS 36u
#define MASK       '#'

/* ---- texts ---- */

static size_t digits_at(struct str text, size_t at)
{
    size_t end = at;
    while (end < text.len && isdigit((unsigned char)text.at[end]))
        end++;
    return end - at;
}

/* A UUID, or hex that is long and has a letter. */
static bool is_hex_id(struct str token)
{
    bool is_uuid = token.len == UUID_CHARS, is_hex = token.len >= RESULT_MASK_HEX_CHARS, letter = false;
    for (size_t i = 0; i < token.len && (is_uuid || is_hex); i++) {
        bool is_digit = isxdigit((unsigned char)token.at[i]),
             is_dash = i == 8 || i == 13 || i == 18 || i == 23;
        is_uuid = is_uuid && (is_dash ? token.at[i] == '-' : is_digit);
        is_hex = is_hex && is_digit;
        letter |= !isdigit((unsigned char)token.at[i]);
    }
    return is_uuid || (is_hex && letter);
}

/* Only digits and the signs of a time follow: "T10:00:00.5Z", "+02:00". */
static bool is_time_tail(struct str rest)
{
    for (size_t i = 0; i < rest.len; i++)
        if (!isdigit((unsigned char)rest.at[i]) && !strchr("TZtz:.+-", rest.at[i]))
            return false;
    return true;
}

static void put_token(struct buf *out, struct str token, bool digits)
{
    size_t len = token.len, hours = digits_at(token, 0);
    while (len && strchr(".:-+", token.at[len - 1])) /* the sentence's */
        len--;
    struct str word = {token.at, len};
    /* 2026-05-03, with or without a time behind it; 9:05, 09:05:07.250Z */
    bool is_date = hours == 4 && len >= 10 && word.at[4] == '-' && digits_at(word, 5) == 2 &&
                   word.at[7] == '-' && digits_at(word, 8) == 2 && is_time_tail(str_from(word, 10));
    bool is_time = (hours == 1 || hours == 2) && len >= hours + 3 && word.at[hours] == ':' &&
                   digits_at(word, hours + 1) == 2 && is_time_tail(str_from(word, hours + 3));
    if (is_date || is_time || is_hex_id(word)) {
        buf_byte(out, MASK);
        word.len = 0;
    }
    for (size_t i = 0; i < word.len;) {
        size_t run = digits ? digits_at(word, i) : 0;
        buf_byte(out, run ? MASK : word.at[i]);
        i += run ? run : 1;
    }
    buf_str(out, str_from(token, len));
}

void result_mask_text(struct buf *out, struct str text, bool digits)
{
    for (size_t i = 0; i < text.len;) {
        size_t end = i;
        while (end < text.len &&
               (isalnum((unsigned char)text.at[end]) || text.at[end] == '_' || text.at[end] == '-' ||
                text.at[end] == ':' || text.at[end] == '.' || text.at[end] == '+'))
            end++;
        if (end > i)
            put_token(out, (struct str){text.at + i, end - i}, digits);
        else
            buf_byte(out, text.at[end++]);
        i = end;
    }
}

/* ---- values ---- */

static bool ends_ignoring_case(struct str name, struct str with)
{
    return name.len >= with.len && strncasecmp(name.at + name.len - with.len, with.at, with.len) == 0;
}

static bool names_time(struct str name)
{
    static const struct str beginnings[] = {STR("time"), STR("elapsed"), STR("duration"), STR("trace"),
                                            STR("nonce")};
    static const struct str ends[] = {STR("_ms"), STR("request_id"), STR("requestid"), STR("timestamp")};
    /* "createdAt", "created_at" and "at"; "flat" does not name a time */
    bool found = str_is(name, "at") || str_is(name, "ts") || ends_ignoring_case(name, STR_LIT("_at")) ||
                 (name.len > 2 && name.at[name.len - 2] == 'A' && name.at[name.len - 1] == 't');
    for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
        found |=
            name.len >= beginnings[i].len && strncasecmp(name.at, beginnings[i].at, beginnings[i].len) == 0;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        found |= ends_ignoring_case(name, ends[i]);
    return found;
}

void result_mask_write(struct buf *out, struct arena *scratch, const struct json *value, bool digits)
{
    bool is_list = value->type == JSON_ARRAY, looks;
    struct str trimmed;
    struct json inner;
    struct json_error fault;
    switch (value->type) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        buf_byte(out, is_list ? '[' : '{');
        for (uint32_t i = 0; i < value->len; i++) {
            const struct json *child = json_child(value, i);
            bool is_scalar = child->type == JSON_NUMBER || child->type == JSON_STRING;
            if (!is_list) {
                buf_str(out, value->members[i].key);
                buf_byte(out, ':');
            }
            if (!is_list && is_scalar && names_time(value->members[i].key))
                buf_byte(out, MASK);
            else
                result_mask_write(out, scratch, child, digits);
            buf_byte(out, ',');
        }
        buf_byte(out, is_list ? ']' : '}');
        break;
    case JSON_STRING:
        trimmed = str_trim(json_str(value));
        looks = trimmed.len > 1 && (trimmed.at[0] == '{' || trimmed.at[0] == '[');
        buf_byte(out, '"');
        if (looks && json_parse(scratch, trimmed, NULL, &inner, &fault) == OK)
            result_mask_write(out, scratch, &inner, digits);
        else
            result_mask_text(out, json_str(value), digits);
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

/* ---- without fresh ids ---- */

/* "created_at", "createdAt" and "at" end with the word "at"; "flat" does not. */
static bool is_fresh_name(struct str name)
{
    static const struct str words[] = {STR("id"),        STR("uuid"),    STR("guid"), STR("etag"), STR("at"),
                                       STR("timestamp"), STR("created"), STR("time"), STR("nonce")};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t from = name.len - words[i].len;
        if (!ends_ignoring_case(name, words[i]))
            continue;
        bool is_word = !from || !isalpha((unsigned char)name.at[from - 1]) ||
                       (isupper((unsigned char)name.at[from]) && !isupper((unsigned char)name.at[from - 1]));
        if (is_word)
            return true;
    }
    return false;
}

static bool is_fresh_token(struct str token)
{
    size_t digits = 0, letters = 0;
    for (size_t i = 0; i < token.len; i++) {
        digits += isdigit((unsigned char)token.at[i]) != 0;
        letters += isalpha((unsigned char)token.at[i]) != 0;
    }
    return letters ? digits >= FRESH_TOKEN_DIGITS : digits >= FRESH_NUMBER_DIGITS;
}

/* STR_NONE: the text has no id. */
static struct str masked(struct arena *arena, struct str text)
{
    struct buf out = buf_in(arena);
    size_t copied = 0;
    for (size_t i = 0; i < text.len && text.len <= FRESH_TEXT_MAX_BYTES;) {
        size_t end = i;
        while (end < text.len && (isalnum((unsigned char)text.at[end]) || text.at[end] == '-' ||
                                  text.at[end] == '_' || text.at[end] == ':'))
            end++;
        struct str token = {text.at + i, end - i};
        if (is_fresh_token(token)) {
            buf_str(&out, (struct str){text.at + copied, i - copied});
            buf_byte(&out, '#');
            copied = end;
        }
        i = end + 1;
    }
    if (!copied)
        return STR_NONE;
    buf_str(&out, str_from(text, copied));
    return buf_view(&out);
}

struct walk {
    struct arena *arena;
    unsigned depth; /* levels that are still searched */
};

static const struct json *without(struct walk *w, const struct json *value);

static const struct json *child_without(void *walk, const struct json *parent, uint32_t i, struct str *key)
{
    const struct json *child = json_child(parent, i);
    bool is_scalar = child->type == JSON_STRING || child->type == JSON_NUMBER;
    return parent->type == JSON_OBJECT && is_scalar && is_fresh_name(*key) ? NULL : without(walk, child);
}

static const struct json *without(struct walk *w, const struct json *value)
{
    if (!w->depth || !value->len)
        return value;
    if (value->type == JSON_STRING) {
        struct str text = masked(w->arena, json_str(value));
        return text.at ? json_keep(w->arena, json_string(text)) : value;
    }
    w->depth--;
    value = json_map(w->arena, value, child_without, w);
    w->depth++;
    return value;
}

const struct json *fresh_ids_without(struct arena *arena, const struct json *value)
{
    struct walk w = {arena, FRESH_DEPTH_MAX};
    return without(&w, value);
}
