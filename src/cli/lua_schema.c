/* What lua/cli gets of JSON and JSON Schema: the validator, arguments that a schema accepts, JSON as text. */
#include "cli/lua_cli.h"

#include "base/arena.h"
#include "base/map.h"
#include "base/printable.h"
#include "cli/term.h"
#include "json/build.h"
#include "json/parse.h"
#include "sandbox/lua_json.h"
#include "schema/sample.h"
#include "schema/schema.h"

static const struct json_limits many_values = {.nodes = LUA_CLI_NODES};

/* Of a file, or of stdin if it is "-". False after an error on stderr. */
static bool read_value(struct arena *arena, const char *file, struct json *out)
{
    bool is_stdin = strcmp(file, "-") == 0;
    struct json_error fault;
    struct str text;
    struct why why;
    if (is_stdin && !lua_cli_read_stdin(arena, &text))
        return false;
    if (is_stdin ? json_parse(arena, text, NULL, out, &fault) == OK
                 : json_read_input(arena, file, LUA_CLI_INPUT_BYTES, out, &why) == OK)
        return true;
    term_error("%s%s", is_stdin ? "stdin: " : "", is_stdin ? fault.text : why.text);
    return false;
}

/* Documents that $ref may name, each given as URI=FILE. */
static bool add_documents(lua_State *L, struct arena *arena, struct map *registry)
{
    size_t count;
    const char **with = lua_cli_list(L, "with", arena, &count);
    for (size_t i = 0; i < count; i++) {
        const char *equals = strrchr(with[i], '=');
        struct json *document = ARENA_NEW(arena, struct json);
        struct why why;
        if (!equals || equals == with[i] || !equals[1]) {
            term_error("--with: expected URI=FILE, got '%s'", with[i]);
            return false;
        }
        if (json_read_input(arena, equals + 1, LUA_CLI_INPUT_BYTES, document, &why) != OK) {
            term_error("%s", why.text);
            return false;
        }
        schema_registry_add(registry, (struct str){with[i], (size_t)(equals - with[i])}, document);
    }
    return true;
}

static struct schema *compile(struct arena *arena, const char *file, const struct schema_options *options)
{
    struct json *source = ARENA_NEW(arena, struct json);
    struct schema *schema;
    struct problems warnings;
    struct why why;
    problems_init(&warnings, arena);
    if (json_read_input(arena, file, LUA_CLI_INPUT_BYTES, source, &why) != OK) {
        term_error("%s", why.text);
        return NULL;
    }
    if (schema_compile(arena, source, options, &schema, &warnings, &why) != OK) {
        term_error("%s: %s", file, why.text);
        return NULL;
    }
    for (size_t i = 0; i < warnings.count; i++)
        term_error("%s: warning: " STR_FMT ": " STR_FMT, file, STR_ARG(warnings.list[i].path),
                   STR_ARG(warnings.list[i].message));
    return schema;
}

/* A list of { path, code, message, expected, got, suggestion }, of which the last three are JSON, or empty;
 * `more` are left out. */
static void push_problems(lua_State *L, const struct problems *problems)
{
    lua_newtable(L);
    for (size_t i = 0; i < problems->count; i++) {
        const struct problem *p = &problems->list[i];
        lua_cli_append_table(L, FIELD_STR("path", p->path), FIELD_TEXT("code", p->code),
                             FIELD_STR("message", p->message),
                             FIELD_STR("expected", problem_expected(problems->arena, p)),
                             FIELD_STR("got", p->got), FIELD_STR("suggestion", p->suggestion));
    }
    lua_cli_set(L, FIELD_NUM("more", problems->more), FIELD_BOOL("valid", problems->errors == 0));
}

/* cli.validate(options, each): calls each(file, problems) for every instance among the operands, of which the
 * first is the schema. Returns the exit code: of the worst. */
static int validate(lua_State *L)
{
    struct arena *arena = arena_new();
    struct map *registry = map_new(arena);
    const struct schema_options options = {.annotate_format = lua_cli_flag(L, "annotate-format"),
                                           .registry = registry};
    size_t count;
    const char **files = lua_cli_list(L, NULL, arena, &count);
    struct schema *schema = add_documents(L, arena, registry) ? compile(arena, files[0], &options) : NULL;
    int worst = schema ? CLI_OK : CLI_ERROR;
    for (size_t i = 1; schema && i < count; i++) {
        struct json instance;
        struct problems problems;
        int status = CLI_ERROR;
        problems_init(&problems, arena);
        if (read_value(arena, files[i], &instance)) {
            enum schema_validity answer = schema_explain(schema, &instance, &problems, NULL);
            status = answer == SCHEMA_VALID ? CLI_OK : answer == SCHEMA_INVALID ? CLI_NO : CLI_ERROR;
            lua_pushvalue(L, 2);
            lua_pushstring(L, files[i]);
            push_problems(L, &problems);
            lua_call(L, 2, 0);
        }
        worst = status > worst ? status : worst;
    }
    arena_free(arena);
    lua_pushinteger(L, worst);
    return 1;
}

/* cli.sample(schema): arguments that the schema accepts, with nothing optional in them, as JSON; then the
 * first that is required, and the arguments without it. Nothing: no such arguments were found. */
static int sample(lua_State *L)
{
    struct arena *arena = arena_new();
    struct json source, found;
    struct schema *schema;
    if (json_parse(arena, lua_cli_str(L, 1), &many_values, &source, NULL) != OK ||
        schema_compile(arena, &source, NULL, &schema, NULL, NULL) != OK ||
        !schema_sample(arena, schema, SAMPLE_REQUIRED, &found) || found.type != JSON_OBJECT ||
        schema_validate(schema, &found) != SCHEMA_VALID) {
        arena_free(arena);
        return 0;
    }
    lua_settop(L, 0);
    lua_cli_push_str(L, json_to_str(arena, &found));
    for (uint32_t i = 0; i < found.len && lua_gettop(L) == 1; i++) {
        struct str name = found.members[i].key;
        if (!json_array_has(json_get_text(&source, "required"), name))
            continue;
        struct json less = json_without(arena, &found, name);
        lua_cli_push_str(L, name);
        lua_cli_push_str(L, json_to_str(arena, &less));
    }
    arena_free(arena);
    return lua_gettop(L);
}

/* cli.quote(text): as JSON, with all its characters. */
static int quote(lua_State *L)
{
    struct buf out = {0};
    json_write_string(&out, lua_cli_str(L, 1));
    return lua_cli_push_buf(L, &out);
}

/* cli.json(value): one line. */
static int to_json(lua_State *L)
{
    struct arena *arena = arena_new();
    struct buf out = {0};
    struct str text = STR_LIT("null");
    if (!lua_isnoneornil(L, 1))
        text = json_to_str(arena, lua_json_read(L, 1, "a value", arena));
    printable_write_json(&out, text);
    arena_free(arena);
    return lua_cli_push_buf(L, &out);
}

/* cli.parse(text, is_list): the value, as an answer has it, the JSON of each of its members or items, and all
 * of it on one line; then what is wrong with it all the same, as a key that it has twice. Or nil, and why it
 * is no JSON. A list may have many more values than arguments. */
static int parse(lua_State *L)
{
    struct arena *arena = arena_new();
    struct json value;
    struct json_error fault;
    bool parsed =
        json_parse(arena, lua_cli_str(L, 1), lua_toboolean(L, 2) ? &many_values : NULL, &value, &fault) == OK;
    if (parsed || fault.soft) {
        struct buf text = {0};
        lua_cli_push_answer(L, &value);
        json_write(&text, &value);
        lua_cli_push_buf(L, &text);
    } else {
        lua_pushnil(L);
    }
    lua_pushstring(L, parsed ? NULL : fault.text);
    arena_free(arena);
    return parsed || fault.soft ? 4 : 2;
}

/* cli.shown_json(text): JSON of one line, as a terminal may show it. */
static int shown_json(lua_State *L)
{
    struct buf out = {0};
    printable_write_json(&out, lua_cli_str(L, 1));
    return lua_cli_push_buf(L, &out);
}

/* cli.keys(object): its names, in the order in which they came. */
static int keys(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_json_push_keys(L, 1);
    return 1;
}

const luaL_Reg lua_schema_functions[] = {
    {"validate", validate}, {"sample", sample},         {"quote", quote}, {"json", to_json},
    {"parse", parse},       {"shown_json", shown_json}, {"keys", keys},   {0},
};
