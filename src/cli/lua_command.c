/* What lua/cli gets from C, as the table `cli`: text for a terminal, users, what other commands are. */
#include "cli/lua_cli.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/embedded.h"
#include "base/printable.h"
#include "base/suggest.h"
#include "base/version.h"
#include "cli/term.h"
#include "policy/field.h"
#include "sandbox/lua_json.h"

#include <lualib.h>
#include <errno.h>
#include <pwd.h>
#include <unistd.h>

#define PATH_BYTES       64u
#define STDIN_READ_BYTES 65536u

int lua_cli_end(lua_State *L)
{
    lua_pushinteger(L, CLI_ERROR);
    return lua_error(L);
}

int lua_cli_fail(lua_State *L, const char *why)
{
    lua_pushnil(L);
    lua_pushstring(L, why);
    return 2;
}

int lua_cli_done(lua_State *L, bool done)
{
    int error = errno;
    lua_pushboolean(L, true);
    if (done)
        return 1;
    lua_cli_fail(L, strerror(error));
    lua_pushstring(L, error == EEXIST ? "exists" : error == ENOENT ? "missing" : NULL);
    return 3;
}

int lua_cli_push_functions(lua_State *L, const luaL_Reg *functions)
{
    lua_newtable(L);
    luaL_register(L, NULL, functions);
    return 1;
}

struct str lua_cli_str(lua_State *L, int at)
{
    struct str text;
    text.at = luaL_checklstring(L, at, &text.len);
    return text;
}

void lua_cli_push_str(lua_State *L, struct str text)
{
    lua_pushlstring(L, text.len ? text.at : "", text.len);
}

int lua_cli_push_buf(lua_State *L, struct buf *text)
{
    lua_cli_push_str(L, buf_view(text));
    buf_clear(text);
    return 1;
}

void lua_cli_set_fields(lua_State *L, const struct json_field *field)
{
    for (; field->key; field++) {
        if (field->kind == JSON_FIELD_NONE || (field->optional && !field->text.len))
            continue;
        if (field->kind == JSON_FIELD_NUM)
            lua_pushnumber(L, (lua_Number)field->number);
        else if (field->kind == JSON_FIELD_BOOL)
            lua_pushboolean(L, field->number != 0);
        else
            lua_cli_push_str(L, field->text);
        lua_setfield(L, -2, field->key);
    }
}

void lua_cli_append(lua_State *L)
{
    lua_rawseti(L, -2, (int)lua_objlen(L, -2) + 1);
}

void lua_cli_set_list(lua_State *L, const char *name, const struct str *items, size_t count)
{
    lua_newtable(L);
    for (size_t i = 0; i < count; i++) {
        lua_cli_push_str(L, items[i]);
        lua_cli_append(L);
    }
    lua_setfield(L, -2, name);
}

void *lua_cli_object(lua_State *L, size_t bytes, const char *class, const luaL_Reg *methods)
{
    void *object = memset(lua_newuserdata(L, bytes), 0, bytes);
    if (luaL_newmetatable(L, class)) {
        luaL_register(L, NULL, methods);
        lua_pushvalue(L, -1);
        lua_setfield(L, -2, "__index");
    }
    lua_setmetatable(L, -2);
    return object;
}

/* ---- JSON -------------------------------------------------------------------------- */

/* A table with the JSON of each member or item. */
static void push_parts(lua_State *L, const struct json *value)
{
    lua_newtable(L);
    for (uint32_t i = 0; i < json_child_count(value); i++) {
        struct buf text = {0};
        if (value->type == JSON_ARRAY)
            lua_pushinteger(L, (lua_Integer)i + 1);
        else
            lua_cli_push_str(L, value->members[i].key);
        json_write(&text, json_child(value, i));
        lua_cli_push_buf(L, &text);
        lua_rawset(L, -3);
    }
}

void lua_cli_push_answer(lua_State *L, const struct json *value)
{
    lua_json_push(L, value, LUA_JSON_ANSWER);
    push_parts(L, value);
}

int lua_cli_push_members(lua_State *L, const struct json *object)
{
    lua_newtable(L);
    for (uint32_t i = 0; json_is(object, JSON_OBJECT) && i < object->len; i++) {
        const struct json *value = json_get(object, object->members[i].key); /* of equal names the last */
        if (json_is(value, JSON_STRING)) {
            lua_cli_push_str(L, object->members[i].key);
            lua_cli_push_str(L, json_str(value));
            lua_rawset(L, -3);
        }
    }
    push_parts(L, object);
    return 2;
}

/* ---- text ------------------------------------------------------------------------- */

/* cli.line(text, most): on one line, as a terminal may show it; of at most this many bytes, else with "…". */
static int line(lua_State *L)
{
    struct buf out = {0};
    struct str text = lua_cli_str(L, 1);
    size_t most = lua_isnoneornil(L, 2) ? text.len : (size_t)luaL_checkinteger(L, 2);
    if (text.len <= most && printable_is_plain(text)) { /* nearly always: the string that Lua has */
        lua_settop(L, 1);
        return 1;
    }
    printable_write_cut(&out, text, most);
    return lua_cli_push_buf(L, &out);
}

/* cli.lines(text): as a terminal may show it, its lines stay lines. */
static int lines(lua_State *L)
{
    struct buf out = {0};
    printable_write_lines(&out, lua_cli_str(L, 1));
    return lua_cli_push_buf(L, &out);
}

/* cli.clip(text, columns): at most this many; and how many it takes. */
static int clip(lua_State *L)
{
    struct buf out = {0};
    unsigned used = term_clip(&out, lua_cli_str(L, 1), (unsigned)luaL_checkinteger(L, 2));
    lua_cli_push_buf(L, &out);
    lua_pushinteger(L, used);
    return 2;
}

/* cli.cut(text, bytes, end): at most this many, in whole characters; `end` is behind a text that was cut. */
static int cut(lua_State *L)
{
    struct str text = lua_cli_str(L, 1), end = lua_isnoneornil(L, 3) ? STR_NONE : lua_cli_str(L, 3);
    size_t most = (size_t)luaL_checkinteger(L, 2);
    if (text.len <= most) {
        lua_settop(L, 1);
        return 1;
    }
    lua_cli_push_str(L, str_cut(text, most - end.len));
    lua_cli_push_str(L, end);
    lua_concat(L, 2);
    return 1;
}

/* cli.fixed(number, digits): as C rounds it, half to even. Lua's own format rounds half up. */
static int fixed(lua_State *L)
{
    char text[400];
    snprintf(text, sizeof(text), "%.*f", (int)luaL_checkinteger(L, 2), luaL_checknumber(L, 1));
    lua_pushstring(L, text);
    return 1;
}

/* cli.suggest(name, names): the closest; nil: none is close. */
static int suggest(lua_State *L)
{
    struct str word = lua_cli_str(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    size_t count = lua_objlen(L, 2);
    struct str *names = lua_newuserdata(L, (count + 1) * sizeof(*names));
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, 2, (int)i + 1);
        names[i] = str_of(lua_tostring(L, -1)); /* the table keeps it */
        lua_pop(L, 1);
    }
    struct str near = suggest_closest(word, names, count);
    if (!near.len)
        return 0;
    lua_pushlstring(L, near.at, near.len);
    return 1;
}

/* cli.warn(text): an error on stderr, behind the command's name. */
static int warn(lua_State *L)
{
    term_error("%s", luaL_checkstring(L, 1));
    return 0;
}

/* ---- time and users --------------------------------------------------------------- */

/* cli.now(): milliseconds. */
static int now(lua_State *L)
{
    lua_pushnumber(L, (lua_Number)clock_wall_ms());
    return 1;
}

/* cli.user_name(uid): nil: none exists. cli.user_id(name) the same. */
static int user_name(lua_State *L)
{
    const struct passwd *entry = getpwuid((uid_t)luaL_checkinteger(L, 1));
    lua_pushstring(L, entry ? entry->pw_name : NULL);
    return 1;
}

static int user_id(lua_State *L)
{
    const struct passwd *entry = getpwnam(luaL_checkstring(L, 1));
    if (!entry)
        return 0;
    lua_pushinteger(L, (lua_Integer)entry->pw_uid);
    return 1;
}

/* ---- stdin ------------------------------------------------------------------------- */

bool lua_cli_read_stdin(struct arena *arena, struct str *out)
{
    struct buf text = buf_in(arena);
    ssize_t n;
    do {
        n = read(STDIN_FILENO, buf_reserve(&text, STDIN_READ_BYTES), STDIN_READ_BYTES);
        text.len += n > 0 ? (size_t)n : 0;
    } while ((n > 0 && text.len <= LUA_CLI_INPUT_BYTES) || (n < 0 && errno == EINTR));
    *out = buf_view(&text);
    if (n < 0)
        term_error("stdin: %s", strerror(errno));
    else if (n > 0)
        term_error("stdin: more than %u bytes", LUA_CLI_INPUT_BYTES);
    return n == 0;
}

/* cli.stdin(): all of it; an error ends the command. */
static int read_stdin(lua_State *L)
{
    struct arena *arena = arena_new();
    struct str text = STR_NONE;
    bool good = lua_cli_read_stdin(arena, &text);
    lua_cli_push_str(L, text);
    arena_free(arena);
    return good ? 1 : lua_cli_end(L);
}

/* ---- what other commands are ------------------------------------------------------- */

/* cli.commands(): the names of all. */
static int commands(lua_State *L)
{
    const struct command_table *table = command_table();
    lua_newtable(L);
    for (size_t i = 0; i < table->count; i++) {
        lua_pushstring(L, table->commands[i]->name);
        lua_cli_append(L);
    }
    return 1;
}

/* cli.fields(): the tables of fields of policies; the types of a table's items are its list. */
static int fields(lua_State *L)
{
    size_t count;
    struct arena *arena = arena_new();
    const struct field_table *const *tables = field_tables(&count);
    lua_newtable(L);
    for (size_t i = 0; i < count; i++) {
        lua_cli_push_table(L, FIELD_TEXT("of", tables[i]->name), FIELD_TEXT("type", tables[i]->type),
                           FIELD_TEXT("sentence", tables[i]->sentence));
        for (int n = 0; n < 2 && tables[i]->items[n]; n++) {
            lua_pushstring(L, tables[i]->items[n]);
            lua_cli_append(L);
        }
        lua_newtable(L);
        const struct field *field;
        for (size_t at = 0; (field = field_next(tables[i], &at));)
            lua_cli_append_table(
                L, FIELD_TEXT("name", field->name), FIELD_TEXT("form", field_form(arena, field)),
                FIELD_TEXT("type", field_type(arena, field)), FIELD_TEXT("sentence", field->sentence),
                FIELD_BOOL("required", field->required));
        lua_setfield(L, -2, "fields");
        lua_cli_append(L);
    }
    arena_free(arena);
    return 1;
}

/* cli.config_keys(): each key of the configuration with its type and default, a line each. */
static int config_keys(lua_State *L)
{
    struct buf out = {0};
    config_list_keys(&out);
    return lua_cli_push_buf(L, &out);
}

/* cli.embedded(name): a file of lua/ as text. */
static int embedded(lua_State *L)
{
    struct str text = embedded_text(luaL_checkstring(L, 1));
    lua_pushlstring(L, text.at, text.len);
    return 1;
}

/* ---- running one ------------------------------------------------------------------- */

/* A name with a folder is one of lua/, such as report/text. */
static struct str file_of(const char *name)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s%s.lua", strchr(name, '/') ? "" : "cli/", name);
    return embedded_text(path);
}

struct str lua_command_summary(const char *name)
{
    static const char mark[] = "summary = \"";
    struct str text = file_of(name);
    const char *at = text.len ? memmem(text.at, text.len, mark, sizeof(mark) - 1) : NULL;
    if (!at)
        return STR_NONE;
    text = str_from(text, (size_t)(at - text.at) + sizeof(mark) - 1);
    return str_split(&text, '"');
}

/* require "NAME": lua/cli/NAME.lua, once; or "FOLDER/NAME". */
static int load_file(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    struct str text = file_of(name);
    if (luaL_loadbuffer(L, text.at, text.len,
                        lua_pushfstring(L, "=lua/%s%s.lua", strchr(name, '/') ? "" : "cli/", name)))
        return lua_error(L);
    return 1;
}

static const luaL_Reg functions[] = {
    {"line", line},           {"lines", lines},
    {"clip", clip},           {"cut", cut},
    {"fixed", fixed},         {"suggest", suggest},
    {"warn", warn},           {"now", now},
    {"user_name", user_name}, {"user_id", user_id},
    {"stdin", read_stdin},    {"commands", commands},
    {"fields", fields},       {"config_keys", config_keys},
    {"embedded", embedded},   {"serve", lua_serve},
    {"bridge", lua_connect},  {"spawner", lua_spawner},
    {"replay", lua_replay},   {"transcript", lua_transcript_functions},
    {"hook", lua_hook},       {"lint", lua_lint},
    {"test", lua_test},       {0},
};

/* cli.NAME: a command needs few of them, so each is made when it is named. */
static int find_function(lua_State *L)
{
    static const luaL_Reg *const all[] = {
        functions,          lua_client_functions, lua_local_functions,   lua_schema_functions,
        lua_host_functions, lua_log_functions,    lua_terminal_functions};
    const char *name = luaL_checkstring(L, 2);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        for (const luaL_Reg *row = all[i]; row->name; row++)
            if (strcmp(row->name, name) == 0) {
                lua_pushcfunction(L, row->func);
                lua_pushvalue(L, -1);
                lua_setfield(L, 1, name);
                return 1;
            }
    return 0;
}

static void set_up(lua_State *L)
{
    static const char *const colours[] = {
        [TERM_PLAIN] = "plain", [TERM_BOLD] = "bold",   [TERM_DIM] = "dim",
        [TERM_RED] = "red",     [TERM_GREEN] = "green", [TERM_YELLOW] = "yellow"};
    luaL_openlibs(L);
    lua_json_keep_order(L);
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, find_function);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    lua_json_constants(L);
    lua_cli_set(L, FIELD_TEXT("program", command_table()->program), FIELD_TEXT("version", TOOLGATE_VERSION),
                FIELD_NUM("uid", getuid()), FIELD_BOOL("is_terminal", isatty(STDOUT_FILENO)),
                FIELD_BOOL("stderr_is_terminal", isatty(STDERR_FILENO)));
    for (size_t i = 0; i < sizeof(colours) / sizeof(colours[0]); i++)
        lua_cli_set(L, FIELD_TEXT(colours[i], term_colour((enum term_colour)i)));
    lua_setglobal(L, "cli");
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "loaders");
    lua_pushcfunction(L, load_file);
    lua_rawseti(L, -2, 1);
    lua_settop(L, 0);
}

/* require "options" (name, arguments): the exit code, or an error that is one. */
static int run_file(lua_State *L)
{
    char **argv = lua_touserdata(L, 1);
    set_up(L);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "options");
    lua_call(L, 1, 1);
    lua_pushstring(L, command_running()->name);
    lua_newtable(L);
    for (int i = 0; argv[i]; i++) {
        lua_pushstring(L, argv[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_call(L, 2, 1);
    return 1;
}

int lua_command_run(const struct command *command, int argc, char **argv)
{
    lua_State *L = luaL_newstate();
    int status = CLI_ERROR;
    (void)command, (void)argc;
    if (!L) {
        term_error("no memory");
        return status;
    }
    lua_pushcfunction(L, run_file);
    lua_pushlightuserdata(L, argv + 1);
    lua_pcall(L, 1, 1, 0);
    if (lua_type(L, -1) == LUA_TNUMBER)
        status = (int)lua_tointeger(L, -1);
    else
        term_error("%s", lua_tostring(L, -1));
    lua_close(L);
    return status;
}
