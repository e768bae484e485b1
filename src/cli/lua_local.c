/* What lua/cli gets of the files that a daemon would load, loaded in this process: the options of a command
 * name them, as the table that options.lua makes. */
#include "cli/lua_cli.h"

#include "base/arena.h"
#include "catalog/catalog.h"
#include "cli/json_input.h"
#include "cli/local_generation.h"
#include "cli/lua_local.h"
#include "cli/term.h"
#include "config/config.h"
#include "gate/generation_load.h"
#include "io/file.h"
#include "json/build.h"
#include "json/parse.h"
#include "json/write.h"
#include "policy/source_location.h"
#include "sandbox/lua_json.h"
#include "schema/sample.h"
#include "schema/schema.h"

#include <sys/mman.h>
#include <unistd.h>

#define POLICY_MAX_BYTES  1048576u /* of a file whose tool's name is looked for */
#define PRETTY_LINE_BYTES 100u     /* a value that fits stays on one line */

static const struct json_limits many_values = {.nodes = LUA_CLI_NODES};

const char *lua_local_text(lua_State *L, const char *option)
{
    lua_getfield(L, 1, option);
    const char *text = lua_tostring(L, -1);
    lua_pop(L, 1);
    return text;
}

bool lua_local_flag(lua_State *L, const char *option)
{
    lua_getfield(L, 1, option);
    bool given = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return given;
}

static void read_list(lua_State *L, const char *option, struct cli_list *out)
{
    lua_getfield(L, 1, option);
    size_t count = lua_istable(L, -1) ? lua_objlen(L, -1) : 0;
    for (out->count = 0; out->count < count && out->count < OPTIONS_LIST_MAX; out->count++) {
        lua_rawgeti(L, -1, (int)out->count + 1);
        out->items[out->count] = lua_tostring(L, -1);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

void lua_local_read(lua_State *L, struct local_options *out)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    out->config = lua_local_text(L, "config");
    out->policies = lua_local_text(L, "policies");
    read_list(L, "tools", &out->tools);
    read_list(L, "mcp-config", &out->mcp_configs);
}

const char **lua_local_operands(lua_State *L, struct arena *arena, size_t *count)
{
    *count = lua_objlen(L, 1);
    const char **operands = ARENA_ARRAY(arena, const char *, *count + 1);
    for (size_t i = 0; i < *count; i++) {
        lua_rawgeti(L, 1, (int)i + 1);
        operands[i] = lua_tostring(L, -1);
        lua_pop(L, 1);
    }
    return operands;
}

int lua_local_end(lua_State *L)
{
    return lua_cli_end(L, CLI_ERROR);
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
    struct local_options options = {0};
    lua_local_read(L, &options);
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

/* ---- writing a policy ---------------------------------------------------------------- */

/* cli.tool_files(options): the files of tools that serve would read. Or nil, and why. */
static int tool_files(lua_State *L)
{
    struct local_options options = {0};
    lua_local_read(L, &options);
    struct config_sources sources = local_sources(&options, NULL);
    struct config config;
    struct why why;
    sources.policies = NULL; /* the folder may not exist yet */
    enum err err = config_load(&sources, &config, &why);
    lua_newtable(L);
    for (size_t i = 0; err == OK && i < config.tools.count; i++) {
        lua_pushstring(L, config.tools.list[i]);
        lua_rawseti(L, -2, (int)i + 1);
    }
    config_free(&config);
    if (err == OK)
        return 1;
    lua_pushnil(L);
    lua_pushstring(L, why.text);
    return 2;
}

/* cli.tool_of_policy(path): the name in tool "…" {; nil: there is none, or the file cannot be read. */
static int tool_of_policy(lua_State *L)
{
    struct arena *arena = arena_new();
    struct str text, name = STR_NONE;
    struct why why;
    if (file_read(arena, luaL_checkstring(L, 1), POLICY_MAX_BYTES, &text, &why) == OK)
        name = location_tool_name(location_tokens(arena, text));
    lua_pushlstring(L, name.at ? name.at : "", name.len);
    arena_free(arena);
    return name.len ? 1 : 0;
}

/* A definition as a file of tools, which ends with this process. */
static const char *definition_file(struct arena *arena, struct str definition)
{
    struct str text = arena_printf(arena, "[" STR_FMT "]", STR_ARG(definition));
    int fd = memfd_create("definition", MFD_CLOEXEC);
    bool written = fd >= 0 && write(fd, text.at, text.len) == (ssize_t)text.len;
    return written ? arena_printf(arena, "/proc/self/fd/%d", fd).at : NULL;
}

/* cli.try_policy(options, path, definition): loads the policy as the daemon would, with this JSON as the only
 * definition (nil: those of the options), and runs its examples. Whether all holds, and how many there are;
 * errors are on stderr. */
static int try_policy(lua_State *L)
{
    struct local_options options = {0};
    lua_local_read(L, &options);
    struct config_sources sources = local_sources(&options, NULL);
    struct arena *arena = arena_new();
    struct generation_report report;
    struct generation *generation;
    const char *definition = lua_isstring(L, 3) ? definition_file(arena, lua_cli_str(L, 3)) : NULL;
    sources.policies = luaL_checkstring(L, 2);
    if (definition) {
        sources.tools = &definition;
        sources.tools_count = 1;
    }
    log_open(LOG_ERROR, LOG_FORMAT_TEXT, NULL, NULL);
    generation_report_init(&report, arena);
    enum err err = generation_load(&sources, 1, &generation, &report);
    report.warning_count = 0;
    if (err != OK)
        local_print_report(&report);
    lua_pushboolean(L, err == OK);
    lua_pushinteger(L, (lua_Integer)report.example_count);
    generation_unref(generation);
    arena_free(arena);
    return 2;
}

/* cli.read_json(path): the value in a file or a pipe, its parts, and its JSON. Or nil, and why not. */
static int read_json(lua_State *L)
{
    struct arena *arena = arena_new();
    struct json value;
    struct why why;
    enum err err = json_read_input(arena, luaL_checkstring(L, 1), JSON_INPUT_MAX_BYTES, &value, &why);
    if (err == OK) {
        lua_json_push(L, &value, LUA_JSON_ANSWER);
        lua_cli_push_parts(L, &value);
        struct str text = json_to_str(arena, &value);
        lua_pushlstring(L, text.at, text.len);
    } else {
        lua_pushnil(L);
        lua_pushstring(L, why.text);
    }
    arena_free(arena);
    return err == OK ? 3 : 2;
}

/* cli.sample(schema): arguments that the schema accepts, with nothing optional in them, as JSON; then the
 * first that is required, and the arguments without it. Nothing: no such arguments were found. */
static int sample(lua_State *L)
{
    struct arena *arena = arena_new();
    struct json source, found;
    struct json_error fault;
    struct schema *schema;
    if (json_parse(arena, lua_cli_str(L, 1), &many_values, &source, &fault) != OK ||
        schema_compile(arena, &source, NULL, &schema, NULL, NULL) != OK ||
        !schema_sample(arena, schema, SAMPLE_REQUIRED, &found) || found.type != JSON_OBJECT ||
        schema_validate(schema, &found) != SCHEMA_VALID) {
        arena_free(arena);
        return 0;
    }
    struct str text = json_to_str(arena, &found);
    lua_settop(L, 0);
    lua_pushlstring(L, text.at, text.len);
    for (uint32_t i = 0; i < found.len && lua_gettop(L) == 1; i++) {
        struct str name = found.members[i].key;
        if (!json_array_has(json_get_text(&source, "required"), name))
            continue;
        struct json less = json_without(arena, &found, name);
        text = json_to_str(arena, &less);
        lua_pushlstring(L, name.at, name.len);
        lua_pushlstring(L, text.at, text.len);
    }
    arena_free(arena);
    return lua_gettop(L);
}

static void write_pretty(struct buf *out, struct arena *arena, const struct json *value, int indent)
{
    struct buf line = buf_in(arena);
    bool object = value->type == JSON_OBJECT;
    json_write(&line, value);
    if ((!object && value->type != JSON_ARRAY) || line.len <= PRETTY_LINE_BYTES) {
        buf_str(out, buf_view(&line));
        return;
    }
    for (uint32_t i = 0; i < value->len; i++) {
        buf_printf(out, "%s\n%*s", i ? "," : object ? "{" : "[", indent + 2, "");
        if (object) {
            json_write_string(out, value->members[i].key);
            buf_text(out, ": ");
        }
        write_pretty(out, arena, object ? &value->members[i].value : &value->items[i], indent + 2);
    }
    buf_printf(out, "\n%*s%c", indent, "", object ? '}' : ']');
}

/* cli.pretty(text, indent): JSON whose long values have a line for each member. */
static int pretty(lua_State *L)
{
    struct arena *arena = arena_new();
    struct buf out = {0};
    struct json value;
    struct json_error fault;
    if (json_parse(arena, lua_cli_str(L, 1), &many_values, &value, &fault) == OK || fault.soft)
        write_pretty(&out, arena, &value, (int)luaL_checkinteger(L, 2));
    arena_free(arena);
    return lua_cli_push_buf(L, &out);
}

const luaL_Reg lua_local_functions[] = {
    {"local_tools", local_tools},
    {"tool_files", tool_files},
    {"tool_of_policy", tool_of_policy},
    {"try_policy", try_policy},
    {"read_json", read_json},
    {"sample", sample},
    {"pretty", pretty},
    {0},
};
