/* What runs a tool outside of Lua. exec = { "jq", "-r", "{filter}" } is a command (upstream/exec/exec.c),
 * whose words are errors if they are dangerous or useless; http = { "GET https://…/{id}" } is an HTTP
 * endpoint (upstream/http/http_tool.h). */
#include "policy/declare.h"
#include "base/arena.h"
#include "json/build.h"
#include "policy/source_location.h"
#include "upstream/exec/exec.h"
#include "upstream/http/http_tool.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#define HTTP_HEADERS_MAX   50u
#define HTTP_TIMEOUT_MAX_S 3600u
#define EXEC_ENV_MAX       100u
#define EXEC_EXITS_MAX     256u
#define EXEC_TIMEOUT_MAX_S 3600u
#define EXEC_OUTPUT_MAX    67108864u

/* Const once declare_exec has made it. */
static struct exec_spec *spec_of(struct declaration *d)
{
    return (struct exec_spec *)d->policy->exec;
}

static void read_env(struct declaration *d, const struct field *field, int at)
{
    const struct name_values *env = &spec_of(d)->env;
    field_read_pairs(d, field, at);
    for (size_t i = 0; i < env->count; i++) {
        struct str name = env->list[i].name;
        bool valid = name.len && !isdigit((unsigned char)name.at[0]);
        for (size_t n = 0; n < name.len; n++)
            valid &= isalnum((unsigned char)name.at[n]) || name.at[n] == '_';
        if (!valid)
            field_error(d, field->name, "'exec.env': '" STR_FMT "' cannot be a variable's name",
                        STR_ARG(str_cut(name, 80)));
    }
}

static void read_exit(struct declaration *d, const struct field *field, int at)
{
    static const struct field meaning = {.kind = FIELD_CHOICE,
                                         CHOICES("refused ok transient broken", EXEC_EXIT_REFUSED)};
    struct exec_exit *list = ARENA_ARRAY(d->scratch, struct exec_exit, EXEC_EXITS_MAX);
    struct exec_spec *spec = spec_of(d);
    field_require_table(d, field->name, at, "{ [1] = \"ok\" }");
    for (lua_pushnil(d->L); lua_next(d->L, at); lua_pop(d->L, 1)) {
        double code = lua_type(d->L, -2) == LUA_TNUMBER ? lua_tonumber(d->L, -2) : -1;
        struct exec_exit *one = &list[spec->exit_count++];
        struct json word = json_string(sandbox_string(d->L, -1));
        if (!(code >= 0 && code <= 255 && code == floor(code)))
            field_mismatch(d, field->name, lua_gettop(d->L) - 1, "an exit code from 0 to 255: [1] = \"ok\"");
        if (field_store(&meaning, &word, d->scratch, &one->means))
            field_mismatch(d, field->name, lua_gettop(d->L),
                           "one of ok, refused, transient, broken for each code");
        one->code = (uint32_t)code;
    }
    spec->exits = ARENA_KEEP(d->arena, list, spec->exit_count);
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

/* Fields of confine_spec; the pairs of list and count are those of FIELD_STRINGS. */
#define IN_SANDBOX(member) .offset = offsetof(struct confine_spec, member)
static const struct field sandbox_fields[] = {
    {"read", FIELD_STRINGS, "{ \"/srv/orders\" }", NULL,
     "Files and folders that it may read besides system libraries. Default: everything but toolgate's state "
     "and sockets.",
     IN_SANDBOX(read), .given = offsetof(struct confine_spec, reads_given) + 1},
    {"write", FIELD_STRINGS, "{ \"/srv/orders/new\" }", NULL,
     "Files and folders that it may read and change. Default: none.", IN_SANDBOX(write)},
    {"network", FIELD_BOOL, "true", NULL, "Whether it may open IP sockets. Default: false.",
     IN_SANDBOX(network)},
    {"best_effort", FIELD_BOOL, "true", NULL,
     "Run it without what the kernel lacks. Default: false, it does not run.", IN_SANDBOX(best_effort)},
};

const struct field_table declare_exec_sandbox_table =
    FIELD_TABLE_OF("exec.sandbox", "toolgate.ExecSandbox",
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
    field_read_table(d, at, "exec.sandbox", &declare_exec_sandbox_table, 0, sandbox);
    read_sandbox_paths(d, "read", &sandbox->read);
    read_sandbox_paths(d, "write", &sandbox->write);
}

/* The spec, and whether `stdin` was declared; if not, the words decide. */
struct exec_reading {
    struct exec_spec spec; /* first */
    bool stdin_given;
};

#define AT(member) .offset = offsetof(struct exec_spec, member)
#define COUNT      RANGE(1, 1000000), EXPECTED("a whole number from 1"), .or_false = true
#define MIB        RANGE(1, 100000000), EXPECTED("MiB, a whole number from 1"), .or_false = true

static const struct field exec_fields[] = {
    {"stdin", FIELD_BOOL, NULL, NULL,
     "Whether the arguments go in as one line of JSON. Default: if no word names an argument.", AT(on_stdin),
     .given = offsetof(struct exec_reading, stdin_given) + 1},
    {"output", FIELD_CHOICE, NULL, NULL,
     "The format of stdout. auto: JSON if it parses, else a string; json: anything else is broken; lines: "
     "one JSON value per line, as a list; text: a string.",
     AT(output), CHOICES("auto json lines text", 0)},
    {"exit", FIELD_CUSTOM, "{ [1] = \"ok\", [75] = \"transient\" }",
     "table<integer, \"ok\"|\"refused\"|\"transient\"|\"broken\">",
     "The meaning of exit codes. Default: 0 is ok, every other code is refused.", READ(read_exit)},
    {"cwd", FIELD_STRING, "\"/srv/orders\"", NULL,
     "The working directory; a relative one is relative to the policy. Default: the daemon's.", AT(cwd)},
    {"env", FIELD_CUSTOM, "{ API_TOKEN = \"${file:/run/secrets/token}\" }", "table<string, string>",
     "Environment variables besides PATH, HOME, LANG, TZ and TERM; ${NAME} is from the daemon's environment, "
     "${file:/path} from a file.",
     AT(env), .most = EXEC_ENV_MAX, READ(read_env)},
    {"sandbox", FIELD_CUSTOM, "{ read = { \"/srv/orders\" }, network = false }",
     "toolgate.ExecSandbox|boolean|\"best_effort\"",
     "Confines the command by Landlock and seccomp. Default: it may do what the daemon may.",
     READ(read_sandbox)},
    {"timeout", FIELD_DURATION, "\"10s\"", "string|number",
     "How long a call may take; then toolgate kills the command and all that it started. Default 30 s.",
     AT(timeout_ms), RANGE(1, EXEC_TIMEOUT_MAX_S * 1000),
     EXPECTED("\"10s\", \"PT10S\" or seconds, from a millisecond to an hour")},
    {"max_output", FIELD_WHOLE, "1000000", "integer",
     "Bytes of stdout; toolgate kills a command that writes more. Default 4194304.", AT(output_bytes),
     RANGE(1, EXEC_OUTPUT_MAX), EXPECTED("bytes, a whole number from 1 to 67108864")},
    {"memory_mb", FIELD_MIB, "512", "integer|false",
     "MiB of memory that each of its processes may write to. Default 2048.", AT(memory_bytes), MIB},
    {"file_mb", FIELD_MIB, "100", "integer|false", "MiB of each file that it writes. Default 1024.",
     AT(file_bytes), MIB},
    {"cpu_s", FIELD_WHOLE, "10", "integer|false",
     "Seconds of processor time for each of its processes. Default: only the timeout.", AT(cpu_s), COUNT},
    {"processes", FIELD_WHOLE, "100", "integer|false",
     "Processes that its user may have, counting those of other programs. Default: no limit; root has none.",
     AT(processes), COUNT},
    {"dashes", FIELD_BOOL, "true", NULL,
     "true: an argument may begin with \"-\" where the command could read it as an option.", AT(dashes)},
};

const struct field_table declare_exec_table = FIELD_TABLE_OF(
    "exec", "toolgate.Exec",
    "The command that is the tool. Items without a name are its words, in which {name} is an argument. A "
    "word whose argument is left out is left out, too; a table of words goes in as a whole or not at all.",
    exec_fields, ITEMS("string|number", "toolgate.ExecGroup"));

static const struct field group_fields[] = {
    {"when", FIELD_STRING, "\"verbose\"", NULL,
     "The group goes in if this argument is given and not false. Default: if all arguments that it names "
     "are.",
     .offset = offsetof(struct exec_word, when)},
};

const struct field_table declare_exec_group_table =
    FIELD_TABLE_OF("exec[]", "toolgate.ExecGroup",
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
    spec->words = ARENA_ARRAY(d->scratch, struct exec_word, EXEC_WORDS_MAX);
    for (size_t i = 1; i <= lua_objlen(d->L, at); i++) {
        table_push_item(d->L, at, i);
        int item = lua_gettop(d->L);
        struct exec_word head = {.group = (uint32_t)i};
        bool is_group = lua_istable(d->L, item) && sandbox_mark(d->L, item) == MARK_NONE;
        size_t words = is_group ? lua_objlen(d->L, item) : 0;
        if (is_group)
            field_read_table(d, item, "exec", &declare_exec_group_table, words, &head);
        else
            add_word(d, item, 0, STR_NONE);
        for (size_t n = 1; n <= words; n++) {
            lua_rawgeti(d->L, item, (int)n);
            add_word(d, lua_gettop(d->L), head.group, head.when);
            lua_pop(d->L, 1);
        }
        lua_pop(d->L, 1);
    }
    spec->words = ARENA_KEEP(d->arena, spec->words, spec->word_count);
    field_read_table(d, at, "exec", &declare_exec_table, lua_objlen(d->L, at), reading);
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

/* ---- checks of exec, after all fields --------------------------------------- */

/* Points at the word's own line. */
static void complain_word(struct declaration *d, size_t item, const char *text)
{
    d->line = location_of_items(d->scratch, d->tokens, "exec", item + 1)[item];
    field_error(d, "exec", "'exec': %s", text);
}

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
        struct str one = str_split(&rest, ' ');
        if (name.len >= one.len && str_eq((struct str){name.at, one.len}, one) &&
            (name.len == one.len || name.at[one.len] == '.'))
            return true;
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

/* The index of the program's text, from `at`, the interpreter, on; word_count: none exists. */
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

/* Finds the program of each interpreter among the words, and checks that no argument is in it. */
static void check_programs(struct declaration *d, bool is_program[EXEC_WORDS_MAX])
{
    static const char starters[] = "env nice ionice timeout nohup setsid stdbuf time sudo doas xargs chroot";
    struct exec_spec *spec = spec_of(d);
    size_t count = is_one_of(last_part(spec->words[0].text), starters) ? spec->word_count : 1;
    const size_t rows = sizeof(interpreters) / sizeof(interpreters[0]);
    for (size_t n = 0; n < count * rows; n++) {
        const struct interpreter *one = &interpreters[n % rows];
        size_t at = n / rows;
        struct str name = last_part(spec->words[at].text);
        size_t text = is_one_of(name, one->names) ? program_text(spec, at, one) : spec->word_count;
        if (text == spec->word_count)
            continue;
        is_program[text] = true;
        if (one->ends_options)
            spec->plain_from = (uint32_t)text + 1;
        if (exec_argv_has_argument(spec->words[text].text))
            field_error(d, "exec",
                        "'exec': an argument inside the program that " STR_FMT
                        " runs could run commands of its own: give it as a word behind the program, where "
                        "that reads it as \"$1\", sys.argv[1] or $name; for the text itself write {{name}}",
                        STR_ARG(name));
    }
    if (!is_one_of(last_part(spec->words[0].text), "ssh"))
        return;
    for (size_t i = 1; i < spec->word_count; i++)
        if (exec_argv_has_argument(spec->words[i].text))
            field_error(
                d, "exec",
                "'exec': ssh hands its words to a shell on the other host, where an argument could run "
                "commands of its own: send the arguments on stdin (stdin = true)");
}

static void check_name(struct declaration *d, struct str path)
{
    const struct json *schema = d->policy->schema, *properties;
    struct str rest = path;
    for (bool inner = true; inner && (properties = declare_properties(schema));) {
        if (json_get(properties, rest)) /* a name with a dot of its own */
            return;
        inner = str_has(rest, '.');
        schema = json_get(properties, str_split(&rest, '.'));
        if (!schema)
            declare_unknown_argument(
                d, "exec", properties, path,
                arena_printf(d->arena, "; for the text itself write {{" STR_FMT "}}", STR_ARG(path)).at);
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
    if (!spec->word_count)
        field_error(d, "exec", "'exec': expected { \"command\", \"argument\", … }, got no word");
    if (spec->words[0].group || !spec->words[0].text.len)
        complain_word(d, 0, "the first word must be the command");
    if (exec_argv_has_argument(spec->words[0].text))
        complain_word(d, 0,
                      "the command cannot be named by an argument: which one runs is not a model's choice");
    check_programs(d, is_program);
    for (size_t i = 0; i < spec->word_count; i++) { /* "${API_TOKEN}" outside of scripts */
        struct str word = spec->words[i].text;
        if (!is_program[i] && word.len && memmem(word.at, word.len, "${", 2))
            field_error(d, "exec",
                        "'exec': \"" STR_FMT
                        "\" is not filled in, as a command line can be read by everybody "
                        "on the host: put it into exec.env, which the command reads",
                        STR_ARG(str_cut(word, 80)));
    }
    check_groups(d);
    for (size_t i = 0; i < spec->word_count; i++)
        for (struct str rest = spec->words[i].text; exec_argv_next_piece(&rest, &piece);)
            if (piece.kind == EXEC_PIECE_ARGUMENT)
                check_name(d, piece.text);
}

/* ---- http -------------------------------------------------------------------- */

#define HTTP(member) .offset = offsetof(struct http_spec, member)

static const struct field http_fields[] = {
    {"headers", FIELD_CUSTOM, "{ Authorization = \"Bearer ${API_TOKEN}\" }", "table<string, string>",
     "Headers of each request; ${NAME} is from the environment, ${file:/path} from a file, {name} an "
     "argument.",
     HTTP(headers), .most = HTTP_HEADERS_MAX, READ(field_read_pairs)},
    {"query", FIELD_STRINGS, "{ \"page\" }", NULL,
     "Arguments that go into the query. With GET, HEAD and DELETE all others do, too; with other methods the "
     "others are the JSON body.",
     HTTP(query)},
    {"timeout", FIELD_DURATION, "\"10s\"", "string|number",
     "How long a call may take. Default: the upstream's, or 30 s.", HTTP(timeout_ms),
     RANGE(1, HTTP_TIMEOUT_MAX_S * 1000),
     EXPECTED("\"10s\", \"PT10S\" or seconds, from a millisecond to an hour")},
    {"pick", FIELD_STRING, "\"data.items\"", NULL,
     "The part of the response that is the result. Default: the whole.", HTTP(pick)},
    {"ca_file", FIELD_STRING, "\"/etc/ssl/internal.pem\"", NULL,
     "Certificates that are trusted instead of the system's.", HTTP(ca_file)},
};

const struct field_table declare_http_table = FIELD_TABLE_OF(
    "http", "toolgate.Http",
    "The HTTP endpoint that is the tool. First, without a name: method and address, \"GET https://…\", in "
    "which {name} is an argument; only a path, from \"/\" on, if the policy names an upstream.",
    http_fields, ITEMS("string"));

/* "GET https://api.example.com/v1/issues/{id}" */
static void read_line(struct declaration *d, struct http_spec *spec, int at)
{
    static const char expected[] = "\"METHOD address\", as \"GET https://api.example.com/v1/issues/{id}\"";
    if (lua_type(d->L, at) != LUA_TSTRING)
        field_mismatch(d, "http", at, expected);
    struct str line = str_trim(field_string(d, at));
    const char *space = memchr(line.at, ' ', line.len);
    if (!space)
        field_error(d, "http", "'http': expected %s, got \"" STR_FMT "\"", expected,
                    STR_ARG(str_cut(line, 80)));
    spec->method = (struct str){line.at, (size_t)(space - line.at)};
    spec->url = str_trim(str_from(line, spec->method.len));
}

void declare_http(struct declaration *d, const struct field *field, int at)
{
    struct http_spec *spec = ARENA_NEW(d->set->arena, struct http_spec);
    d->policy->http = spec;
    if (lua_type(d->L, at) == LUA_TSTRING) {
        read_line(d, spec, at);
        return;
    }
    field_require_table(d, field->name, at, "{ \"GET https://…\", headers = { … } }");
    lua_rawgeti(d->L, at, 1);
    read_line(d, spec, lua_gettop(d->L));
    field_read_table(d, at, "http", &declare_http_table, 1, spec);
    lua_settop(d->L, at);
}

void declare_check_http(struct declaration *d)
{
    const struct http_spec *spec = d->policy->http;
    struct why why = {0};
    struct str name;
    if (!spec)
        return;
    if (http_tool_check(spec, d->policy->upstream.len > 0, &why) != OK)
        field_error(d, "http", "'http': %s", why.text);
    const struct json *schema = d->policy->schema, *properties = declare_properties(schema);
    for (size_t i = 0; http_tool_argument(spec, i, &name); i++) {
        if (!schema)
            field_error(d, "http",
                        "'http' needs the argument '" STR_FMT
                        "' for its address, and the tool has no schema that requires it",
                        STR_ARG(name));
        if (properties && !json_get(properties, name))
            declare_unknown_argument(d, "http", properties, name, "");
        if (properties && !json_array_has(json_get_text(schema, "required"), name))
            field_error(d, "http",
                        "'http' needs the argument '" STR_FMT
                        "' for its request, and the schema does not require it",
                        STR_ARG(name));
    }
    for (size_t i = 0; properties && i < spec->query_count; i++)
        if (!json_get(properties, spec->query[i]))
            declare_unknown_argument(d, "http", properties, spec->query[i], "");
}
