/*
 * toolgate words: the vocabulary of policies, from the tables that the loader
 * reads: for a terminal, as docs/vocabulary.md, or as definitions for editors.
 */
#include "base/arena.h"
#include "base/buf.h"
#include "policy/known_tools.h"
#include "cli/options.h"
#include "cli/term.h"
#include "base/suggest.h"
#include "config/config.h"
#include "policy/reference.h"

#include <stdio.h>

#define WORDS_NAMES_MAX 1024u /* words and fields, as candidates for the closest name */

static void print_word(const struct vocabulary_word *word)
{
    printf("%s%-13s%s %s\n%14s%s%s%s\n", term_colour(TERM_BOLD), word->name, term_colour(TERM_PLAIN),
           word->sentence, "", term_colour(TERM_DIM), word->signature, term_colour(TERM_PLAIN));
}

static void print_field(const struct reference_table *table, const struct reference_field *field)
{
    printf("%s%-13s%s %s%s\n%14s%s%s%s\n", term_colour(TERM_BOLD), field->name, term_colour(TERM_PLAIN),
           field->sentence, field->required ? " Required." : "", "", term_colour(TERM_DIM),
           table->given ? field->type : field->form, term_colour(TERM_PLAIN));
}

static void print_title(const char *title, const char *sentence)
{
    printf("\n%s%s%s%s%s\n\n", term_colour(TERM_YELLOW), title, term_colour(TERM_PLAIN), sentence ? ": " : "",
           sentence ? sentence : "");
}

static void print_table(const struct reference_table *table)
{
    char title[80];
    snprintf(title, sizeof(title), "Fields of %s", table->of);
    print_title(title, table->sentence);
    for (size_t i = 0; i < table->count; i++)
        print_field(table, &table->fields[i]);
}

static void print_all(struct arena *arena)
{
    size_t count, tables;
    const struct vocabulary_word *words = vocabulary_words(&count);
    const struct reference_table *fields = reference_tables(arena, &tables);
    for (size_t i = 0; i < tables; i++)
        print_table(&fields[i]);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || strcmp(words[i].group, words[i - 1].group) != 0)
            print_title(words[i].group, NULL);
        print_word(&words[i]);
    }
}

/* By itself, or with its table, as in errors: "loop.poll.every". */
static bool is_field(struct str name, const struct reference_table *table, const char *field)
{
    size_t before = strlen(table->of);
    if (name.len > before + 1 && name.at[before] == '.' && memcmp(name.at, table->of, before) == 0)
        name = str_from(name, before + 1);
    return str_is(name, field);
}

/* A name may be a word, a table of fields, and a field of several tables. */
static size_t print_named(struct arena *arena, struct str name)
{
    size_t count, tables, found = 0;
    const struct vocabulary_word *words = vocabulary_words(&count);
    const struct reference_table *fields = reference_tables(arena, &tables);
    for (size_t i = 0; i < count; i++)
        if (str_is(name, words[i].name) && ++found)
            print_word(&words[i]);
    for (size_t i = 0; i < tables; i++)
        for (size_t n = 0; n < fields[i].count; n++)
            if (is_field(name, &fields[i], fields[i].fields[n].name) && ++found) {
                printf("%sfield of %s%s\n", found > 1 ? "\n" : "", fields[i].of,
                       fields[i].given ? ", which toolgate fills in" : "");
                print_field(&fields[i], &fields[i].fields[n]);
            }
    for (size_t i = 0; i < tables; i++)
        if (str_is(name, fields[i].of) && ++found)
            print_table(&fields[i]);
    return found;
}

static int print_entry(const struct command *command, struct arena *arena, struct str name)
{
    if (print_named(arena, name))
        return CLI_OK;
    struct str names[WORDS_NAMES_MAX];
    size_t count, tables, n = 0;
    const struct vocabulary_word *words = vocabulary_words(&count);
    const struct reference_table *fields = reference_tables(arena, &tables);
    for (size_t i = 0; i < count && n < WORDS_NAMES_MAX; i++)
        names[n++] = str_of(words[i].name);
    for (size_t i = 0; i < tables; i++)
        for (size_t f = 0; f < fields[i].count && n < WORDS_NAMES_MAX; f++)
            names[n++] = str_of(fields[i].fields[f].name);
    struct str near = suggest_closest(name, names, n);
    if (near.len)
        term_error(command->name, "no word or field '" STR_FMT "' (did you mean '" STR_FMT "'?)",
                   STR_ARG(name), STR_ARG(near));
    else
        term_error(command->name, "no word or field '" STR_FMT "'; `toolgate words` lists all",
                   STR_ARG(name));
    return CLI_NO;
}

/* Takes the first of the forms, which are separated by "  or  ". */
static struct str take_form(struct str *forms)
{
    const char *end = memmem(forms->at, forms->len, "  or  ", 6);
    struct str form = {forms->at, end ? (size_t)(end - forms->at) : forms->len};
    *forms = str_from(*forms, form.len + (end ? 6 : 0));
    return form;
}

/* A table cell: bars are escaped, and line breaks become spaces. */
static void add_cell(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] == '|')
            buf_byte(out, '\\');
        buf_byte(out, text.at[i] == '\n' ? ' ' : text.at[i]);
    }
}

/* Each form as code. */
static void add_forms(struct buf *out, const char *signature)
{
    for (struct str forms = str_of(signature), form; forms.len;) {
        form = take_form(&forms);
        buf_byte(out, '`');
        add_cell(out, form);
        buf_text(out, forms.len ? "` or " : "`");
    }
}

static void add_row(struct buf *out, const struct reference_table *table, const struct reference_field *field)
{
    buf_printf(out, "| `%s` | ", field->name);
    if (!table->given)
        add_forms(out, field->form);
    else
        buf_byte(out, '`'), add_cell(out, str_of(field->type)), buf_byte(out, '`');
    buf_text(out, " | ");
    add_cell(out, str_of(field->sentence));
    buf_text(out, field->required ? " Required. |\n" : " |\n");
}

static void write_markdown(struct arena *arena, struct buf *out)
{
    size_t count, table_count;
    const struct vocabulary_word *words = vocabulary_words(&count);
    const struct reference_table *tables = reference_tables(arena, &table_count);
    buf_text(out, "# The vocabulary of policies\n\n"
                  "Every field and every word that a policy may write, as the program itself knows them: "
                  "`toolgate words --format markdown` prints this page, `toolgate words NAME` one entry. "
                  "What they are for, and how they go together, is in [policy.md](policy.md).\n\n"
                  "## Fields\n\n");
    for (size_t i = 0; i < table_count; i++) {
        buf_printf(out, "### %s\n\n%s\n\n| field | %s | |\n|---|---|---|\n", tables[i].of, tables[i].sentence,
                   tables[i].given ? "type" : "written");
        for (size_t n = 0; n < tables[i].count; n++)
            add_row(out, &tables[i], &tables[i].fields[n]);
        buf_byte(out, '\n');
    }
    buf_text(out, "## Words\n");
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || strcmp(words[i].group, words[i - 1].group) != 0)
            buf_printf(out, "\n### %s\n\n| word | written | |\n|---|---|---|\n", words[i].group);
        buf_printf(out, "| `%s` | ", words[i].name);
        add_forms(out, words[i].signature);
        buf_text(out, " | ");
        add_cell(out, str_of(words[i].sentence));
        buf_text(out, " |\n");
    }
}

/* A word's `type` holds its forms, one a line. The first is the function, the others are overloads; forms
 * that begin with `self: CLASS` are that class's methods. */

/* Takes off `*text` what comes before the first `end` outside of brackets. */
static struct str take_until(struct str *text, char end)
{
    int depth = 0;
    size_t i = 0;
    for (; i < text->len && (depth > 0 || text->at[i] != end); i++)
        depth += strchr("({<[", text->at[i]) ? 1 : strchr(")}>]", text->at[i]) ? -1 : 0;
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

/* fun(a: A, b?: B): C, D. A parameter is an annotation, and in the list of names. */
static void add_function(struct buf *out, const char *name, struct str form)
{
    struct buf names = {.arena = out->arena};
    struct str rest = str_from(form, strlen("fun(")), params = take_until(&rest, ')');
    while (params.len) {
        struct str type = trim(take_until(&params, ',')), param = take_until(&type, ':');
        buf_printf(out, "---@param " STR_FMT " " STR_FMT "\n", STR_ARG(param), STR_ARG(trim(type)));
        param.len -= param.len && param.at[param.len - 1] == '?';
        buf_printf(&names, "%s" STR_FMT, names.len ? ", " : "", STR_ARG(param));
    }
    for (rest = trim(str_from(rest, rest.len ? 1 : 0)); rest.len;) {
        struct str type = trim(take_until(&rest, ','));
        buf_printf(out, "---@return " STR_FMT "\n", STR_ARG(type));
    }
    buf_printf(out, "function %s(" STR_FMT ") end\n\n", name, STR_ARG(buf_view(&names)));
}

static void add_comment(struct buf *out, const struct vocabulary_word *word)
{
    buf_printf(out, "---%s\n---```lua\n", word->sentence);
    for (struct str forms = str_of(word->signature), form; forms.len;) {
        form = take_form(&forms);
        buf_printf(out, "---" STR_FMT "\n", STR_ARG(form));
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
        struct str form = take_until(&forms, '\n');
        if (str_starts(form, "fun(self: "))
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

static void add_class(struct buf *out, const struct reference_table *table)
{
    buf_printf(out, "---%s\n---@class %s\n", table->sentence, table->type);
    for (int i = 0; i < 2 && table->items[i]; i++)
        buf_printf(out, "---@field [%d]? %s\n", i + 1, table->items[i]);
    for (size_t i = 0; i < table->count; i++) {
        const struct reference_field *field = &table->fields[i];
        size_t len = strlen(field->type);
        bool maybe = table->given && len && field->type[len - 1] == '?';
        bool optional = maybe || (!table->given && !field->required);
        buf_printf(out, "---@field %s%s %.*s %s\n", field->name, optional ? "?" : "", (int)(len - maybe),
                   field->type, field->sentence);
    }
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
            struct str form = take_until(&forms, '\n');
            if (str_starts(form, "fun(self: "))
                buf_printf(&types, "%s(" STR_FMT ")", types.len ? "|" : "", STR_ARG(form));
        }
        if (types.len)
            buf_printf(out, "---@field %s " STR_FMT " %s\n", words[i].name, STR_ARG(buf_view(&types)),
                       words[i].sentence);
    }
    buf_byte(out, '\n');
}

static void write_luacats(struct arena *arena, struct buf *out)
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
        buf_printf(out, types[i].is ? "---%s\n---@alias %s %s\n\n" : "---%s\n---@class %s\n\n",
                   types[i].sentence, types[i].name, types[i].is);
    add_methods(out, words, count);
    for (size_t i = 0; i < table_count; i++)
        add_class(out, &tables[i]);
    for (size_t i = 0; i < count; i++)
        if (words[i].type)
            add_word(out, &words[i]);
}

static void write_config(struct arena *arena, struct buf *out)
{
    (void)arena;
    config_list_keys(out);
}

static const struct {
    const char *name;
    void (*write)(struct arena *arena, struct buf *out);
} formats[] = {{"markdown", write_markdown}, {"luacats", write_luacats}, {"config", write_config}};

static int print_format(const struct command *command, struct arena *arena, const char *format)
{
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (strcmp(format, formats[i].name) != 0)
            continue;
        struct buf out = buf_in(arena);
        formats[i].write(arena, &out);
        fwrite(out.at, 1, out.len, stdout);
        return CLI_OK;
    }
    term_error(command->name, "--format: expected markdown, luacats or config, got '%s'", format);
    return CLI_ERROR;
}

static void print_known_tools(void)
{
    static const char *const titles[KNOWN_KINDS] = {
        [KNOWN_READS] = "They read",
        [KNOWN_NOTES] = "They keep a model's own lists and notes, and change nothing else",
        [KNOWN_EDITS] = "They edit local files",
        [KNOWN_SHELLS] = "They run commands: their effects are unknown"};
    for (int kind = KNOWN_READS; kind < KNOWN_KINDS; kind++) {
        print_title(titles[kind], NULL);
        for (size_t i = 0; known_tools_name(kind, i).len; i++)
            printf(STR_FMT "\n", STR_ARG(known_tools_name(kind, i)));
    }
}

static int run(const struct command *command, int argc, char **argv)
{
    const char *format = NULL;
    bool tools = false;
    int status;
    const struct cli_option table[] = {
        {"format", "markdown|luacats|config",
         "a reference, definitions for editors; the configuration's keys", 'f', OPTION_STRING, &format},
        {"tools", NULL, "the built-in tools of coding assistants, and what toolgate takes them for", 0,
         OPTION_FLAG, &tools},
        {0},
    };
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    struct arena *arena = arena_new();
    status = CLI_OK;
    if (format)
        status = print_format(command, arena, format);
    else if (tools)
        print_known_tools();
    else if (argc)
        status = print_entry(command, arena, str_of(argv[0]));
    else
        print_all(arena);
    arena_free(arena);
    return status;
}

const struct command command_words = {
    .name = "words",
    .operands = "[WORD]",
    .summary = "list what a policy can declare",
    .about =
        "Prints every word and field of policies with its form and purpose; with WORD only those of that\n"
        "name. `--format markdown` prints docs/vocabulary.md; `--format luacats` prints definitions for\n"
        "editors with lua-language-server (docs/policy.md explains the setup).\n"
        "`--format config` prints each key of the configuration with its type and "
        "default.\n"
        "`--tools` prints the tools that need neither a policy nor annotations for their effects.",
    .exits = "  0  printed\n"
             "  1  there is no such word or field\n"
             "  2  usage",
    .example = "  toolgate words needs\n"
               "  toolgate words --format luacats > types/toolgate.lua",
    .most = 1,
    .run = run,
};
