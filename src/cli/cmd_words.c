/* toolgate words: the vocabulary of policies, from the tables that the loader reads. */
#include "cli/cmd_words.h"

#include "base/arena.h"
#include "cli/options.h"
#include "cli/term.h"
#include "base/suggest.h"

#include <stdio.h>

#define WORDS_NAMES_MAX 1024u /* words and fields, as candidates for the closest name */

/* ---- the list ---- */

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

/* ---- one name ---- */

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

/* ---- the command ---- */

static const struct {
    const char *name;
    void (*write)(struct arena *arena, struct buf *out);
} formats[] = {{"markdown", cmd_words_markdown}, {"luacats", cmd_words_luacats}};

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
    term_error(command->name, "--format: expected markdown or luacats, got '%s'", format);
    return CLI_ERROR;
}

static int run(const struct command *command, int argc, char **argv)
{
    const char *format = NULL;
    int status = CLI_OK;
    const struct cli_option table[] = {
        {"format", "FORMAT", "markdown: the reference; luacats: definitions for editors", 'f', OPTION_STRING,
         &format},
        {0},
    };
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    struct arena *arena = arena_new();
    if (format)
        status = print_format(command, arena, format);
    else if (argc)
        status = print_entry(command, arena, str_of(argv[0]));
    else
        print_all(arena);
    arena_free(arena);
    return status;
}

const struct command command_words = {
    .name = "words",
    .operands = "[NAME]",
    .summary = "list what a policy can declare",
    .about =
        "Prints every word and field of policies with its form and purpose; with NAME only those of that\n"
        "name. `--format markdown` prints docs/vocabulary.md; `--format luacats` prints definitions for\n"
        "editors with lua-language-server (docs/policy.md explains the setup).",
    .exits = "  0  printed\n"
             "  1  there is no such word or field\n"
             "  2  usage",
    .example = "  toolgate words needs\n"
               "  toolgate words --format luacats > types/toolgate.lua",
    .most = 1,
    .run = run,
};
