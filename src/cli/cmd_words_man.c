/*
 * toolgate words --format man: the manual page toolgate-policy(5), from the
 * same tables as docs/vocabulary.md.
 */
#include "base/arena.h"
#include "base/version.h"
#include "cli/cmd_words.h"
#include "policy/reference.h"

/* Text that roff takes literally: backslashes, hyphens, quotes, and no control line. */
static void add_text(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        switch (text.at[i]) {
        case '\\':
            buf_text(out, "\\e");
            break;
        case '-':
            buf_text(out, "\\-");
            break;
        case '\'':
            buf_text(out, "\\(aq");
            break;
        case '`': /* code in a sentence */
            break;
        case '^':
            buf_text(out, "\\(ha");
            break;
        case '~':
            buf_text(out, "\\(ti");
            break;
        case '\n':
            buf_byte(out, ' ');
            break;
        default:
            if (text.at[i] == '.' && (out->len == 0 || out->at[out->len - 1] == '\n'))
                buf_text(out, "\\&");
            buf_byte(out, text.at[i]);
        }
}

static void add_line(struct buf *out, const char *macro, struct str text)
{
    buf_text(out, macro);
    add_text(out, text);
    buf_byte(out, '\n');
}

/* A tagged paragraph: the name, its forms as an example, its sentence. */
static void add_entry(struct buf *out, const char *name, struct str forms, const char *sentence,
                      bool required)
{
    add_line(out, ".TP\n.B ", str_of(name));
    add_text(out, str_of(sentence));
    buf_text(out, required ? " Required.\n" : "\n");
    buf_text(out, ".RS\n.PP\n.EX\n");
    while (forms.len)
        add_line(out, "", words_take_form(&forms));
    buf_text(out, ".EE\n.RE\n");
}

static void add_fields(struct buf *out, const struct reference_table *table)
{
    add_line(out, ".SS Fields of ", str_of(table->of));
    add_line(out, "", str_of(table->sentence));
    for (size_t i = 0; i < table->count; i++) {
        const struct reference_field *field = &table->fields[i];
        add_entry(out, field->name, str_of(table->given ? field->type : field->form), field->sentence,
                  field->required);
    }
}

static const char page_begin[] =
    ".\\\" Made by `toolgate words --format man`.\n"
    ".TH TOOLGATE\\-POLICY 5 " TOOLGATE_VERSION_DATE " \"toolgate " TOOLGATE_VERSION "\" \"File Formats\"\n"
    ".SH NAME\ntoolgate\\-policy \\- the policy of a tool\n"
    ".SH SYNOPSIS\n.I /etc/toolgate/policies/*.lua\n"
    ".SH DESCRIPTION\n"
    "A policy is a Lua file that returns what toolgate knows of one tool: its schema, who may call it, its "
    "limits and\n"
    "rules, who runs it, and examples that toolgate runs whenever it loads the file.\n"
    "A file that returns\n.B policy\nis a policy for several tools.\n.PP\n"
    ".EX\n"
    "\\-\\- get_weather: the weather at a place. Read only.\n"
    "return tool \"get_weather\" {\n"
    "  description = \"The weather at a place.\",\n"
    "  effects = \"read\",\n"
    "  schema = params { place = str { min = 1, \"A city\" } },\n"
    "  examples = {\n"
    "    { \"a city\", args = { place = \"Oslo\" }, gives = \"pass\" },\n"
    "    { \"no city\", args = {}, gives = \"repair\" },\n"
    "  },\n"
    "}\n"
    ".EE\n.PP\n"
    ".B \"toolgate new\"\nwrites a first policy,\n.B \"toolgate test\"\nruns the examples, and\n.B "
    "\"toolgate words\"\n"
    "prints the entries below.\n";

static const char page_end[] = ".SH SEE ALSO\n.BR toolgate (1),\n.BR toolgate.lua (5)\n.PP\n"
                               "policy.md, cookbook.md and testing.md in\n.IR /usr/share/doc/toolgate .\n";

void words_write_man(struct arena *arena, struct buf *out)
{
    size_t count, table_count;
    const struct vocabulary_word *words = vocabulary_words(&count);
    const struct reference_table *tables = reference_tables(arena, &table_count);
    buf_text(out, page_begin);
    buf_text(out, ".SH FIELDS\n");
    for (size_t i = 0; i < table_count; i++)
        add_fields(out, &tables[i]);
    buf_text(out, ".SH WORDS\n");
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || strcmp(words[i].group, words[i - 1].group) != 0)
            add_line(out, ".SS ", str_of(words[i].group));
        add_entry(out, words[i].name, str_of(words[i].signature), words[i].sentence, false);
    }
    buf_text(out, page_end);
}
