/*
 * toolgate-bench schema FILE: schemas compiled, valid and invalid calls judged,
 * each from its text, as a call is: parsed, asked whether it fits, and where it
 * does not, every problem found and written out. The file holds {"schemas":
 * {name: schema}, "valid": [{"tool": name, "text": "…"}], "invalid": […]}.
 */
#include "base/arena.h"
#include "cli/command.h"
#include "options.h"
#include "cli/term.h"
#include "json/parse.h"
#include "json/write.h"
#include "schema/schema.h"

#include <stdio.h>
#include <unistd.h>
#include <stdlib.h>
#include <time.h>

#define WORKLOAD_MAX_BYTES 16777216u
#define PASSES             50u /* over all texts: one sample */
#define SAMPLES_MAX        100000u

struct text {
    struct str text;
    const struct schema *schema;
};

struct texts {
    struct text *list;
    size_t count;
    bool valid; /* all of them should be */
};

struct workload {
    struct arena *arena;
    const struct command *command;
    struct json file;
    const struct json *schemas;
    struct schema **compiled;
    struct texts valid, invalid;
};

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- the workload ---- */

static bool compile_all(const struct workload *w, struct arena *arena, struct schema **out)
{
    struct why why;
    for (uint32_t i = 0; i < w->schemas->len; i++)
        if (schema_compile(arena, &w->schemas->members[i].value, NULL, &out[i], NULL, &why) != OK) {
            term_error(w->command->name, "schema '" STR_FMT "': %s", STR_ARG(w->schemas->members[i].key),
                       why.text);
            return false;
        }
    return true;
}

static const struct schema *schema_named(const struct workload *w, struct str name)
{
    for (uint32_t i = 0; i < w->schemas->len; i++)
        if (str_eq(w->schemas->members[i].key, name))
            return w->compiled[i];
    return NULL;
}

static bool read_texts(const struct workload *w, const char *key, bool valid, struct texts *out)
{
    const struct json *list = json_get_text(&w->file, key);
    *out = (struct texts){.valid = valid};
    if (!json_is(list, JSON_ARRAY) || list->len == 0) {
        term_error(w->command->name,
                   "expected a list \"%s\" of {\"tool\", \"text\"}, which is missing or empty", key);
        return false;
    }
    out->list = ARENA_ARRAY(w->arena, struct text, list->len);
    for (; out->count < list->len; out->count++) {
        struct text *t = &out->list[out->count];
        t->text = json_str(json_get_text(&list->items[out->count], "text"));
        t->schema = schema_named(w, json_str(json_get_text(&list->items[out->count], "tool")));
        if (!t->text.at || !t->schema) {
            term_error(w->command->name,
                       "%s[%zu]: expected {\"tool\": a name among the schemas, \"text\": \"…\"}", key,
                       out->count);
            return false;
        }
    }
    return true;
}

static bool read_workload(struct workload *w, const char *path)
{
    struct why why;
    if (json_read_file(w->arena, path, WORKLOAD_MAX_BYTES, &w->file, &why) != OK) {
        term_error(w->command->name, "%s", why.text);
        return false;
    }
    w->schemas = json_get_text(&w->file, "schemas");
    if (!json_is(w->schemas, JSON_OBJECT)) {
        term_error(w->command->name, "%s: expected {\"schemas\": {…}, \"valid\": […], \"invalid\": […]}",
                   path);
        return false;
    }
    w->compiled = ARENA_ARRAY(w->arena, struct schema *, w->schemas->len);
    return compile_all(w, w->arena, w->compiled) && read_texts(w, "valid", true, &w->valid) &&
           read_texts(w, "invalid", false, &w->invalid);
}

/* ---- one call ---- */

/* False where the answer is not what the workload says it is. */
static bool judge(const struct text *t, bool valid)
{
    struct arena *arena = arena_new();
    struct json value;
    struct json_error fault;
    bool parsed = json_parse(arena, t->text, NULL, &value, &fault) == OK;
    bool accepted = parsed && schema_validate(t->schema, &value) == SCHEMA_VALID;
    if (parsed && !accepted) {
        struct problems problems;
        struct buf words = buf_in(arena);
        problems_init(&problems, arena);
        schema_explain(t->schema, &value, &problems, NULL);
        problems_text(&words, &problems);
        valid |= words.len == 0; /* refused without a word: as bad as the wrong answer */
    }
    arena_free(arena);
    return parsed && accepted == valid;
}

/* ---- samples ---- */

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool pass_over(const struct texts *texts)
{
    bool good = true;
    for (unsigned n = 0; n < PASSES; n++)
        for (size_t i = 0; i < texts->count; i++)
            good &= judge(&texts->list[i], texts->valid);
    return good;
}

/* The median of what one call took, in ns; -1 where an answer was wrong. */
static int64_t median_of(const struct workload *w, const struct texts *texts, unsigned seconds)
{
    int64_t *samples = calloc(SAMPLES_MAX, sizeof(*samples)), median = -1;
    int64_t end = now_ns() + (int64_t)seconds * 1000000000;
    size_t count = 0;
    bool good = samples && pass_over(texts);
    while (good && count < SAMPLES_MAX && (count == 0 || now_ns() < end)) {
        int64_t began = now_ns();
        good = pass_over(texts);
        samples[count++] = (now_ns() - began) / (int64_t)(PASSES * texts->count);
    }
    if (good) {
        qsort(samples, count, sizeof(*samples), by_size);
        median = samples[count / 2];
    } else {
        term_error(w->command->name, "a text that should be %s is not", texts->valid ? "valid" : "invalid");
    }
    free(samples);
    return median;
}

/* The median of compiling all schemas, in µs. */
static int64_t compile_us(const struct workload *w)
{
    int64_t samples[PASSES];
    for (size_t i = 0; i < PASSES; i++) {
        struct arena *arena = arena_new();
        struct schema **out = ARENA_ARRAY(arena, struct schema *, w->schemas->len);
        int64_t began = now_ns();
        compile_all(w, arena, out);
        samples[i] = (now_ns() - began) / 1000;
        arena_free(arena);
    }
    qsort(samples, PASSES, sizeof(*samples), by_size);
    return samples[PASSES / 2];
}

static int measure(const struct workload *w, unsigned seconds, bool json)
{
    int64_t valid = median_of(w, &w->valid, seconds);
    int64_t invalid = valid < 0 ? -1 : median_of(w, &w->invalid, seconds);
    if (invalid < 0)
        return CLI_ERROR;
    if (json)
        printf("{\"valid_ns\":%lld,\"invalid_ns\":%lld,\"compile_us\":%lld,\"schemas\":%u}\n",
               (long long)valid, (long long)invalid, (long long)compile_us(w), w->schemas->len);
    else
        printf("toolgate   valid %lld ns   invalid %lld ns   compile %u schemas %lld µs\n", (long long)valid,
               (long long)invalid, w->schemas->len, (long long)compile_us(w));
    return CLI_OK;
}

static const struct cli_help help = {
    .about = "Valid and invalid calls from their JSON, parsed and judged, every problem of the invalid ones\n"
             "written out; and compiling. FILE holds {\"schemas\": {name: schema},\n"
             "\"valid\": [{\"tool\": name, \"text\": \"…\"}], \"invalid\": […]}.",
    .exits = "  0  measured\n"
             "  2  usage, a file that is no workload, a call that was judged wrongly",
    .example = "  toolgate-bench schema workload.json",
    .operand = "FILE",
};

static int run(const struct command *command, int argc, char **argv)
{
    unsigned seconds = 3;
    bool json = false;
    int status;
    const struct cli_option table[] = {
        {"seconds", "S", "for each of valid and invalid (default: 3)", 0, OPTION_NUMBER, &seconds},
        {"json", NULL, "one JSON object", 'j', OPTION_FLAG, &json},
        {0},
    };
    if (!options_read(command, &help, table, argc, argv, &status))
        return status;
    struct workload w = {.arena = arena_new(), .command = command};
    status = read_workload(&w, argv[optind]) ? measure(&w, seconds, json) : CLI_ERROR;
    arena_free(w.arena);
    return status;
}

const struct command bench_schema = {
    .name = "schema",
    .summary = "compiling schemas, judging valid and invalid calls",
    .run = run,
};
