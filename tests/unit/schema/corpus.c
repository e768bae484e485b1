/*
 * Recorded tools and calls, if the corpus is found beside the project or at
 * $TOOLGATE_CORPUS: every schema compiles, every correct call passes, and every
 * call that the environment refused for its arguments is caught unless the
 * published schema allows it.
 */
#include "base/arena.h"
#include "base/map.h"
#include "json/parse.h"
#include "json/write.h"
#include "schema/coerce.h"
#include "schema/schema.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define BESIDE_US   "../shared/data/corpus"
#define SHOWN_BYTES 160u /* of arguments and of an error */

struct corpus {
    const char *root;
    struct arena *arena;
    struct map *schemas; /* "toolset/tool" */
    struct map *defects; /* "source|session|turn|tool" */
    unsigned compiled, warned, passed, skipped, failed, untouched, faulty, caught;
    unsigned invalid, repaired; /* calls of models, whatever became of them */
};

static struct str key_of(struct arena *arena, struct str toolset, struct str tool)
{
    return arena_printf(arena, STR_FMT "/" STR_FMT, STR_ARG(toolset), STR_ARG(tool));
}

static void compile_tool(struct corpus *c, struct str toolset, const struct json *tool)
{
    static const char *const fields[] = {"inputSchema", "outputSchema"};
    struct str name = json_str(json_get_text(tool, "name"));
    for (size_t i = 0; i < 2; i++) {
        const struct json *source = json_get_text(tool, fields[i]);
        struct problems warnings;
        struct schema *schema;
        struct why why;
        if (!source)
            continue;
        problems_init(&warnings, c->arena);
        if (schema_compile(c->arena, source, NULL, &schema, &warnings, &why)) {
            printf("schema_corpus: " STR_FMT "/" STR_FMT ": %s\n", STR_ARG(toolset), STR_ARG(name), why.text);
            c->failed++;
            continue;
        }
        c->compiled++;
        c->warned += warnings.count > 0;
        if (i == 0)
            map_add(c->schemas, key_of(c->arena, toolset, name), schema);
    }
}

static void compile_toolsets(struct corpus *c)
{
    glob_t files;
    struct str pattern = arena_printf(c->arena, "%s/tools-*.json", c->root);
    if (glob(pattern.at, 0, NULL, &files))
        return;
    for (size_t i = 0; i < files.gl_pathc; i++) {
        struct json *tools = ARENA_NEW(c->arena, struct json);
        struct why why;
        const char *name = strrchr(files.gl_pathv[i], '/') + strlen("/tools-");
        struct str toolset = arena_dup(c->arena, (struct str){name, strlen(name) - strlen(".json")});
        if (json_read_file(c->arena, files.gl_pathv[i], 16u << 20, tools, &why)) {
            printf("schema_corpus: %s\n", why.text);
            c->failed++;
            continue;
        }
        for (uint32_t k = 0; k < tools->len; k++)
            compile_tool(c, toolset, &tools->items[k]);
    }
    globfree(&files);
}

typedef void each_row(struct corpus *c, struct arena *arena, const struct json *row);

static void read_rows(struct corpus *c, const char *path, each_row *each)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    while (file && (n = getline(&line, &room, file)) > 0) {
        struct arena *arena = arena_new();
        struct json row;
        struct json_error fault;
        if (json_parse(arena, str_trim((struct str){line, (size_t)n}), NULL, &row, &fault) == OK)
            each(c, arena, &row);
        else
            c->failed++;
        arena_free(arena);
    }
    free(line);
    if (file)
        fclose(file);
}

static struct str row_key(struct arena *arena, const struct json *row)
{
    int64_t turn = -1;
    json_int(json_get_text(row, "turn"), &turn);
    return arena_printf(arena, STR_FMT "|" STR_FMT "|%d|" STR_FMT,
                        STR_ARG(json_str(json_get_text(row, "source"))),
                        STR_ARG(json_str(json_get_text(row, "session"))), (int)turn,
                        STR_ARG(json_str(json_get_text(row, "tool"))));
}

static void take_defect(struct corpus *c, struct arena *arena, const struct json *row)
{
    (void)arena;
    map_add(c->defects, row_key(c->arena, row), c);
}

static void report(struct corpus *c, const struct json *row, const struct schema *schema,
                   const struct json *arguments)
{
    struct problems problems;
    struct buf text = buf_in(c->arena);
    problems_init(&problems, c->arena);
    schema_explain(schema, arguments, &problems, NULL);
    problems_text(&text, &problems);
    printf("schema_corpus: " STR_FMT " is refused:\n" STR_FMT, STR_ARG(row_key(c->arena, row)),
           STR_ARG(buf_view(&text)));
}

static void check_call(struct corpus *c, struct arena *arena, const struct json *row)
{
    struct str key =
        key_of(arena, json_str(json_get_text(row, "toolset")), json_str(json_get_text(row, "tool")));
    const struct schema *schema = map_get(c->schemas, key);
    const struct json *arguments = json_get_text(row, "arguments");
    if (!schema || map_get(c->defects, row_key(arena, row))) {
        c->skipped++;
        return;
    }
    if (schema_validate(schema, arguments) != SCHEMA_VALID) {
        report(c, row, schema, arguments);
        c->failed++;
        return;
    }
    struct coerce_options may = coerce_options_all;
    may.floats = false;
    c->passed++;
    c->untouched += schema_coerce(schema, arguments, &may, arena, NULL) == arguments &&
                    schema_coerce_names(schema, arguments, &may, arena, NULL) == arguments;
}

/* Calls of models. Those that the environment refused are caught unless the published schema allows them,
 * which are listed.
 */
static void check_faulty(struct corpus *c, struct arena *arena, const struct json *row)
{
    struct str tool = json_str(json_get_text(row, "tool"));
    const struct schema *schema =
        map_get(c->schemas, key_of(arena, json_str(json_get_text(row, "toolset")), tool));
    const struct json *arguments = json_get_text(row, "arguments");
    if (!schema)
        return;
    const struct json *coerced = schema_coerce(schema, arguments, &coerce_options_all, arena, NULL);
    bool valid = schema_validate(schema, coerced) == SCHEMA_VALID;
    if (schema_validate(schema, arguments) != SCHEMA_VALID) {
        c->invalid++;
        c->repaired += valid;
    }
    if (!str_is(json_str(json_get_text(row, "env")), "argument_error"))
        return;
    c->faulty++;
    if (!valid) {
        c->caught++;
        return;
    }
    struct buf text = buf_in(arena);
    json_write(&text, arguments);
    printf("schema_corpus: the published schema allows " STR_FMT " " STR_FMT ", which was refused: " STR_FMT
           "\n",
           STR_ARG(tool), STR_ARG(str_cut(buf_view(&text), SHOWN_BYTES)),
           STR_ARG(str_cut(json_str(json_get_text(row, "result_error")), SHOWN_BYTES)));
}

int main(void)
{
    static const char *const models[] = {"bfcl", "livemcp", "tau", "tau2"};
    static const char *const calls[] = {"bfcl", "tau", "tau2"};
    const char *named = getenv("TOOLGATE_CORPUS");
    struct corpus c = {.root = named ? named : BESIDE_US};
    struct stat st;
    if (stat(c.root, &st)) {
        printf("schema_corpus: skipped, there is no corpus at %s ($TOOLGATE_CORPUS names another place)\n",
               c.root);
        return 0;
    }
    c.arena = arena_new();
    c.schemas = map_new(c.arena);
    c.defects = map_new(c.arena);
    compile_toolsets(&c);
    read_rows(&c, arena_printf(c.arena, "%s/defects-groundtruth.ndjson", c.root).at, take_defect);
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
        read_rows(&c, arena_printf(c.arena, "%s/calls-%s-groundtruth.ndjson", c.root, calls[i]).at,
                  check_call);
    for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++)
        read_rows(&c, arena_printf(c.arena, "%s/calls-%s-models.ndjson", c.root, models[i]).at, check_faulty);
    printf("schema_corpus: %u of %u calls that their environment refused for their arguments are caught\n",
           c.caught, c.faulty);
    printf("schema_corpus: %u of %u calls of models that are invalid as sent are repaired\n", c.repaired,
           c.invalid);
    printf("schema_corpus: %u schemas compile (%u with warnings), %u right calls pass, %u unchanged by "
           "coercion; "
           "%u skipped (listed defects, or no such tool); %u failed\n",
           c.compiled, c.warned, c.passed, c.untouched, c.skipped, c.failed);
    bool ok = !c.failed && c.compiled && c.passed && c.untouched == c.passed && c.caught;
    arena_free(c.arena);
    return ok ? 0 : 1;
}
