/*
 * One problem of a call's arguments (or of a tool's result), readable for
 * programs and as a sentence for a model; and a bounded list of them.
 */
#ifndef TOOLGATE_SCHEMA_PROBLEM_H
#define TOOLGATE_SCHEMA_PROBLEM_H

#include "base/buf.h"

struct arena;
struct json_out;
struct node;

#define PROBLEMS_MAX                  32u   /* the rest is counted */
#define PROBLEMS_MAX_TEXT_BYTES       8192u /* of all messages together */
#define PROBLEM_GOT_MAX_BYTES         80u   /* of a quoted value */
#define PROBLEM_MESSAGE_MAX_BYTES     3072u /* of a message: a schema's names and values can be long */
#define PROBLEM_PATH_MAX_BYTES        200u  /* of a path in a line */
#define PROBLEM_DESCRIPTION_MAX_BYTES 160u  /* of a schema's description */
#define PROBLEM_CHOICES_MAX           30u   /* allowed values in a message; of more, the closest ones */

struct problem {
    struct str path;  /* "items[0].price"; empty: the arguments as a whole */
    struct str place; /* in the schema: "items[].price", "labels.*" of a name that only the user knows; empty:
                         `path` */
    /* static: "missing", "type", "format", "list", "unknown_field", "enum", or the keyword */
    const char *code;
    struct str message;       /* "is missing: string" */
    struct str expected;      /* a small JSON Schema; empty: none, or that of `shape` */
    const struct node *shape; /* of its schema, which outlives the problem; NULL: none */
    struct str shape_json;    /* of `shape`, once two were compared; else empty */
    struct str got;           /* JSON; empty: none */
    struct str suggestion;    /* JSON: a value, or of an unknown field its right name; empty: none */
    struct str last_path;     /* of a group: that of its last problem; empty: none */
    uint32_t count;           /* of a group: how many problems; 0: it is one */
    struct str also_got;      /* of a group: values beside `got`, as JSON between commas; empty: none */
    bool renames;             /* `suggestion` is the field's right name, and its value fits there */
    struct str description;   /* first line of the schema's own at that place, cut; empty: none */
    bool warning;             /* no reason to refuse */
    bool quiet;               /* of a warning: in the verdict only, no model reads it */
    bool in_result;           /* of the tool's result, not the arguments */
};

struct problems {
    struct arena *arena; /* owns the list and all its strings */
    struct problem *list;
    size_t count;
    size_t errors;   /* listed problems that are not warnings */
    size_t more;     /* found beyond the limits */
    bool incomplete; /* there may be more than `more` */
    size_t text_bytes;
};

/* The JSON Schema of what is expected, made when it is read; empty: none. */
struct str problem_expected(struct arena *arena, const struct problem *problem);

void problems_init(struct problems *problems, struct arena *arena);

/* A message quotes names, values and patterns of an agent and of a server: makes it, and the description, one
 * line of bounded length in which nothing hides. problems_add does it, too. */
void problem_clean(struct arena *arena, struct problem *problem);

/* Beyond PROBLEMS_MAX or PROBLEMS_MAX_TEXT_BYTES the problem is only counted in `more`. Its strings are
 * borrowed and must live in the list's arena. */
void problems_add(struct problems *problems, struct problem problem);

/* The same for a problem that problem_clean has seen. */
void problems_add_clean(struct problems *problems, const struct problem *problem);

/* Like problems_add_clean, but not if the list has the same message for the same place. `in_list`: the place
 * is in a list, and a problem of the same kind in another item of it is counted with the first one. */
void problems_add_once(struct problems *problems, struct problem *problem, bool in_list);

/* Any further problem would only be counted, so its message need not be made. */
bool problems_full(const struct problems *problems);

/* Counts a problem, without its message, if the list is full or had no space for one before. */
bool problems_skip(struct problems *problems);

/* "- 'due_date': expected ISO datetime (e.g. '2026-05-03T00:00:00Z'), got \"tomorrow\"\n" */
void problem_line(struct buf *out, const struct problem *problem);

/* All lines, renames in one, then "- and N more\n" if some were only counted. */
void problems_text(struct buf *out, const struct problems *problems);

/* "args.items[0].name", "result.events", "args" */
void problem_path(struct buf *out, const struct problem *problem);

/* {"path":"args.items[0].name","code":…,"message":…,"severity":"error"|"warning","expected":…,"got":…}; of a
 * group also "count" and "last_path". */
void problem_json(struct json_out *out, const struct problem *problem);

#endif
