/* Reading and making results, and the questions of result.h. */
#include "result/result.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"
#include "policy/content.h"
#include "policy/known_tools.h"
#include "result/redact.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool is_text_block(const struct json *block)
{
    return str_is(json_str(json_get_text(block, "type")), "text") &&
           json_is(json_get_text(block, "text"), JSON_STRING);
}

/* All text blocks, joined by line breaks. */
static struct str joined_text(struct arena *arena, const struct json *content)
{
    struct buf text = buf_in(arena);
    for (uint32_t i = 0; content && i < content->len; i++) {
        if (!is_text_block(&content->items[i]))
            continue;
        if (text.len)
            buf_byte(&text, '\n');
        buf_str(&text, json_str(json_get_text(&content->items[i], "text")));
    }
    return buf_view(&text);
}

const struct json *result_json_of_text(struct arena *arena, struct str text)
{
    struct json value;
    struct json_error error;
    text = str_trim(text);
    bool looks_like_json = text.len && (text.at[0] == '{' || text.at[0] == '[');
    if (!looks_like_json || json_parse(arena, text, NULL, &value, &error) != OK)
        return NULL;
    return json_keep(arena, value);
}

/* Most tools return JSON as text; any other text is {text = …}. */
static const struct json *value_of_text(struct arena *arena, struct str text, bool *as_text)
{
    const struct json *value = result_json_of_text(arena, text);
    struct json_member member = json_member(STR_LIT("text"), json_string(text));
    *as_text = !value;
    return value ? value : json_keep(arena, json_object(arena, &member, 1));
}

static const struct json *content_of_value(struct arena *arena, const struct json *value)
{
    struct str text = json_str(value);
    if (!json_is(value, JSON_STRING))
        text = json_to_str(arena, value);
    struct json_member block[] = {json_member(STR_LIT("type"), json_string(STR_LIT("text"))),
                                  json_member(STR_LIT("text"), json_string(text))};
    return json_keep(arena, json_array(json_keep(arena, json_object(arena, block, 2)), 1));
}

enum form { FORM_PLAIN, FORM_CALL_RESULT, FORM_TOOL_RETURN };

/* By the members alone. Many APIs have a page of items under `content`, so it must be a list of blocks. */
static enum form form_of(const struct json *sent)
{
    static const char *const call_result[] = {"content", "structuredContent", "isError", "_meta",
                                              "resultType"};
    static const char *const tool_return[] = {"value", "content", "metadata"};
    const struct json *content = json_get_text(sent, "content");
    bool has_blocks = json_is(content, JSON_ARRAY) && (!content->len || content_is_block_list(content));
    bool is_call_result = has_blocks, is_tool_return = json_is(sent, JSON_OBJECT);
    for (uint32_t i = 0; (is_call_result || is_tool_return) && i < sent->len; i++) {
        is_call_result = is_call_result && STR_IS_ONE_OF(sent->members[i].key, call_result);
        is_tool_return = is_tool_return && STR_IS_ONE_OF(sent->members[i].key, tool_return);
    }
    return is_call_result ? FORM_CALL_RESULT : is_tool_return ? FORM_TOOL_RETURN : FORM_PLAIN;
}

static void read_plain(struct arena *arena, const struct json *sent, struct result *out)
{
    bool is_text = json_is(sent, JSON_STRING);
    *out = (struct result){0};
    out->value = is_text ? value_of_text(arena, json_str(sent), &out->as_text) : sent;
    out->error_text = json_str(sent);
    out->content = content_of_value(arena, sent);
}

void result_read_mcp(struct arena *arena, const struct json *sent, struct result *out)
{
    static const char *const optional[] = {"annotations", "_meta", "icons"};
    const struct json *content = json_get_text(sent, "content"),
                      *structured = json_get_text(sent, "structuredContent");
    if (!json_is(content, JSON_ARRAY) && !json_is(structured, JSON_OBJECT)) {
        read_plain(arena, sent, out);
        return;
    }
    const struct json *flag = json_get_text(sent, "isError"); /* some servers send a string or a number */
    double number;
    *out = (struct result){.is_call_result = true,
                           .structured = structured,
                           .metadata = json_get_text(sent, "_meta"),
                           .is_error =
                               json_is_true(flag) || str_is(json_str(flag), "true") ||
                               (json_is(flag, JSON_NUMBER) && json_double(flag, &number) && number != 0)};
    content = json_is(content, JSON_ARRAY) ? content : content_of_value(arena, structured);
    /* A client rejects the whole result for one invalid block. */
    struct json *items = NULL;
    for (uint32_t i = 0; i < content->len; i++) {
        if (content_block_is_valid(&content->items[i]))
            continue;
        if (!items) {
            items = ARENA_ARRAY(arena, struct json, content->len);
            memcpy(items, content->items, content->len * sizeof(*items));
        }
        /* Without the members that a client may reject: those that are null, then what annotates a block. */
        const struct json *block = &content->items[i];
        struct json bare = json_is(block, JSON_OBJECT) ? json_without_nulls(arena, block) : *block;
        for (size_t k = 0; k < sizeof(optional) / sizeof(*optional) && !content_block_is_valid(&bare); k++)
            bare = json_without(arena, &bare, str_of(optional[k]));
        items[i] = content_block_is_valid(&bare) ? bare : content_of_value(arena, block)->items[0];
    }
    out->content = items ? json_keep(arena, json_array(items, content->len)) : content;
    out->error_text = joined_text(arena, content);
    if (json_is(structured, JSON_OBJECT))
        out->value = structured;
    else
        out->value = value_of_text(arena, out->error_text, &out->as_text);
}

void result_read(struct arena *arena, const struct json *sent, struct result *out)
{
    const struct json *content = json_get_text(sent, "content");
    enum form form = form_of(sent);
    if (form == FORM_CALL_RESULT)
        result_read_mcp(arena, sent, out);
    else if (form == FORM_TOOL_RETURN && content_is_block_list(content) && !content_error(arena, content).len)
        result_from_value(arena, json_get_text(sent, "value"), content, json_get_text(sent, "metadata"),
                          false, out);
    else
        read_plain(arena, sent, out);
}

void result_read_command(struct arena *arena, const struct json *sent, struct result *out)
{
    const struct json *value = json_get_text(sent, "value"), *metadata = json_get_text(sent, "metadata");
    if (form_of(sent) == FORM_TOOL_RETURN && sent->len == 2 && value && json_is(metadata, JSON_OBJECT))
        result_from_value(arena, value, NULL, metadata, false, out);
    else
        result_read(arena, sent, out);
}

void result_from_value(struct arena *arena, const struct json *value, const struct json *content,
                       const struct json *metadata, bool has_output_schema, struct result *out)
{
    *out = (struct result){.is_beside_content = value && json_is(content, JSON_ARRAY)};
    if (!value && content) {
        out->error_text = joined_text(arena, content);
        value = value_of_text(arena, out->error_text, &out->as_text);
    }
    if (!value)
        value = json_keep(arena, json_null());
    out->value = value;
    out->content = content ? content : content_of_value(arena, value);
    out->structured = has_output_schema && json_is(value, JSON_OBJECT) ? value : NULL;
    out->metadata = metadata;
}

bool result_content_says(struct arena *arena, const struct json *content, const struct json *value)
{
    for (uint32_t i = 0; json_is(content, JSON_ARRAY) && i < content->len; i++) {
        struct str text = json_str(json_get_text(&content->items[i], "text"));
        const struct json *parsed = json_is(value, JSON_STRING) ? NULL : result_json_of_text(arena, text);
        if (json_is(value, JSON_STRING) ? str_eq(text, json_str(value)) : parsed && json_equal(parsed, value))
            return true;
    }
    return false;
}

void result_complete(struct arena *arena, struct result *result, bool has_output_schema)
{
    if (has_output_schema && !result->structured && !result->as_text && json_is(result->value, JSON_OBJECT))
        result->structured = result->value;
    const struct json *content = result->content, *value = result->value;
    if (!result->is_beside_content || result->structured || json_is(value, JSON_NULL) ||
        result_content_says(arena, content, value))
        return;
    /* the value as a text block: without structured content the client would not get it */
    struct json *blocks = ARENA_ARRAY(arena, struct json, content->len + 1);
    memcpy(blocks, content->items, content->len * sizeof(*blocks));
    blocks[content->len] = content_of_value(arena, value)->items[0];
    result->content = json_keep(arena, json_array(blocks, content->len + 1));
}

struct str result_plain_text(const struct result *result)
{
    return json_str(result->as_text ? json_get_text(result->value, "text") : result->value);
}

struct str result_text(struct arena *arena, const struct result *result)
{
    if (result->error_text.len || !result->value)
        return result->error_text;
    if (result->as_text || result->value->type == JSON_STRING)
        return result_plain_text(result);
    return json_to_str(arena, result->value);
}

const char *result_parse_error(const struct result *result)
{
    struct str text = str_trim(result->error_text);
    if (!result->as_text || !text.len)
        return NULL;
    bool began = text.at[0] == '{' || text.at[0] == '[';
    bool closed = began && text.at[text.len - 1] == (text.at[0] == '{' ? '}' : ']');
    return began && !closed ? "truncated_response" : "invalid_json";
}

static bool is_separator(char c, const char *separators)
{
    return c && strchr(separators, c);
}

size_t result_name_index(struct str name, const char *separators, const char *const *names, size_t count)
{
    char first = name.len ? ascii_lower(name.at[0]) : '\0';
    bool begins_odd = is_separator(first, separators);
    size_t i = 0;
    for (; i < count; i++) {
        const char *wanted = names[i];
        size_t at = 0;
        if (first != *wanted && !begins_odd) /* nearly always */
            continue;
        for (; at < name.len; at++) {
            if (is_separator(name.at[at], separators))
                continue;
            if (!*wanted || ascii_lower(name.at[at]) != *wanted)
                break;
            wanted++;
        }
        if (at == name.len && !*wanted)
            break;
    }
    return i;
}

bool result_is_empty(const struct json *value)
{
    if (!value)
        return true;
    switch (value->type) {
    case JSON_NULL:
        return true;
    case JSON_STRING:
        return str_trim(json_str(value)).len == 0;
    case JSON_ARRAY:
        return value->len == 0;
    case JSON_OBJECT:
        for (uint32_t i = 0; i < value->len; i++)
            if (!result_is_empty(&value->members[i].value))
                return false;
        return true;
    default:
        return false;
    }
}

size_t result_beginning(struct str text, const char *const *beginnings, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_starts_nocase(text, beginnings[i]))
            return strlen(beginnings[i]);
    return 0;
}

bool result_has_one_of(struct str text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_contains_nocase(text, str_of(words[i])))
            return true;
    return false;
}

#define IS_ONE_OF(text, words) RESULT_NAME_IS(text, "", words)

static bool text_is_uninformative(struct str text, bool reads)
{
    static const char *const nothing[] = {"none", "null", "nil", "undefined", "nothing", "n/a", "empty"};
    static const char *const done[] = {"ok", "done", "success", "completed", "finished"};
    static const char *const starts[] = {
        /* "No results found for 'x'.": one short line */
        "no results",    "no result found", "no matches",       "no match found", "no data",
        "no items",      "no records",      "no entries",       "0 results",      "found 0 ",
        "nothing found", "no matching ",    "nothing was found"};
    text = str_trim(text);
    while (text.len && (text.at[text.len - 1] == '.' || text.at[text.len - 1] == '!'))
        text.len--;
    bool is_nothing = !text.len || IS_ONE_OF(text, nothing) || (reads && IS_ONE_OF(text, done));
    bool is_line = text.len <= RESULT_UNINFORMATIVE_MAX_BYTES && !str_has(text, '\n');
    return is_nothing || (is_line && RESULT_BEGINNING(text, starts));
}

bool result_is_uninformative(const struct result *result, enum policy_effects effects)
{
    bool writes = effects != EFFECTS_UNDECLARED && effects != EFFECTS_READ;
    if (writes || !result->value)
        return false;
    for (uint32_t i = 0; json_is(result->content, JSON_ARRAY) && i < result->content->len; i++)
        if (!is_text_block(&result->content->items[i]))
            return false; /* an image, a link */
    if (result->as_text || json_is(result->value, JSON_STRING))
        return text_is_uninformative(result_plain_text(result), effects == EFFECTS_READ);
    static const char *const counts[] = {"count",       "total",        "total_count", "totalcount",
                                         "num_results", "result_count", "size",        "length"};
    static const char *const flags[] = {"has_more", "hasmore", "has_next", "truncated", "incomplete_results"};
    /* {"results": [], "total": 0}: a count of zero counts as empty */
    int64_t n;
    bool lists = false;
    for (uint32_t i = 0; json_is(result->value, JSON_OBJECT) && i < result->value->len; i++) {
        const struct json_member *m = &result->value->members[i];
        bool is_zero = json_int(&m->value, &n) && n == 0 && IS_ONE_OF(m->key, counts);
        bool is_off = json_is_false(&m->value) && IS_ONE_OF(m->key, flags);
        lists = lists || m->value.type == JSON_ARRAY;
        if (!is_zero && !is_off && !result_is_empty(&m->value))
            return false;
    }
    return lists || result_is_empty(result->value);
}

const struct json *result_compared(struct arena *arena, const struct policy *policy,
                                   const struct ledger_limits *limits, const struct json *value)
{
    if (policy)
        value = redact_without(arena, policy->volatile_results, policy->volatile_result_count, value);
    bool may_write = limits->effects == LEDGER_EFFECTS_UNKNOWN && !limits->polls;
    return may_write ? fresh_ids_without(arena, value) : value;
}

/* ---- what is under way ---- */

static bool ends_ignoring_case(struct str name, struct str with)
{
    return name.len >= with.len && strncasecmp(name.at + name.len - with.len, with.at, with.len) == 0;
}

static bool names_state(struct str name)
{
    return ends_ignoring_case(name, STR_LIT("status")) || ends_ignoring_case(name, STR_LIT("state"));
}

static size_t word_at(struct str text, size_t at)
{
    size_t end = at;
    while (end < text.len &&
           (isalnum((unsigned char)text.at[end]) || text.at[end] == '_' || text.at[end] == '-'))
        end++;
    return end - at;
}

/* "3/10" or "40 %" at this place, where no word stands before it; a path or a date is none. */
static bool counts_up(struct str text, size_t at)
{
    char number[24] = {0}, sign[2], next = ' '; /* what is behind it decides nothing */
    double n, of;
    memcpy(number, text.at + at, text.len - at < sizeof(number) ? text.len - at : sizeof(number) - 1);
    if (!isdigit((unsigned char)number[0]) || (at && strchr("/.-_", text.at[at - 1])))
        return false;
    if (sscanf(number, "%lf %1[%]", &n, sign) == 2)
        return n < 100;
    return sscanf(number, "%lf/%lf%c", &n, &of, &next) >= 2 && n < of && !strchr("/-_", next) &&
           !isalnum((unsigned char)next);
}

static bool text_is_under_way(struct str text, bool watched)
{
    static const char *const fillers[] = {"is", "currently", "now"};
    struct str before = STR_NONE; /* the last word that says something */
    if (text.len > UNDER_WAY_TEXT_MAX_BYTES)
        text = str_from(text, text.len - UNDER_WAY_TEXT_MAX_BYTES);
    for (size_t i = 0, len; i < text.len; i += len) {
        struct str word = {text.at + i, len = word_at(text, i)};
        if (!len) {
            len = 1;
            continue;
        }
        if (str_starts_nocase(str_from(text, i), "in progress"))
            word.len = strlen("in progress");
        bool tells =
            watched || names_state(before) || (before.len == 5 && str_starts_nocase(before, "still"));
        if ((tells && known_tools_state(word)) ||
            (watched && (known_tools_lists(KNOWN_STATE_CODES, word) || counts_up(text, i))))
            return true;
        before = STR_IS_ONE_OF(word, fillers) ? before : word;
    }
    return false;
}

/* A list may be of things whose state is a fact: orders that are pending. */
static bool object_is_under_way(const struct json *value, unsigned depth, bool watched)
{
    for (uint32_t i = 0; json_is(value, JSON_OBJECT) && i < value->len && i < UNDER_WAY_MEMBERS_MAX; i++) {
        const struct json_member *m = &value->members[i];
        struct str text = json_str(&m->value);
        if ((names_state(m->key) && known_tools_state(str_trim(text))) ||
            (watched && text_is_under_way(text, true)) || /* {"stdout": "3/10"} */
            (depth > 1 && object_is_under_way(&m->value, depth - 1, watched)))
            return true;
    }
    return false;
}

bool result_is_under_way(const struct result *result, bool watched)
{
    if (result->as_text || json_is(result->value, JSON_STRING))
        return text_is_under_way(result_plain_text(result), watched);
    return object_is_under_way(result->value, UNDER_WAY_DEPTH, watched);
}

bool result_is_blank(const struct result *result)
{
    for (uint32_t i = 0; json_is(result->content, JSON_ARRAY) && i < result->content->len; i++) {
        const struct json *block = &result->content->items[i];
        if (!is_text_block(block) || str_trim(json_str(json_get_text(block, "text"))).len)
            return false;
    }
    return !result->structured;
}

/* ---- what does not make a result a new one. Texts are read token by token, each once. ---- */

#define UUID_CHARS 36u
#define MASK       '#'

#define RESULT_MASK_HEX_CHARS 8u /* hex of fewer characters, or without a letter, is data */
#define FRESH_DEPTH_MAX       4u /* levels of a value that are searched; what lies deeper is compared as it is */
#define FRESH_TOKEN_DIGITS                                                                                   \
    4u /* an id in a text has letters and at least this many digits: "ORD-20391", a uuid */
#define FRESH_NUMBER_DIGITS  8u    /* or digits alone, at least this many */
#define FRESH_TEXT_MAX_BYTES 2000u /* a longer text is data and compared as it is */

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

/* Linear. */
static void mask_text(struct buf *out, struct str text, bool digits)
{
    size_t first = 0; /* most texts have no digit, and then nothing to mask */
    while (first < text.len && (text.at[first] < '0' || text.at[first] > '9'))
        first++;
    if (first == text.len) {
        buf_str(out, text);
        return;
    }
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

static bool names_time(struct str name)
{
    static const char *const beginnings[] = {"time", "elapsed", "duration", "trace", "nonce"};
    static const struct str ends[] = {STR("_ms"), STR("request_id"), STR("requestid"), STR("timestamp")};
    /* "createdAt", "created_at" and "at"; "flat" does not name a time */
    bool found = str_is(name, "at") || str_is(name, "ts") || ends_ignoring_case(name, STR_LIT("_at")) ||
                 (name.len > 2 && name.at[name.len - 2] == 'A' && name.at[name.len - 1] == 't');
    bool may_end = name.len && strchr("sSdDpP", name.at[name.len - 1]);
    for (size_t i = 0; may_end && i < RESULT_COUNT(ends); i++)
        found |= ends_ignoring_case(name, ends[i]);
    return found || RESULT_BEGINNING(name, beginnings);
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
            mask_text(out, json_str(value), digits);
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

struct hash128 result_masked(struct arena *arena, const struct json *value, struct str text, bool digits)
{
    struct buf masked = buf_in(arena);
    if (value)
        result_mask_write(&masked, arena, value, digits);
    else
        mask_text(&masked, text, digits);
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
