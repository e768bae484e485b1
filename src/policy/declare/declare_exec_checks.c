/* Checks exec = { … } after all fields: words that are dangerous or useless are errors. */
#include "policy/declare/declare_internal.h"
#include "policy/source_location.h"
#include "base/arena.h"
#include "upstream/exec/exec_argv.h"

/* Points at the word's own line. */
static void complain_word(struct declaration *d, size_t item, const char *text)
{
    int line = location_of_item(d->source, "exec", item);
    const char *chunk = sandbox_chunk(d->file.at);
    if (line)
        luaL_error(d->L, "%s:%d: 'exec': %s", chunk, line, text);
    field_error(d, "exec", "'exec': %s", text);
}

/* ---- what is dangerous, or cannot be meant ----------------------------------------------------------------
 */

/* Programs whose argument is a program: the word after an option that ends in this letter, or (0) the first
 * that is neither an option nor the value of one of these. */
struct interpreter {
    const char *names;
    char option;
    bool ends_options; /* what follows the program is the program's own */
    const char *valued;
};
static const struct interpreter interpreters[] = {
    {"sh bash dash zsh ksh ash", 'c', true, NULL},
    {"fish busybox su script", 'c', false, NULL},
    {"python python2 python3 pypy3", 'c', true, NULL},
    {"node nodejs bun deno perl ruby lua luajit Rscript osascript sed", 'e', false, NULL},
    {"node nodejs bun", 'p', false, NULL},
    {"php", 'r', false, NULL},
    {"jq gojq jaq", 0, false, "-L --indent --arg --argjson --slurpfile --rawfile"},
    {"yq sed", 0, false, "-l -o -p"},
    {"awk gawk mawk nawk", 0, false, "-v -F"},
};

static struct str last_part(struct str path)
{
    const char *slash = path.len ? memrchr(path.at, '/', path.len) : NULL;
    return slash ? str_from(path, (size_t)(slash - path.at) + 1) : path;
}

/* "python3.11" is python3. */
static bool is_one_of(struct str name, const char *names)
{
    for (struct str rest = str_of(names); rest.len;) {
        const char *space = memchr(rest.at, ' ', rest.len);
        size_t n = space ? (size_t)(space - rest.at) : rest.len;
        bool begins = n && name.len >= n && str_eq((struct str){name.at, n}, (struct str){rest.at, n});
        if (begins && (name.len == n || name.at[n] == '.'))
            return true;
        rest = str_from(rest, n + 1);
    }
    return false;
}

/* "-c", "-lc", "--eval": the next word is a program. */
static bool takes_program(struct str word, char option)
{
    if (word.len < 2 || word.at[0] != '-')
        return false;
    if (word.at[1] == '-')
        return (option == 'e' && (str_is(word, "--eval") || str_is(word, "--expression"))) ||
               (option == 'p' && str_is(word, "--print")) || (option == 'c' && str_is(word, "--command"));
    return word.at[word.len - 1] == option;
}

/* The index of the program's text, from `at`, the interpreter, on; word_count: there is none. */
static size_t program_text(const struct exec_spec *spec, size_t at, const struct interpreter *one)
{
    for (size_t i = at + 1; i < spec->word_count; i++) {
        struct str word = spec->words[i].text;
        if (one->option) {
            if (takes_program(word, one->option))
                return i + 1;
        } else if (str_is(word, "-f") || str_is(word, "--file") || str_is(word, "--from-file") ||
                   takes_program(word,
                                 'e')) { /* its program is in a file, or behind an option of another row */
            return spec->word_count;
        } else if (is_one_of(word, one->valued)) {
            i += exec_argv_option_values(word);
        } else if (!(word.len && word.at[0] == '-')) {
            return i;
        }
    }
    return spec->word_count;
}

/* If the word at `at` is this interpreter: finds its program, and checks that no argument is in it. */
static void check_program(struct declaration *d, const struct interpreter *one, size_t at,
                          bool is_program[EXEC_WORDS_MAX])
{
    struct exec_spec *spec = (struct exec_spec *)d->policy->exec;
    struct str name = last_part(spec->words[at].text);
    size_t text = is_one_of(name, one->names) ? program_text(spec, at, one) : spec->word_count;
    if (text == spec->word_count)
        return;
    is_program[text] = true;
    if (one->ends_options)
        spec->plain_from = (uint32_t)text + 1;
    if (exec_argv_has_argument(spec->words[text].text))
        field_error(d, "exec",
                    "'exec': an argument inside the program that " STR_FMT
                    " runs could run commands of its own: give it as a word behind the program, where that "
                    "reads it as \"$1\", sys.argv[1] or $name; for the text itself write {{name}}",
                    STR_ARG(name));
}

static void check_programs(struct declaration *d, bool is_program[EXEC_WORDS_MAX])
{
    static const char starters[] = "env nice ionice timeout nohup setsid stdbuf time sudo doas xargs chroot";
    const struct exec_spec *spec = d->policy->exec;
    size_t count = is_one_of(last_part(spec->words[0].text), starters) ? spec->word_count : 1;
    for (size_t at = 0; at < count; at++)
        for (size_t i = 0; i < sizeof(interpreters) / sizeof(interpreters[0]); i++)
            check_program(d, &interpreters[i], at, is_program);
    if (!is_one_of(last_part(spec->words[0].text), "ssh"))
        return;
    for (size_t i = 1; i < spec->word_count; i++)
        if (exec_argv_has_argument(spec->words[i].text))
            field_error(
                d, "exec",
                "'exec': ssh hands its words to a shell on the other host, where an argument could run "
                "commands of its own: send the arguments on stdin (stdin = true)");
}

/* "${API_TOKEN}" outside of scripts. */
static void check_settings(struct declaration *d, const bool is_program[EXEC_WORDS_MAX])
{
    const struct exec_spec *spec = d->policy->exec;
    for (size_t i = 0; i < spec->word_count; i++) {
        struct str word = spec->words[i].text;
        if (!is_program[i] && word.len && memmem(word.at, word.len, "${", 2))
            field_error(d, "exec",
                        "'exec': \"" STR_FMT
                        "\" is not filled in, as a command line can be read by everybody "
                        "on the host: put it into exec.env, which the command reads",
                        STR_ARG(str_cut(word, 80)));
    }
}

static void check_command(struct declaration *d)
{
    const struct exec_spec *spec = d->policy->exec;
    if (!spec->word_count)
        field_error(d, "exec", "'exec': expected { \"command\", \"argument\", … }, got no word");
    if (spec->words[0].group || !spec->words[0].text.len)
        complain_word(d, 0, "the first word must be the command");
    if (exec_argv_has_argument(spec->words[0].text))
        complain_word(d, 0,
                      "the command cannot be named by an argument: which one runs is not a model's choice");
}

static void check_name(struct declaration *d, struct str path)
{
    const struct json *schema = d->policy->schema, *properties = declare_properties(schema);
    for (struct str rest = path; properties; properties = declare_properties(schema)) {
        const char *dot = rest.len ? memchr(rest.at, '.', rest.len) : NULL;
        size_t n = dot ? (size_t)(dot - rest.at) : rest.len;
        schema = json_get(properties, rest);
        if (schema)
            return;
        schema = json_get(properties, (struct str){rest.at, n});
        if (!schema)
            declare_unknown_argument(
                d, "exec", properties, path,
                arena_printf(d->arena, "; for the text itself write {{" STR_FMT "}}", STR_ARG(path)).at);
        if (!dot)
            return;
        rest = str_from(rest, n + 1);
    }
}

static void check_groups(struct declaration *d)
{
    const struct exec_spec *spec = d->policy->exec;
    for (size_t i = 0, n; i < spec->word_count; i += n) {
        bool named = !spec->words[i].group || spec->words[i].when.len;
        for (n = 0; i + n < spec->word_count && spec->words[i + n].group == spec->words[i].group &&
                    (spec->words[i].group || !n);
             n++)
            named |= exec_argv_has_argument(spec->words[i + n].text);
        if (!named)
            complain_word(
                d, spec->words[i].group - 1,
                "a group is there for what may be left out: name an argument in it, or when = \"…\"");
        if (spec->words[i].when.len)
            check_name(d, spec->words[i].when);
    }
}

void declare_check_exec(struct declaration *d)
{
    const struct exec_spec *spec = d->policy->exec;
    bool is_program[EXEC_WORDS_MAX] = {false};
    struct exec_piece piece;
    if (!spec)
        return;
    check_command(d);
    check_programs(d, is_program);
    check_settings(d, is_program);
    check_groups(d);
    for (size_t i = 0; i < spec->word_count; i++)
        for (struct str rest = spec->words[i].text; exec_argv_next_piece(&rest, &piece);)
            if (piece.kind == EXEC_PIECE_ARGUMENT)
                check_name(d, piece.text);
}
