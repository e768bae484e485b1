/* toolgate validate: checks JSON files with the validator that checks tool calls. */
#include "base/arena.h"
#include "cli/command.h"
#include "cli/json_input.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/term.h"
#include "json/parse.h"
#include "json/write.h"
#include "schema/schema.h"

#include <stdio.h>

struct validation {
    const struct command *command;
    struct arena *arena;
    struct schema *schema;
    bool json;
};

static void print_problems(const char *file, const struct problems *problems)
{
    printf("%s%s%s: %s%s\n", term_colour(TERM_BOLD), file, term_colour(TERM_PLAIN),
           term_colour(problems->errors ? TERM_RED : TERM_GREEN), problems->errors ? "invalid" : "valid");
    printf("%s", term_colour(TERM_PLAIN));
    for (size_t i = 0; i < problems->count; i++) {
        const struct problem *p = &problems->list[i];
        printf("  ");
        term_print_lines(stdout, p->path.len ? p->path : STR_LIT("the value itself"));
        printf(": " STR_FMT "\n", STR_ARG(p->message));
    }
    if (problems->more)
        printf("  and %zu more\n", problems->more);
}

static void put_problem(struct arena *arena, struct json_out *out, const struct problem *p)
{
    const struct {
        const char *key;
        struct str json;
    } values[] = {{"expected", problem_expected(arena, p)}, {"got", p->got}, {"suggestion", p->suggestion}};
    json_open(out, '{');
    json_field_str(out, "path", p->path);
    json_field_text(out, "code", p->code);
    json_field_str(out, "message", p->message);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        if (values[i].json.len)
            json_field_raw(out, values[i].key, values[i].json);
    json_close(out, '}');
}

static void print_json(struct arena *arena, const char *file, const struct problems *problems)
{
    struct buf line = buf_in(arena);
    struct json_out out = json_out(&line);
    json_open(&out, '{');
    json_field_text(&out, "instance", file);
    json_field_bool(&out, "valid", problems->errors == 0);
    json_field_open(&out, "problems", '[');
    for (size_t i = 0; i < problems->count; i++)
        put_problem(arena, &out, &problems->list[i]);
    json_close(&out, ']');
    json_field_int(&out, "more", (int64_t)problems->more);
    json_close(&out, '}');
    print_json_text(buf_view(&line));
    putchar('\n');
}

static int validate(const struct validation *v, const char *file)
{
    struct json instance;
    struct problems problems;
    struct why why;
    if (strcmp(file, "-") == 0) {
        if (!json_input_stdin(v->command, v->arena, &instance))
            return CLI_ERROR;
    } else if (json_read_input(v->arena, file, JSON_INPUT_MAX_BYTES, &instance, &why) != OK) {
        term_error(v->command->name, "%s", why.text);
        return CLI_ERROR;
    }
    problems_init(&problems, v->arena);
    enum schema_validity answer = schema_explain(v->schema, &instance, &problems, NULL);
    if (v->json)
        print_json(v->arena, file, &problems);
    else
        print_problems(file, &problems);
    return answer == SCHEMA_VALID ? CLI_OK : answer == SCHEMA_INVALID ? CLI_NO : CLI_ERROR;
}

static bool compile(struct validation *v, const char *file, const struct schema_options *options)
{
    struct json *source = ARENA_NEW(v->arena, struct json);
    struct problems warnings;
    struct why why;
    if (json_read_input(v->arena, file, JSON_INPUT_MAX_BYTES, source, &why) != OK) {
        term_error(v->command->name, "%s", why.text);
        return false;
    }
    problems_init(&warnings, v->arena);
    if (schema_compile(v->arena, source, options, &v->schema, &warnings, &why) != OK) {
        term_error(v->command->name, "%s: %s", file, why.text);
        return false;
    }
    for (size_t i = 0; i < warnings.count; i++)
        term_error(v->command->name, "%s: warning: " STR_FMT ": " STR_FMT, file,
                   STR_ARG(warnings.list[i].path), STR_ARG(warnings.list[i].message));
    return true;
}

static bool add_documents(const struct validation *v, const struct cli_list *with,
                          struct schema_registry *registry)
{
    for (size_t i = 0; i < with->count; i++) {
        const char *equals = strrchr(with->items[i], '=');
        struct json *document = ARENA_NEW(v->arena, struct json);
        struct why why;
        if (!equals || equals == with->items[i] || !equals[1]) {
            term_error(v->command->name, "--with: expected URI=FILE, got '%s'", with->items[i]);
            return false;
        }
        if (json_read_input(v->arena, equals + 1, JSON_INPUT_MAX_BYTES, document, &why) != OK) {
            term_error(v->command->name, "%s", why.text);
            return false;
        }
        struct str uri = {with->items[i], (size_t)(equals - with->items[i])};
        schema_registry_add(registry, uri, document);
    }
    return true;
}

static int validate_all(struct validation *v, const struct cli_list *with, bool annotate, int argc,
                        char **argv)
{
    struct schema_options options = {.annotate_format = annotate, .registry = schema_registry_new(v->arena)};
    int worst = CLI_OK;
    if (!add_documents(v, with, (struct schema_registry *)options.registry) || !compile(v, argv[0], &options))
        return CLI_ERROR;
    for (int i = 1; i < argc; i++) {
        int status = validate(v, argv[i]);
        worst = status > worst ? status : worst;
    }
    return worst;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct validation v = {.command = command};
    struct cli_list with = {0};
    bool annotate = false;
    int status;
    const struct cli_option table[] = {
        {"json", NULL, "print one JSON object for each instance", 'j', OPTION_FLAG, &v.json},
        {"with", "URI=FILE", "a document that $ref may name; may be repeated; nothing is fetched", 'w',
         OPTION_LIST, &with},
        {"annotate-format", NULL, "do not assert `format`, as is the specification's default", 0, OPTION_FLAG,
         &annotate},
        {0},
    };
    if (!options_read(command, table, &argc, &argv, &status))
        return status;
    v.arena = arena_new();
    status = validate_all(&v, &with, annotate, argc, argv);
    arena_free(v.arena);
    return status;
}

const struct command command_validate = {
    .name = "validate",
    .operands = "SCHEMA INSTANCE...",
    .summary = "check JSON against a schema, with all problems",
    .about = "SCHEMA is a file with a JSON Schema (2020-12, 2019-09 or draft-07 by its $schema; 2020-12 if "
             "it has\n"
             "none), INSTANCE a JSON file, or - for stdin. `format` is asserted, as for tool calls.",
    .exits = "  0  every instance is valid\n"
             "  1  one is not\n"
             "  2  usage, a file that is not JSON, a schema with an error, a check that was given up",
    .example = "  toolgate validate get_events.schema.json call.json\n"
               "  echo '{\"id\": 7}' | toolgate validate schema.json - --json",
    .least = 2,
    .most = 1000,
    .run = run,
};
