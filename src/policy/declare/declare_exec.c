/* exec = { "jq", "-r", "{filter}", timeout = "10s" }: a command as a tool (upstream/exec/exec.c). */
#include "policy/declare/declare_internal.h"
#include "base/arena.h"
#include "upstream/exec/exec_argv.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#define EXEC_ENV_MAX       100u
#define EXEC_EXITS_MAX     256u
#define EXEC_TIMEOUT_MAX_S 3600u
#define EXEC_OUTPUT_MAX    67108864u
#define MIB                1048576.0

/* Made by declare_exec, const for everybody after. */
static struct exec_spec *spec_of(struct declaration *d)
{
    return (struct exec_spec *)d->policy->exec;
}

/* ---- fields ---------------------------------------------------------------------------------------- */

static bool is_variable(struct str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!isalnum((unsigned char)name.at[i]) && name.at[i] != '_')
            return false;
    return name.len && !isdigit((unsigned char)name.at[0]);
}

static void read_env(struct declaration *d, const struct field *field, int at)
{
    struct name_value *list = ARENA_ARRAY(d->arena, struct name_value, EXEC_ENV_MAX);
    struct name_values *env = &spec_of(d)->env;
    declare_must_be_table(d, "exec", field->name, at, "{ NAME = \"value\" }");
    env->list = list;
    for (lua_pushnil(d->L); lua_next(d->L, at); lua_pop(d->L, 1)) {
        if (lua_type(d->L, -2) != LUA_TSTRING || lua_type(d->L, -1) != LUA_TSTRING)
            fields_wrong(d, "exec", field->name, lua_gettop(d->L), "{ NAME = \"value\" }, both texts");
        struct str name = fields_text(d, lua_gettop(d->L) - 1);
        if (!is_variable(name))
            fields_complain(d, "exec", field->name, "'exec.env': '" STR_FMT "' cannot be a variable's name",
                            STR_ARG(str_cut(name, 80)));
        if (env->count == EXEC_ENV_MAX)
            fields_complain(d, "exec", field->name, "'exec.env': expected at most %u", EXEC_ENV_MAX);
        list[env->count++] = (struct name_value){.name = name, .value = fields_text(d, -1)};
    }
}

static void read_exec_timeout(struct declaration *d, const struct field *field, int at)
{
    spec_of(d)->timeout_ms = declare_ms(d, "exec", field, at, EXEC_TIMEOUT_MAX_S,
                                        "\"10s\", \"PT10S\" or seconds, from a millisecond to an hour");
}

static double read_number(struct declaration *d, const struct field *field, int at, double least, double most,
                          const char *expected)
{
    double n = lua_type(d->L, at) == LUA_TNUMBER ? lua_tonumber(d->L, at) : -1;
    if (!(n >= least && n <= most && n == floor(n)))
        fields_wrong(d, "exec", field->name, at, expected);
    return n;
}

static void read_max_output(struct declaration *d, const struct field *field, int at)
{
    spec_of(d)->output_bytes =
        (uint32_t)read_number(d, field, at, 1, EXEC_OUTPUT_MAX, "bytes, a whole number from 1 to 67108864");
}

/* false lifts the limit. */
static double read_limit(struct declaration *d, const struct field *field, int at, double most,
                         const char *expected)
{
    if (lua_isboolean(d->L, at) && !lua_toboolean(d->L, at))
        return 0;
    return read_number(d, field, at, 1, most, expected);
}

static void read_memory(struct declaration *d, const struct field *field, int at)
{
    spec_of(d)->memory_bytes =
        (uint64_t)(MIB * read_limit(d, field, at, 1e6, "MiB, a whole number from 1, or false for no limit"));
}

static void read_file(struct declaration *d, const struct field *field, int at)
{
    spec_of(d)->file_bytes =
        (uint64_t)(MIB * read_limit(d, field, at, 1e8, "MiB, a whole number from 1, or false for no limit"));
}

static void read_cpu(struct declaration *d, const struct field *field, int at)
{
    spec_of(d)->cpu_s =
        (uint32_t)read_limit(d, field, at, 1e6, "seconds, a whole number from 1, or false for no limit");
}

static void read_processes(struct declaration *d, const struct field *field, int at)
{
    spec_of(d)->processes =
        (uint32_t)read_limit(d, field, at, 1e6, "a whole number from 1, or false for no limit");
}

static enum exec_exit_meaning means_of(struct declaration *d, int at)
{
    static const char *const words[] = {[EXEC_EXIT_REFUSED] = "refused",
                                        [EXEC_EXIT_OK] = "ok",
                                        [EXEC_EXIT_TRANSIENT] = "transient",
                                        [EXEC_EXIT_BROKEN] = "broken"};
    const char *given = lua_type(d->L, at) == LUA_TSTRING ? lua_tostring(d->L, at) : "";
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(words[i], given) == 0)
            return (enum exec_exit_meaning)i;
    fields_wrong(d, "exec", "exit", at, "one of ok, refused, transient, broken for each code");
}

static void read_exit(struct declaration *d, const struct field *field, int at)
{
    struct exec_exit *list = ARENA_ARRAY(d->arena, struct exec_exit, EXEC_EXITS_MAX);
    struct exec_spec *spec = spec_of(d);
    declare_must_be_table(d, "exec", field->name, at, "{ [1] = \"ok\" }");
    spec->exits = list;
    for (lua_pushnil(d->L); lua_next(d->L, at); lua_pop(d->L, 1)) {
        double code = lua_type(d->L, -2) == LUA_TNUMBER ? lua_tonumber(d->L, -2) : -1;
        if (!(code >= 0 && code <= 255 && code == floor(code)))
            fields_wrong(d, "exec", field->name, lua_gettop(d->L) - 1,
                         "an exit code from 0 to 255: [1] = \"ok\"");
        list[spec->exit_count++] = (struct exec_exit){(uint32_t)code, means_of(d, lua_gettop(d->L))};
    }
}

/* Whether it was said at all: where it was not, the words decide. */
struct exec_reading {
    struct exec_spec spec; /* first */
    bool stdin_given;
};

#define AT(member) .offset = offsetof(struct exec_spec, member)

static const struct field exec_fields[] = {
    {.name = "stdin",
     .kind = FIELD_FLAG,
     AT(on_stdin),
     .given = offsetof(struct exec_reading, stdin_given) + 1,
     .sentence = "Whether the arguments go in as one line of JSON; left out: where no word names one."},
    {.name = "output",
     .kind = FIELD_CHOICE,
     AT(output),
     .choices = "auto json lines text",
     .sentence =
         "What stdout is: auto takes JSON where it is JSON and else a text; json: anything else is broken; "
         "lines: one JSON value a line, together a list; text: whatever it looks like."},
    {.name = "exit",
     .kind = FIELD_OWN,
     .read = read_exit,
     .form = "{ [1] = \"ok\", [75] = \"transient\" }",
     .type = "table<integer, \"ok\"|\"refused\"|\"transient\"|\"broken\">",
     .sentence = "What exit codes mean; 0 is ok and every other refused, until said here."},
    {.name = "cwd",
     .kind = FIELD_TEXT,
     AT(cwd),
     .form = "\"/srv/orders\"",
     .sentence =
         "The folder it runs in, beside the policy where it is relative; the daemon's where it is left out."},
    {.name = "env",
     .kind = FIELD_OWN,
     .read = read_env,
     .form = "{ API_TOKEN = \"${file:/run/secrets/token}\" }",
     .type = "table<string, string>",
     .sentence = "Its environment beside PATH, HOME, LANG, TZ and TERM; ${NAME} is from the daemon's, "
                 "${file:/path} a file's text."},
    {.name = "timeout",
     .kind = FIELD_OWN,
     .read = read_exec_timeout,
     .form = "\"10s\"",
     .type = "string|number",
     .sentence = "How long a call may take; then it is ended with all that it started. 30 s."},
    {.name = "max_output",
     .kind = FIELD_OWN,
     .read = read_max_output,
     .form = "1000000",
     .type = "integer",
     .sentence = "Bytes of stdout; a command that writes more is ended. 4194304."},
    {.name = "memory_mb",
     .kind = FIELD_OWN,
     .read = read_memory,
     .form = "512",
     .type = "integer|false",
     .sentence = "MiB that each of its processes may write to. 2048."},
    {.name = "file_mb",
     .kind = FIELD_OWN,
     .read = read_file,
     .form = "100",
     .type = "integer|false",
     .sentence = "MiB of each file that it writes. 1024."},
    {.name = "cpu_s",
     .kind = FIELD_OWN,
     .read = read_cpu,
     .form = "10",
     .type = "integer|false",
     .sentence = "Seconds of processor time that each of its processes may use; no limit but the timeout."},
    {.name = "processes",
     .kind = FIELD_OWN,
     .read = read_processes,
     .form = "100",
     .type = "integer|false",
     .sentence =
         "Processes that its user may have altogether, not only for it; no limit, and none for root."},
    {.name = "dashes",
     .kind = FIELD_FLAG,
     AT(dashes),
     .form = "true",
     .sentence = "true: an argument may begin with \"-\" where the command could take it for an option."},
};

const struct field_table declare_exec_table = {
    .of = "exec",
    .type = "toolgate.Exec",
    .sentence =
        "The command that is the tool. Without a name: its words, in which {name} is an argument; a word "
        "is left out where its argument is, and a table of words goes in as a whole or not at all.",
    .items = {"string|number", "toolgate.ExecGroup"},
    FIELD_TABLE(exec_fields)};

static const struct field group_fields[] = {
    {.name = "when",
     .kind = FIELD_TEXT,
     .offset = offsetof(struct exec_word, when),
     .form = "\"verbose\"",
     .sentence =
         "It goes in where this argument is there and not false; left out: where all that it names are."},
};

const struct field_table declare_exec_group_table = {
    .of = "exec[]",
    .type = "toolgate.ExecGroup",
    .sentence = "Words of a command that go in together or not at all: { \"--limit\", \"{limit}\" }.",
    .items = {"string|number"},
    FIELD_TABLE(group_fields)};

/* ---- words ------------------------------------------------------------------------------------------- */

static void add_word(struct declaration *d, int at, uint32_t group, struct str when)
{
    struct exec_spec *spec = spec_of(d);
    struct exec_word *words = (struct exec_word *)spec->words;
    if (lua_type(d->L, at) != LUA_TSTRING && lua_type(d->L, at) != LUA_TNUMBER)
        fields_wrong(d, NULL, "exec", at, "words, or groups of them: { \"--limit\", \"{limit}\" }");
    if (spec->word_count == EXEC_WORDS_MAX)
        fields_complain(d, NULL, "exec", "'exec': expected at most %u words", EXEC_WORDS_MAX);
    lua_pushvalue(d->L, at); /* a number would become a text in the policy's own table */
    struct str text = fields_text(d, -1);
    lua_pop(d->L, 1);
    if (text.len && memchr(text.at, '\0', text.len))
        fields_complain(d, NULL, "exec", "'exec': a word holds a NUL byte, which no command can be given");
    words[spec->word_count++] = (struct exec_word){text, group, when};
}

/* Named fields alone, which is what fields_read reads. */
static void push_named(struct declaration *d, int at)
{
    lua_State *L = d->L;
    lua_newtable(L);
    int named = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, at); lua_pop(L, 1)) {
        if (lua_type(L, -2) == LUA_TNUMBER && lua_tonumber(L, -2) >= 1 &&
            lua_tonumber(L, -2) <= (double)lua_objlen(L, at))
            continue;
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, named);
    }
}

static void read_group(struct declaration *d, int at, uint32_t group)
{
    struct exec_word head = {.group = group};
    push_named(d, at);
    fields_read(d, lua_gettop(d->L), "exec", group_fields, declare_exec_group_table.count, &head);
    for (size_t i = 1; i <= lua_objlen(d->L, at); i++) {
        lua_rawgeti(d->L, at, (int)i);
        add_word(d, lua_gettop(d->L), group, head.when);
        lua_pop(d->L, 1);
    }
    lua_pop(d->L, 1);
}

static void read_words(struct declaration *d, int at)
{
    struct exec_spec *spec = spec_of(d);
    spec->words = ARENA_ARRAY(d->arena, struct exec_word, EXEC_WORDS_MAX);
    for (size_t i = 1; i <= lua_objlen(d->L, at); i++) {
        lua_rawgeti(d->L, at, (int)i);
        int item = lua_gettop(d->L);
        if (lua_istable(d->L, item) && sandbox_mark(d->L, item) == MARK_NONE)
            read_group(d, item, (uint32_t)i);
        else
            add_word(d, item, 0, STR_NONE);
        lua_pop(d->L, 1);
    }
}

static bool any_names_argument(const struct exec_spec *spec)
{
    for (size_t i = 0; i < spec->word_count; i++)
        if (exec_argv_has_argument(spec->words[i].text) || spec->words[i].when.len)
            return true;
    return false;
}

/* Found from wherever the daemon was started, as files of json "…" are. */
static struct str beside(const struct declaration *d, struct str path)
{
    char folder[PATH_MAX];
    bool whole = !path.len || path.at[0] == '/' || str_starts(path, "${");
    if (whole || !d->set->folder || !realpath(d->set->folder, folder))
        return path;
    return arena_printf(d->arena, "%s/" STR_FMT, folder, STR_ARG(path));
}

static void find_beside(struct declaration *d)
{
    struct exec_spec *spec = spec_of(d);
    struct exec_word *program = (struct exec_word *)spec->words;
    if (spec->word_count && program->text.len && memchr(program->text.at, '/', program->text.len))
        program->text = beside(d, program->text);
    spec->cwd = beside(d, spec->cwd);
}

void declare_exec(struct declaration *d, const struct field *field, int at)
{
    struct exec_reading *reading = ARENA_NEW(d->arena, struct exec_reading);
    declare_must_be_table(d, NULL, field->name, at,
                          "{ \"command\", \"argument\", … }, for there is no shell");
    reading->spec = (struct exec_spec){.timeout_ms = EXEC_TIMEOUT_MS,
                                       .output_bytes = EXEC_OUTPUT_BYTES,
                                       .memory_bytes = EXEC_MEMORY_BYTES,
                                       .file_bytes = EXEC_FILE_BYTES};
    d->policy->exec = &reading->spec;
    read_words(d, at);
    push_named(d, at);
    fields_read(d, lua_gettop(d->L), "exec", exec_fields, declare_exec_table.count, reading);
    lua_settop(d->L, at);
    find_beside(d);
    if (!reading->stdin_given)
        reading->spec.on_stdin = !any_names_argument(&reading->spec);
}
