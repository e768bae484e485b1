/*
 * One problem of a call's arguments (or of a tool's result), readable for
 * programs and as a sentence for a model; and a bounded list of them.
 */
#ifndef TOOLGATE_SCHEMA_PROBLEM_H
#define TOOLGATE_SCHEMA_PROBLEM_H

#include "base/buf.h"

struct arena;
struct json_out;

#define PROBLEMS_MAX                  32u   /* the rest is counted */
#define PROBLEMS_MAX_TEXT_BYTES       8192u /* of all messages together */
#define PROBLEM_GOT_MAX_BYTES         80u   /* of a quoted value */
#define PROBLEM_PATH_MAX_BYTES        200u  /* of a path in a line */
#define PROBLEM_DESCRIPTION_MAX_BYTES 160u  /* of a schema's description */
#define PROBLEM_CHOICES_MAX           12u   /* allowed values in a message; then "… (N more)" */

struct problem {
    struct str path; /* "items[0].price"; empty: the arguments as a whole */
    const char
        *code; /* static: "missing", "type", "format", "list", "unknown_field", "enum", or the keyword */
    struct str message;                   /* "required field is missing — provide a value" */
    struct str expected, got, suggestion; /* JSON; empty: none */
    struct str description;               /* first line of the schema's own at that place, cut; empty: none */
    bool warning;                         /* no reason to refuse */
    bool quiet;                           /* of a warning: in the verdict only, no model reads it */
    bool in_result;                       /* of the tool's result, not the arguments */
};

struct problems {
    struct arena *arena; /* owns the list and all its strings */
    struct problem *list;
    size_t count, capacity;
    size_t errors; /* listed problems that are not warnings */
    size_t more;   /* found beyond the limits */
    size_t text_bytes;
};

void problems_init(struct problems *problems, struct arena *arena);

/* Beyond PROBLEMS_MAX or PROBLEMS_MAX_TEXT_BYTES the problem is only counted in `more`. Its strings are
 * borrowed and must live in the list's arena. */
void problems_add(struct problems *problems, struct problem problem);

/* Any further problem would only be counted, so its message need not be made. */
bool problems_full(const struct problems *problems);

/* "- 'due_date': expected ISO datetime (e.g. '2026-05-03T00:00:00Z'), got \"tomorrow\"\n" */
void problem_line(struct buf *out, const struct problem *problem);

/* All lines, then "- and N more\n" if some were only counted. */
void problems_text(struct buf *out, const struct problems *problems);

/* "args.items[0].name", "result.events", "args" */
void problem_path(struct buf *out, const struct problem *problem);

/* {"path":"args.items[0].name","code":…,"message":…,"severity":"error"|"warning","expected":…,"got":…} */
void problem_json(struct json_out *out, const struct problem *problem);

#endif
