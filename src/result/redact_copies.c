/* Searches go byte by byte through a text; a table by first byte keeps most bytes at one look. */
#include "result/redact_copies.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/write.h"
#include "result/redact.h"

struct redact_copy {
    struct str text;
    struct redact_copy *next;
};

static unsigned char lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

static bool is_word(char c)
{
    return ascii_is_letter(c) || ascii_is_digit(c);
}

static bool starts_with(struct str text, struct str start)
{
    if (text.len < start.len)
        return false;
    for (size_t i = 0; i < start.len; i++)
        if (lower(text.at[i]) != lower(start.at[i]))
            return false;
    return true;
}

static void add_text(struct redact_copies *copies, struct str text)
{
    if (copies->overflow)
        return;
    struct redact_copy **place = &copies->by_first[lower(text.at[0])];
    while (*place && (*place)->text.len > text.len)
        place = &(*place)->next;
    for (struct redact_copy *same = *place; same && same->text.len == text.len; same = same->next)
        if (starts_with(same->text, text))
            return;
    if (copies->count == REDACT_COPIES_MAX) {
        copies->overflow = true;
        return;
    }
    struct redact_copy *copy = ARENA_NEW(copies->arena, struct redact_copy);
    *copy = (struct redact_copy){text, *place};
    *place = copy;
    copies->count++;
}

static void add_string(struct redact_copies *copies, struct str text)
{
    text = str_trim(text);
    if (text.len < REDACT_COPY_MIN_BYTES || str_is(text, REDACTED))
        return;
    struct buf escaped = buf_in(copies->arena);
    json_write_string(&escaped, text);
    add_text(copies, text);
    if (escaped.len > text.len + 2)
        add_text(copies, (struct str){escaped.at + 1, escaped.len - 2});
}

void redact_copies_add(struct redact_copies *copies, const struct json *hidden)
{
    switch (hidden->type) {
    case JSON_STRING:
        add_string(copies, json_str(hidden));
        return;
    case JSON_NUMBER:
        if (hidden->len >= REDACT_NUMBER_MIN_BYTES)
            add_text(copies, (struct str){hidden->text, hidden->len});
        return;
    case JSON_ARRAY:
        for (uint32_t i = 0; i < hidden->len; i++)
            redact_copies_add(copies, &hidden->items[i]);
        return;
    case JSON_OBJECT:
        for (uint32_t i = 0; i < hidden->len; i++)
            redact_copies_add(copies, &hidden->members[i].value);
        return;
    default:
        return;
    }
}

/* The copy that stands at text[at], not inside a longer word. */
static size_t copy_at(const struct redact_copies *copies, struct str text, size_t at)
{
    for (const struct redact_copy *c = copies->by_first[lower(text.at[at])]; c; c = c->next) {
        size_t end = at + c->text.len;
        if (!starts_with(str_from(text, at), c->text))
            continue;
        bool begins = !at || !is_word(text.at[at]) || !is_word(text.at[at - 1]);
        bool ends = end == text.len || !is_word(text.at[end - 1]) || !is_word(text.at[end]);
        if (begins && ends)
            return c->text.len;
    }
    return 0;
}

/* Copies text up to `at`, then the mask. */
static void put_mask(struct buf *out, struct str text, size_t *done, size_t at, size_t len)
{
    buf_str(out, (struct str){text.at + *done, at - *done});
    buf_text(out, REDACTED);
    *done = at + len;
}

struct str redact_copies_mask(const struct redact_copies *copies, struct str text)
{
    struct buf out = buf_in(copies->arena);
    size_t done = 0;
    for (size_t at = 0; copies->count && at < text.len;) {
        size_t len = copies->by_first[lower(text.at[at])] ? copy_at(copies, text, at) : 0;
        if (len)
            put_mask(&out, text, &done, at, len);
        at += len ? len : 1;
    }
    if (!done)
        return text;
    buf_str(&out, str_from(text, done));
    return buf_view(&out);
}

/* ---- "field: value" ---- */

/* The last name of a path: "email" of "customers[].email", "tags" of "tags[]". */
static struct str last_name(struct str field)
{
    while (field.len && (field.at[field.len - 1] == ']' || field.at[field.len - 1] == '['))
        field.len--;
    size_t from = field.len;
    while (from && field.at[from - 1] != '.' && field.at[from - 1] != ']')
        from--;
    return str_from(field, from);
}

static size_t skip_blanks(struct str text, size_t at)
{
    while (at < text.len && (text.at[at] == ' ' || text.at[at] == '\t'))
        at++;
    return at;
}

/* Behind the name: an end of a quote, ":" or "=", blanks. Where the value begins, or 0. */
static size_t value_at(struct str text, size_t at)
{
    while (at < text.len && (text.at[at] == '"' || text.at[at] == '\'' || text.at[at] == '\\' ||
                             text.at[at] == '*' || text.at[at] == '`'))
        at++;
    at = skip_blanks(text, at);
    if (at == text.len || (text.at[at] != ':' && text.at[at] != '='))
        return 0;
    at++;
    while (at < text.len && text.at[at] == '*')
        at++;
    return skip_blanks(text, at);
}

/* A quoted value ends with its quote, a list or an object with its bracket, any other with the line or before
 * a comma, a semicolon or a bracket. */
static size_t value_end(struct str text, size_t at)
{
    size_t depth = 0;
    char quote = '\0';
    for (size_t i = at; i < text.len; i++) {
        char c = text.at[i];
        if (quote && c == '\\')
            i++;
        else if (quote && c == quote && !depth)
            return i + 1;
        else if (quote)
            quote = c == quote ? '\0' : quote;
        else if ((c == '"' || c == '\'') && (depth || i == at))
            quote = c;
        else if (c == '[' || c == '{')
            depth++;
        else if (depth && (c == ']' || c == '}') && !--depth)
            return i + 1;
        else if (!depth && (c == '\n' || c == '\r' || c == ',' || c == ';' || c == ']' || c == '}'))
            return i;
    }
    return text.len;
}

static size_t name_at(const struct str *fields, size_t count, struct str text, size_t at)
{
    if (at && (is_word(text.at[at - 1]) || text.at[at - 1] == '_'))
        return 0;
    for (size_t i = 0; i < count; i++) {
        struct str name = last_name(fields[i]);
        if (name.len && starts_with(str_from(text, at), name))
            return name.len;
    }
    return 0;
}

struct str redact_named_values(struct arena *arena, const struct str *fields, size_t count, struct str text)
{
    struct buf out = buf_in(arena);
    size_t done = 0;
    for (size_t at = 0; at < text.len;) {
        size_t name = name_at(fields, count, text, at);
        size_t from = name ? value_at(text, at + name) : 0;
        size_t to = from ? value_end(text, from) : 0;
        bool is_masked = to > from && str_starts(str_from(text, from), REDACTED);
        if (to > from && !is_masked) {
            bool quoted = text.at[from] == '"' && to - from >= 2 && text.at[to - 1] == '"';
            put_mask(&out, text, &done, from + quoted, to - from - 2 * quoted);
        }
        at = to > from ? to : at + 1;
    }
    if (!done)
        return text;
    buf_str(&out, str_from(text, done));
    return buf_view(&out);
}
