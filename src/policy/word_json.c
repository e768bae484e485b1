/*
 * json "file" and json [[text]], read while a policy loads, and the order of
 * fields. Lua tables keep neither number texts nor order, so the JSON of a
 * table is remembered until the file is loaded.
 */
#include "base/arena.h"
#include "base/hash.h"
#include "json/build.h"
#include "json/parse.h"
#include "policy/source_location.h"
#include "sandbox/bridge.h"
#include "sandbox/sandbox.h"
#include "policy/vocabulary.h"

#include <lauxlib.h>

static void read_text(lua_State *L, const struct sandbox_context *now, struct str text, struct json *out)
{
    struct json_error fault;
    text = arena_dup(now->arena, text);
    if (json_parse(now->arena, text, NULL, out, &fault) == OK) {
        bridge_charge(L, "json", bridge_size(out));
        return;
    }
    int line = 1;
    for (size_t i = 0; i < fault.offset && i < text.len; i++)
        line += text.at[i] == '\n';
    luaL_error(L, "json: line %d of the text: %s", line, fault.text);
}

/* A file is read once per set. */
static void read_once(lua_State *L, const struct sandbox_context *now, struct str path, struct json *out)
{
    struct why why = {""};
    struct json_file *file = now->files ? now->files->first : NULL;
    while (file && !str_eq(file->path, path))
        file = file->next;
    if (file) {
        *out = file->value;
        return;
    }
    struct arena *arena = now->files ? now->files->arena : now->arena;
    if (json_read_file(arena, path.at, SANDBOX_SOURCE_MAX_BYTES, out, &why) != OK)
        luaL_error(L, "json: %s", why.text);
    if (!now->files)
        return;
    uint64_t both[2] = {now->files->hash, hash_stable((struct str){out->raw, out->raw_len}).low};
    now->files->hash = hash_stable((struct str){(const char *)both, sizeof(both)}).low;
    file = ARENA_NEW(arena, struct json_file);
    *file = (struct json_file){now->files->first, arena_dup(arena, path), *out};
    now->files->first = file;
}

static void read_file(lua_State *L, const struct sandbox_context *now, struct str name, struct json *out)
{
    if (!now->folder)
        luaL_error(L, "json \"%s\": this policy has no folder to read a file from", name.at);
    if ((name.len && name.at[0] == '/') || memmem(name.at, name.len, "..", 2))
        luaL_error(L, "json \"%s\": expected a file beside the policy or below, without '/' in front or '..'",
                   name.at);
    struct str path = arena_printf(now->arena, "%s/" STR_FMT, now->folder, STR_ARG(name));
    read_once(L, now, path, out);
}

int word_json(lua_State *L)
{
    const struct sandbox_context *now = sandbox_context(sandbox_of(L));
    struct json *value;
    struct str given;
    if (lua_type(L, 1) != LUA_TSTRING)
        return luaL_error(L, "json: expected a file's name or JSON in [[…]], got %s", luaL_typename(L, 1));
    if (!now->loading || !now->arena)
        return luaL_error(
            L, "json: files and texts are read while the policy loads: put it at the top of the file");
    given.at = lua_tolstring(L, 1, &given.len);
    value = ARENA_NEW(now->arena, struct json);
    struct str trimmed = str_trim(given);
    if (trimmed.len && strchr("{[\"", trimmed.at[0]))
        read_text(L, now, given, value);
    else
        read_file(L, now, given, value);
    bridge_push(L, value);
    if (lua_istable(L, -1))
        bridge_remember_json(L, value);
    return 1;
}

#define ORDER_NAMES_MAX 1000u /* more fields than that keep the order of their names */

/* source_order(names, line): the list in the order of the first table from that line on that has exactly
 * these fields; the list itself if there is none. */
int word_source_order(lua_State *L)
{
    const struct sandbox_context *now = sandbox_context(sandbox_of(L));
    int line = (int)luaL_checkinteger(L, 2);
    lua_settop(L, 1);
    luaL_checktype(L, 1, LUA_TTABLE);
    size_t count = lua_objlen(L, 1);
    if (!now->loading || count < 2 || count > ORDER_NAMES_MAX)
        return 1;
    struct str *names = ARENA_ARRAY(now->arena, struct str, count);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, 1, (int)i + 1);
        names[i].at = lua_tolstring(L, -1, &names[i].len); /* the list keeps it alive */
        lua_pop(L, 1);
        if (!names[i].at)
            return 1;
    }
    if (!location_sort_fields(now->source, line, names, count))
        return 1;
    lua_createtable(L, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        lua_pushlstring(L, names[i].at, names[i].len);
        lua_rawseti(L, -2, (int)i + 1);
    }
    return 1;
}

/* order(table, names): the table, whose JSON has its fields in this order: that of a template with these
 * names.
 */
int word_order(lua_State *L)
{
    const struct sandbox_context *now = sandbox_context(sandbox_of(L));
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TTABLE);
    if (now->loading) {
        size_t count = lua_objlen(L, 2);
        struct json_member *members = ARENA_ARRAY(now->arena, struct json_member, count);
        struct json *template = ARENA_NEW(now->arena, struct json);
        for (size_t i = 0; i < count; i++) {
            struct str name;
            lua_rawgeti(L, 2, (int)i + 1);
            name.at = lua_tolstring(L, -1, &name.len);
            members[i] = json_member(arena_dup(now->arena, name), json_null());
            lua_pop(L, 1);
        }
        *template = json_object(now->arena, members, count);
        lua_settop(L, 1);
        bridge_remember_json(L, template);
    }
    lua_settop(L, 1);
    return 1;
}
