/* docs/vocabulary.md: the tables of fields, then the words by group. */
#include "cli/cmd_words.h"

#include <stdio.h>

/* A table cell: bars are escaped, and line breaks become spaces. */
static void add_cell(struct buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            buf_byte(out, '\\');
        buf_byte(out, *text == '\n' ? ' ' : *text);
    }
}

/* Each of the forms, which are separated by "  or  ", as code. */
static void add_forms(struct buf *out, const char *forms)
{
    for (const char *next; *forms; forms = next) {
        const char *end = strstr(forms, "  or  ");
        size_t len = end ? (size_t)(end - forms) : strlen(forms);
        char form[512];
        snprintf(form, sizeof(form), "%.*s", (int)len, forms);
        buf_byte(out, '`');
        add_cell(out, form);
        buf_text(out, end ? "` or " : "`");
        next = forms + len + (end ? strlen("  or  ") : 0);
    }
}

static void add_field(struct buf *out, const struct reference_table *table,
                      const struct reference_field *field)
{
    buf_printf(out, "| `%s` | ", field->name);
    if (!table->given)
        add_forms(out, field->form);
    else
        buf_byte(out, '`'), add_cell(out, field->type), buf_byte(out, '`');
    buf_text(out, " | ");
    add_cell(out, field->sentence);
    buf_text(out, field->required ? " Required. |\n" : " |\n");
}

static void add_fields(struct buf *out, const struct reference_table *table)
{
    buf_printf(out, "### %s\n\n%s\n\n", table->of, table->sentence);
    buf_printf(out, "| field | %s | |\n|---|---|---|\n", table->given ? "type" : "written");
    for (size_t i = 0; i < table->count; i++)
        add_field(out, table, &table->fields[i]);
    buf_byte(out, '\n');
}

void cmd_words_markdown(struct arena *arena, struct buf *out)
{
    size_t count, table_count;
    const struct vocabulary_word *words = vocabulary_words(&count);
    const struct reference_table *tables = reference_tables(arena, &table_count);
    buf_text(out, "# The vocabulary of policies\n\n"
                  "Every field and every word that a policy may write, as the program itself knows them: "
                  "`toolgate words --format markdown` prints this page, `toolgate words NAME` one entry. "
                  "What they are for, and how they go together, is in [policy.md](policy.md).\n\n"
                  "## Fields\n\n");
    for (size_t i = 0; i < table_count; i++)
        add_fields(out, &tables[i]);
    buf_text(out, "## Words\n");
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || strcmp(words[i].group, words[i - 1].group) != 0)
            buf_printf(out, "\n### %s\n\n| word | written | |\n|---|---|---|\n", words[i].group);
        buf_printf(out, "| `%s` | ", words[i].name);
        add_forms(out, words[i].signature);
        buf_text(out, " | ");
        add_cell(out, words[i].sentence);
        buf_text(out, " |\n");
    }
}
