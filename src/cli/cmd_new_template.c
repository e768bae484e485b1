/*
 * Fills a template of lua/templates: TOOL becomes the tool's name, and a line
 * `--@part` what is known of that part. Invents nothing: a part of which
 * nothing is known is a TODO or is left out.
 */
#include "cli/cmd_new.h"

#include "base/arena.h"
#include "base/embedded.h"
#include "json/build.h"
#include "json/write.h"
#include "schema/sample.h"
#include "schema/schema.h"

#include <stdio.h>
#include <stdlib.h>

#define PRETTY_LINE_BYTES 100u /* a value that fits stays on one line */
#define LEVELS            "======"

static void write_quoted(struct buf *out, struct str string)
{
    buf_byte(out, '"');
    for (size_t i = 0; i < string.len; i++) {
        unsigned char c = (unsigned char)string.at[i];
        if (c == '"' || c == '\\')
            buf_printf(out, "\\%c", c);
        else if (c == '\n')
            buf_text(out, "\\n");
        else if (c < 0x20 || c == 0x7f)
            buf_printf(out, "\\%03u", c);
        else
            buf_byte(out, (char)c);
    }
    buf_byte(out, '"');
}

/* In long brackets of a level that the string does not close; quoted if it closes every level. A newline
 * after the opening bracket is not part of the string. */
static void write_long(struct buf *out, struct str string, const char *newline)
{
    if (!string.at) /* empty; memcmp and memmem take no NULL */
        string = STR_LIT("");
    for (int level = 0; level <= (int)strlen(LEVELS); level++) {
        char closing[sizeof(LEVELS) + 2];
        size_t len = (size_t)snprintf(closing, sizeof(closing), "]%.*s]", level, LEVELS);
        bool ends_like_it =
            string.len >= len - 1 && memcmp(string.at + string.len - (len - 1), closing, len - 1) == 0;
        if (ends_like_it || memmem(string.at, string.len, closing, len))
            continue;
        buf_printf(out, "[%.*s[%s" STR_FMT "%s", level, LEVELS, newline, STR_ARG(string), closing);
        return;
    }
    write_quoted(out, string);
}

static void write_pretty(struct buf *out, struct arena *arena, const struct json *value, int indent)
{
    struct buf line = buf_in(arena);
    bool object = value->type == JSON_OBJECT;
    json_write(&line, value);
    if ((!object && value->type != JSON_ARRAY) || line.len <= PRETTY_LINE_BYTES) {
        buf_str(out, buf_view(&line));
        return;
    }
    for (uint32_t i = 0; i < value->len; i++) {
        buf_printf(out, "%s\n%*s", i ? "," : object ? "{" : "[", indent + 2, "");
        if (object) {
            json_write_string(out, value->members[i].key);
            buf_text(out, ": ");
        }
        write_pretty(out, arena, object ? &value->members[i].value : &value->items[i], indent + 2);
    }
    buf_printf(out, "\n%*s%c", indent, "", object ? '}' : ']');
}

/* `json [[…]]` */
static void write_json(struct buf *out, struct arena *arena, const struct json *value)
{
    struct buf text = buf_in(arena);
    write_pretty(&text, arena, value, 2);
    buf_text(out, "json ");
    write_long(out, buf_view(&text), "");
}

static void write_upstream(struct buf *out, struct arena *arena, const struct new_tool *tool)
{
    (void)arena;
    if (!tool->upstream.len)
        return;
    buf_text(out, "  upstream    = ");
    write_quoted(out, tool->upstream);
    buf_text(out, ",\n");
}

static void write_description(struct buf *out, struct arena *arena, const struct new_tool *tool)
{
    (void)arena;
    bool many_lines = tool->description.len && memchr(tool->description.at, '\n', tool->description.len) &&
                      !memchr(tool->description.at, '\r', tool->description.len) &&
                      !memchr(tool->description.at, '\0', tool->description.len);
    if (tool->tools_file) {
        buf_text(out,
                 "  -- The model reads the definition's description; a `description` here replaces it.\n");
        return;
    }
    buf_text(out, "  description = ");
    if (many_lines)
        write_long(out, tool->description, "\n");
    else
        write_quoted(out, tool->description.len ? tool->description
                                                : STR_LIT("TODO: say in one sentence what the tool does."));
    buf_text(out, ",\n");
}

static void write_title(struct buf *out, struct arena *arena, const struct new_tool *tool)
{
    (void)arena;
    if (!tool->title.len)
        return;
    buf_text(out, "  title       = ");
    write_quoted(out, tool->title);
    buf_text(out, ", -- the definition's title\n");
}

static bool is_destructive(const struct new_tool *tool)
{
    return new_tool_hints(tool, "destructiveHint", true);
}

/* From the annotations, the stricter one if they contradict each other; never from the name. */
static void write_effects(struct buf *out, struct arena *arena, const struct new_tool *tool)
{
    (void)arena;
    if (is_destructive(tool))
        buf_text(out, "  effects     = \"destructive\", -- the definition's destructiveHint\n");
    else if (new_tool_hints(tool, "readOnlyHint", true))
        buf_text(out, "  effects     = \"read\", -- the definition's readOnlyHint\n");
    else if (new_tool_hints(tool, "readOnlyHint", false))
        buf_text(out, "  effects     = \"write\", -- the definition's readOnlyHint is false\n");
    else
        buf_text(out,
                 "  -- effects    = \"read\", -- or \"write\", \"destructive\", \"toggle\": how often the "
                 "same call may be made\n");
}

static void write_idempotent(struct buf *out, struct arena *arena, const struct new_tool *tool)
{
    (void)arena;
    if (new_tool_hints(tool, "idempotentHint", true))
        buf_text(out,
                 "  idempotent  = true, -- the definition's idempotentHint: a failed call may be repeated\n");
}

/* A destructive tool asks the user first. */
static void write_confirmation(struct buf *out, struct arena *arena, const struct new_tool *tool)
{
    if (!is_destructive(tool))
        return;
    buf_text(
        out,
        "\n"
        "-- The call in words, for the user's yes. TODO: say what is lost, by its name instead of its id.\n"
        "local function in_words(args)\n"
        "  local parts = {}\n"
        "  for name, value in pairs(args) do\n"
        "    parts[#parts + 1] = name .. \" = \" .. (type(value) == \"table\" and \"…\" or "
        "tostring(value))\n"
        "  end\n"
        "  table.sort(parts)\n"
        "  return ");
    write_quoted(out, arena_printf(arena, STR_FMT " (", STR_ARG(tool->name)));
    buf_text(out, " .. table.concat(parts, \", \") .. \")\"\n"
                  "end\n\n");
}

static void write_check(struct buf *out, struct arena *arena, const struct new_tool *tool)
{
    (void)arena;
    if (is_destructive(tool))
        buf_text(
            out,
            "  -- The definition's destructiveHint: the user is asked first. Their choice is the goal of the "
            "next turn.\n"
            "  check = function(args, call)\n"
            "    local yes = \"yes, \" .. in_words(args)\n"
            "    if not (call.goal or \"\"):find(yes, 1, true) then\n"
            "      return ask(\"This cannot be undone: \" .. in_words(args) .. \"?\", { yes, \"no\" })\n"
            "    end\n"
            "  end,\n\n");
}

static void write_schema(struct buf *out, struct arena *arena, const struct new_tool *tool)
{
    if (tool->tools_file) {
        buf_printf(
            out,
            "  -- The schema is the definition's, in %s: pass that with --tools wherever this policy is "
            "loaded.\n",
            tool->tools_file);
    } else if (tool->upstream.len && !tool->with_schema) {
        buf_text(out,
                 "  -- The schema is the upstream's. Commands that ask no daemon, such as toolgate test,\n"
                 "  -- read it from --tools FILE, a file that `toolgate tools --format mcp` wrote.\n");
    } else {
        buf_text(out, "  schema = ");
        if (tool->schema_file.len) {
            buf_text(out, "json ");
            write_quoted(out, tool->schema_file);
        } else {
            write_json(out, arena, tool->schema);
        }
        buf_text(out, ",\n");
    }
}

static void write_example(struct buf *out, struct arena *arena, struct str name, const struct json *args)
{
    buf_text(out, "    { ");
    write_quoted(out, name);
    buf_text(out, ", args = ");
    if (args->len)
        write_json(out, arena, args);
    else
        buf_text(out, "{}");
}

static int by_text(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* The user's yes to this call, as the policy's in_words writes it; STR_NONE if Lua may write a number
 * differently. */
static struct str confirmation(struct arena *arena, const struct new_tool *tool, const struct json *args)
{
    struct str *parts = ARENA_ARRAY(arena, struct str, args->len + 1);
    struct buf out = buf_in(arena);
    int64_t n;
    for (uint32_t i = 0; i < args->len; i++) {
        const struct json *value = &args->members[i].value;
        bool nested = value->type == JSON_OBJECT || value->type == JSON_ARRAY;
        bool whole = json_int(value, &n) && n > -1000000 && n < 1000000;
        if (!nested && !whole && value->type != JSON_STRING && value->type != JSON_BOOL)
            return STR_NONE;
        struct str text = nested                     ? STR_LIT("…")
                          : whole                    ? arena_printf(arena, "%lld", (long long)n)
                          : value->type == JSON_BOOL ? str_of(value->truth ? "true" : "false")
                                                     : json_str(value);
        parts[i] = arena_printf(arena, STR_FMT " = " STR_FMT, STR_ARG(args->members[i].key), STR_ARG(text));
    }
    if (args->len)
        qsort(parts, args->len, sizeof(*parts), by_text);
    buf_printf(&out, "yes, " STR_FMT " (", STR_ARG(tool->name));
    for (uint32_t i = 0; i < args->len; i++)
        buf_printf(&out, "%s" STR_FMT, i ? ", " : "", STR_ARG(parts[i]));
    buf_byte(&out, ')');
    return buf_view(&out);
}

/* A call that passes, for a destructive tool after the user was asked. */
static void write_passing(struct buf *out, struct arena *arena, const struct new_tool *tool,
                          const struct json *sample)
{
    struct str yes = is_destructive(tool) ? confirmation(arena, tool, sample) : STR_NONE;
    if (is_destructive(tool)) {
        write_example(out, arena, STR_LIT("the user is asked first"), sample);
        buf_text(out, ",\n      gives = \"ask\" },\n");
    }
    if (is_destructive(tool) && !yes.len)
        return;
    write_example(out, arena, yes.len ? STR_LIT("the user has said yes") : STR_LIT("a call that passes"),
                  sample);
    if (yes.len) {
        buf_text(out, ", goal = ");
        write_quoted(out, yes);
    }
    buf_text(out, ",\n      gives = \"pass\" },\n");
}

/* A call that passes, and the same without its first required argument. */
static void write_examples(struct buf *out, struct arena *arena, const struct new_tool *tool)
{
    const struct json *sample = new_template_sample(arena, tool);
    const struct json *required = json_get_text(tool->schema, "required");
    if (!sample) {
        buf_text(out, "  -- TODO: examples. No call could be made from the schema.\n"
                      "  -- examples = {\n"
                      "  --   { \"a call that passes\", args = {}, gives = \"pass\" },\n"
                      "  -- },\n");
        return;
    }
    buf_text(out, "  examples = {\n");
    write_passing(out, arena, tool, sample);
    for (uint32_t i = 0; i < sample->len; i++) {
        struct str name = sample->members[i].key;
        struct json args = json_without(arena, sample, name);
        if (!json_array_has(required, name))
            continue;
        write_example(out, arena, arena_printf(arena, "a call without " STR_FMT, STR_ARG(name)), &args);
        buf_text(out, ",\n      gives = \"repair\" },\n");
        break;
    }
    buf_text(out, "  },\n");
}

static const struct part {
    const char *line;
    void (*write)(struct buf *out, struct arena *arena, const struct new_tool *tool);
} parts[] = {
    {"--@confirmation", write_confirmation},
    {"  --@upstream", write_upstream},
    {"  --@title", write_title},
    {"  --@description", write_description},
    {"  --@effects", write_effects},
    {"  --@idempotent", write_idempotent},
    {"  --@schema", write_schema},
    {"  --@check", write_check},
    {"  --@examples", write_examples},
};

/* "TOOL" as a string of Lua; TOOL, which stands in comments, without what would end the line. */
static void write_line(struct buf *out, struct str line, struct str name)
{
    static const char mark[] = "TOOL";
    const char *at;
    while (line.len && (at = memmem(line.at, line.len, mark, sizeof(mark) - 1))) {
        size_t before = (size_t)(at - line.at);
        bool quoted = before && at[-1] == '"';
        buf_str(out, (struct str){line.at, before - quoted});
        if (quoted)
            write_quoted(out, name);
        for (size_t i = 0; !quoted && i < name.len; i++)
            buf_byte(out, (unsigned char)name.at[i] < 0x20 ? ' ' : name.at[i]);
        line = str_from(line, before + sizeof(mark) - 1 + quoted);
    }
    buf_str(out, line);
    buf_byte(out, '\n');
}

void new_template_write(struct buf *out, struct arena *arena, const struct new_tool *tool)
{
    char path[64];
    snprintf(path, sizeof(path), "templates/%s.lua", tool->template);
    for (struct str rest = embedded_text(path); rest.len;) {
        const char *end = memchr(rest.at, '\n', rest.len);
        struct str line = {rest.at, end ? (size_t)(end - rest.at) : rest.len};
        const struct part *part = NULL;
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
            if (str_is(line, parts[i].line))
                part = &parts[i];
        if (part)
            part->write(out, arena, tool);
        else
            write_line(out, line, tool->name);
        rest = str_from(rest, line.len + (end ? 1 : 0));
    }
}

const struct json *new_template_sample(struct arena *arena, const struct new_tool *tool)
{
    struct schema *schema;
    struct json *sample = ARENA_NEW(arena, struct json);
    if (!tool->schema || schema_compile(arena, tool->schema, NULL, &schema, NULL, NULL) != OK)
        return NULL;
    bool found = schema_sample(arena, schema, SAMPLE_REQUIRED, sample) && sample->type == JSON_OBJECT &&
                 schema_validate(schema, sample) == SCHEMA_VALID;
    return found ? sample : NULL;
}
