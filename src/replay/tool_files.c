/* Recognises a definition's form by its members. */
#include "replay/tool_files.h"

#include "base/arena.h"
#include "catalog/generation.h"
#include "json/build.h"
#include "json/parse.h"

#include <unistd.h>

bool tool_definition_read(struct arena *arena, const struct json *definition, struct json *out)
{
    const struct json *function = json_get_text(definition, "function");
    const struct json *d = json_is(function, JSON_OBJECT) ? function : definition;
    const struct json *schema = json_get_text(d, "inputSchema");
    if (!json_str(json_get_text(d, "name")).len)
        return false;
    *out = *d;
    schema = schema ? schema : json_get_text(d, "input_schema");
    schema = schema ? schema : json_get_text(d, "parameters");
    if (json_is(schema, JSON_OBJECT))
        *out = json_with(arena, d, STR_LIT("inputSchema"), *schema);
    return true;
}

static const struct json *read_list(struct arena *arena, const struct json *list)
{
    struct json *items = ARENA_ARRAY(arena, struct json, list->len + 1);
    size_t count = 0;
    for (uint32_t i = 0; i < list->len; i++)
        count += tool_definition_read(arena, &list->items[i], &items[count]);
    return json_keep(arena, json_array(items, count));
}

/* The part before '=' is a toolset unless it is part of a path. */
static void split(const char *word, struct tool_file *out)
{
    const char *equals = strchr(word, '='), *slash = strchr(word, '/');
    bool named =
        equals && equals != word && equals[1] && !(slash && slash < equals) && access(word, F_OK) != 0;
    out->toolset = named ? (struct str){word, (size_t)(equals - word)} : STR_NONE;
    out->file = str_of(named ? equals + 1 : word);
}

enum err tool_file_read(struct arena *arena, const char *word, struct tool_file *out, struct why *why)
{
    struct json *file = ARENA_NEW(arena, struct json);
    split(word, out);
    enum err err = json_read_input(arena, out->file.at, TOOL_FILE_MAX_BYTES, file, why);
    if (err != OK)
        return err;
    const struct json *list = generation_tools_in_file(file);
    if (!list)
        return err_set(
            why, ERR_CONFIG,
            "%s: expected the tools as an array or as {\"tools\": […]}, as MCP, OpenAI or Anthropic write "
            "them, got %s",
            out->file.at, json_type_name((enum json_type)file->type));
    out->list = read_list(arena, list);
    if (list->len && !out->list->len)
        return err_set(why, ERR_CONFIG, "%s: none of its %u definitions has a name", out->file.at, list->len);
    return OK;
}
