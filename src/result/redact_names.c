/* The last names of the fields stand by their first byte: most places of a text begin none. */
#include "result/redact_names.h"

#include "base/arena.h"
#include "base/buf.h"
#include "result/redact.h"

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

void redact_names_of(struct redact_names *names, struct arena *arena, const struct str *fields, size_t count)
{
    names->list = ARENA_ARRAY(arena, struct str, count + 1);
    for (size_t i = 0; i < count; i++) {
        struct str name = last_name(fields[i]);
        if (!name.len)
            continue;
        names->list[names->count++] = name;
        unsigned char first = (unsigned char)ascii_lower(name.at[0]);
        names->begins[first] = true;
        names->begins[first >= 'a' && first <= 'z' ? first - 32 : first] = true;
    }
}

static bool starts_with(struct str text, struct str start)
{
    if (text.len < start.len)
        return false;
    for (size_t i = 0; i < start.len; i++)
        if (ascii_lower(text.at[i]) != ascii_lower(start.at[i]))
            return false;
    return true;
}

/* Where the value behind one of the names at text[at] begins, or 0. */
static size_t value_of_name_at(struct redact_names *names, struct str text, size_t at)
{
    if (at && (ascii_is_alnum(text.at[at - 1]) || text.at[at - 1] == '_'))
        return 0;
    for (size_t i = 0; i < names->count; i++) {
        bool is_named = starts_with(str_from(text, at), names->list[i]);
        size_t from = is_named ? value_at(text, at + names->list[i].len) : 0;
        if (from)
            return from;
    }
    return 0;
}

struct str redact_named_values(struct arena *arena, struct redact_names *names, struct str text)
{
    struct buf out = buf_in(arena);
    size_t done = 0;
    for (size_t at = 0;;) {
        while (at < text.len && !names->begins[(unsigned char)text.at[at]])
            at++;
        if (at == text.len)
            break;
        size_t from = value_of_name_at(names, text, at);
        size_t to = from ? value_end(text, from) : 0;
        bool is_masked = to > from && str_starts(str_from(text, from), REDACTED);
        if (to > from && !is_masked) {
            bool quoted = text.at[from] == '"' && to - from >= 2 && text.at[to - 1] == '"';
            buf_str(&out, (struct str){text.at + done, from + quoted - done});
            buf_text(&out, REDACTED);
            done = to - quoted;
        }
        at = to > from ? to : at + 1;
    }
    if (!done)
        return text;
    buf_str(&out, str_from(text, done));
    return buf_view(&out);
}
