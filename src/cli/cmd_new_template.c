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

static void write_effects(struct buf *out, struct arena *arena, const struct new_tool *tool)
{
    (void)arena;
    buf_text(
        out,
        tool->read_only
            ? "  effects     = \"read\", -- the definition's readOnlyHint\n"
            : "  -- effects    = \"read\", -- or \"write\", \"destructive\", \"toggle\": how often the same "
              "call may be made\n");
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
    write_example(out, arena, STR_LIT("a call that passes"), sample);
    buf_text(out, ",\n      gives = \"pass\" },\n");
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
    {"  --@upstream", write_upstream}, {"  --@description", write_description},
    {"  --@effects", write_effects},   {"  --@schema", write_schema},
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
