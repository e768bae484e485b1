/* One walk over a value: members by the last word of their name, texts token by token. */
#include "result/fresh_ids.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/build.h"
#include "json/each.h"

#include <ctype.h>

/* "created_at", "createdAt" and "at" end with the word "at"; "flat" does not. */
static bool ends_with_word(struct str name, struct str word)
{
    if (name.len < word.len)
        return false;
    const char *end = name.at + name.len - word.len;
    bool begins = end == name.at || !isalpha((unsigned char)end[-1]) ||
                  (isupper((unsigned char)end[0]) && !isupper((unsigned char)end[-1]));
    for (size_t i = 0; i < word.len && begins; i++)
        begins = tolower((unsigned char)end[i]) == word.at[i];
    return begins;
}

static bool is_fresh_name(struct str name)
{
    static const struct str words[] = {STR("id"),        STR("uuid"),    STR("guid"), STR("etag"), STR("at"),
                                       STR("timestamp"), STR("created"), STR("time"), STR("nonce")};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (ends_with_word(name, words[i]))
            return true;
    return false;
}

static bool is_token_char(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '_' || c == ':';
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
        while (end < text.len && is_token_char(text.at[end]))
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
