/* From the table that a policy file returned to struct policy. Every field is known by name and type; a
 * mistake is a Lua error with its line, what was expected and what was found. Only files of this room
 * include this header. */
#ifndef TOOLGATE_POLICY_DECLARE_H
#define TOOLGATE_POLICY_DECLARE_H

#include "policy/field.h"
#include "policy/policy_internal.h"

#include <lua.h>

/* One file while it is read. */
struct declaration {
    lua_State *L;
    struct policy_set *set;
    struct str file, source;
    const struct token *tokens;   /* of the source */
    struct arena *arena;          /* holds what is read: the set's, or that of its examples */
    struct arena *scratch;        /* freed when the file has been read */
    struct policy *policy;        /* out; NULL: the file declares the gateway */
    const char *parent;           /* the field whose table is being read, as "retry.again"; NULL: the tool */
    void *out;                    /* the struct that the table is read into */
    int line;                     /* of the list item that is being read, for errors; 0: the field's own */
    const struct json *annotated; /* the lines of annotated arguments, by name; NULL: none exist */
};

void declare_read(struct declaration *d, int at);              /* the value at `at`, protected */
struct policy_wants declare_wants(const struct token *tokens); /* what its functions read of `call` */
struct policy *declare_blank(struct policy_set *set, struct str name,
                             struct str file); /* nothing is declared */

/* ---- tables; a new one is also named in field.c ---- */

extern const struct field_table declare_tool_table, declare_policy_table, declare_gateway_table,
    declare_coerce_table, declare_retry_table, declare_again_table, declare_loop_table, declare_poll_table,
    declare_rate_table, declare_exec_table, declare_exec_group_table, declare_exec_sandbox_table,
    declare_http_table, declare_compact_table, declare_example_table, declare_example_call_table;

field_reader declare_exec, declare_http, declare_rules, declare_examples;

/* ---- reading by rows ------------------------------------------------------- */

/* A list that was read into d->scratch, with room for the most, as long as it is. */
#define ARENA_KEEP(arena, list, count)                                                                       \
    ((void *)arena_copy((arena), (struct str){(const char *)(list), (count) * sizeof(*(list))}))

/* Where the value of a field goes. */
#define FIELD_INTO(d, field, type) ((type *)((char *)(d)->out + (field)->offset))

/* Reads the table at `at` into `out`, in the order of the rows; unknown names are errors. `parent`: the field
 * that holds the table, "retry.again"; NULL: the tool itself. A row's own reader finds it as d->out. The
 * table may have `items` items without a name, which are left to the caller. */
void field_read_table(struct declaration *d, int at, const char *parent, const struct field_table *table,
                      size_t items, void *out);

/* Raise "file:line: 'parent.name': …", with the parent of the table that is being read. */
int field_error(struct declaration *d, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));
/* "expected X, got Y", Y being the value at `at`. */
int field_mismatch(struct declaration *d, const char *name, int at, const char *expected)
    __attribute__((noreturn));

/* Raises if the value is no plain table. */
void field_require_table(struct declaration *d, const char *name, int at, const char *expected);

struct str field_string(struct declaration *d, int at); /* in d->arena */

/* Reads a table { NAME = "value" } of at most field->most strings, into a struct name_values. */
field_reader field_read_pairs;

/* The value as JSON; what json "…" read keeps its text. `what` begins error messages. */
const struct json *field_json(struct declaration *d, const char *what, int at, const struct json *schema);

/* ---- checks across fields, after all of them; each raises an error --------- */

void declare_check_exec(
    struct declaration *d); /* words that the schema lacks, or that run a model's program */
void declare_check_http(struct declaration *d); /* an address that needs what the schema does not require */

/* The properties of a schema that names all its arguments there; NULL: other keywords may name more. */
const struct json *declare_properties(const struct json *schema);

struct str declare_closest_property(const struct json *properties, struct str name); /* for "did you mean" */

/* Raises: `field` takes an argument that is not among the properties. `otherwise` follows if no name is
 * close. */
void declare_unknown_argument(struct declaration *d, const char *field, const struct json *properties,
                              struct str name, const char *otherwise) __attribute__((noreturn));

#endif
