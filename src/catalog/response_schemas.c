/* Reads the folder in the order of names, each file checked by compiling its schema. */
#include "catalog/response_schemas.h"

#include "base/arena.h"
#include "base/hash.h"
#include "catalog/generation.h"
#include "json/parse.h"
#include "json/write.h"
#include "schema/schema.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#define SUFFIX ".json"

/* Hidden files are skipped, except one without a name, which is a mistake. */
static int is_schema(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name), suffix = strlen(SUFFIX);
    bool hidden = entry->d_name[0] == '.' && len > suffix;
    return !hidden && len >= suffix && strcmp(entry->d_name + len - suffix, SUFFIX) == 0;
}

static void add(struct arena *arena, const char *folder, const char *entry, struct generation_report *report,
                struct response_schemas *out)
{
    static const char *const reserved[] = {RESPONSE_SCHEMA_VERDICT, RESPONSE_SCHEMA_COVERAGE};
    struct str name = arena_dup(arena, (struct str){entry, strlen(entry) - strlen(SUFFIX)});
    struct str file = arena_printf(arena, "%s/%s", folder, entry);
    struct json *schema = ARENA_NEW(arena, struct json);
    struct schema *compiled;
    struct arena *scratch = arena_new();
    struct problems faults; /* small ones too: providers refuse what a lenient reader understands */
    struct why why;
    problems_init(&faults, scratch);
    if (!str_is_name(name) || name.len > RESPONSE_SCHEMA_NAME_MAX_BYTES) {
        generation_report_error(report,
                                "%s: expected a name of 1 to %u letters, digits, _ and - before " SUFFIX
                                ", got '" STR_FMT "'",
                                file.at, RESPONSE_SCHEMA_NAME_MAX_BYTES, STR_ARG(str_cut(name, 80)));
    } else if (STR_IS_ONE_OF(name, reserved)) {
        generation_report_error(
            report, "%s: toolgate's own schema is named '" STR_FMT "': give the file another name", file.at,
            STR_ARG(name));
    } else if (json_read_file(arena, file.at, SCHEMA_MAX_BYTES, schema, &why) != OK) {
        generation_report_error(report, "%s", why.text);
    } else if (schema->type != JSON_OBJECT) {
        generation_report_error(report, "%s: expected a JSON Schema, an object, got %s", file.at,
                                json_type_name((enum json_type)schema->type));
    } else if (schema_compile(scratch, schema, NULL, &compiled, &faults, &why) != OK) {
        generation_report_error(report, "%s: %s", file.at, why.text);
    } else if (faults.count) {
        generation_report_error(report, "%s: " STR_FMT ": " STR_FMT, file.at, STR_ARG(faults.list[0].path),
                                STR_ARG(faults.list[0].message));
    } else {
        struct buf text = buf_in(scratch);
        buf_printf(&text, "%llx " STR_FMT " ", (unsigned long long)out->hash, STR_ARG(name));
        json_write(&text, schema);
        out->hash = hash_stable(buf_view(&text)).low;
        out->list[out->count++] = (struct response_schema){name, file, schema};
    }
    arena_free(scratch);
}

void response_schemas_load(struct arena *arena, const char *folder, struct generation_report *report,
                           struct response_schemas *out)
{
    struct dirent **entries = NULL;
    *out = (struct response_schemas){.list = NULL};
    int count = folder ? scandir(folder, &entries, is_schema, alphasort) : 0;
    if (count < 0 && errno != ENOENT)
        generation_report_error(report, "schemas %s: %s", folder, strerror(errno));
    if (count > (int)RESPONSE_SCHEMAS_MAX)
        generation_report_error(report, "schemas %s: expected at most %u files, got %d", folder,
                                RESPONSE_SCHEMAS_MAX, count);
    out->list = ARENA_ARRAY(arena, struct response_schema, RESPONSE_SCHEMAS_MAX + 1);
    for (int i = 0; i < count; i++) {
        if (count <= (int)RESPONSE_SCHEMAS_MAX)
            add(arena, folder, entries[i]->d_name, report, out);
        free(entries[i]);
    }
    free(entries);
}
