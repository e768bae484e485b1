/*
 * The file, top to bottom as POLICY.md orders it: what it is for, declaration,
 * rules, functions, examples. What only the operator can know is a comment to
 * be filled in; nothing that is guessed is in force without saying so.
 */
#include "cli/cmd_new.h"

#include "base/arena.h"

#define HEADLINE_BYTES 110u

static struct str lines_first(struct str text)
{
    const char *end = text.len ? memchr(text.at, '\n', text.len) : NULL;
    return end ? (struct str){text.at, (size_t)(end - text.at)} : text;
}

/* The first sentence, on one line. */
static struct str headline(struct str description)
{
    struct str line = str_trim(lines_first(str_trim(description)));
    for (size_t i = 0; i + 1 < line.len; i++)
        if (line.at[i] == '.' && line.at[i + 1] == ' ' && (i < 2 || line.at[i - 2] != '.'))
            line.len = i;
    line = str_cut(line, HEADLINE_BYTES);
    while (line.len && (line.at[line.len - 1] == '.' || line.at[line.len - 1] == ' '))
        line.len--;
    return line;
}

static void write_head(struct buf *out, const struct new_tool *tool, const struct new_effects *effects)
{
    struct str line = headline(tool->description);
    buf_printf(out, "-- " STR_FMT ": ", STR_ARG(tool->name));
    if (line.len)
        buf_printf(out, STR_FMT ".", STR_ARG(line));
    else
        buf_text(out, "say here in a line what it is for.");
    if (effects->told)
        buf_text(out, " It only reads.");
    buf_text(out, "\n-- Who may call it, and what they may not do: say it here, for whoever is paged.\n");
}

/* ---- what the model reads ---- */

static void write_text_field(struct buf *out, const char *name, struct str text)
{
    buf_printf(out, "  %-11s = ", name);
    lua_write_text(out, text);
    buf_text(out, ",\n");
}

static void write_words(struct buf *out, struct arena *arena, const struct new_tool *tool)
{
    struct new_advice advice = new_split_description(arena, tool->description);
    bool split = advice.use_when.len || advice.avoid_when.len;
    if (tool->tools_file && !split)
        buf_text(out, "  -- What the model reads is the definition's description; description = \"…\" would "
                      "replace it.\n");
    else if (advice.description.len)
        write_text_field(out, "description", advice.description);
    else
        write_text_field(
            out, "description",
            arena_printf(arena, "Say in a sentence what " STR_FMT " does.", STR_ARG(tool->name)));
    if (advice.use_when.len)
        write_text_field(out, "use_when", advice.use_when);
    else
        buf_text(out, "  -- use_when    = \"the user …\",\n");
    if (advice.avoid_when.len)
        write_text_field(out, "avoid_when", advice.avoid_when);
    else
        buf_text(out, "  -- avoid_when  = \"…: use another_tool\",\n");
}

static void write_effects(struct buf *out, const struct new_effects *effects)
{
    if (effects->effects)
        buf_printf(out, "  effects     = \"%s\", -- " STR_FMT "; read, write, destructive or toggle\n",
                   effects->effects, STR_ARG(effects->because));
    else
        buf_text(out, "  -- effects  = \"read\", -- or write, destructive, toggle: how often the same call "
                      "may be made\n");
}

/* ---- schema ---- */

static void write_schema(struct buf *out, struct arena *arena, const struct new_tool *tool)
{
    buf_byte(out, '\n');
    if (tool->tools_file) {
        buf_printf(
            out,
            "  -- The schema is the definition's own, in %s: give that with --tools wherever this policy is "
            "loaded.\n",
            tool->tools_file);
        return;
    }
    if (tool->upstream.len && !tool->with_schema) {
        buf_text(
            out,
            "  -- The schema is the server's own. Where no daemon runs, as for toolgate test, give what\n"
            "  -- toolgate tools --format mcp --socket PATH prints with --tools.\n");
        return;
    }
    buf_text(out, "  schema = ");
    if (tool->schema_beside.len) {
        buf_text(out, "json ");
        lua_write_text(out, tool->schema_beside);
    } else {
        new_params_write(out, arena, tool->schema, 2);
    }
    buf_text(out, ",\n");
}

/* ---- ids ---- */

static const struct json *properties_of(const struct new_tool *tool)
{
    const struct json *properties = json_get_text(tool->schema, "properties");
    return json_is(properties, JSON_OBJECT) ? properties : NULL;
}

static bool holds_uuid(const struct json *property)
{
    const struct json *items = json_get_text(property, "items");
    return str_is(json_str(json_get_text(property, "format")), "uuid") ||
           str_is(json_str(json_get_text(items, "format")), "uuid");
}

/* A UUID's shape is certain. Whether an id must have been seen is the operator's to say: it takes the other
 * tools' gives_ids. */
static void write_ids(struct buf *out, const struct new_tool *tool)
{
    const struct json *properties = properties_of(tool);
    bool open = false;
    for (uint32_t i = 0; properties && i < properties->len; i++) {
        const struct json_member *member = &properties->members[i];
        bool uuid = holds_uuid(&member->value);
        if (!uuid && !new_looks_like_id(member->key))
            continue;
        if (!open)
            buf_text(out, "\n  -- seen(): an id must have come from an earlier result or from the user; for "
                          "that the tools\n"
                          "  -- that give such ids say where, as in gives_ids = { \"items[].id\" }.\n"
                          "  ids = {\n");
        open = true;
        buf_text(out, uuid ? "    " : "    -- ");
        lua_write_key(out, member->key);
        buf_text(out, uuid ? " = shape \"uuid\", -- or seen { shape = \"uuid\" }\n" : " = seen(),\n");
    }
    buf_text(out, open ? "  },\n" : "");
}

/* ---- rules ---- */

static const struct json *actions_of(const struct new_tool *tool, struct str *name)
{
    static const char *const names[] = {"action", "operation", "command", "method", "mode"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct json *values = json_get_text(json_get_text(properties_of(tool), names[i]), "enum");
        *name = str_of(names[i]);
        if (json_is(values, JSON_ARRAY) && values->len && json_str(&values->items[0]).len)
            return values;
    }
    return NULL;
}

static struct str another_parameter(const struct new_tool *tool, struct str action)
{
    const struct json *properties = properties_of(tool);
    for (uint32_t i = 0; i < properties->len; i++)
        if (!str_eq(properties->members[i].key, action))
            return properties->members[i].key;
    return STR_LIT("id");
}

static void write_rules(struct buf *out, const struct new_tool *tool)
{
    struct str name;
    const struct json *actions = actions_of(tool, &name);
    if (!actions)
        return;
    struct str other = another_parameter(tool, name);
    buf_printf(out,
               "\n  -- What each " STR_FMT " needs, and what it has no use for; the model is told in words.\n"
               "  -- rules = {\n",
               STR_ARG(name));
    for (uint32_t i = 0; i < actions->len && i < 2; i++) {
        buf_text(out, "  --   when { ");
        lua_write_key(out, name);
        buf_text(out, " = ");
        lua_write_text(out, json_str(&actions->items[i]));
        buf_text(out, i ? " } : drops " : " } : needs ");
        lua_write_text(out, other);
        buf_text(out, ",\n");
    }
    buf_text(out, "  -- },\n");
}

/* ---- functions ---- */

static void write_functions(struct buf *out, const struct new_tool *tool)
{
    buf_text(out, "\n  -- What rules can't say: before it runs …\n"
                  "  -- check = function(args, call)\n"
                  "  --   return refuse(\"code\", \"why not\", \"what to do instead\") -- or repair{…}, "
                  "ask(…), nothing\n"
                  "  -- end,\n"
                  "  -- … and of what came back.\n"
                  "  -- result = function(result, call)\n"
                  "  --   return partial(\"more_pages\", \"more follow\", { page = result.page + 1 }) -- or "
                  "garbage, ok{…}, …\n"
                  "  -- end,\n");
    if (tool->blank)
        buf_text(out, "  -- The agent runs this tool; with a run(args, call) here, toolgate does.\n");
}

void new_policy_write(struct buf *out, struct arena *arena, const struct new_tool *tool)
{
    struct new_effects effects = new_guess_effects(arena, tool);
    write_head(out, tool, &effects);
    buf_text(out, "return tool ");
    lua_write_text(out, tool->name);
    buf_text(out, " {\n");
    if (tool->upstream.len)
        write_text_field(out, "upstream", tool->upstream);
    write_words(out, arena, tool);
    write_effects(out, &effects);
    write_schema(out, arena, tool);
    write_ids(out, tool);
    write_rules(out, tool);
    write_functions(out, tool);
    buf_byte(out, '\n');
    new_examples_write(out, arena, tool);
    buf_text(out, "}\n");
}
