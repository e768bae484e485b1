/*
 * json "file" and json [[text]]: data for a policy, read while it loads. The
 * value is a plain Lua table; which table came from which value is remembered
 * until the file is loaded, so that a schema reaches the model as it was
 * written, key order and numbers included.
 */
#include "base/arena.h"
#include "base/hash.h"
#include "json/parse.h"
#include "sandbox/bridge.h"
#include "sandbox/sandbox.h"
#include "policy/vocabulary/vocabulary.h"

#include <stdio.h>

static bool is_text(struct str s)
{
    s = str_trim(s);
    return s.len && strchr("{[\"", s.at[0]);
}

static bool leaves_folder(struct str path)
{
    return (path.len && path.at[0] == '/') || memmem(path.at, path.len, "..", 2) != NULL;
}

void word_json_release(lua_State *L)
{
    word_order_release(L);
    bridge_forget_json(L);
}

static void read_text(lua_State *L, const struct sandbox_context *now, struct str text, struct json *out)
{
    struct json_error fault;
    text = arena_dup(now->arena, text);
    if (json_parse(now->arena, text, NULL, out, &fault) == OK)
        return;
    int line = 1;
    for (size_t i = 0; i < fault.offset && i < text.len; i++)
        line += text.at[i] == '\n';
    luaL_error(L, "json: line %d of the text: %s", line, fault.text);
}

/* The value as read before; else it is read, and kept where the set keeps files. */
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
    if (leaves_folder(name))
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
    if (is_text(given))
        read_text(L, now, given, value);
    else
        read_file(L, now, given, value);
    bridge_push(L, value);
    if (lua_istable(L, -1))
        bridge_remember_json(L, value);
    return 1;
}
