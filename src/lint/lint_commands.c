/* Commands whose words can go wrong without any of them being an error. */
#include "lint/lint_internal.h"
#include "upstream/exec/exec_argv.h"

/* The argument without which the word is left out; STR_NONE: the schema always has what it names. */
static struct str may_be_missing(const struct json *schema, struct str word)
{
    struct exec_piece piece;
    while (exec_argv_next_piece(&word, &piece))
        if (piece.kind == EXEC_PIECE_ARGUMENT &&
            !json_array_has(json_get_text(schema, "required"), piece.text))
            return piece.text;
    return STR_NONE;
}

/* "--max-count" and "max_count"; of others nobody can tell whether the option takes a value at all. */
static bool is_named_after(struct str option, struct str name)
{
    bool same = option.len == name.len + 2 && str_starts(option, "--");
    for (size_t i = 0; same && i < name.len; i++)
        same = option.at[i + 2] == name.at[i] || (option.at[i + 2] == '-' && name.at[i] == '_');
    return same;
}

static void say_left(struct looking *look, struct str option, struct str name)
{
    lint_report(look, introspection_tool_line(&look->survey),
                "exec: where the argument '" STR_FMT "' is left out, '" STR_FMT
                "' stays and takes the next word for its value: put both into a group, { \"" STR_FMT
                "\", \"{" STR_FMT "}\" }",
                STR_ARG(name), STR_ARG(option), STR_ARG(option), STR_ARG(name));
}

/* "--limit", "{limit}" outside of a group. */
void lint_left_option(struct looking *look)
{
    const struct exec_spec *exec = look->policy ? look->policy->exec : NULL;
    const struct json *schema = look->policy ? look->policy->schema : NULL;
    if (!exec || !schema)
        return;
    for (size_t i = 1; i < exec->word_count; i++) {
        const struct exec_word *option = &exec->words[i - 1], *word = &exec->words[i];
        if (option->group || word->group)
            continue;
        struct str name = may_be_missing(schema, word->text);
        if (name.len && is_named_after(option->text, name))
            say_left(look, option->text, name);
    }
}
