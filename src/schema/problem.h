/*
 * One thing that is wrong with a call's arguments (or a tool's result), in a
 * form that programs can read and in words that a model can act on; and the
 * list of all of them, bounded.
 */
#ifndef TOOLGATE_SCHEMA_PROBLEM_H
#define TOOLGATE_SCHEMA_PROBLEM_H

#include "base/buf.h"

struct arena;
struct json_out;

#define PROBLEMS_MAX            32u   /* the rest is counted */
#define PROBLEMS_MAX_TEXT_BYTES 8192u /* of all messages together */
#define PROBLEM_GOT_MAX_BYTES   80u   /* a quoted value is cut to this */
#define PROBLEM_PATH_MAX_BYTES  200u  /* so much of a path is shown in a line */
#define PROBLEM_DESCRIPTION_MAX_BYTES                                                                        \
    160u /* of a schema's description, which is somebody else's text: cut, and on one line */
#define PROBLEM_CHOICES_MAX 12u /* allowed values listed in a message; then "… (N more)" */

struct problem {
    struct str path; /* "items[0].price"; empty: the arguments as a whole */
    const char
        *code; /* "missing", "type", "format", "list", "unknown_field", "enum", or the keyword: static text */
    struct str message;                   /* "required field is missing — provide a value" */
    struct str expected, got, suggestion; /* JSON texts; empty where there is none */
    struct str description; /* the schema's own, of the place that is wrong, cut; empty where it has none */
    bool warning;           /* worth saying, no reason to refuse */
    bool in_result;         /* it is the tool's result that is wrong, not the arguments */
};

struct problems {
    struct arena *arena; /* owns the list and every text in it */
    struct problem *list;
    size_t count, capacity;
    size_t errors; /* of the listed ones, those that are no warnings */
    size_t more;   /* found beyond the limits */
    size_t text_bytes;
};

void problems_init(struct problems *problems, struct arena *arena);

/* Keeps the problem, or counts it in `more` beyond PROBLEMS_MAX or PROBLEMS_MAX_TEXT_BYTES. Texts are
 * borrowed and must live in the list's arena. */
void problems_add(struct problems *problems, struct problem problem);

/* Whatever comes now would only be counted: its words need not be looked for. */
bool problems_full(const struct problems *problems);

/* "- 'due_date': expected ISO datetime (e.g. '2026-05-03T00:00:00Z'), got \"tomorrow\"\n" */
void problem_line(struct buf *out, const struct problem *problem);

/* All lines, then "- and N more\n" where some were left out. */
void problems_text(struct buf *out, const struct problems *problems);

/* "args.items[0].name", "result.events", "args" */
void problem_path(struct buf *out, const struct problem *problem);

/* {"path":"args.items[0].name","code":…,"message":…,"severity":"error"|"warning","expected":…,"got":…} */
void problem_json(struct json_out *out, const struct problem *problem);

#endif
