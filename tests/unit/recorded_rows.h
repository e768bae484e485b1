/* The recorded calls of the corpus beside the project, or at $TOOLGATE_CORPUS; a test that needs them is
 * skipped with a message where there are none. Include it after unit.h. */
#include "arena_case.h"
#include "json/parse.h"

#include <glob.h>

#define BESIDE_US "../shared/data/corpus"

/* Each in an arena of its own. */
static void each_row_of_file(const char *path, void (*see)(const struct json *row))
{
    char *line = NULL;
    size_t size = 0;
    ssize_t len;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    while ((len = getline(&line, &size, file)) > 0) {
        struct json row;
        struct json_error fault;
        arena_free(arena);
        arena = arena_new();
        assert_int_equal(OK, json_parse(arena, (struct str){line, (size_t)len}, NULL, &row, &fault));
        see(&row);
    }
    free(line);
    fclose(file);
}

static void each_recorded_row(void (*see)(const struct json *row))
{
    const char *root = getenv("TOOLGATE_CORPUS") ? getenv("TOOLGATE_CORPUS") : BESIDE_US;
    char pattern[512];
    glob_t files;
    snprintf(pattern, sizeof(pattern), "%s/trajectories-*.ndjson", root);
    if (glob(pattern, 0, NULL, &files) != 0) {
        printf("no corpus at %s, so real answers are skipped\n", root);
        skip();
    }
    for (size_t i = 0; i < files.gl_pathc; i++)
        each_row_of_file(files.gl_pathv[i], see);
    globfree(&files);
}
