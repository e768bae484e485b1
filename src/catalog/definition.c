/* Builds the definition of a tool member by member; members that official SDKs reject are left out. */
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

static void put_string(struct draft *draft, const char *key, struct str text)
{
    if (text.len)
        put(draft, key, json_string(text));
}

/* SDK v1 wants an object for each property: true becomes {}, false {"not":{}}. */
static struct json without_boolean_schemas(struct arena *arena, const struct json *properties)
{
    struct json out = *properties, empty = json_object(arena, NULL, 0);
    struct json_member not_anything = json_member(STR_LIT("not"), empty);
    for (uint32_t i = 0; i < properties->len; i++) {
        const struct json_member *property = &properties->members[i];
        if (json_is(&property->value, JSON_BOOL))
            out = json_with(arena, &out, property->key,
                            property->value.truth ? empty : json_object(arena, &not_anything, 1));
    }
    return out;
}

/* False: it is no schema of an object, and cannot become one without a change of its meaning. */
static bool repair_schema(struct arena *arena, const struct json *schema, struct json *out)
{
    const struct json *type = json_get_text(schema, "type");
    const struct json *properties = json_get_text(schema, "properties");
    const struct json *required = json_get_text(schema, "required");
    bool is_object = !type || str_is(json_str(type), "object") || json_array_has(type, STR_LIT("object"));
    bool has_boolean = false;
    if (!json_is(schema, JSON_OBJECT) || !is_object)
        return false;
    *out = *schema;
    if (!json_is(type, JSON_STRING))
        *out = json_with(arena, out, STR_LIT("type"), json_string(STR_LIT("object")));
    if (properties && !json_is(properties, JSON_OBJECT))
        *out = json_without(arena, out, STR_LIT("properties"));
    bool names_fields = json_is(required, JSON_ARRAY);
    for (uint32_t i = 0; names_fields && i < required->len; i++)
        names_fields = json_is(&required->items[i], JSON_STRING);
    if (required && !names_fields)
        *out = json_without(arena, out, STR_LIT("required"));
    for (uint32_t i = 0; json_is(properties, JSON_OBJECT) && i < properties->len; i++)
        has_boolean |= json_is(&properties->members[i].value, JSON_BOOL);
    if (has_boolean)
        *out = json_with(arena, out, STR_LIT("properties"), without_boolean_schemas(arena, properties));
    return true;
}

static enum err put_schemas(struct draft *draft, const struct json *input, const struct json *output,
                            struct why *why)
{
    struct json empty = json_object(draft->arena, NULL, 0), repaired;
    if (!repair_schema(draft->arena, input ? input : &empty, &repaired))
        return err_set(why, ERR_SCHEMA, "inputSchema: expected a schema of type \"object\"");
    put(draft, "inputSchema", repaired);
    if (output && repair_schema(draft->arena, output, &repaired))
        put(draft, "outputSchema", repaired);
    return OK;
}

static void put_annotations(struct draft *draft, const struct json *annotations)
{
    static const struct {
        const char *name;
        enum json_type type;
    } members[] = {{"readOnlyHint", JSON_BOOL},
                   {"destructiveHint", JSON_BOOL},
                   {"idempotentHint", JSON_BOOL},
                   {"openWorldHint", JSON_BOOL},
                   {"title", JSON_STRING}};
    if (!json_is(annotations, JSON_OBJECT))
        return;
    struct json out = *annotations;
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        const struct json *member = json_get_text(annotations, members[i].name);
        if (member && !json_is(member, members[i].type))
            out = json_without(draft->arena, &out, str_of(members[i].name));
    }
    put(draft, "annotations", out);
}

static void put_extras(struct draft *draft, const struct json *definition)
{
    const struct json *icons = json_get_text(definition, "icons"), *meta = json_get_text(definition, "_meta");
    bool valid = json_is(icons, JSON_ARRAY);
    for (uint32_t i = 0; valid && i < icons->len; i++)
        valid = json_is(json_get_text(&icons->items[i], "src"), JSON_STRING);
    if (valid)
        put(draft, "icons", *icons);
    if (json_is(meta, JSON_OBJECT))
        put(draft, "_meta", *meta);
}

static void add_sentence(struct buf *text, const char *prefix, struct str sentence)
{
    sentence = str_trim(sentence);
    if (!sentence.len)
        return;
    if (text->len)
        buf_byte(text, '\n');
    buf_text(text, prefix);
    buf_str(text, sentence);
    if (!strchr(".!?", sentence.at[sentence.len - 1]))
        buf_byte(text, '.');
}

static struct str description(struct arena *arena, const struct tool *tool)
{
    const struct policy *policy;
    struct buf text = buf_in(arena);
    bool says = false, rules = false;
    for (size_t i = 0; (policy = tool_enforced_policy(tool, &i));)
        says |= policy->use_when.len || policy->avoid_when.len || policy->rule_count;
    if (!says)
        return tool->description;
    buf_str(&text, str_trim(tool->description));
    for (size_t i = 0; (policy = tool_enforced_policy(tool, &i));) {
        add_sentence(&text, "Use it when ", policy->use_when);
        add_sentence(&text, "Avoid it when ", policy->avoid_when);
    }
    for (size_t i = 0; (policy = tool_enforced_policy(tool, &i));)
        for (size_t n = 0; n < policy->rule_count; n++, rules = true)
            add_sentence(&text, rules ? "- " : "Rules:\n- ", policy->rule_words[n]);
    return buf_view(&text);
}

enum err definition_from_tool(struct arena *arena, const struct tool *tool, struct json *out, struct why *why)
{
    struct draft draft = {.arena = arena};
    put_string(&draft, "name", tool->name);
    put_string(&draft, "title", tool->title);
    put_string(&draft, "description", description(arena, tool));
    enum err err = put_schemas(&draft, tool->input, tool->output, why);
    if (err)
        return err;
    put_annotations(&draft, tool->annotations);
    put_extras(&draft, tool->definition);
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
    put_string(&draft, "name", name);
    put_string(&draft, "title", json_str(json_get_text(definition, "title")));
    put_string(&draft, "description", json_str(json_get_text(definition, "description")));
    enum err err = put_schemas(&draft, json_get_text(definition, "inputSchema"),
                               json_get_text(definition, "outputSchema"), why);
    if (err)
        return err;
    put_annotations(&draft, json_get_text(definition, "annotations"));
    put_extras(&draft, definition);
    *out = json_object(arena, draft.members, draft.count);
    return OK;
}
