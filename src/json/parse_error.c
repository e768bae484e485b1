/* Each message states what was expected, what was found, and the fix. */
#include "json/parse_error.h"

#include "json/string.h"

#include <stdarg.h>
#include <stdio.h>

#define FOUND_MAX_BYTES 16u /* of the text, quoted in a message */

void parse_error_set(struct json_error *error, enum json_error_code code, size_t offset, const char *format,
                     ...)
{
    bool soft = parse_error_is_soft(code);
    if (error->code != JSON_ERROR_NONE && (soft || !error->soft))
        return;
    *error = (struct json_error){.code = code, .soft = soft, .offset = offset};
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);
    size_t len = strlen(error->text); /* truncated: remove half a character */
    if (len == sizeof(error->text) - 1)
        error->text[str_cut((struct str){error->text, len}, len - 1).len] = '\0';
    for (char *c = error->text; *c; c++) /* a key may contain control characters */
        *c = (unsigned char)*c < 0x20 || *c == 0x7f ? '?' : *c;
}

enum error_place {
    AT_CONSUMED,     /* the byte that yajl rejects */
    BEFORE_CONSUMED, /* the byte before */
    NEXT,            /* the token after the last valid one */
    AFTER_SEPARATOR, /* the same, after a valid ',' or ':' */
    AT_END
};

/* The first row whose `yajl` is part of yajl's message. */
static const struct {
    const char *yajl;
    enum error_place place;
    const char *expected, *fix;
} messages[] = {
    {"unallowed token", AFTER_SEPARATOR, "a value", "put one there, or remove the separator before it"},
    {"invalid object key", AFTER_SEPARATOR, "a key in double quotes",
     "quote the key, and leave no comma before '}'"},
    {"must be separated by a colon", NEXT, "':' after the key", "put a colon between key and value"},
    {"inside map", NEXT, "',' or '}' after a member", "add the comma, or close the object"},
    {"after array element", NEXT, "',' or ']' after an item", "add the comma, or close the array"},
    {"premature EOF", AT_END, "the rest of the value", "close every string and bracket that was opened"},
    {"invalid char in json text", BEFORE_CONSUMED, "a JSON value",
     "strings and keys stand in double quotes; true, false and null are lower case"},
    {"invalid string in json text", AT_CONSUMED, "the rest of true, false or null",
     "spell it out in lower case, or put a string in double quotes"},
    {"occurs before a character", AT_CONSUMED, "one of \" \\ / b f n r t u after the backslash",
     "write \\\\ for a backslash itself"},
    {"invalid character inside string", AT_CONSUMED, "no raw control character in a string",
     "escape it: \\n for a newline, \\t for a tab, \\u00XX for any other"},
    {"non-hex", AT_CONSUMED, "four hex digits after \\u", "pad the code with zeros, as in \\u00e9"},
    {"after the exponent", AT_CONSUMED, "a digit in the exponent", "write a number as in 1.5e10"},
    {"after the decimal point", AT_CONSUMED, "a digit after the decimal point",
     "write 1.0 or 1 instead of 1."},
    {"after the minus sign", AT_CONSUMED, "a digit after the minus sign", "JSON has no -Infinity and no -.5"},
    {"probable comment", AT_CONSUMED, "a JSON value", "JSON has no comments: remove this one"},
    {"", AT_CONSUMED, "a JSON value", "send one JSON value"},
};

static size_t place_of(enum error_place place, struct str text, size_t consumed, size_t last_end)
{
    size_t next = parse_error_skip_space(text, last_end);
    char last = last_end ? text.at[last_end - 1] : '[';
    bool opened = last == '[' || last == '{';
    switch (place) {
    case AT_CONSUMED:
        return consumed;
    case BEFORE_CONSUMED:
        return consumed ? consumed - 1 : 0;
    case NEXT:
        return next;
    case AFTER_SEPARATOR:
        return opened || next == text.len ? next : parse_error_skip_space(text, next + 1);
    case AT_END:
        break;
    }
    return text.len;
}

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}

/* Never a control character, which could forge a line in a log. */
void parse_error_quote(char out[PARSE_ERROR_QUOTE_BYTES], struct str text, size_t at)
{
    size_t len = 0;
    while (at + len < text.len && len < FOUND_MAX_BYTES && is_word(text.at[at + len]))
        len++;
    if (!len && at < text.len)
        len = str_utf8_length(text.at + at, text.at + text.len);
    if (at >= text.len)
        snprintf(out, PARSE_ERROR_QUOTE_BYTES, "the end of the text");
    else if (str_starts(str_from(text, at), "\xEF\xBB\xBF"))
        snprintf(out, PARSE_ERROR_QUOTE_BYTES, "a byte order mark");
    else if (!len || (unsigned char)text.at[at] < 0x20 || text.at[at] == 0x7F)
        snprintf(out, PARSE_ERROR_QUOTE_BYTES, "byte 0x%02x", (unsigned char)text.at[at]);
    else
        snprintf(out, PARSE_ERROR_QUOTE_BYTES, "'%.*s'", (int)len, text.at + at);
}

void parse_error_syntax(struct json_error *error, struct str text, const char *yajl_message, size_t consumed,
                        size_t last_end, bool at_end, uint32_t open)
{
    char found[PARSE_ERROR_QUOTE_BYTES], depth[48] = "";
    size_t row = 0;
    while (!strstr(yajl_message, messages[row].yajl))
        row++;
    size_t offset = at_end ? text.len : place_of(messages[row].place, text, consumed, last_end);
    if (offset > text.len)
        offset = text.len;
    parse_error_quote(found, text, offset);
    if (offset == text.len && open)
        snprintf(depth, sizeof(depth), " (%u bracket%s still open)", open, open == 1 ? "" : "s");
    parse_error_set(error, JSON_ERROR_SYNTAX, offset, "byte %zu: expected %s, found %s%s — %s", offset,
                    messages[row].expected, found, depth, messages[row].fix);
}
