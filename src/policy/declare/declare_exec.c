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

/* Const once declare_exec has made it. */
static struct exec_spec *spec_of(struct declaration *d)
{
    return (struct exec_spec *)d->policy->exec;
}

static bool is_variable(struct str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!isalnum((unsigned char)name.at[i]) && name.at[i] != '_')
            return false;
    return name.len && !isdigit((unsigned char)name.at[0]);
}

static void read_env(struct declaration *d, const struct field *field, int at)
{
    struct name_values *env = &spec_of(d)->env;
    field_name_values(d, field, at, EXEC_ENV_MAX, env);
    for (size_t i = 0; i < env->count; i++)
        if (!is_variable(env->list[i].name))
            field_error(d, field->name, "'exec.env': '" STR_FMT "' cannot be a variable's name",
                        STR_ARG(str_cut(env->list[i].name, 80)));
}

static void read_mib(struct declaration *d, const struct field *field, int at)
{
    static const char expected[] = "MiB, a whole number from 1, or false for no limit";
    *FIELD_INTO(d, field, uint64_t) =
        field_is_false(d, at) ? 0 : (uint64_t)(MIB * field_whole_number(d, field, at, 1, 1e8, expected));
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
    field_mismatch(d, "exit", at, "one of ok, refused, transient, broken for each code");
}

static void read_exit(struct declaration *d, const struct field *field, int at)
{
    struct exec_exit *list = ARENA_ARRAY(d->arena, struct exec_exit, EXEC_EXITS_MAX);
    struct exec_spec *spec = spec_of(d);
    field_require_table(d, field->name, at, "{ [1] = \"ok\" }");
    spec->exits = list;
    for (lua_pushnil(d->L); lua_next(d->L, at); lua_pop(d->L, 1)) {
        double code = lua_type(d->L, -2) == LUA_TNUMBER ? lua_tonumber(d->L, -2) : -1;
        if (!(code >= 0 && code <= 255 && code == floor(code)))
            field_mismatch(d, field->name, lua_gettop(d->L) - 1, "an exit code from 0 to 255: [1] = \"ok\"");
        list[spec->exit_count++] = (struct exec_exit){(uint32_t)code, means_of(d, lua_gettop(d->L))};
    }
}

static struct str beside(const struct declaration *d, struct str path);

/* Fields of confine_spec; the pairs of list and count are those of FIELD_STRINGS. */
#define IN_SANDBOX(member) .offset = offsetof(struct confine_spec, member)
static const struct field sandbox_fields[] = {
    {"read", FIELD_STRINGS, "{ \"/srv/orders\" }", NULL,
     "Files and folders that it may read besides system libraries. Default: everything but toolgate's state "
     "and "
     "sockets.",
     IN_SANDBOX(read), .given = offsetof(struct confine_spec, reads_given) + 1},
    {"write", FIELD_STRINGS, "{ \"/srv/orders/new\" }", NULL,
     "Files and folders that it may read and change. Default: none.", IN_SANDBOX(write)},
    {"network", FIELD_BOOL, "true", NULL, "Whether it may open IP sockets. Default: false.",
     IN_SANDBOX(network)},
    {"best_effort", FIELD_BOOL, "true", NULL,
     "Run it without what the kernel lacks. Default: false, it does not run.", IN_SANDBOX(best_effort)},
};

const struct field_table declare_exec_sandbox_table =
    FIELD_TABLE("exec.sandbox", "toolgate.ExecSandbox",
                "What the command may reach. Relative paths are relative to the policy.", sandbox_fields);

static void read_sandbox_paths(struct declaration *d, const char *name, struct confine_paths *paths)
{
    struct str *list = (struct str *)paths->list;
    if (paths->count > CONFINE_PATHS_MAX)
        field_error(d, name, "'exec.sandbox.%s': expected at most %u paths", name, CONFINE_PATHS_MAX);
    for (size_t i = 0; i < paths->count; i++) {
        if (!list[i].len || str_starts(list[i], "~") || str_starts(list[i], "${") ||
            memchr(list[i].at, '\0', list[i].len))
            field_error(d, name,
                        "'exec.sandbox.%s': expected paths of files and folders, without '~' and ${NAME}",
                        name);
        list[i] = arena_dup(d->arena, beside(d, list[i]));
    }
}

static void read_sandbox(struct declaration *d, const struct field *field, int at)
{
    struct confine_spec *sandbox = &spec_of(d)->sandbox;
    const char *word = lua_type(d->L, at) == LUA_TSTRING ? lua_tostring(d->L, at) : "";
    bool effort = strcmp(word, "best_effort") == 0;
    *sandbox = (struct confine_spec){.on = !lua_isboolean(d->L, at) || lua_toboolean(d->L, at),
                                     .best_effort = effort};
    if (effort || lua_isboolean(d->L, at))
        return;
    field_require_table(d, field->name, at, "{ read = { \"/srv/orders\" } }, true or \"best_effort\"");
    field_read_table(d, at, "exec.sandbox", &declare_exec_sandbox_table, sandbox);
    read_sandbox_paths(d, "read", &sandbox->read);
    read_sandbox_paths(d, "write", &sandbox->write);
}

/* The spec, and whether `stdin` was declared; if not, the words decide. */
struct exec_reading {
    struct exec_spec spec; /* first */
    bool stdin_given;
};

#define AT(member) .offset = offsetof(struct exec_spec, member)
#define COUNT      RANGE(1, 1000000u, "a whole number from 1, or false for no limit")

static const struct field exec_fields[] = {
    {"stdin", FIELD_BOOL, NULL, NULL,
     "Whether the arguments go in as one line of JSON. Default: if no word names an argument.", AT(on_stdin),
     .given = offsetof(struct exec_reading, stdin_given) + 1},
    {"output", FIELD_CHOICE, NULL, NULL,
     "The format of stdout. auto: JSON if it parses, else a string; json: anything else is broken; lines: "
     "one "
     "JSON value per line, as a list; text: a string.",
     AT(output), CHOICES("auto json lines text", 0)},
    {"exit", FIELD_CUSTOM, "{ [1] = \"ok\", [75] = \"transient\" }",
     "table<integer, \"ok\"|\"refused\"|\"transient\"|\"broken\">",
     "The meaning of exit codes. Default: 0 is ok, every other code is refused.", READ(read_exit)},
    {"cwd", FIELD_STRING, "\"/srv/orders\"", NULL,
     "The working directory; a relative one is relative to the policy. Default: the daemon's.", AT(cwd)},
    {"env", FIELD_CUSTOM, "{ API_TOKEN = \"${file:/run/secrets/token}\" }", "table<string, string>",
     "Environment variables besides PATH, HOME, LANG, TZ and TERM; ${NAME} is from the daemon's environment, "
     "${file:/path} from a file.",
     READ(read_env)},
    {"sandbox", FIELD_CUSTOM, "{ read = { \"/srv/orders\" }, network = false }",
     "toolgate.ExecSandbox|boolean|\"best_effort\"",
     "Confines the command by Landlock and seccomp. Default: it may do what the daemon may.",
     READ(read_sandbox)},
    {"timeout", FIELD_DURATION, "\"10s\"", "string|number",
     "How long a call may take; then toolgate kills the command and all that it started. Default 30 s.",
     AT(timeout_ms),
     RANGE(0, EXEC_TIMEOUT_MAX_S, "\"10s\", \"PT10S\" or seconds, from a millisecond to an hour")},
    {"max_output", FIELD_WHOLE, "1000000", "integer",
     "Bytes of stdout; toolgate kills a command that writes more. Default 4194304.", AT(output_bytes),
     RANGE(1, EXEC_OUTPUT_MAX, "bytes, a whole number from 1 to 67108864")},
    {"memory_mb", FIELD_CUSTOM, "512", "integer|false",
     "MiB of memory that each of its processes may write to. Default 2048.", AT(memory_bytes),
     READ(read_mib)},
    {"file_mb", FIELD_CUSTOM, "100", "integer|false", "MiB of each file that it writes. Default 1024.",
     AT(file_bytes), READ(read_mib)},
    {"cpu_s", FIELD_LIMIT, "10", "integer|false",
     "Seconds of processor time for each of its processes. Default: only the timeout.", AT(cpu_s), COUNT},
    {"processes", FIELD_LIMIT, "100", "integer|false",
     "Processes that its user may have, counting those of other programs. Default: no limit; root has none.",
     AT(processes), COUNT},
    {"dashes", FIELD_BOOL, "true", NULL,
     "true: an argument may begin with \"-\" where the command could read it as an option.", AT(dashes)},
};

const struct field_table declare_exec_table = FIELD_TABLE(
    "exec", "toolgate.Exec",
    "The command that is the tool. Items without a name are its words, in which {name} is an argument. A "
    "word "
    "whose argument is left out is left out, too; a table of words goes in as a whole or not at all.",
    exec_fields, ITEMS("string|number", "toolgate.ExecGroup"));

static const struct field group_fields[] = {
    {"when", FIELD_STRING, "\"verbose\"", NULL,
     "The group goes in if this argument is given and not false. Default: if all arguments that it names "
     "are.",
     .offset = offsetof(struct exec_word, when)},
};

const struct field_table declare_exec_group_table =
    FIELD_TABLE("exec[]", "toolgate.ExecGroup",
                "Words of a command that go in together or not at all: { \"--limit\", \"{limit}\" }.",
                group_fields, ITEMS("string|number"));

static void add_word(struct declaration *d, int at, uint32_t group, struct str when)
{
    struct exec_spec *spec = spec_of(d);
    struct exec_word *words = (struct exec_word *)spec->words;
    if (lua_type(d->L, at) != LUA_TSTRING && lua_type(d->L, at) != LUA_TNUMBER)
        field_mismatch(d, "exec", at, "words, or groups of them: { \"--limit\", \"{limit}\" }");
    if (spec->word_count == EXEC_WORDS_MAX)
        field_error(d, "exec", "'exec': expected at most %u words", EXEC_WORDS_MAX);
    lua_pushvalue(d->L, at); /* lua_tolstring turns a number into a string in place */
    struct str text = field_string(d, -1);
    lua_pop(d->L, 1);
    if (text.len && memchr(text.at, '\0', text.len))
        field_error(d, "exec", "'exec': a word holds a NUL byte, which no command can be given");
    words[spec->word_count++] = (struct exec_word){text, group, when};
}

static void read_group(struct declaration *d, int at, uint32_t group)
{
    struct exec_word head = {.group = group};
    field_read_named(d, at, "exec", &declare_exec_group_table, lua_objlen(d->L, at), &head);
    for (size_t i = 1; i <= lua_objlen(d->L, at); i++) {
        lua_rawgeti(d->L, at, (int)i);
        add_word(d, lua_gettop(d->L), group, head.when);
        lua_pop(d->L, 1);
    }
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

/* Found from wherever the daemon was started, as files of json "…" are. */
static struct str beside(const struct declaration *d, struct str path)
{
    char folder[PATH_MAX];
    bool whole = !path.len || path.at[0] == '/' || str_starts(path, "${");
    if (whole || !d->set->folder || !realpath(d->set->folder, folder))
        return path;
    return arena_printf(d->arena, "%s/" STR_FMT, folder, STR_ARG(path));
}

void declare_exec(struct declaration *d, const struct field *field, int at)
{
    struct exec_reading *reading = ARENA_NEW(d->arena, struct exec_reading);
    struct exec_spec *spec = &reading->spec;
    field_require_table(d, field->name, at, "{ \"command\", \"argument\", … }, for there is no shell");
    *spec = (struct exec_spec){.timeout_ms = EXEC_TIMEOUT_MS,
                               .output_bytes = EXEC_OUTPUT_BYTES,
                               .memory_bytes = EXEC_MEMORY_BYTES,
                               .file_bytes = EXEC_FILE_BYTES};
    d->policy->exec = spec;
    read_words(d, at);
    field_read_named(d, at, "exec", &declare_exec_table, lua_objlen(d->L, at), reading);
    lua_settop(d->L, at);
    struct exec_word *program = (struct exec_word *)spec->words;
    if (spec->word_count && program->text.len && memchr(program->text.at, '/', program->text.len))
        program->text = beside(d, program->text);
    spec->cwd = beside(d, spec->cwd);
    if (reading->stdin_given)
        return;
    spec->on_stdin = true; /* unless a word names an argument */
    for (size_t i = 0; i < spec->word_count; i++)
        spec->on_stdin &= !exec_argv_has_argument(spec->words[i].text) && !spec->words[i].when.len;
}
