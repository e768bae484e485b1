/* Finds the tool that `toolgate new` writes a policy for: in a schema's file, a file of tools, or a running
 * daemon. */
#include "cli/cmd_new.h"

#include "base/arena.h"
#include "base/suggest.h"
#include "catalog/generation.h"
#include "cli/json_input.h"
#include "cli/rpc_call.h"
#include "cli/term.h"
#include "config/config.h"
#include "json/build.h"
#include "json/parse.h"

static const char *const templates[] = {"blank", "read", "write", "search", "http"};
#define TEMPLATES (sizeof(templates) / sizeof(templates[0]))

struct search {
    const struct command *command;
    struct arena *arena;
    struct new_tool *tool;
    struct str *names; /* of all tools seen, for the closest one */
    size_t count, capacity;
    bool found;
};

static struct json *read_file(const struct command *command, struct arena *arena, const char *path)
{
    struct json *value = ARENA_NEW(arena, struct json);
    struct why why;
    if (json_read_input(arena, path, JSON_INPUT_MAX_BYTES, value, &why) == OK)
        return value;
    term_error(command->name, "%s", why.text);
    return NULL;
}

static bool use_schema(const struct command *command, const char *path, struct arena *arena,
                       struct new_tool *tool)
{
    const struct json *file = read_file(command, arena, path);
    if (!file)
        return false;
    if (file->type != JSON_OBJECT || json_get_text(file, "inputSchema")) {
        term_error(
            command->name,
            file->type == JSON_OBJECT
                ? "%s: expected a JSON Schema, got a tool's whole definition: put it into a list and pass "
                  "that with --tools"
                : "%s: expected a JSON Schema, an object",
            path);
        return false;
    }
    tool->schema = file;
    tool->description = json_str(json_get_text(file, "description"));
    return true;
}

static void note_definition(struct search *search, const struct json *definition, const char *path)
{
    static const struct json any_object = {.type = JSON_OBJECT};
    struct str name = json_str(json_get_text(definition, "name"));
    struct new_tool *tool = search->tool;
    if (search->count == search->capacity) {
        size_t capacity = search->capacity ? search->capacity * 2 : 64;
        struct str *names = ARENA_ARRAY(search->arena, struct str, capacity);
        if (search->count)
            memcpy(names, search->names, search->count * sizeof(*names));
        search->names = names;
        search->capacity = capacity;
    }
    search->names[search->count++] = name;
    if (search->found || !str_eq(name, tool->name))
        return;
    const struct json *schema = json_get_text(definition, "inputSchema");
    search->found = true;
    tool->definition = definition;
    tool->description = json_str(json_get_text(definition, "description"));
    tool->schema = json_is(schema, JSON_OBJECT) ? schema : &any_object;
    tool->annotations = json_get_text(definition, "annotations");
    tool->title = json_str(json_get_text(definition, "title"));
    if (!tool->title.len)
        tool->title = json_str(json_get_text(tool->annotations, "title"));
    tool->defined = true;
    tool->tools_file = path;
}

bool new_tool_hints(const struct new_tool *tool, const char *hint, bool value)
{
    const struct json *given = json_get_text(tool->annotations, hint);
    return json_is(given, JSON_BOOL) && given->truth == value;
}

static bool report_unknown(const struct search *search, const char *where, const char *hint)
{
    struct str near = suggest_closest(search->tool->name, search->names, search->count);
    if (near.len)
        term_error(search->command->name,
                   "no tool '" STR_FMT "' among the %zu of %s (did you mean '" STR_FMT "'?); %s",
                   STR_ARG(search->tool->name), search->count, where, STR_ARG(near), hint);
    else
        term_error(search->command->name, "no tool '" STR_FMT "' among the %zu of %s; %s",
                   STR_ARG(search->tool->name), search->count, where, hint);
    return false;
}

/* The files that serve would read, of the configuration and of the command line. True without any: then
 * nothing is known of the tool. */
static bool search_files(struct search *search, const struct local_options *local)
{
    struct config_sources sources = local_sources(local, NULL);
    struct config config;
    struct why why;
    bool valid = true;
    sources.policies = NULL; /* the folder may not exist yet */
    if (config_load(&sources, &config, &why) != OK) {
        term_error(search->command->name, "%s", why.text);
        config_free(&config);
        return false;
    }
    for (size_t i = 0; valid && i < config.tools.count; i++) {
        const char *path = arena_dup(search->arena, str_of(config.tools.list[i])).at;
        const struct json *file = read_file(search->command, search->arena, path);
        const struct json *definitions = file ? generation_tools_in_file(file) : NULL;
        valid = definitions != NULL;
        if (file && !valid)
            term_error(search->command->name,
                       "%s: expected an array of {name, description, inputSchema} or {\"tools\": […]}", path);
        for (uint32_t n = 0; valid && n < definitions->len; n++)
            note_definition(search, &definitions->items[n], path);
    }
    bool unknown = valid && config.tools.count && !search->found;
    config_free(&config);
    if (unknown)
        return report_unknown(
            search, "the files of tools",
            "`toolgate tools` with the same --tools lists them; without --tools toolgate new "
            "writes an empty policy");
    search->tool->definition = NULL; /* the file has it */
    return valid;
}

static int on_tools(void *owner, const struct json *answer)
{
    struct search *search = owner;
    struct new_tool *tool = search->tool;
    struct json *copy = ARENA_NEW(search->arena, struct json);
    *copy = json_copy(search->arena, answer);
    const struct json *tools = json_get_text(copy, "tools");
    const struct json *place = json_get(json_get_text(copy, "runs_at"), tool->name);
    for (uint32_t i = 0; json_is(tools, JSON_ARRAY) && i < tools->len; i++)
        note_definition(search, &tools->items[i], NULL);
    if (!search->found || !str_is(json_str(json_get_text(place, "kind")), "mcp"))
        return CLI_OK;
    /* "docs" if the tool has the same name there, else "docs/find" */
    struct str upstream = json_str(json_get_text(place, "upstream"));
    struct str name = json_str(json_get_text(place, "tool"));
    tool->upstream = str_eq(name, tool->name)
                         ? upstream
                         : arena_printf(search->arena, STR_FMT "/" STR_FMT, STR_ARG(upstream), STR_ARG(name));
    return CLI_OK;
}

bool new_tool_find(const struct command *command, const struct new_source *source, struct arena *arena,
                   struct new_tool *tool)
{
    struct search search = {.command = command, .arena = arena, .tool = tool};
    if (source->template && (source->schema || source->socket || source->local->tools.count)) {
        term_error(command->name,
                   "--template: a template has its own schema: leave out --schema, --tools and "
                   "--socket, or the template");
        return false;
    }
    if (source->template) {
        for (size_t i = 0; i < TEMPLATES; i++)
            if (strcmp(source->template, templates[i]) == 0)
                tool->template = templates[i];
        if (!tool->template)
            term_error(command->name,
                       "--template: expected one of blank, read, write, search, http, got '%s'",
                       source->template);
        return tool->template != NULL;
    }
    if (source->socket) {
        if (rpc_call(command, source->socket, "toolgate/tools", str_of("{}"), on_tools, &search) != CLI_OK)
            return false;
        if (!search.found)
            return report_unknown(&search, arena_printf(arena, "the daemon at %s", source->socket).at,
                                  "`toolgate tools` with the same --socket lists them");
    } else if (source->schema ? !use_schema(command, source->schema, arena, tool)
                              : !search_files(&search, source->local)) {
        return false;
    }
    tool->template = tool->schema ? "definition" : "blank";
    return true;
}
