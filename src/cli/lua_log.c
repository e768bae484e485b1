/* The decision log for lua/cli. A log may have millions of lines, and a filter drops most of them after a
 * look at one or two members: so Lua asks a record for what it needs, and gets the whole only of one that it
 * prints. */
#include "base/arena.h"
#include "base/date.h"
#include "base/printable.h"
#include "cli/lua_cli.h"
#include "gate/verdict.h"
#include "replay/recording.h"
#include "sandbox/lua_json.h"
#include "server/state_dir.h"

#include <lualib.h>
#include <stdio.h>

#define LOG "toolgate.log"

/* Its environment in Lua keeps the names of the files and `wait` alive. */
struct log {
    lua_State *L;
    struct recording *recording;
    struct recording_line line;
};

static struct log *check_log(lua_State *L)
{
    return luaL_checkudata(L, 1, LOG);
}

/* ---- one record ---------------------------------------------------------------------- */

/* The member that the second argument names, of the record or of its object that the third one names. */
static const struct json *member_at(lua_State *L)
{
    const struct json *object = check_log(L)->line.value;
    if (!lua_isnoneornil(L, 3))
        object = json_get(object, lua_cli_str(L, 3));
    return json_get(object, lua_cli_str(L, 2));
}

/* log:get(name, inside): a string; nil: none exists, or it is empty. */
static int log_get(lua_State *L)
{
    struct str text = json_str(member_at(L));
    if (!text.len)
        return 0;
    lua_cli_push_str(L, text);
    return 1;
}

/* log:value(name, inside): any value. */
static int log_value(lua_State *L)
{
    lua_json_push(L, member_at(L), LUA_JSON_ANSWER);
    return 1;
}

static struct str member(const struct log *log, const char *name)
{
    return json_str(json_get_text(log->line.value, name));
}

/* A double holds 53 bits. A number is no string that Lua would have to keep for each record. */
static int push_hash(lua_State *L, uint64_t hash)
{
    lua_pushnumber(L, (lua_Number)(hash >> 11));
    return 1;
}

static uint64_t session_hash(const struct log *log)
{
    int64_t uid;
    uint64_t hash = hash_stable(member(log, "session")).low;
    if (!json_int(json_get_text(log->line.value, "uid"), &uid))
        uid = -1;
    hash_add(&hash, (uint64_t)uid);
    return hash;
}

/* log:session_key(): a number for each session of each user. */
static int log_session_key(lua_State *L)
{
    return push_hash(L, session_hash(check_log(L)));
}

/* log:key(): a number that a call and its report have. A record without an id is found by what is left that
 * tells it apart. */
static int log_key(lua_State *L)
{
    const struct log *log = check_log(L);
    struct str id = member(log, "decision_id");
    uint64_t hash = hash_stable(id.len ? id : member(log, "ts")).low;
    hash_add(&hash, hash_stable(member(log, "tool")).low);
    if (!id.len)
        hash_add(&hash, session_hash(log));
    return push_hash(L, hash);
}

/* log:arguments_key(): equal arguments have the same number; nil: none were recorded. */
static int log_arguments_key(lua_State *L)
{
    const struct log *log = check_log(L);
    const struct json *arguments = json_get_text(log->line.value, "arguments");
    struct str hash = member(log, "arguments_hash"); /* recorded in their place */
    if (hash.len)
        return push_hash(L, hash_stable(hash).low);
    if (!arguments)
        return 0;
    struct arena *scratch = arena_new();
    push_hash(L, json_fingerprint(scratch, arguments, NULL, 0).low);
    arena_free(scratch);
    return 1;
}

/* log:arguments(bytes): as JSON; with `bytes` as a terminal may show it, a longer text ends with "…". */
static int log_arguments(lua_State *L)
{
    const struct json *arguments = json_get_text(check_log(L)->line.value, "arguments");
    struct buf text = {0}, shown = {0};
    if (!arguments)
        return 0;
    json_write(&text, arguments);
    if (lua_isnoneornil(L, 2))
        return lua_cli_push_buf(L, &text);
    printable_write_cut(&shown, buf_view(&text), (size_t)luaL_checkinteger(L, 2));
    buf_clear(&text);
    return lua_cli_push_buf(L, &shown);
}

static bool read_time(struct str text, int64_t *us)
{
    return timestamp_read(&text, us) && !text.len;
}

/* log:time(): of the record, in microseconds since 1970; nil: it has none that can be read. */
static int log_time(lua_State *L)
{
    int64_t us;
    if (!read_time(member(check_log(L), "ts"), &us) || us < 0)
        return 0;
    lua_pushnumber(L, (lua_Number)us);
    return 1;
}

/* log:text(): the line, as it was written. */
static int log_text(lua_State *L)
{
    lua_cli_push_str(L, check_log(L)->line.text);
    return 1;
}

/* ---- the log ------------------------------------------------------------------------- */

/* log:next(): true: there is a further record of a call. */
static int log_next(lua_State *L)
{
    struct log *log = check_log(L);
    log->L = L;
    while (recording_next(log->recording, &log->line)) {
        const char *missing = !member(log, "tool").len      ? "it names no tool"
                              : !member(log, "verdict").len ? "it has no verdict"
                                                            : NULL;
        lua_pushboolean(L, true);
        if (!missing)
            return 1;
        lua_pop(L, 1);
        recording_reject(log->recording, missing);
    }
    return 0;
}

/* log:faults(): what could not be read, as { text, count, places = { { file, number, why }, … } } for each
 * kind; and whether a file could not be read to its end. */
static int log_faults(lua_State *L)
{
    const struct recording_count *faults = recording_faults(check_log(L)->recording);
    lua_newtable(L);
    for (int fault = 0; fault < RECORDING_FAULTS; fault++) {
        const struct recording_count *count = &faults[fault];
        if (!count->count)
            continue;
        lua_cli_push_table(L, FIELD_TEXT("text", recording_fault_words[fault].text),
                           FIELD_NUM("count", count->count));
        lua_newtable(L);
        for (size_t i = 0; i < RECORDING_PLACES && i < count->count; i++) {
            const struct recording_place *place = &count->places[i];
            lua_cli_append_table(L, FIELD_TEXT("file", place->file), FIELD_TEXT("why", place->why),
                                 FIELD_NUM("number", place->number));
        }
        lua_setfield(L, -2, "places");
        lua_cli_append(L);
    }
    lua_pushboolean(L, faults[RECORDING_FAILED].count > 0);
    return 2;
}

static int log_close(lua_State *L)
{
    struct log *log = check_log(L);
    recording_close(log->recording);
    log->recording = NULL;
    return 0;
}

static const luaL_Reg log_methods[] = {
    {"next", log_next},
    {"get", log_get},
    {"value", log_value},
    {"time", log_time},
    {"key", log_key},
    {"session_key", log_session_key},
    {"arguments_key", log_arguments_key},
    {"arguments", log_arguments},
    {"text", log_text},
    {"faults", log_faults},
    {"close", log_close},
    {"__gc", log_close},
    {0},
};

static bool call_wait(void *owner)
{
    lua_State *L = ((struct log *)owner)->L;
    lua_getfenv(L, 1);
    lua_getfield(L, -1, "wait");
    lua_call(L, 0, 1);
    bool going = lua_toboolean(L, -1);
    lua_pop(L, 2);
    return going;
}

/* cli.log(files, wait): opens them as one log; nil, why: one cannot be opened. With `wait` the one file is
 * followed: at its end the function is called, until it returns false. */
static int open_log(lua_State *L)
{
    struct why why;
    luaL_checktype(L, 1, LUA_TTABLE);
    size_t count = lua_objlen(L, 1);
    bool follows = lua_isfunction(L, 2);
    struct log *log = lua_cli_object(L, sizeof(*log) + count * sizeof(char *), LOG, log_methods);
    const char **files = (const char **)(log + 1);
    struct recording_options options = {.wait = follows ? call_wait : NULL, .owner = log};
    lua_createtable(L, (int)count, 1);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, 1, (int)i + 1);
        files[i] = luaL_checkstring(L, -1);
        lua_rawseti(L, -2, (int)i + 1);
    }
    lua_pushvalue(L, 2);
    lua_setfield(L, -2, "wait");
    lua_setfenv(L, -2);
    if (recording_open(files, count, &options, &log->recording, &why) == OK)
        return 1;
    return lua_cli_fail(L, why.text);
}

/* ---- its files ----------------------------------------------------------------------- */

/* cli.descriptor(file): of a file that Lua has opened. */
static int descriptor(lua_State *L)
{
    lua_pushinteger(L, fileno(*(FILE **)luaL_checkudata(L, 1, LUA_FILEHANDLE)));
    return 1;
}

/* cli.default_log(socket): where the daemon of that socket writes it without a configuration. */
static int default_log(lua_State *L)
{
    const struct config_sources sources = {.socket = luaL_checkstring(L, 1)};
    struct config config;
    struct why why;
    struct arena *arena = arena_new();
    config_load(&sources, &config, &why); /* a user's own daemon has a state folder in the home folder */
    lua_pushstring(L, state_dir_decisions(arena, &config));
    config_free(&config);
    arena_free(arena);
    return 1;
}

/* ---- filters ------------------------------------------------------------------------- */

/* cli.glob(pattern, text) */
static int glob(lua_State *L)
{
    lua_pushboolean(L, str_glob(lua_cli_str(L, 1), lua_cli_str(L, 2)));
    return 1;
}

/* cli.moment(text): a time with its date, in microseconds since 1970; nil: it is not one. */
static int moment(lua_State *L)
{
    int64_t us;
    if (!read_time(lua_cli_str(L, 1), &us))
        return 0;
    lua_pushnumber(L, (lua_Number)us);
    return 1;
}

/* cli.verdicts(): their names; and those of the classes. */
static int verdicts(lua_State *L)
{
    lua_newtable(L);
    for (int i = 0; i < VERDICT_KINDS; i++) {
        lua_pushstring(L, verdict_name((enum verdict_kind)i));
        lua_cli_append(L);
    }
    lua_newtable(L);
    for (int i = 0; i < CLASS_COUNT; i++) {
        lua_pushstring(L, error_class_info((enum error_class)i)->name);
        lua_cli_append(L);
    }
    return 2;
}

const luaL_Reg lua_log_functions[] = {
    {"log", open_log},
    {"descriptor", descriptor},
    {"default_log", default_log},
    {"glob", glob},
    {"moment", moment},
    {"verdicts", verdicts},
    {0},
};
