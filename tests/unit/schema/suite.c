/*
 * The official JSON Schema test suite, if it is found: $JSON_SCHEMA_TEST_SUITE
 * or beside the project. Every case of the claimed files must pass; the files
 * not claimed are run and counted, too.
 */
#include "base/arena.h"
#include "base/map.h"
#include "json/parse.h"
#include "schema/schema.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define BESIDE_US "../shared/data/json-schema-test-suite"

static const struct {
    const char *folder, *dialect;
} drafts[] = {
    {"draft7", "http://json-schema.org/draft-07/schema"},
    {"draft2019-09", "https://json-schema.org/draft/2019-09/schema"},
    {"draft2020-12", "https://json-schema.org/draft/2020-12/schema"},
};

/* Optional files whose cases are not all claimed, and why. */
static const struct {
    const char *file, *reason;
} unclaimed[] = {
    {"optional/content.json", "contentEncoding and contentMediaType annotate"},
    {"optional/format/idn-email.json", "an annotation only"},
    {"optional/format/idn-hostname.json", "an annotation only"},
    {"optional/format/iri.json", "an annotation only"},
    {"optional/format/iri-reference.json", "an annotation only"},
    {"optional/format/uri-template.json", "an annotation only"},
};

struct tally {
    unsigned passed, failed, unclaimed_passed, unclaimed_failed;
};

struct run {
    const char *root;
    struct arena *arena; /* of the remotes */
    struct map *registry;
    struct tally tally;
    bool verbose;
};

static const char *why_unclaimed(const char *file)
{
    for (size_t i = 0; i < sizeof(unclaimed) / sizeof(*unclaimed); i++)
        if (strcmp(file, unclaimed[i].file) == 0)
            return unclaimed[i].reason;
    return NULL;
}

static struct json *read_json(struct arena *arena, const char *path)
{
    struct json *value = ARENA_NEW(arena, struct json);
    struct why why;
    if (json_read_file(arena, path, 16u << 20, value, &why) == OK)
        return value;
    fprintf(stderr, "schema_suite: %s\n", why.text);
    exit(1);
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_json(const char *name)
{
    size_t n = strlen(name);
    return n > 5 && strcmp(name + n - 5, ".json") == 0;
}

/* Each remote under the URI that the suite expects. */
static void add_remotes(struct run *run, const char *relative)
{
    struct str folder = arena_printf(run->arena, "%s/remotes%s", run->root, relative);
    DIR *dir = opendir(folder.at);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (e->d_name[0] == '.')
            continue;
        struct str path = arena_printf(run->arena, "%s/%s", folder.at, e->d_name);
        struct str name = arena_printf(run->arena, "%s/%s", relative, e->d_name);
        if (is_folder(path.at))
            add_remotes(run, name.at);
        else if (is_json(e->d_name))
            schema_registry_add(run->registry, arena_printf(run->arena, "http://localhost:1234%s", name.at),
                                read_json(run->arena, path.at));
    }
    if (dir)
        closedir(dir);
}

/* The collecting pass must agree with the boolean one, and report a problem. */
static bool passes_agree(struct arena *arena, const struct schema *schema, const struct json *data,
                         enum schema_validity answer)
{
    struct problems problems;
    problems_init(&problems, arena);
    if (schema_explain(schema, data, &problems, NULL) != answer)
        return false;
    return (answer == SCHEMA_VALID) == (problems.errors == 0);
}

static void say_failed(const char *file, const struct json *group, const struct json *test, const char *what)
{
    printf("  %s: " STR_FMT " / " STR_FMT ": %s\n", file,
           STR_ARG(json_str(json_get_text(group, "description"))),
           STR_ARG(json_str(json_get_text(test, "description"))), what);
}

static void run_group(struct run *run, const struct json *group, const char *file, const char *dialect,
                      bool claimed)
{
    struct arena *arena = arena_new();
    struct schema_options options = {.annotate_format = !strstr(file, "optional/format/"),
                                     .registry = run->registry,
                                     .default_dialect = dialect};
    struct why why = {""};
    struct schema *schema;
    const struct json *tests = json_get_text(group, "tests");
    enum err err = schema_compile(arena, json_get_text(group, "schema"), &options, &schema, NULL, &why);
    for (uint32_t i = 0; i < tests->len; i++) {
        const struct json *test = &tests->items[i], *data = json_get_text(test, "data");
        bool wanted = json_is_true(json_get_text(test, "valid"));
        enum schema_validity answer = err ? SCHEMA_TOO_COMPLEX : schema_validate(schema, data);
        bool ok = answer == (wanted ? SCHEMA_VALID : SCHEMA_INVALID);
        bool agree = !ok || passes_agree(arena, schema, data, answer);
        *(claimed ? ok && agree ? &run->tally.passed : &run->tally.failed
          : ok    ? &run->tally.unclaimed_passed
                  : &run->tally.unclaimed_failed) += 1;
        if ((!ok || !agree) && (claimed || run->verbose))
            say_failed(file, group, test,
                       err   ? why.text
                       : !ok ? (wanted ? "refused" : "accepted")
                             : "explain disagrees");
    }
    arena_free(arena);
}

static void run_file(struct run *run, const char *path, const char *file, const char *dialect)
{
    struct arena *arena = arena_new();
    const struct json *groups = read_json(arena, path);
    const char *reason = why_unclaimed(file);
    struct tally before = run->tally;
    for (uint32_t i = 0; i < groups->len; i++)
        run_group(run, &groups->items[i], file, dialect, !reason);
    if (reason)
        printf("  not claimed: %-40s %u pass, %u fail (%s)\n", file,
               run->tally.unclaimed_passed - before.unclaimed_passed,
               run->tally.unclaimed_failed - before.unclaimed_failed, reason);
    arena_free(arena);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void run_folder(struct run *run, const char *folder, const char *relative, const char *dialect)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, by_name);
    for (int i = 0; i < count; i++) {
        char path[4096], file[1024];
        snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        snprintf(file, sizeof(file), "%s%s", relative, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && is_folder(path)) {
            strcat(file, "/");
            run_folder(run, path, file, dialect);
        } else if (is_json(file)) {
            run_file(run, path, file, dialect);
        }
        free(entries[i]);
    }
    free(entries);
}

int main(void)
{
    const char *named = getenv("JSON_SCHEMA_TEST_SUITE");
    struct run run = {.root = named ? named : BESIDE_US, .verbose = getenv("VERBOSE") != NULL};
    if (!is_folder(run.root)) {
        printf("schema_suite: skipped, there is no test suite at %s ($JSON_SCHEMA_TEST_SUITE names another "
               "place)\n",
               run.root);
        return 0;
    }
    unsigned failed = 0;
    run.arena = arena_new();
    run.registry = map_new(run.arena);
    add_remotes(&run, "");
    for (size_t i = 0; i < sizeof(drafts) / sizeof(*drafts); i++) {
        char folder[4096];
        snprintf(folder, sizeof(folder), "%s/tests/%s", run.root, drafts[i].folder);
        run.tally = (struct tally){0};
        run_folder(&run, folder, "", drafts[i].dialect);
        printf("schema_suite: %s: %u of %u claimed cases pass; %u of %u of the others\n", drafts[i].folder,
               run.tally.passed, run.tally.passed + run.tally.failed, run.tally.unclaimed_passed,
               run.tally.unclaimed_passed + run.tally.unclaimed_failed);
        failed += run.tally.failed;
    }
    arena_free(run.arena);
    return failed ? 1 : 0;
}
