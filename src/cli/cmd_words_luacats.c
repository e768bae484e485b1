/*
 * Definitions for editors. A word's `type` holds its forms, one a line: the
 * first is the function, the others are overloads; forms that begin with
 * `self: CLASS` are that class's methods.
 */
#include "cli/cmd_words.h"

#include "base/arena.h"

#include <stdbool.h>

#define SELF "fun(self: "

/* ---- strings ---- */

/* Takes the first line off `*text`. */
static struct str take_line(struct str *text)
{
    const char *end = text->len ? memchr(text->at, '\n', text->len) : NULL;
    struct str line = {text->at, end ? (size_t)(end - text->at) : text->len};
    *text = str_from(*text, line.len + (end ? 1 : 0));
    return line;
}

static bool is_nested(char c, int *depth)
{
    *depth += c == '(' || c == '{' || c == '<' || c == '[';
    *depth -= c == ')' || c == '}' || c == '>' || c == ']';
    return *depth > 0;
}

/* Takes off `*text` what comes before the first `end` outside of brackets. */
static struct str take_until(struct str *text, char end)
{
    int depth = 0;
    size_t i = 0;
    while (i < text->len && (depth > 0 || text->at[i] != end))
        is_nested(text->at[i++], &depth);
    struct str part = {text->at, i};
    *text = str_from(*text, i + (i < text->len));
    return part;
}

static struct str trim(struct str s)
{
    while (s.len && s.at[0] == ' ')
        s = str_from(s, 1);
    return s;
}

/* ---- functions ---- */

/* `name?: type`, as an annotation and in the list of parameters. */
static void add_param(struct buf *out, struct buf *names, struct str param)
{
    struct str type = param, name = take_until(&type, ':');
    bool optional = name.len && name.at[name.len - 1] == '?';
    buf_printf(out, "---@param " STR_FMT " " STR_FMT "\n", STR_ARG(name), STR_ARG(trim(type)));
    name.len -= optional;
    buf_printf(names, "%s" STR_FMT, names->len ? ", " : "", STR_ARG(name));
}

/* fun(a: A, b?: B): C, D */
static void add_function(struct buf *out, const char *name, struct str form)
{
    struct buf names = {.arena = out->arena};
    struct str rest = str_from(form, strlen("fun(")), params = take_until(&rest, ')');
    while (params.len)
        add_param(out, &names, trim(take_until(&params, ',')));
    for (rest = trim(str_from(rest, rest.len ? 1 : 0)); rest.len;) {
        struct str type = trim(take_until(&rest, ','));
        buf_printf(out, "---@return " STR_FMT "\n", STR_ARG(type));
    }
    buf_printf(out, "function %s(" STR_FMT ") end\n\n", name, STR_ARG(buf_view(&names)));
}

static bool is_method(struct str form)
{
    return str_starts(form, SELF);
}

static void add_comment(struct buf *out, const struct vocabulary_word *word)
{
    buf_printf(out, "---%s\n---```lua\n", word->sentence);
    struct str forms = str_of(word->signature);
    while (forms.len) {
        const char *end = memmem(forms.at, forms.len, "  or  ", 6);
        size_t len = end ? (size_t)(end - forms.at) : forms.len;
        buf_printf(out, "---%.*s\n", (int)len, forms.at);
        forms = str_from(forms, len + (end ? 6 : 0));
    }
    buf_text(out, "---```\n");
}

/* A value, or a function with overloads. Methods are in add_methods. */
static void add_word(struct buf *out, const struct vocabulary_word *word)
{
    struct str forms = str_of(word->type), first = STR_NONE;
    if (!str_starts(forms, "fun(")) {
        add_comment(out, word);
        buf_printf(out, "---@type %s\n%s = nil\n\n", word->type, word->name);
        return;
    }
    while (forms.len) {
        struct str form = take_line(&forms);
        if (is_method(form))
            continue;
        if (first.len)
            buf_printf(out, "---@overload " STR_FMT "\n", STR_ARG(form));
        else
            add_comment(out, word);
        first = first.len ? first : form;
    }
    if (first.len)
        add_function(out, word->name, first);
}

/* ---- classes ---- */

static void add_type(struct buf *out, const struct reference_type *type)
{
    buf_printf(out, "---%s\n", type->sentence);
    if (type->is)
        buf_printf(out, "---@alias %s %s\n\n", type->name, type->is);
    else
        buf_printf(out, "---@class %s\n\n", type->name);
}

static void add_field(struct buf *out, const struct reference_table *table,
                      const struct reference_field *field)
{
    size_t len = strlen(field->type);
    bool maybe = table->given && len && field->type[len - 1] == '?';
    bool optional = maybe || (!table->given && !field->required);
    buf_printf(out, "---@field %s%s %.*s %s\n", field->name, optional ? "?" : "", (int)(len - maybe),
               field->type, field->sentence);
}

static void add_fields(struct buf *out, const struct reference_table *table)
{
    buf_printf(out, "---%s\n---@class %s\n", table->sentence, table->type);
    for (int i = 0; i < 2 && table->items[i]; i++)
        buf_printf(out, "---@field [%d]? %s\n", i + 1, table->items[i]);
    for (size_t i = 0; i < table->count; i++)
        add_field(out, table, &table->fields[i]);
    buf_byte(out, '\n');
}

/* Methods of rules: of a method's forms the last, the fullest one first as an editor shows it. */
static void add_methods(struct buf *out, const struct vocabulary_word *words, size_t count)
{
    buf_text(out,
             "---What is demanded of arguments where a condition holds: made by when, always, needs_one_of, "
             "exclusive.\n---@class toolgate.Rule\n");
    for (size_t i = 0; i < count; i++) {
        struct str forms = str_of(words[i].type ? words[i].type : "");
        struct buf types = {.arena = out->arena};
        while (forms.len) {
            struct str form = take_line(&forms);
            if (is_method(form))
                buf_printf(&types, "%s(" STR_FMT ")", types.len ? "|" : "", STR_ARG(form));
        }
        if (types.len)
            buf_printf(out, "---@field %s " STR_FMT " %s\n", words[i].name, STR_ARG(buf_view(&types)),
                       words[i].sentence);
    }
    buf_byte(out, '\n');
}

/* ---- all ---- */

void cmd_words_luacats(struct arena *arena, struct buf *out)
{
    size_t count, table_count, type_count;
    const struct vocabulary_word *words = vocabulary_words(&count);
    const struct reference_table *tables = reference_tables(arena, &table_count);
    const struct reference_type *types = reference_types(&type_count);
    buf_text(out,
             "---@meta _\n\n"
             "-- What policies may write, for completion in editors (lua-language-server and kin; how to\n"
             "-- set one up is in docs/policy.md). `toolgate words --format luacats` prints this file.\n"
             "-- luacheck: ignore\n\n");
    for (size_t i = 0; i < type_count; i++)
        add_type(out, &types[i]);
    add_methods(out, words, count);
    for (size_t i = 0; i < table_count; i++)
        add_fields(out, &tables[i]);
    for (size_t i = 0; i < count; i++)
        if (words[i].type)
            add_word(out, &words[i]);
}
