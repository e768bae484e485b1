/* Member by member, each with what official SDKs accept there; whatever else a definition holds stays behind.
 */
#include "catalog/definition.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/build.h"

#define DEFINITION_MEMBERS_MAX 8u

struct draft {
    struct arena *arena;
    struct json_member members[DEFINITION_MEMBERS_MAX];
    size_t count;
};

static void put(struct draft *draft, const char *key, struct json value)
{
    draft->members[draft->count++] = json_member(str_of(key), value);
}

/* ---- schemas -------------------------------------------------------------- */

static bool names_object(const struct json *type)
{
    return str_is(json_str(type), "object") || json_array_has(type, STR_LIT("object"));
}

static bool all_strings(const struct json *array)
{
    for (uint32_t i = 0; i < array->len; i++)
        if (!json_is(&array->items[i], JSON_STRING))
            return false;
    return true;
}

/* SDK v1 wants an object for each property: true becomes {}, false {"not":{}}. */
static struct json as_object(struct arena *arena, const struct json *schema)
{
    struct json empty = json_object(arena, NULL, 0);
    struct json_member not_anything = json_member(STR_LIT("not"), empty);
    return schema->truth ? empty : json_object(arena, &not_anything, 1);
}

static struct json mend_properties(struct arena *arena, const struct json *properties)
{
    struct json fresh = *properties;
    for (uint32_t i = 0; i < properties->len; i++)
        if (json_is(&properties->members[i].value, JSON_BOOL))
            fresh = json_with(arena, &fresh, properties->members[i].key,
                              as_object(arena, &properties->members[i].value));
    return fresh;
}

/* False: it is no schema of an object, and cannot be made one without changing what it means. */
static bool mend_schema(struct arena *arena, const struct json *schema, struct json *out)
{
    const struct json *type = json_get_text(schema, "type"),
                      *properties = json_get_text(schema, "properties");
    const struct json *required = json_get_text(schema, "required");
    if (!json_is(schema, JSON_OBJECT) || (type && !names_object(type)))
        return false;
    *out = *schema;
    if (!json_is(type, JSON_STRING))
        *out = json_with(arena, out, STR_LIT("type"), json_string(STR_LIT("object")));
    if (properties && !json_is(properties, JSON_OBJECT))
        *out = json_without(arena, out, STR_LIT("properties"));
    if (required && (!json_is(required, JSON_ARRAY) || !all_strings(required)))
        *out = json_without(arena, out, STR_LIT("required"));
    for (uint32_t i = 0; json_is(properties, JSON_OBJECT) && i < properties->len; i++)
        if (json_is(&properties->members[i].value, JSON_BOOL)) {
            *out = json_with(arena, out, STR_LIT("properties"), mend_properties(arena, properties));
            break;
        }
    return true;
}

static enum err put_schemas(struct draft *draft, const struct json *input, const struct json *output,
                            struct why *why)
{
    struct json nothing = json_object(draft->arena, NULL, 0), mended;
    if (!mend_schema(draft->arena, input ? input : &nothing, &mended))
        return err_set(why, ERR_SCHEMA, "inputSchema: expected a schema of type \"object\"");
    put(draft, "inputSchema", mended);
    if (output && mend_schema(draft->arena, output, &mended))
        put(draft, "outputSchema", mended);
    return OK;
}

/* ---- the rest ------------------------------------------------------------- */

static void put_annotations(struct draft *draft, const struct json *annotations)
{
    static const char *const hints[] = {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"};
    if (!json_is(annotations, JSON_OBJECT))
        return;
    struct json fresh = *annotations;
    const struct json *title = json_get_text(annotations, "title");
    for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
        const struct json *hint = json_get_text(annotations, hints[i]);
        if (hint && !json_is(hint, JSON_BOOL))
            fresh = json_without(draft->arena, &fresh, str_of(hints[i]));
    }
    if (title && !json_is(title, JSON_STRING))
        fresh = json_without(draft->arena, &fresh, STR_LIT("title"));
    put(draft, "annotations", fresh);
}

static void put_icons(struct draft *draft, const struct json *icons)
{
    for (uint32_t i = 0; json_is(icons, JSON_ARRAY) && i < icons->len; i++)
        if (!json_is(json_get_text(&icons->items[i], "src"), JSON_STRING))
            return;
    if (json_is(icons, JSON_ARRAY))
        put(draft, "icons", *icons);
}

static void put_meta(struct draft *draft, const struct json *meta)
{
    if (json_is(meta, JSON_OBJECT))
        put(draft, "_meta", *meta);
}

static void put_text(struct draft *draft, const char *key, struct str text)
{
    if (text.len)
        put(draft, key, json_string(text));
}

/* ---- the description ------------------------------------------------------ */

static void add_sentence(struct buf *text, const char *before, struct str words)
{
    words = str_trim(words);
    if (!words.len)
        return;
    if (text->len)
        buf_byte(text, '\n');
    buf_text(text, before);
    buf_str(text, words);
    if (!strchr(".!?", words.at[words.len - 1]))
        buf_byte(text, '.');
}

static struct str description(struct arena *arena, const struct tool *tool)
{
    const struct policy *policy = tool->policy;
    struct buf text = buf_in(arena);
    if (!tool_is_enforced(tool) || (!policy->use_when.len && !policy->avoid_when.len && !policy->rule_count))
        return tool->description;
    buf_str(&text, str_trim(tool->description));
    add_sentence(&text, "Use it when ", policy->use_when);
    add_sentence(&text, "Avoid it when ", policy->avoid_when);
    for (size_t i = 0; i < policy->rule_count; i++)
        add_sentence(&text, i == 0 ? "Rules:\n- " : "- ", policy->rule_words[i]);
    return buf_view(&text);
}

/* ---- both ways ------------------------------------------------------------ */

enum err definition_from_tool(struct arena *arena, const struct tool *tool, struct json *out, struct why *why)
{
    struct draft draft = {.arena = arena};
    put_text(&draft, "name", tool->name);
    put_text(&draft, "title", tool->title);
    put_text(&draft, "description", description(arena, tool));
    enum err err = put_schemas(&draft, tool->input, tool->output, why);
    if (err)
        return err;
    put_annotations(&draft, tool->annotations);
    put_icons(&draft, json_get_text(tool->definition, "icons"));
    put_meta(&draft, json_get_text(tool->definition, "_meta"));
    *out = json_object(arena, draft.members, draft.count);
    return OK;
}

enum err definition_repair(struct arena *arena, struct str name, const struct json *definition,
                           struct json *out, struct why *why)
{
    struct draft draft = {.arena = arena};
    if (!json_is(definition, JSON_OBJECT))
        return err_set(why, ERR_SCHEMA, "expected a tool definition, got %s",
                       definition ? json_type_name((enum json_type)definition->type) : "nothing");
    put_text(&draft, "name", name);
    put_text(&draft, "title", json_str(json_get_text(definition, "title")));
    put_text(&draft, "description", json_str(json_get_text(definition, "description")));
    enum err err = put_schemas(&draft, json_get_text(definition, "inputSchema"),
                               json_get_text(definition, "outputSchema"), why);
    if (err)
        return err;
    put_annotations(&draft, json_get_text(definition, "annotations"));
    put_icons(&draft, json_get_text(definition, "icons"));
    put_meta(&draft, json_get_text(definition, "_meta"));
    *out = json_object(arena, draft.members, draft.count);
    return OK;
}
