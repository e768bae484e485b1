/* Two tables: members and blocks of content by the version that brought them. Versions are dates, so they
 * compare as strings. */
#include "catalog/mcp_version.h"

#include "base/arena.h"
#include "json/build.h"

#define URI_MAX_BYTES 2048u

static const struct {
    const char *key, *since;
    bool of_tools; /* of other definitions it is as old as they are */
} members[] = {
    {"annotations", MCP_2025_03_26, true},   {"title", MCP_2025_06_18, false},
    {"outputSchema", MCP_2025_06_18, false}, {"_meta", MCP_2025_06_18, false},
    {"icons", MCP_2025_11_25, false},
};

bool mcp_version_before(struct str protocol, const char *version)
{
    return protocol.len && str_cmp(protocol, str_of(version)) < 0;
}

const struct json *mcp_version_definition(struct arena *arena, struct str protocol,
                                          const struct json *definition)
{
    const struct json *arguments = json_get_text(definition, "arguments");
    bool is_tool = json_get_text(definition, "inputSchema"), changed = false;
    if (!mcp_version_before(protocol, MCP_2025_11_25) || !json_is(definition, JSON_OBJECT))
        return definition;
    struct json out = *definition;
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        if (mcp_version_before(protocol, members[i].since) && (is_tool || !members[i].of_tools) &&
            json_get_text(&out, members[i].key)) {
            out = json_without(arena, &out, str_of(members[i].key));
            changed = true;
        }
    if (json_is(arguments, JSON_ARRAY) && mcp_version_before(protocol, MCP_2025_06_18)) {
        struct json *items = ARENA_ARRAY(arena, struct json, arguments->len); /* of a prompt: with titles */
        for (uint32_t i = 0; i < arguments->len; i++)
            items[i] = *mcp_version_definition(arena, protocol, &arguments->items[i]);
        out = json_with(arena, &out, STR_LIT("arguments"), json_array(items, arguments->len));
        changed = true;
    }
    return changed ? json_keep(arena, out) : definition;
}

static struct str member(const struct json *block, const char *key)
{
    return str_cut(json_str(json_get_text(block, key)), URI_MAX_BYTES);
}

static const struct json *text_block(struct arena *arena, struct str text)
{
    struct json_member both[] = {json_member(STR_LIT("type"), json_string(STR_LIT("text"))),
                                 json_member(STR_LIT("text"), json_string(text))};
    return json_keep(arena, json_object(arena, both, 2));
}

const struct json *mcp_version_content(struct arena *arena, struct str protocol, const struct json *block)
{
    struct str type = member(block, "type");
    if (str_is(type, "resource_link") && mcp_version_before(protocol, MCP_2025_06_18))
        return text_block(arena, arena_printf(arena, "Resource " STR_FMT ": " STR_FMT,
                                              STR_ARG(member(block, "name")), STR_ARG(member(block, "uri"))));
    if (str_is(type, "audio") && mcp_version_before(protocol, MCP_2025_03_26))
        return text_block(arena,
                          arena_printf(arena,
                                       "Audio (" STR_FMT ") is left out: this client speaks a version of MCP "
                                       "that has none.",
                                       STR_ARG(member(block, "mimeType"))));
    return block;
}
