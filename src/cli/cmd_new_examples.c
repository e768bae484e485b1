/*
 * Examples that hold as they stand: a sample call made from the schema, and
 * what the schema says of it with something left out or misspelt. Each is
 * tried on the compiled schema before it is written.
 */
#include "cli/cmd_new.h"

#include "base/arena.h"
#include "cli/cmd_new_sample.h"
#include "json/build.h"
#include "schema/coerce.h"

#include <stdio.h>

struct trying {
    struct buf *out;
    struct arena *arena;
    const struct json *source;
    struct schema *schema;
    const struct json *sample;
};

/* What the pipeline would make of it: mended, then judged. */
static const struct json *mended(const struct trying *t, const struct json *args)
{
    if (schema_validate(t->schema, args) == SCHEMA_VALID)
        return args;
    return schema_coerce(t->schema, args, &coerce_options_all, t->arena);
}

static bool passes(const struct trying *t, const struct json *args)
{
    return schema_validate(t->schema, mended(t, args)) == SCHEMA_VALID;
}

static void open_example(const struct trying *t, struct str name, const struct json *args)
{
    buf_text(t->out, "    { ");
    lua_write_text(t->out, name);
    buf_text(t->out, ", args = ");
    if (args->len)
        lua_write_value(t->out, args);
    else
        buf_text(t->out, "{}");
}

static void write_says(const struct trying *t, struct str says)
{
    buf_text(t->out, ",\n      gives = \"repair\", says = ");
    lua_write_text(t->out, says);
    buf_text(t->out, " },\n");
}

/* ---- what is refused ---- */

/* The first problem that the schema finds at this place; NULL: none. */
static const struct problem *problem_at(struct trying *t, const struct json *args, struct str path,
                                        struct problems *problems)
{
    problems_init(problems, t->arena);
    schema_explain(t->schema, mended(t, args), problems);
    for (size_t i = 0; i < problems->count; i++)
        if (!problems->list[i].warning && str_eq(problems->list[i].path, path))
            return &problems->list[i];
    return NULL;
}

static void write_missing(struct trying *t)
{
    struct problems problems;
    for (uint32_t i = 0; i < t->sample->len; i++) {
        struct str name = t->sample->members[i].key;
        struct json args = json_without(t->arena, t->sample, name);
        if (!json_array_has(json_get_text(t->source, "required"), name) ||
            !problem_at(t, &args, name, &problems))
            continue;
        open_example(t, arena_printf(t->arena, "'" STR_FMT "' is asked for", STR_ARG(name)), &args);
        write_says(t, arena_printf(t->arena, "'" STR_FMT "'", STR_ARG(name)));
        return;
    }
}

/* Nearly one of the values; STR_NONE where the last letter makes no other text. */
static struct str misspelt(struct arena *arena, struct str value)
{
    if (value.len < 4)
        return arena_printf(arena, STR_FMT "_", STR_ARG(value));
    return arena_printf(arena, "%.*s", (int)value.len - 1, value.at);
}

/* "did you mean 'x'?" where the message has it, else the parameter in its quotes. */
static struct str what_it_says(struct arena *arena, const struct problem *problem, struct str name)
{
    static const char opening[] = "did you mean '";
    struct str m = problem->message;
    const char *at = m.len ? memmem(m.at, m.len, opening, sizeof(opening) - 1) : NULL;
    const char *end = at ? memchr(at, '?', (size_t)(m.at + m.len - at)) : NULL;
    if (end)
        return arena_dup(arena, (struct str){at, (size_t)(end + 1 - at)});
    return arena_printf(arena, "'" STR_FMT "'", STR_ARG(name));
}

static bool write_wrong_value(struct trying *t, struct str name, const struct json *values)
{
    struct problems problems;
    struct json wrong = json_string(misspelt(t->arena, json_str(&values->items[0])));
    struct json args = json_with(t->arena, t->sample, name, wrong);
    const struct problem *problem = problem_at(t, &args, name, &problems);
    if (!problem)
        return false;
    open_example(t, arena_printf(t->arena, "a value that '" STR_FMT "' does not have", STR_ARG(name)), &args);
    write_says(t, what_it_says(t->arena, problem, name));
    return true;
}

static void write_wrong_enum(struct trying *t)
{
    const struct json *properties = json_get_text(t->source, "properties");
    for (uint32_t i = 0; json_is(properties, JSON_OBJECT) && i < properties->len; i++) {
        const struct json *values = json_get_text(&properties->members[i].value, "enum");
        if (json_is(values, JSON_ARRAY) && values->len && json_str(&values->items[0]).len &&
            write_wrong_value(t, properties->members[i].key, values))
            return;
    }
}

/* ---- what passes ---- */

/* Models send numbers as texts; the gate reads them as what they are. */
static void write_number_as_text(struct trying *t)
{
    for (uint32_t i = 0; i < t->sample->len; i++) {
        const struct json_member *member = &t->sample->members[i];
        if (member->value.type != JSON_NUMBER)
            continue;
        struct json text = json_string((struct str){member->value.text, member->value.len});
        struct json args = json_with(t->arena, t->sample, member->key, text);
        if (!json_equal(mended(t, &args), t->sample))
            continue;
        open_example(t, STR_LIT("a number sent as a text is read as what it is"), &args);
        buf_text(t->out, ",\n      gives = \"pass\", becomes = ");
        lua_write_value(t->out, t->sample);
        buf_text(t->out, " },\n");
        return;
    }
}

static void write_tried(struct trying *t)
{
    buf_text(t->out, "  examples = {\n");
    open_example(t, STR_LIT("a call as it should be"), t->sample);
    buf_text(t->out, ",\n      gives = \"pass\" },\n");
    write_number_as_text(t);
    write_missing(t);
    write_wrong_enum(t);
    buf_text(t->out, "  },\n");
}

void new_examples_write(struct buf *out, struct arena *arena, const struct new_tool *tool)
{
    struct trying t = {.out = out, .arena = arena, .source = tool->schema};
    struct why why;
    bool tried = tool->schema && schema_compile(arena, tool->schema, NULL, &t.schema, NULL, &why) == OK;
    if (tried)
        t.sample = new_sample(arena, t.schema);
    if (t.sample && passes(&t, t.sample)) {
        write_tried(&t);
        return;
    }
    buf_text(out, "  -- No sample call could be made from the schema: write one, it is the specification.\n"
                  "  -- examples = {\n"
                  "  --   { \"a call as it should be\", args = {}, gives = \"pass\" },\n"
                  "  -- },\n");
}
