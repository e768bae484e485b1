/* Values as literals of Lua, and JSON for people. */
#include "cli/cmd_new.h"

#include "json/write.h"

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_keyword(struct str word)
{
    static const char *const keywords[] = {
        "and", "break", "do",  "else", "elseif", "end",    "false",  "for",  "function", "goto",  "if",
        "in",  "local", "nil", "not",  "or",     "repeat", "return", "then", "true",     "until", "while"};
    for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
        if (str_is(word, keywords[i]))
            return true;
    return false;
}

static bool is_name(struct str key)
{
    for (size_t i = 0; i < key.len; i++)
        if (!is_letter(key.at[i]) && (i == 0 || key.at[i] < '0' || key.at[i] > '9'))
            return false;
    return key.len && !is_keyword(key);
}

/* A text of several lines in long brackets, of a level that it does not hold itself. */
static bool write_long(struct buf *out, struct str text)
{
    char closing[] = "]====]";
    if (!memchr(text.at, '\n', text.len) || memchr(text.at, '\r', text.len) ||
        memchr(text.at, '\0', text.len))
        return false;
    for (int level = 0; level <= 4; level++) {
        closing[1 + level] = ']';
        closing[2 + level] = '\0';
        if (!memmem(text.at, text.len, closing, (size_t)level + 2) &&
            (text.at[text.len - 1] != ']' || level)) {
            buf_printf(out, "[%.*s[\n", level, "====");
            buf_str(out, text);
            buf_text(out, closing);
            return true;
        }
        closing[1 + level] = '=';
    }
    return false;
}

static void write_quoted(struct buf *out, struct str text)
{
    buf_byte(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (c == '"' || c == '\\')
            buf_printf(out, "\\%c", c);
        else if (c == '\n')
            buf_text(out, "\\n");
        else if (c < 0x20 || c == 0x7f)
            buf_printf(out, "\\%03u", c);
        else
            buf_byte(out, (char)c);
    }
    buf_byte(out, '"');
}

void lua_write_text(struct buf *out, struct str text)
{
    if (!text.len || !write_long(out, text))
        write_quoted(out, text);
}

void lua_write_key(struct buf *out, struct str key)
{
    if (is_name(key)) {
        buf_str(out, key);
        return;
    }
    buf_byte(out, '[');
    write_quoted(out, key);
    buf_byte(out, ']');
}

static void write_list(struct buf *out, const struct json *list)
{
    if (!list->len) {
        buf_text(out, "array {}");
        return;
    }
    buf_text(out, "{ ");
    for (uint32_t i = 0; i < list->len; i++) {
        if (i)
            buf_text(out, ", ");
        lua_write_value(out, &list->items[i]);
    }
    buf_text(out, " }");
}

static void write_object(struct buf *out, const struct json *object)
{
    if (!object->len) {
        buf_text(out, "json \"{}\"");
        return;
    }
    buf_text(out, "{ ");
    for (uint32_t i = 0; i < object->len; i++) {
        if (i)
            buf_text(out, ", ");
        lua_write_key(out, object->members[i].key);
        buf_text(out, " = ");
        lua_write_value(out, &object->members[i].value);
    }
    buf_text(out, " }");
}

void lua_write_value(struct buf *out, const struct json *value)
{
    switch (value->type) {
    case JSON_BOOL:
        buf_text(out, value->truth ? "true" : "false");
        break;
    case JSON_NUMBER:
        buf_str(out, (struct str){value->text, value->len});
        break;
    case JSON_STRING:
        lua_write_text(out, json_str(value));
        break;
    case JSON_ARRAY:
        write_list(out, value);
        break;
    case JSON_OBJECT:
        write_object(out, value);
        break;
    default:
        buf_text(out, "null");
    }
}

/* ---- JSON ---- */

#define PRETTY_LINE_BYTES 80u /* what fits on one line stays on it */

static bool is_short(const struct json *value)
{
    struct buf line = {0};
    json_write(&line, value);
    bool fits = line.len <= PRETTY_LINE_BYTES;
    buf_clear(&line);
    return fits;
}

static void new_line(struct buf *out, int indent)
{
    buf_printf(out, "\n%*s", indent, "");
}

void json_write_pretty(struct buf *out, const struct json *value, int indent)
{
    bool object = value->type == JSON_OBJECT;
    if ((!object && value->type != JSON_ARRAY) || is_short(value)) {
        json_write(out, value);
        return;
    }
    buf_byte(out, object ? '{' : '[');
    for (uint32_t i = 0; i < value->len; i++) {
        if (i)
            buf_byte(out, ',');
        new_line(out, indent + 2);
        if (object) {
            json_write_string(out, value->members[i].key);
            buf_text(out, ": ");
        }
        json_write_pretty(out, object ? &value->members[i].value : &value->items[i], indent + 2);
    }
    new_line(out, indent);
    buf_byte(out, object ? '}' : ']');
}
