/*
 * The configuration file is Lua, for comments and keys without quotes. Its
 * sandbox is freed once the table has been read.
 */
#include "base/arena.h"
#include "sandbox/bridge.h"
#include "policy/policy.h"
#include "policy/lua_config.h"
#include "sandbox/deadline.h"
#include "sandbox/sandbox.h"
#include "io/file.h"
#include "policy/vocabulary.h"
#include "sandbox/diagnostics.h"

#define CONFIG_MEMORY_KB 16384u

struct config_reader {
    struct arena *arena;
    struct str source;
    const char *file;
    const struct json *out;
};

static void read_step(lua_State *L, void *context)
{
    struct config_reader *r = context;
    sandbox_load(L, r->source, r->file);
    lua_call(L, 0, 1);
    if (!lua_istable(L, -1) || sandbox_mark(L, -1) == MARK_DECLARATION) {
        diagnostics_push_value(L, -1);
        luaL_error(L, "%s: expected the file to return a table { key = value, … }, got %s",
                   sandbox_chunk(r->file), lua_tostring(L, -1));
    }
    r->out = bridge_read(L, -1, "config", NULL, r->arena);
    if (r->out->type != JSON_OBJECT)
        luaL_error(L, "%s: expected the file to return a table { key = value, … }, got a list",
                   sandbox_chunk(r->file));
}

enum err lua_config_read(const char *path, struct arena *arena, struct json *out, struct why *why)
{
    struct config_reader r = {.arena = arena, .file = path};
    enum err err = file_read(arena, path, SANDBOX_SOURCE_MAX_BYTES, &r.source, why);
    if (err != OK)
        return err;
    const char *slash = strrchr(path, '/');
    const char *folder = slash ? arena_dup(arena, (struct str){path, (size_t)(slash - path)}).at : ".";
    struct sandbox *sandbox = sandbox_new(CONFIG_MEMORY_KB, vocabulary_open);
    struct sandbox_context now = {.arena = arena, .folder = folder, .file = path, .loading = true};
    if (sandbox_run(sandbox, SANDBOX_LOAD_DEADLINE_MS, &now, read_step, &r, why) == OK)
        *out = *r.out;
    else
        err = ERR_CONFIG;
    sandbox_free(sandbox);
    return err;
}
