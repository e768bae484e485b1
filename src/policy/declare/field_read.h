/*
 * Reading the values of a declaration: fields of a table by their rows, and
 * the kinds of values that several fields share. Every error names the line
 * of the field, what was expected and what was found. Only files of this room
 * include this header.
 */
#ifndef TOOLGATE_POLICY_DECLARE_FIELD_READ_H
#define TOOLGATE_POLICY_DECLARE_FIELD_READ_H

#include "policy/declare/declare.h"
#include "policy/vocabulary/field_table.h"

struct name_values;

/* Where the value of a field goes. */
#define FIELD_INTO(d, field, type) ((type *)((char *)(d)->out + (field)->offset))

/* Reads the table at `at` into `out`, in the order of the rows; unknown names are errors. `parent`: the field
 * that holds the table, "retry.again"; NULL: the tool itself. A row's own reader finds it as d->out. */
void field_read_table(struct declaration *d, int at, const char *parent, const struct field_table *table,
                      void *out);

/* The same for a table that also has `items` items without a name, which are left to the caller. */
void field_read_named(struct declaration *d, int at, const char *parent, const struct field_table *table,
                      size_t items, void *out);

/* Raise "file:line: 'parent.name': …", with the parent of the table that is being read. */
int field_error(struct declaration *d, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));
/* "expected X, got Y", Y being the value at `at`. */
int field_mismatch(struct declaration *d, const char *name, int at, const char *expected)
    __attribute__((noreturn));

/* Raises if the value is no plain table. */
void field_require_table(struct declaration *d, const char *name, int at, const char *expected);

/* The string at `at`, in d->arena. */
struct str field_string(struct declaration *d, int at);

/* A string of the table at `at`, past any metatable; STR_NONE if it has none. */
struct str field_raw_string(struct declaration *d, int at, const char *name);

/* A number within the bounds; raises for anything else. */
double field_number(struct declaration *d, const struct field *field, int at, double least, double most,
                    const char *expected);
double field_whole_number(struct declaration *d, const struct field *field, int at, double least, double most,
                          const char *expected);

/* The value is `false`, which lifts a limit. */
bool field_is_false(struct declaration *d, int at);

/* A table { NAME = "value" } of at most `most` strings; `out` lives in d->arena. */
void field_name_values(struct declaration *d, const struct field *field, int at, size_t most,
                       struct name_values *out);

/* The value as JSON; what json "…" read keeps its text. `what` begins error messages. */
const struct json *field_json(struct declaration *d, const char *what, int at, const struct json *schema);

#endif
