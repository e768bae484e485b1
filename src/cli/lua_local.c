/* What lua/cli gets of the files that a daemon would load, loaded in this process: the options of a command
 * name them, as the table that options.lua makes. */
#include "cli/lua_cli.h"

#include "base/arena.h"
#include "catalog/catalog.h"
#include "cli/local_generation.h"
#include "cli/term.h"
#include "json/parse.h"
#include "json/write.h"
#include "sandbox/lua_json.h"

static void read_list(lua_State *L, int at, const char *name, struct cli_list *out)
{
    lua_getfield(L, at, name);
    for (size_t count = lua_istable(L, -1) ? lua_objlen(L, -1) : 0;
         out->count < count && out->count < OPTIONS_LIST_MAX; lua_pop(L, 1)) {
        lua_rawgeti(L, -1, (int)out->count + 1);
        out->items[out->count++] = lua_tostring(L, -1);
    }
    lua_pop(L, 1);
}

/* Its strings are the table's. */
static struct local_options read_options(lua_State *L, int at)
{
    struct local_options options = {0};
    luaL_checktype(L, at, LUA_TTABLE);
    lua_getfield(L, at, "config");
    lua_getfield(L, at, "policies");
    options.config = lua_tostring(L, -2);
    options.policies = lua_tostring(L, -1);
    lua_pop(L, 2);
    read_list(L, at, "tools", &options.tools);
    read_list(L, at, "mcp-config", &options.mcp_configs);
    return options;
}

/* Pushes an answer of this process and its parts, which may be as deep as any JSON. False after an error on
 * stderr. */
static bool push_answer(lua_State *L, struct arena *arena, struct str text, const char *too_large)
{
    static const struct json_limits limits = {.nodes = LUA_CLI_NODES, .depth = JSON_MAX_DEPTH + 1};
    struct json answer;
    struct json_error fault;
    bool parsed = json_parse(arena, text, &limits, &answer, &fault) == OK;
    if (parsed) {
        lua_json_push(L, &answer, LUA_JSON_ANSWER);
        lua_cli_push_parts(L, &answer);
    } else {
        term_error(lua_cli_command()->name, "%s: %s", too_large, fault.text);
    }
    return parsed;
}

/* cli.local_tools(options, format, strict): the answer of toolgate/tools, and its parts. */
static int local_tools(lua_State *L)
{
    struct local_options options = read_options(L, 1);
    struct generation *generation = local_generation_load(lua_cli_command(), &options);
    if (!generation)
        return lua_cli_end(L, CLI_ERROR);
    struct arena *arena = arena_new();
    struct peer peer;
    struct buf tools = buf_in(arena), places = buf_in(arena), guessed = buf_in(arena), guards = buf_in(arena),
               text = buf_in(arena);
    struct json_out out = json_out(&text);
    struct catalog_request request = {.provider = {.strict = lua_toboolean(L, 3)},
                                      .all = true,
                                      .peer = &peer,
                                      .places = &places,
                                      .guessed = &guessed,
                                      .guards = &guards};
    local_peer(&peer);
    provider_format_named(lua_cli_str(L, 2), &request.provider.format);
    catalog_write(arena, generation, &request, &tools);
    json_open(&out, '{');
    json_field_raw(&out, "tools", buf_view(&tools));
    json_field_raw(&out, "runs_at", buf_view(&places));
    json_field_raw(&out, "guessed_effects", buf_view(&guessed));
    json_field_raw(&out, "guarded_by", buf_view(&guards));
    json_close(&out, '}');
    bool good = push_answer(L, arena, buf_view(&text), "the list is too large to print");
    arena_free(arena);
    generation_unref(generation);
    return good ? 2 : lua_cli_end(L, CLI_ERROR);
}

const luaL_Reg lua_local_functions[] = {
    {"local_tools", local_tools},
    {0},
};
