/* Where a tool's definition comes from: a schema's file, a file of tools, a running daemon, or nowhere. */
#include "cli/cmd_new.h"

#include "base/arena.h"
#include "cli/rpc_call.h"
#include "cli/json_input.h"
#include "cli/term.h"
#include "config/config.h"
#include "catalog/generation.h"
#include "json/build.h"
#include "json/parse.h"
#include "base/suggest.h"

#include <stdlib.h>

static const char any_object[] = "{\"type\":\"object\"}";

/* What a policy that is made from nothing begins with. */
static const char blank_schema[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"query\"],\"properties\":{"
    "\"query\":{\"type\":\"string\",\"minLength\":1,\"description\":\"What is looked for\"},"
    "\"order\":{\"type\":\"string\",\"enum\":[\"newest\",\"oldest\"],\"description\":\"What comes first\"},"
    "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":100,\"default\":20,\"description\":\"At most "
    "so many\"}}}";

static struct json *read_json(const struct command *command, struct arena *arena, const char *path)
{
    struct json *value = arena_alloc(arena, sizeof(*value));
    struct why why;
    if (json_read_input(arena, path, JSON_INPUT_MAX_BYTES, value, &why) == OK)
        return value;
    term_error(command->name, "%s", why.text);
    return NULL;
}

static bool take_schema(const struct command *command, const char *path, struct arena *arena,
                        struct new_tool *tool)
{
    const struct json *file = read_json(command, arena, path);
    if (!file)
        return false;
    if (file->type != JSON_OBJECT || json_get_text(file, "inputSchema")) {
        term_error(command->name,
                   json_get_text(file, "inputSchema")
                       ? "%s: this is a tool's whole definition: give it with --tools, in a list"
                       : "%s: expected a JSON Schema, an object",
                   path);
        return false;
    }
    tool->schema = file;
    tool->description = json_str(json_get_text(file, "description"));
    return true;
}

static const struct json *our_own(struct arena *arena, const char *text)
{
    struct json *schema = arena_alloc(arena, sizeof(*schema));
    struct json_error fault;
    if (json_parse(arena, str_of(text), NULL, schema, &fault) != OK)
        abort();
    return schema;
}

static void take_nothing(struct arena *arena, struct new_tool *tool)
{
    tool->schema = our_own(arena, blank_schema);
    tool->blank = true;
}

/* ---- files of tools ---- */

struct looking {
    const struct command *command;
    struct arena *arena;
    struct new_tool *tool;
    struct str *names; /* of all tools met */
    size_t count, room;
};

static void note_name(struct looking *l, struct str name)
{
    if (l->count == l->room) {
        size_t room = l->room ? l->room * 2 : 64;
        struct str *wider = ARENA_ARRAY(l->arena, struct str, room);
        if (l->count)
            memcpy(wider, l->names, l->count * sizeof(*wider));
        l->names = wider;
        l->room = room;
    }
    l->names[l->count++] = name;
}

static void take_definition(struct arena *arena, struct new_tool *tool, const struct json *definition,
                            const char *path)
{
    const struct json *schema = json_get_text(definition, "inputSchema");
    tool->description = json_str(json_get_text(definition, "description"));
    tool->schema = json_is(schema, JSON_OBJECT) ? schema : our_own(arena, any_object);
    tool->annotations = json_get_text(definition, "annotations");
    tool->tools_file = path;
}

static bool look_into(struct looking *l, const char *path)
{
    const struct json *file = read_json(l->command, l->arena, path);
    const struct json *definitions = file ? generation_tools_in_file(file) : NULL;
    if (!file)
        return false;
    if (!definitions) {
        term_error(l->command->name,
                   "%s: expected an array of {name, description, inputSchema} or {\"tools\": […]}", path);
        return false;
    }
    for (uint32_t i = 0; i < definitions->len; i++) {
        struct str name = json_str(json_get_text(&definitions->items[i], "name"));
        note_name(l, name);
        if (str_eq(name, l->tool->name) && !l->tool->tools_file)
            take_definition(l->arena, l->tool, &definitions->items[i], path);
    }
    return true;
}

static bool complain_of_unknown(const struct looking *l)
{
    struct str near = suggest_closest(l->tool->name, l->names, l->count);
    if (near.len)
        term_error(l->command->name,
                   "no tool '" STR_FMT "' among the %zu in the files of tools (did you mean '" STR_FMT
                   "'?); `toolgate tools` with the same --tools lists them",
                   STR_ARG(l->tool->name), l->count, STR_ARG(near));
    else
        term_error(l->command->name,
                   "no tool '" STR_FMT
                   "' among the %zu in the files of tools: `toolgate tools` with the same "
                   "--tools lists them; leave --tools out to begin with an empty policy",
                   STR_ARG(l->tool->name), l->count);
    return false;
}

/* The files are those that serve would read, of the configuration and of the command line. */
static bool look_in_files(const struct command *command, const struct local_options *loaded,
                          struct arena *arena, struct new_tool *tool)
{
    struct looking looking = {.command = command, .arena = arena, .tool = tool};
    struct config_sources sources = local_sources(loaded, NULL);
    struct config config;
    struct why why;
    bool fine = true;
    sources.policies = NULL; /* the folder may be yet to be made */
    if (config_load(&sources, &config, &why) != OK) {
        term_error(command->name, "%s", why.text);
        config_free(&config);
        return false;
    }
    for (size_t i = 0; fine && i < config.tools.count; i++)
        fine = look_into(&looking, arena_dup(arena, str_of(config.tools.list[i])).at);
    if (fine && config.tools.count && !tool->tools_file)
        fine = complain_of_unknown(&looking);
    else if (fine && !config.tools.count)
        take_nothing(arena, tool);
    config_free(&config);
    return fine;
}

/* ---- a running daemon ---- */

/* "docs" where it has the same name there, else "docs/find". */
static void take_place(struct arena *arena, struct new_tool *tool, const struct json *place)
{
    struct str upstream = json_str(json_get_text(place, "upstream")),
               there = json_str(json_get_text(place, "tool"));
    if (!str_is(json_str(json_get_text(place, "kind")), "mcp"))
        return;
    tool->upstream = str_eq(there, tool->name)
                         ? arena_dup(arena, upstream)
                         : arena_printf(arena, STR_FMT "/" STR_FMT, STR_ARG(upstream), STR_ARG(there));
}

static int look_at_answer(void *owner, const struct json *answer)
{
    struct looking *l = owner;
    const struct json *tools = json_get_text(answer, "tools");
    for (uint32_t i = 0; json_is(tools, JSON_ARRAY) && i < tools->len; i++) {
        struct str name = json_str(json_get_text(&tools->items[i], "name"));
        note_name(l, arena_dup(l->arena, name));
        if (!str_eq(name, l->tool->name) || l->tool->definition)
            continue;
        struct json *definition = arena_alloc(l->arena, sizeof(*definition));
        *definition = json_copy(l->arena, &tools->items[i]);
        take_definition(l->arena, l->tool, definition, NULL);
        l->tool->definition = definition;
        take_place(l->arena, l->tool, json_get(json_get_text(answer, "runs_at"), name));
    }
    return CLI_OK;
}

static bool ask_for_tool(const struct command *command, const char *socket, struct arena *arena,
                         struct new_tool *tool)
{
    struct looking looking = {.command = command, .arena = arena, .tool = tool};
    if (rpc_call(command, socket, "toolgate/tools", str_of("{}"), look_at_answer, &looking) != CLI_OK)
        return false;
    if (tool->definition)
        return true;
    struct str near = suggest_closest(tool->name, looking.names, looking.count);
    term_error(command->name, "no tool '" STR_FMT "' among the %zu of the daemon at %s%s" STR_FMT "%s",
               STR_ARG(tool->name), looking.count, socket, near.len ? " (did you mean '" : "", STR_ARG(near),
               near.len ? "'?)" : "; `toolgate tools` with the same --socket lists them");
    return false;
}

bool new_tool_find(const struct command *command, const struct new_source *source, struct arena *arena,
                   struct new_tool *tool)
{
    if (source->socket)
        return ask_for_tool(command, source->socket, arena, tool);
    if (source->schema)
        return take_schema(command, source->schema, arena, tool);
    return look_in_files(command, source->loaded, arena, tool);
}
