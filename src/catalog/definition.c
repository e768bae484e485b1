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

/* False: it is no schema of an object, and cannot become one without a change of its meaning. */
static bool repair_schema(struct arena *arena, const struct json *schema, struct json *out)
{
    const struct json *type = json_get_text(schema, "type");
    const struct json *properties = json_get_text(schema, "properties");
    const struct json *required = json_get_text(schema, "required");
    bool is_object = !type || str_is(json_str(type), "object") || json_array_has(type, STR_LIT("object"));
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
    /* SDK v1 wants an object for each property: true becomes {}, false {"not":{}}. */
    struct json named = json_is(properties, JSON_OBJECT) ? *properties : json_null();
    struct json empty = json_object(arena, NULL, 0);
    struct json_member not_anything = json_member(STR_LIT("not"), empty);
    bool has_boolean = false;
    for (uint32_t i = 0; json_is(properties, JSON_OBJECT) && i < properties->len; i++) {
        const struct json_member *property = &properties->members[i];
        if (!json_is(&property->value, JSON_BOOL))
            continue;
        named = json_with(arena, &named, property->key,
                          property->value.truth ? empty : json_object(arena, &not_anything, 1));
        has_boolean = true;
    }
    if (has_boolean)
        *out = json_with(arena, out, STR_LIT("properties"), named);
    return true;
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

/* `extras`: the definition whose icons and _meta are kept; NULL: none. */
static enum err write_definition(struct arena *arena, const struct str texts[3], const struct json *input,
                                 const struct json *output, const struct json *annotations,
                                 const struct json *extras, struct json *out, struct why *why)
{
    static const char *const keys[3] = {"name", "title", "description"};
    const struct json *icons = json_get_text(extras, "icons"), *meta = json_get_text(extras, "_meta");
    struct draft draft = {.arena = arena};
    struct json empty = json_object(arena, NULL, 0), repaired;
    for (size_t i = 0; i < 3; i++)
        if (texts[i].len)
            put(&draft, keys[i], json_string(texts[i]));
    if (!repair_schema(arena, input ? input : &empty, &repaired))
        return err_set(why, ERR_SCHEMA, "inputSchema: expected a schema of type \"object\"");
    put(&draft, "inputSchema", repaired);
    if (output && repair_schema(arena, output, &repaired))
        put(&draft, "outputSchema", repaired);
    put_annotations(&draft, annotations);
    bool valid = json_is(icons, JSON_ARRAY);
    for (uint32_t i = 0; valid && i < icons->len; i++)
        valid = json_is(json_get_text(&icons->items[i], "src"), JSON_STRING);
    if (valid)
        put(&draft, "icons", *icons);
    if (json_is(meta, JSON_OBJECT))
        put(&draft, "_meta", *meta);
    *out = json_object(arena, draft.members, draft.count);
    return OK;
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
    const struct str texts[3] = {tool->name, tool->title, description(arena, tool)};
    return write_definition(arena, texts, tool->input, tool->output, tool->annotations, tool->definition, out,
                            why);
}

enum err definition_repair(struct arena *arena, struct str name, const struct json *definition,
                           struct json *out, struct why *why)
{
    if (!json_is(definition, JSON_OBJECT))
        return err_set(why, ERR_SCHEMA, "expected a tool definition, got %s",
                       definition ? json_type_name((enum json_type)definition->type) : "nothing");
    const struct str texts[3] = {name, json_str(json_get_text(definition, "title")),
                                 json_str(json_get_text(definition, "description"))};
    return write_definition(arena, texts, json_get_text(definition, "inputSchema"),
                            json_get_text(definition, "outputSchema"),
                            json_get_text(definition, "annotations"), definition, out, why);
}
