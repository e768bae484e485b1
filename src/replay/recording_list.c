/*
 * A document that is one array, or a long object that has a list: its items are cut where they lie, as lines
 * are, so that it takes the memory of its longest item. What is before and behind the list of an object are
 * values of their own.
 */
#include "replay/recording_internal.h"

#define ARRAY_LOOK_BYTES 1048576u /* an array on one line that is not longer is read as a line */

/* Where the first list of records begins in an object; 0: in what was read there is none. */
static size_t list_in_object(struct str text)
{
    static const char *const lists[] = {"messages",     "contents", "input",      "items",
                                        "steps",        "history",  "trajectory", "resourceSpans",
                                        "observations", "runs",     "output"};
    size_t depth = 0;
    struct str key = STR_NONE;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (c == '"') {
            size_t from = i + 1;
            for (i = from; i < text.len && text.at[i] != '"'; i++)
                i += text.at[i] == '\\';
            if (i < text.len)
                key = (struct str){text.at + from, i - from};
        } else if (c == '[' && depth == 1 && STR_IS_ONE_OF(key, lists)) {
            return i + 1;
        } else if (c == ',') {
            key = STR_NONE;
        }
        depth += c == '{' || c == '[';
        depth -= depth && (c == '}' || c == ']');
    }
    return 0;
}

/* What is left is the list's items. `begin`: behind its bracket. */
static void begin_list(struct recording *r, struct str object, size_t begin, bool one_line)
{
    r->in_array = r->in_object = true;
    r->one_line = one_line;
    r->object_number = r->number;
    r->members.len = 0;
    buf_add(&r->members, object.at, begin);
    buf_text(&r->members, "]}");
    r->part = RECORDING_LIST_BEGINS;
    r->from = (size_t)(object.at - r->buffer) + begin;
}

bool recording_begins_list(struct recording *r)
{
    char *newline = NULL;
    while (!(newline = r->end > r->from ? memchr(r->buffer + r->from, '\n', r->end - r->from) : NULL) &&
           r->end - r->from < ARRAY_LOOK_BYTES && !r->ended)
        recording_read_more(r);
    struct str all = {r->buffer + r->from, r->end - r->from};
    struct str first = str_trim(newline ? (struct str){all.at, (size_t)(newline - all.at)} : all);
    if (str_starts(first, "\xEF\xBB\xBF"))
        first = str_trim(str_from(first, 3));
    size_t begin = (size_t)(first.at - all.at);
    char last = first.len ? first.at[first.len - 1] : ' ';
    if (!first.len || (newline ? last == ']' || last == '}' : r->ended) ||
        (*first.at != '[' && (*first.at != '{' || !newline)))
        return false;
    r->number++;
    if (*first.at == '[') {
        r->from += begin + 1;
        r->in_array = true;
        return true;
    }
    while (r->end - r->from <= RECORDING_OBJECT_WHOLE_BYTES && !r->ended)
        recording_read_more(r);
    struct str object = {r->buffer + r->from + begin, r->end - r->from - begin};
    size_t list = object.len > RECORDING_OBJECT_WHOLE_BYTES - begin ? list_in_object(object) : 0;
    if (list)
        begin_list(r, object, list, false);
    r->number -= !list;
    for (size_t i = 0; i < list; i++)
        r->number += object.at[i] == '\n';
    return list > 0;
}

bool recording_is_long_object(struct recording *r)
{
    struct str text = {r->buffer + r->from, r->end - r->from};
    size_t list = 0;
    while (text.len && (*text.at == ' ' || *text.at == '\t'))
        text = str_from(text, 1);
    if (r->options.documents && text.len && *text.at == '{' && (list = list_in_object(text))) {
        r->number++;
        r->at_start = false;
        begin_list(r, text, list, true);
    }
    return list > 0;
}

/* A byte that is not yet read at this place of the buffer; -1: the file has ended. */
static int byte_at(struct recording *r, size_t at)
{
    while (r->from + at >= r->end && !r->ended)
        recording_read_more(r);
    return r->from + at < r->end ? (unsigned char)r->buffer[r->from + at] : -1;
}

/* From this place of a string to its end, a backslash or the end of the buffer. */
static size_t skip_plain(const struct recording *r, size_t at)
{
    const char *from = r->buffer + r->from + at, *end = r->buffer + r->end, *p = from;
    while (p < end && *p != '"' && *p != '\\' && (*p != '\n' || !r->one_line))
        p++;
    return at + (size_t)(p - from);
}

/* How many bytes the value has that begins at the place; more than may be, and it is dropped up to there. */
static size_t value_length(struct recording *r, uint64_t *lines, bool *too_long)
{
    size_t at = 0, depth = 0;
    bool in_string = false;
    for (int c; (c = byte_at(r, at)) >= 0; at++) {
        bool was_string = in_string;
        if (at > RECORDING_LINE_MAX_BYTES) {
            *too_long = true;
            r->from += at;
            at = 0;
        }
        if (in_string) {
            at = skip_plain(r, at);
            c = byte_at(r, at);
            at += c == '\\';
            in_string = c != '"';
        }
        if (c == '\n' && r->one_line)
            return at; /* the line ends within its value */
        if (was_string) {
            continue;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (depth && (c == '}' || c == ']')) {
            if (!--depth)
                return at + 1;
        } else if (!depth && strchr(",:]}\n", c)) {
            return at;
        }
        *lines += c == '\n';
    }
    return at;
}

/* The next byte that is no blank; '\n' within an object on one line, -1: it ends too early. */
static int skip_blanks(struct recording *r, const char *blanks)
{
    int c;
    while ((c = byte_at(r, 0)) >= 0 && strchr(blanks, c) && c && (c != '\n' || !r->one_line)) {
        r->number += c == '\n';
        r->from++;
    }
    return c;
}

/* The value at this place, which is then behind it. False: it is longer than may be, and was dropped. */
static bool cut_value(struct recording *r, struct str *value)
{
    bool too_long = false;
    r->value_lines = 0;
    size_t len = value_length(r, &r->value_lines, &too_long);
    *value = (struct str){r->buffer + r->from, len > r->end - r->from ? r->end - r->from : len};
    r->from += value->len;
    if (too_long)
        recording_count_fault(r, RECORDING_TOO_LONG, r->number, NULL);
    return !too_long;
}

/* A member, which is kept if there is room. False: it is none. */
static bool cut_member(struct recording *r)
{
    static const char blanks[] = " \t\r\n";
    struct str key, value;
    size_t before = r->members.len;
    if (byte_at(r, 0) != '"' || !cut_value(r, &key) || key.len > ARRAY_LOOK_BYTES)
        return false;
    if (before > 1)
        buf_byte(&r->members, ',');
    buf_str(&r->members, key);
    buf_byte(&r->members, ':');
    if (skip_blanks(r, blanks) != ':')
        return false;
    r->from++;
    skip_blanks(r, blanks);
    bool whole = cut_value(r, &value), has_room = before + value.len <= RECORDING_OBJECT_WHOLE_BYTES;
    if (whole && !has_room)
        recording_count_fault(r, RECORDING_TOO_LONG, r->object_number, "it is beside the list of its object");
    if (whole && has_room && value.len)
        buf_str(&r->members, value);
    else
        r->members.len = before;
    r->number += r->value_lines;
    return !whole || value.len;
}

/* What is behind the list, up to the end of the object. */
static void end_list(struct recording *r)
{
    int c;
    r->members.len = 0;
    buf_byte(&r->members, '{');
    while ((c = skip_blanks(r, " \t\r\n,")) == '"' && cut_member(r))
        continue;
    buf_byte(&r->members, '}');
    r->part = r->members.len > 2 ? RECORDING_LIST_ENDS : RECORDING_WHOLE;
    if (c == '}')
        r->from++;
    else
        recording_count_fault(r, RECORDING_CUT, r->object_number,
                              "it is one JSON document, and its end is missing");
    r->in_object = false;
    if (c != '}' && r->one_line)
        recording_skip_line(r);
    else if (c != '}')
        r->from = r->end, r->ended = true;
    r->one_line = false;
}

enum cut recording_cut_item(struct recording *r, struct str *item)
{
    int c = skip_blanks(r, " \t\r\n,");
    if (c < 0 || c == ']' || c == '\n') {
        r->in_array = false;
        r->from += c == ']';
        if (r->in_object)
            end_list(r);
        else if (c < 0)
            recording_count_fault(r, RECORDING_CUT, 0, "it is one JSON document, and its end is missing");
        return CUT_END;
    }
    bool whole = cut_value(r, item);
    if (whole && !item->len) /* a bracket or a colon that has no place here: the item is skipped */
        r->from++;
    return !whole ? CUT_SKIPPED : r->ended && r->from == r->end ? CUT_LAST : CUT_LINE;
}
