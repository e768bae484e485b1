/*
 * toolgate-bench bowtie: the protocol of the Bowtie project, which runs the
 * official test suite through every validator: one JSON object a line with the
 * command start, dialect, run or stop. Each case is compiled and judged in an
 * arena of its own; an error in one case is its answer, and the next follows.
 */
#include "base/arena.h"
#include "base/map.h"
#include "base/version.h"
#include "cli/command.h"
#include "options.h"
#include "cli/term.h"
#include "json/parse.h"
#include "json/write.h"
#include "schema/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

#define BOWTIE_VERSION   1
#define BOWTIE_MAX_NODES 10000000u /* the suite's own cases are small; a registry holds all its remotes */
#define BOWTIE_MAX_DEPTH 4096u
#define HOMEPAGE         "https://toolgate.dev"

static const char *const dialects[] = {
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema#",
};
#define DIALECTS (sizeof(dialects) / sizeof(dialects[0]))

struct bowtie {
    struct arena *arena; /* of this request */
    const char *dialect; /* of cases without $schema; NULL: none told yet */
    bool stopped;
};

/* ---- start ---- */

static void put_text(struct json_out *out, const char *key, const char *text)
{
    json_key(out, key);
    json_put_text(out, text);
}

static void on_start(struct bowtie *b, const struct json *request, struct json_out *out)
{
    int64_t version;
    struct utsname os = {0};
    if (!json_int(json_get_text(request, "version"), &version) || version != BOWTIE_VERSION) {
        b->stopped = true;
        return;
    }
    uname(&os);
    json_key(out, "version");
    json_put_int(out, BOWTIE_VERSION);
    json_key(out, "implementation");
    json_open(out, '{');
    put_text(out, "language", "c");
    put_text(out, "name", "toolgate");
    put_text(out, "version", TOOLGATE_VERSION);
    put_text(out, "homepage", HOMEPAGE);
    put_text(out, "issues", HOMEPAGE);
    put_text(out, "source", HOMEPAGE);
    put_text(out, "os", os.sysname);
    put_text(out, "os_version", os.release);
    json_key(out, "dialects");
    json_open(out, '[');
    for (size_t i = 0; i < DIALECTS; i++)
        json_put_text(out, dialects[i]);
    json_close(out, ']');
    json_close(out, '}');
}

/* ---- dialect ---- */

static void on_dialect(struct bowtie *b, const struct json *request, struct json_out *out)
{
    struct str wanted = json_str(json_get_text(request, "dialect"));
    b->dialect = NULL;
    for (size_t i = 0; i < DIALECTS; i++)
        if (str_is(wanted, dialects[i]))
            b->dialect = dialects[i];
    json_key(out, "ok");
    json_put_bool(out, b->dialect != NULL);
}

/* ---- run ---- */

static void put_error(struct json_out *out, const char *message)
{
    json_key(out, "errored");
    json_put_bool(out, true);
    json_key(out, "context");
    json_open(out, '{');
    put_text(out, "message", message);
    json_close(out, '}');
}

static struct map *registry_of(struct bowtie *b, const struct json *documents)
{
    struct map *registry = map_new(b->arena);
    for (uint32_t i = 0; json_is(documents, JSON_OBJECT) && i < documents->len; i++)
        schema_registry_add(registry, documents->members[i].key, &documents->members[i].value);
    return registry;
}

static void put_result(struct json_out *out, const struct schema *schema, const struct json *test)
{
    const struct json *instance = json_get_text(test, "instance");
    enum schema_validity answer = instance ? schema_validate(schema, instance) : SCHEMA_TOO_COMPLEX;
    json_open(out, '{');
    if (answer == SCHEMA_TOO_COMPLEX) {
        put_error(out, instance ? "the check was given up: too complex" : "the test has no instance");
    } else {
        json_key(out, "valid");
        json_put_bool(out, answer == SCHEMA_VALID);
    }
    json_close(out, '}');
}

static void on_run(struct bowtie *b, const struct json *request, struct json_out *out)
{
    const struct json *given = json_get_text(request, "case"), *source = json_get_text(given, "schema");
    const struct json *tests = json_get_text(given, "tests");
    struct schema_options options = {.annotate_format = true,
                                     .registry = registry_of(b, json_get_text(given, "registry")),
                                     .default_dialect = b->dialect};
    struct schema *schema;
    struct why why;
    json_key(out, "seq");
    json_put(out, json_get_text(request, "seq"));
    if (!source || !json_is(tests, JSON_ARRAY)) {
        put_error(out, "expected a case with a schema and a list of tests");
    } else if (schema_compile(b->arena, source, &options, &schema, NULL, &why) != OK) {
        put_error(out, why.text);
    } else {
        json_key(out, "results");
        json_open(out, '[');
        for (uint32_t i = 0; i < tests->len; i++)
            put_result(out, schema, &tests->items[i]);
        json_close(out, ']');
    }
}

static void on_stop(struct bowtie *b, const struct json *request, struct json_out *out)
{
    (void)request, (void)out;
    b->stopped = true;
}

/* ---- requests ---- */

static const struct {
    const char *name;
    void (*answer)(struct bowtie *b, const struct json *request, struct json_out *out);
} commands[] = {{"start", on_start}, {"dialect", on_dialect}, {"run", on_run}, {"stop", on_stop}};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static size_t command_of(const struct json *request)
{
    struct str name = json_str(json_get_text(request, "cmd"));
    size_t at = 0;
    while (at < COMMANDS && !str_is(name, commands[at].name))
        at++;
    return at;
}

/* False where the line is no request: the harness and we have come apart, and no answer would help. */
static bool answer(struct bowtie *b, struct str line, FILE *to)
{
    static const struct json_limits limits = {.depth = BOWTIE_MAX_DEPTH, .nodes = BOWTIE_MAX_NODES};
    struct json request;
    struct json_error fault;
    struct buf text = buf_in(b->arena);
    struct json_out out = json_out(&text);
    if (json_parse(b->arena, line, &limits, &request, &fault) != OK) {
        term_error("expected a JSON object a line: %s", fault.text);
        return false;
    }
    size_t command = command_of(&request);
    if (command == COMMANDS) {
        term_error("expected a \"cmd\" of start, dialect, run, stop");
        return false;
    }
    json_open(&out, '{');
    commands[command].answer(b, &request, &out);
    json_close(&out, '}');
    if (!b->stopped) {
        fprintf(to, STR_FMT "\n", STR_ARG(buf_view(&text)));
        fflush(to);
    } else if (command == 0) {
        term_error("expected version %d of the protocol", BOWTIE_VERSION);
        return false;
    }
    return true;
}

static int serve(FILE *in, FILE *out)
{
    struct bowtie b = {0};
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    bool ok = true;
    while (ok && !b.stopped && (len = getline(&line, &room, in)) > 0) {
        b.arena = arena_new();
        ok = answer(&b, (struct str){line, (size_t)len}, out);
        arena_free(b.arena);
    }
    free(line);
    return ok ? CLI_OK : CLI_ERROR;
}

static const char about[] =
    "Judges the cases of the Bowtie project's harness with toolgate's JSON Schema validator until "
    "the harness sends stop or the input ends.";

static int run(const struct command *command, int argc, char **argv)
{
    const struct cli_option table[] = {{0}};
    options_read(command, about, table, argc, argv);
    return serve(stdin, stdout);
}

const struct command bench_bowtie = {
    .name = "bowtie",
    .summary = "speak Bowtie's protocol on stdin and stdout",
    .run = run,
};
