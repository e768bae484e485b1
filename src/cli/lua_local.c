/* The files that a daemon would load, loaded in this process: by the daemon itself, and for commands that
 * need none. The options of a command name them, as the table that options.lua makes. */
#include "cli/lua_cli.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/printable.h"
#include "catalog/catalog.h"
#include "cli/term.h"
#include "gate/call.h"
#include "gate/generation_load.h"
#include "gate/verdict.h"
#include "io/file.h"
#include "json/parse.h"
#include "ledger/redis_address.h"
#include "server/server.h"
#include "policy/source_location.h"
#include "upstream/process.h"
#include "upstream/secrets.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define POLICY_MAX_BYTES 1048576u /* of a file whose tool's name is looked for */

/* ---- a command's options ----------------------------------------------------------- */

const char *lua_cli_option(lua_State *L, const char *name)
{
    lua_getfield(L, 1, name);
    const char *text = lua_tostring(L, -1);
    lua_pop(L, 1);
    return text;
}

bool lua_cli_flag(lua_State *L, const char *name)
{
    lua_getfield(L, 1, name);
    bool given = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return given;
}

const char **lua_cli_list(lua_State *L, const char *name, struct arena *arena, size_t *count)
{
    if (name)
        lua_getfield(L, 1, name);
    else
        lua_pushvalue(L, 1);
    *count = lua_istable(L, -1) ? lua_objlen(L, -1) : 0;
    const char **list = ARENA_ARRAY(arena, const char *, *count + 1);
    for (size_t i = 0; i < *count; i++) {
        lua_rawgeti(L, -1, (int)i + 1);
        list[i] = lua_tostring(L, -1);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return list;
}

struct config_sources lua_cli_sources(lua_State *L, struct arena *arena)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    struct config_sources sources = {
        .file = lua_cli_option(L, "config"), .policies = lua_cli_option(L, "policies"), .offline = true};
    sources.tools = lua_cli_list(L, "tools", arena, &sources.tools_count);
    sources.mcp_configs = lua_cli_list(L, "mcp-config", arena, &sources.mcp_config_count);
    return sources;
}

/* ---- loading ------------------------------------------------------------------------- */

static void print_line(const char *level, struct str text)
{
    fprintf(stderr, "%s: ", level);
    term_print_error(text);
    fputc('\n', stderr);
}

void lua_cli_print_report(const struct generation_report *report)
{
    for (size_t i = 0; i < report->error_count; i++)
        print_line("error", report->errors[i]);
    for (size_t i = 0; i < report->warning_count; i++)
        print_line("warning", report->warnings[i]);
}

struct generation *lua_cli_build(const struct config_sources *sources,
                                 const struct generation_build_options *options,
                                 struct generation_report *report, const char **folder)
{
    struct config config;
    struct generation *generation = NULL;
    struct why why;
    if (config_load(sources, &config, &why) != OK) {
        generation_report_error(report, "%s", why.text);
        config_free(&config);
        return NULL;
    }
    if (folder && config.policies)
        *folder = arena_dup(report->arena, str_of(config.policies)).at;
    generation_build(&config, 1, options, &generation, report);
    return generation;
}

/* Of the command's options, with examples. Warnings go to stderr; an error ends the command. */
static struct generation *load(lua_State *L, struct peer *peer)
{
    struct arena *arena = arena_new();
    struct generation_report report;
    struct generation *generation;
    struct config_sources sources = lua_cli_sources(L, arena);
    log_open(LOG_WARN, LOG_FORMAT_TEXT, NULL, NULL); /* decisions go to stdout, not to the log */
    generation_report_init(&report, arena);
    peer_init(peer, getuid(), getgid(), getpid());
    bool loaded = generation_load(&sources, 1, &generation, &report) == OK;
    struct str nothing = loaded ? generation_serves_nothing(generation, arena) : STR_NONE;
    if (!loaded) {
        lua_cli_print_report(&report);
        term_error("nothing was loaded: fix the errors above");
    } else if (nothing.len) {
        fprintf(stderr, "warning: " STR_FMT "\n", STR_ARG(nothing));
    }
    arena_free(arena);
    if (!loaded)
        lua_cli_end(L);
    return generation;
}

/* Pushes an answer of this process, its parts, and the whole as a line of JSON. False after an error on
 * stderr. */
static bool push_answer(lua_State *L, struct arena *arena, struct str text, uint32_t depth,
                        const char *too_large)
{
    const struct json_limits limits = {.nodes = LUA_CLI_NODES, .depth = depth};
    struct json answer;
    struct json_error fault;
    struct buf shown = {0};
    if (json_parse(arena, text, &limits, &answer, &fault) != OK) {
        term_error("%s: %s", too_large, fault.text);
        return false;
    }
    lua_cli_push_answer(L, &answer);
    printable_write_json(&shown, text);
    lua_cli_push_buf(L, &shown);
    return true;
}

/* cli.local_tools(options, format, strict): the answer of toolgate/tools, its parts, and all as JSON. */
static int local_tools(lua_State *L)
{
    struct peer peer;
    struct generation *generation = load(L, &peer);
    struct arena *arena = arena_new();
    struct buf text = buf_in(arena), details = buf_in(arena), warned = buf_in(arena);
    struct json_out warnings = json_out(&warned);
    struct catalog_request request = {
        .provider = {.strict = lua_toboolean(L, 3), .warn = provider_warn_collect, .owner = &warnings},
        .all = true,
        .peer = &peer,
        .details = &details,
        .guards = true};
    provider_format_named(lua_cli_str(L, 2), &request.provider.format);
    json_open(&warnings, '[');
    buf_text(&text, "{\"tools\":");
    catalog_write(arena, generation, &request, &text);
    json_close(&warnings, ']');
    buf_text(&text, ",\"warnings\":");
    buf_str(&text, buf_view(&warned));
    buf_byte(&text, ',');
    buf_str(&text, buf_view(&details));
    buf_byte(&text, '}');
    bool good = push_answer(L, arena, buf_view(&text), JSON_MAX_DEPTH + 1, "the list is too large to print");
    arena_free(arena);
    generation_unref(generation);
    return good ? 3 : lua_cli_end(L);
}

/* cli.local_check(options, call): the answer of toolgate/check, its parts, and the whole as JSON. The call:
 * { name, arguments, context, goal, turn, trace }, of which arguments and context are JSON. */
static int local_check(lua_State *L)
{
    struct peer peer;
    struct gate gate = {.generation = load(L, &peer)};
    struct json arguments, context;
    gate.ledger = ledger_new_local(&(struct ledger_options){0});
    struct arena *arena = arena_new();
    lua_settop(L, 2);
    lua_insert(L, 1); /* the options below are those of the call */
    const char *said = lua_cli_option(L, "context");
    json_parse(arena, str_of(lua_cli_option(L, "arguments")), NULL, &arguments, NULL);
    if (said)
        json_parse(arena, str_of(said), NULL, &context, NULL);
    lua_getfield(L, 1, "turn");
    struct call_request request = {
        .mode = CALL_CHECK,
        .tool = str_of(lua_cli_option(L, "name")),
        .arguments = &arguments,
        .session = STR_LIT("check"),
        .connection = STR_LIT("check"),
        .turn = (unsigned)lua_tointeger(L, -1),
        .goal = str_of(lua_cli_option(L, "goal")),
        .context = said ? &context : NULL,
        .peer = &peer,
        .dry_run = true,
        .trace = lua_cli_flag(L, "trace"),
    };
    struct call *call = call_new(&gate, arena, &request);
    struct buf text = buf_in(arena);
    struct json_out out = json_out(&text);
    bool good = call_start(call, NULL, NULL); /* the local ledger answers at once */
    if (good) {
        json_open(&out, '{');
        verdict_write(&out, call_outcome(call)->verdict);
        call_reply_check(&out, call);
        json_close(&out, '}');
        good = push_answer(L, arena, buf_view(&text), JSON_MAX_DEPTH, "the answer is too large to print");
    } else {
        term_error("the ledger did not answer");
    }
    call_free(call);
    arena_free(arena);
    ledger_free(gate.ledger);
    generation_unref(gate.generation);
    return good ? 3 : lua_cli_end(L);
}

/* ---- the daemon ---------------------------------------------------------------------- */

/* The options of serve; those of doctor and new are some of them. */
static struct config_sources serve_sources(lua_State *L, struct arena *arena)
{
    struct config_sources sources = lua_cli_sources(L, arena);
    sources.socket = lua_cli_option(L, "socket");
    sources.default_policies = lua_cli_option(L, "default-policies");
    sources.redis = lua_cli_option(L, "redis");
    lua_getfield(L, 1, "idle");
    sources.idle_s = (uint32_t)lua_tointeger(L, -1);
    lua_pop(L, 1);
    sources.no_watch = lua_cli_flag(L, "no-watch");
    sources.offline = lua_cli_flag(L, "offline");
    return sources;
}

int lua_serve(lua_State *L)
{
    struct arena *arena = arena_new();
    struct config_sources sources = serve_sources(L, arena);
    struct why why;
    int status = CLI_OK;
    if (server_run(&sources, &why) != OK) {
        term_error("%s", why.text);
        status = CLI_NO;
    }
    arena_free(arena);
    lua_pushinteger(L, status);
    return 1;
}

/* ---- what serve would load ----------------------------------------------------------- */

static void set_paths(lua_State *L, const char *name, const struct path_list *paths)
{
    lua_newtable(L);
    for (size_t i = 0; i < paths->count; i++) {
        lua_pushstring(L, paths->list[i]);
        lua_cli_append(L);
    }
    lua_setfield(L, -2, name);
}

/* { shown, path, tcp (one server, not behind a socket file), hosts = {{ name, port }} }, or { problem }. */
static void push_redis(lua_State *L, struct arena *arena, const char *given)
{
    struct redis_address address;
    struct str text;
    struct why why;
    if (secrets_expand(arena, str_of(given), NULL, &text, &why) != OK ||
        redis_address_parse(arena, text, &address, &why) != OK) {
        lua_cli_push_table(L, FIELD_TEXT("problem", why.text));
        return;
    }
    lua_cli_push_table(L, FIELD_STR("shown", redis_address_shown(arena, &address)),
                       FIELD_OPTIONAL("path", address.kind == REDIS_ADDRESS_UNIX ? address.path : STR_NONE),
                       FIELD_BOOL("tcp", address.kind == REDIS_ADDRESS_TCP));
    lua_newtable(L);
    for (size_t i = 0; i < address.host_count; i++)
        lua_cli_append_table(L, FIELD_STR("name", address.hosts[i].name),
                             FIELD_NUM("port", address.hosts[i].port));
    lua_setfield(L, -2, "hosts");
}

/* { name, from, stdio, as_daemon (it runs as the daemon's user), sandbox = "strict" or "lenient", problem
 * (its command is not there) } */
static void push_upstream(lua_State *L, struct arena *arena, const struct upstream_spec *spec)
{
    struct why why;
    bool stdio = spec->kind == UPSTREAM_STDIO;
    bool missing = stdio && environment_find_command(arena, spec, &why) != OK;
    lua_cli_push_table(
        L, FIELD_STR("name", spec->name), FIELD_STR("from", spec->from), FIELD_BOOL("stdio", stdio),
        FIELD_BOOL("as_daemon", stdio && !spec->user.len && !spec->spawner.len),
        FIELD_IF(spec->sandbox.on, FIELD_TEXT("sandbox", spec->sandbox.best_effort ? "lenient" : "strict")),
        FIELD_OPTIONAL("problem", missing ? str_of(why.text) : STR_NONE));
}

static void push_config(lua_State *L, struct arena *arena, const struct config *config)
{
    struct why why;
    /* Not whether Redis is up: a daemon starts without it. */
    bool invalid = config_ledger_validate(config, &why) != OK;
    lua_cli_push_table(
        L, FIELD_OPTIONAL("file", str_of(config->file)),
        FIELD_STR("hash", arena_printf(arena, "%016" PRIx64, config->hash)),
        FIELD_OPTIONAL("socket", str_of(config->socket)), FIELD_OPTIONAL("state", str_of(config->state)),
        FIELD_OPTIONAL("policies", str_of(config->policies)),
        FIELD_BOOL("has_allow", config->allow_count > 0),
        FIELD_NUM("connections", config->limits.connections),
        FIELD_BOOL("has_decisions", config->decisions.on),
        FIELD_TEXT("metrics", config->metrics.address.text), FIELD_STR("traces", config->traces.endpoint),
        FIELD_OPTIONAL("ledger_problem", invalid ? str_of(why.text) : STR_NONE));
    if (config->ledger_redis) {
        push_redis(L, arena, config->ledger_redis);
        lua_setfield(L, -2, "redis");
    }
    lua_newtable(L);
    for (size_t i = 0; i < config->upstream_count; i++) {
        push_upstream(L, arena, config->upstreams[i]);
        lua_cli_append(L);
    }
    lua_setfield(L, -2, "upstreams");
    set_paths(L, "tools", &config->tools);
    set_paths(L, "mcp_configs", &config->mcp_configs);
}

/* { hash, tools, policies: how many; http_tool: the first that needs HTTP; nothing: why it serves none;
 * expired = {{ file, sentence }} } */
static void push_generation(lua_State *L, struct arena *arena, const struct generation *generation)
{
    struct shadow_expiry *list;
    size_t count = shadow_expired(generation, clock_wall_ms(), arena, &list);
    struct str http_tool = STR_NONE;
    for (size_t i = 0; i < generation->tool_count && !http_tool.len; i++) {
        const struct tool *tool = generation->tools[i];
        if (tool->runner == RUNNER_UPSTREAM && tool->target.kind == TARGET_HTTP)
            http_tool = tool->name;
    }
    lua_cli_push_table(L, FIELD_STR("hash", generation->hash), FIELD_NUM("tools", generation->tool_count),
                       FIELD_NUM("policies", policy_set_count(generation->policies)),
                       FIELD_STR("http_tool", http_tool),
                       FIELD_OPTIONAL("nothing", generation_serves_nothing(generation, arena)));
    lua_newtable(L);
    for (size_t i = 0; i < count; i++)
        lua_cli_append_table(L, FIELD_STR("file", list[i].file), FIELD_STR("sentence", list[i].sentence));
    lua_setfield(L, -2, "expired");
}

/* cli.load(options): what serve would load, and its examples: { errors, warnings, examples (how many ran),
 * config, generation }; the last two are missing if they do not load, and `problem` is the configuration's.
 * Beside the options of serve: `log`, the level, "off" or "error"; `only_config`; `offline`, see config.h. */
static int load_state(lua_State *L)
{
    struct arena *arena = arena_new();
    struct config_sources sources = serve_sources(L, arena);
    struct generation_report report;
    struct generation *generation = NULL;
    struct config alone = {0};
    const struct config *config = NULL;
    struct str level = str_of(lua_cli_option(L, "log"));
    struct why why;
    if (level.len)
        log_open(str_is(level, "off") ? LOG_OFF : LOG_ERROR, LOG_FORMAT_TEXT, NULL, NULL);
    generation_report_init(&report, arena);
    if (!lua_cli_flag(L, "only_config") && generation_load(&sources, 1, &generation, &report) == OK)
        config = &generation->config;
    else if (config_load(&sources, &alone, &why) == OK)
        config = &alone;
    lua_cli_push_table(L, FIELD_NUM("examples", report.example_count));
    lua_cli_set_list(L, "errors", report.errors, report.error_count);
    lua_cli_set_list(L, "warnings", report.warnings, report.warning_count);
    if (config) {
        push_config(L, arena, config);
        lua_setfield(L, -2, "config");
    } else {
        lua_cli_set(L, FIELD_TEXT("problem", why.text));
    }
    if (generation) {
        push_generation(L, arena, generation);
        lua_setfield(L, -2, "generation");
    }
    generation_unref(generation);
    config_free(&alone);
    arena_free(arena);
    return 1;
}

/* ---- writing a policy ---------------------------------------------------------------- */

/* cli.tool_of_policy(path): the name in tool "…" {; nil: none exists, or the file cannot be read. */
static int tool_of_policy(lua_State *L)
{
    struct arena *arena = arena_new();
    struct str text, name = STR_NONE;
    struct why why;
    if (file_read(arena, luaL_checkstring(L, 1), POLICY_MAX_BYTES, &text, &why) == OK)
        name = location_tool_name(location_tokens(arena, text));
    lua_cli_push_str(L, name);
    arena_free(arena);
    return name.len ? 1 : 0;
}

/* cli.read_json(path): the value in a file or a pipe, its parts, and its JSON. Or nil, and why not. */
static int read_json(lua_State *L)
{
    struct arena *arena = arena_new();
    struct json value;
    struct why why;
    enum err err = json_read_input(arena, luaL_checkstring(L, 1), LUA_CLI_INPUT_BYTES, &value, &why);
    if (err == OK) {
        lua_cli_push_answer(L, &value);
        lua_cli_push_str(L, json_to_str(arena, &value));
    }
    arena_free(arena);
    return err == OK ? 3 : lua_cli_fail(L, why.text);
}

const luaL_Reg lua_local_functions[] = {
    {"local_tools", local_tools},       {"local_check", local_check}, {"load", load_state},
    {"tool_of_policy", tool_of_policy}, {"read_json", read_json},     {0},
};
