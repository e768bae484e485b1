/* One walk over a value: members by the last word of their name, texts token by token. */
#include "result/fresh_ids.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/build.h"

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

static const struct json *without(struct arena *arena, const struct json *value, unsigned depth);

static bool is_fresh_member(const struct json_member *member)
{
    return (member->value.type == JSON_STRING || member->value.type == JSON_NUMBER) &&
           is_fresh_name(member->key);
}

static const struct json *object_without(struct arena *arena, const struct json *object, unsigned depth)
{
    struct json_member *kept = ARENA_ARRAY(arena, struct json_member, object->len);
    uint32_t count = 0;
    bool changed = false;
    for (uint32_t i = 0; i < object->len; i++) {
        const struct json_member *member = &object->members[i];
        if (is_fresh_member(member))
            continue;
        const struct json *now = without(arena, &member->value, depth);
        changed = changed || now != &member->value;
        kept[count++] = json_member(member->key, *now);
    }
    changed = changed || count < object->len;
    return changed ? json_keep(arena, json_object(arena, kept, count)) : object;
}

static const struct json *list_without(struct arena *arena, const struct json *list, unsigned depth)
{
    struct json *items = ARENA_ARRAY(arena, struct json, list->len);
    bool changed = false;
    for (uint32_t i = 0; i < list->len; i++) {
        const struct json *now = without(arena, &list->items[i], depth);
        changed = changed || now != &list->items[i];
        items[i] = *now;
    }
    return changed ? json_keep(arena, json_array(items, list->len)) : list;
}

static const struct json *without(struct arena *arena, const struct json *value, unsigned depth)
{
    struct str text;
    if (!depth || !value->len)
        return value;
    switch ((enum json_type)value->type) {
    case JSON_OBJECT:
        return object_without(arena, value, depth - 1);
    case JSON_ARRAY:
        return list_without(arena, value, depth - 1);
    case JSON_STRING:
        text = masked(arena, json_str(value));
        return text.at ? json_keep(arena, json_string(text)) : value;
    default:
        return value;
    }
}

const struct json *fresh_ids_without(struct arena *arena, const struct json *value)
{
    return without(arena, value, FRESH_DEPTH_MAX);
}
