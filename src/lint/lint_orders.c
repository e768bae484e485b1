/*
 * Descriptions that do more than describe their tool: orders to the model (result/order_text.h), lines that
 * imitate the gateway's feedback, and orders about tools of other servers. A server says how its own tools go
 * together; what the model does with another's is not its affair.
 */
#include "lint/lint_internal.h"

#include "base/arena.h"
#include "base/printable.h"
#include "catalog/import.h"
#include "json/write.h"
#include "result/order_text.h"

#define SENTENCE_MAX_BYTES 240u
#define NAME_MIN_BYTES     5u /* of a tool; a shorter one is a word of every language */

/* A "Note:" is left out: descriptions that explain themselves have it. */
static const char *const own_lines[] = {
    "Next: ",         "Hint: ",   "Rule: ",           "Suggested:",       "Stop. ",
    "The tool said:", "Intent: ", "The last error: ", "Valid parameters:"};
static const char *const order_words[] = {"always", "must",        "never",   "do not", "don't",
                                          "before", "instead of",  "instead", "first",  "ignore",
                                          "avoid",  "rather than", "after",   "prefer", "forward"};
static const char *const other_tools[] = {
    "before any other tool",         "before all other tools",        "before using any other tool",
    "before calling any other tool", "before you use any other tool", "ignore other tools",
    "ignore all other tools",        "never use other tools",         "do not use other tools",
    "do not use any other tool",     "don't use any other tool",      "do not call any other tool"};

/* The sentence around text[at]. */
static struct str sentence_at(struct str text, size_t at)
{
    size_t from = at, end = at;
    while (from > 0 && text.at[from - 1] != '\n' &&
           !(ascii_is_space(text.at[from - 1]) && from > 1 && strchr(".!?", text.at[from - 2])))
        from--;
    while (end < text.len && text.at[end] != '\n' &&
           !(strchr(".!?", text.at[end]) && (end + 1 == text.len || ascii_is_space(text.at[end + 1]))))
        end++;
    end += end < text.len && text.at[end] != '\n';
    return str_trim((struct str){text.at + from, end - from});
}

static void report(struct lint_context *c, struct str place, struct str text, size_t at, const char *why)
{
    struct buf quoted = buf_in(c->arena), plain = buf_in(c->arena);
    json_write_string(&quoted, arena_truncate(c->arena, sentence_at(text, at), SENTENCE_MAX_BYTES));
    printable_write_json(&plain, buf_view(&quoted));
    lint_report(c, lint_tool_line(c), "tool '" STR_FMT "': its %s" STR_FMT "%s %s: " STR_FMT,
                STR_ARG(c->tool->name), place.len ? "argument '" : "description", STR_ARG(place),
                place.len ? "'" : "", why, STR_ARG(buf_view(&plain)));
}

/* ---- the gateway's lines ---- */

static bool imitates(struct str text, size_t *at)
{
    for (size_t line = 0; line < text.len;) {
        const char *end = memchr(text.at + line, '\n', text.len - line);
        struct str trimmed = str_trim(str_from(text, line));
        for (size_t i = 0; i < sizeof(own_lines) / sizeof(own_lines[0]); i++)
            if (str_starts(trimmed, own_lines[i])) {
                *at = (size_t)(trimmed.at - text.at);
                return true;
            }
        line = end ? (size_t)(end - text.at) + 1 : text.len;
    }
    return false;
}

/* ---- tools of others ---- */

static bool is_name_char(char c)
{
    return ascii_is_letter(c) || ascii_is_digit(c) || c == '_' || c == '-';
}

/* Where the words stand, not within others; text.len: nowhere. */
static size_t find_words(struct str text, struct str words, size_t from)
{
    for (size_t i = from; words.len && i + words.len <= text.len; i++)
        if ((text.at[i] | 32) == (words.at[0] | 32) && strncasecmp(text.at + i, words.at, words.len) == 0 &&
            (!i || !is_name_char(text.at[i - 1])) &&
            (i + words.len == text.len || !is_name_char(text.at[i + words.len])))
            return i;
    return text.len;
}

static bool has_any(struct str text, const char *const *words, size_t count, size_t *at)
{
    for (size_t i = 0; i < count; i++)
        if ((*at = find_words(text, str_of(words[i]), 0)) < text.len)
            return true;
    return false;
}
#define HAS_ANY(text, words, at) has_any(text, words, sizeof(words) / sizeof((words)[0]), at)

/* Of a definition in a file: the part of its name before the separator, if it has one. */
static struct str server_of(const struct tool *tool)
{
    struct str name = tool->name;
    const char *separator = memmem(name.at, name.len, IMPORT_SEPARATOR, strlen(IMPORT_SEPARATOR));
    return tool->target.upstream.len ? tool->target.upstream
           : separator               ? (struct str){name.at, (size_t)(separator - name.at)}
                                     : tool->origin;
}

/* As its server calls it. */
static struct str own_name(const struct tool *tool)
{
    const char *separator = memmem(tool->name.at, tool->name.len, IMPORT_SEPARATOR, strlen(IMPORT_SEPARATOR));
    return tool->target.tool.len ? tool->target.tool
           : separator ? str_from(tool->name, (size_t)(separator - tool->name.at) + strlen(IMPORT_SEPARATOR))
                       : tool->name;
}

/* More than one word: "delete_all" is a name wherever it stands, "search" is not. */
static bool is_telling(struct str name)
{
    bool joined = false;
    for (size_t i = 1; i < name.len; i++)
        joined |= name.at[i] == '_' || name.at[i] == '-' ||
                  (name.at[i] >= 'A' && name.at[i] <= 'Z' && name.at[i - 1] >= 'a');
    return joined && name.len >= NAME_MIN_BYTES;
}

/* An order, in the same sentence, about a tool of another server that no tool of this server is called. */
static bool orders_another(struct str text, struct str name, size_t *at)
{
    size_t word;
    for (size_t i = 0; (*at = find_words(text, name, i)) < text.len; i = *at + name.len)
        if (HAS_ANY(sentence_at(text, *at), order_words, &word))
            return true;
    return false;
}

static bool is_own_name(const struct lint_context *c, struct str name)
{
    for (size_t i = 0; i < c->generation->tool_count; i++) {
        const struct tool *tool = c->generation->tools[i];
        if (str_eq(server_of(tool), server_of(c->tool)) &&
            (str_eq(own_name(tool), name) || str_eq(tool->name, name)))
            return true;
    }
    return false;
}

static void check_other_tools(struct lint_context *c, struct str place, struct str text)
{
    size_t at;
    if (HAS_ANY(text, other_tools, &at)) {
        report(c, place, text, at, "gives orders about other tools");
        return;
    }
    for (size_t i = 0; i < c->generation->tool_count; i++) {
        const struct tool *other = c->generation->tools[i];
        struct str name = own_name(other);
        if (str_eq(server_of(other), server_of(c->tool)) || !is_telling(name))
            continue;
        if (orders_another(text, name, &at) && !is_own_name(c, name)) {
            report(c, place, text, at,
                   arena_printf(c->arena, "gives orders about '" STR_FMT "', a tool of another server",
                                STR_ARG(other->name))
                       .at);
            return;
        }
    }
}

/* ---- the check ---- */

static void check_text(struct lint_context *c, struct str place, struct str text)
{
    size_t at, len;
    struct str name;
    if (!text.len)
        return;
    if (printable_count_hidden(text))
        report(c, place, text, 0, "has hidden characters (zero-width, bidirectional, tags)");
    if (order_text_find(text, 0, &at, &len, &name))
        report(c, place, text, at, "gives orders to the model");
    else if (imitates(text, &at))
        report(c, place, text, at, "imitates a line of the gateway");
    else
        check_other_tools(c, place, text);
}

static void check_argument(struct lint_context *c, struct str path, const struct json *schema)
{
    check_text(c, path, json_str(json_get_text(schema, "description")));
    check_text(c, path, json_str(json_get_text(schema, "title")));
}

/* A policy's own words are the operator's. */
void lint_orders(struct lint_context *c)
{
    if (!c->tool->definition)
        return;
    check_text(c, STR_NONE, json_str(json_get_text(c->tool->definition, "description")));
    check_text(c, STR_NONE, json_str(json_get_text(c->tool->definition, "title")));
    lint_walk(c, c->tool->input, check_argument);
}
