/* The table of fields: what a policy, a gateway, `defaults` and the configuration file may say is declared
 * here once, as rows. Two readers go by the rows: declare.h reads Lua and raises the first error,
 * key_table.c reads JSON and collects all of them. The reference, the definitions for editors and the list
 * of keys are made from the same rows. */
#ifndef TOOLGATE_POLICY_FIELD_H
#define TOOLGATE_POLICY_FIELD_H

#include "json/value.h"

struct arena;
struct buf;
struct declaration;
struct field;
struct field_table;
struct key_value;

enum field_kind {
    FIELD_STRING,   /* struct str */
    FIELD_BOOL,     /* bool */
    FIELD_COUNT,    /* uint32_t from `least` on */
    FIELD_WHOLE,    /* uint32_t in the row's range */
    FIELD_SIZE,     /* size_t in the row's range */
    FIELD_MIB,      /* uint64_t bytes, from MiB in the row's range */
    FIELD_COST,     /* uint64_t in millionths, from `least` millionths on */
    FIELD_DURATION, /* uint32_t milliseconds in the row's range, from "5s", "PT5S", "200ms" or seconds */
    FIELD_CHOICE,   /* int, one of `choices`, or a number of the row's range if it has one */
    FIELD_STRINGS,  /* struct strings */
    FIELD_DATE,     /* struct str, "2026-12-01" */
    FIELD_PATH,     /* const char *, relative to the folder of the configuration */
    FIELD_PATHS,    /* struct path_list, the same, from one path or a list */
    FIELD_TABLE,    /* a table of the rows `table`, into the struct at `offset` */
    FIELD_CUSTOM,   /* `read` or `read_key` reads it */
    FIELD_ANY
};

#define FIELD_COUNT_MAX         1000000000u /* of a count in a policy */
#define FIELD_COUNT_MAX_DEFAULT 1000u       /* of one in `defaults`: more is no limit at all */

/* How a FIELD_TABLE with `switches` was written. */
enum field_form { FORM_FALSE, FORM_TRUE, FORM_TABLE };
enum field_switches { SWITCHES_NONE, SWITCHES_IN_POLICY, SWITCHES };

/* Reads the value at `at` of the Lua stack, which is not nil, into d->policy or d->out. */
typedef void field_reader(struct declaration *d, const struct field *field, int at);
typedef void key_reader(const struct key_value *value); /* the same for a key of the configuration */

struct field {
    const char *name;
    enum field_kind kind;
    const char *form;     /* for the reference, an example value: "{ repair = 2 }"; NULL: by kind */
    const char *type;     /* for editors, in LuaCATS: "toolgate.Retry"; NULL: by kind */
    const char *sentence; /* for both */
    size_t offset;        /* into the struct that is filled */
    size_t given;         /* offset of a bool that is set if the field is there, plus 1; 0: none */
    const char *choices;  /* FIELD_CHOICE: "read write destructive", numbered from `first` */
    int first;
    int64_t least, most;
    const char *expected; /* what a value must be, in words; NULL: by kind */
    bool or_false;        /* in a policy `false` lifts the limit, which is 0 then */
    field_reader *read;
    key_reader *read_key;
    const struct field_table *table;             /* the rows of its value, or of each item of it */
    const char *item;                            /* "[]" or ".NAME": `table` is that of each item */
    enum field_switches switches;                /* FIELD_TABLE: whether true and false stand for the table */
    void (*done)(void *into, enum field_form f); /* FIELD_TABLE: called when it has been read */
    bool required;
    bool in_defaults;      /* `defaults` of the configuration may have it, too */
    const char *elsewhere; /* the configuration must not have it, and why */
    unsigned only;         /* of upstreams: bits of the kinds that have the key; 0: all */
};
#define CHOICES(list, number)  .choices = (list), .first = (number)
#define LEAST(count)           .least = (count)
#define RANGE(from, to)        .least = (from), .most = (to)
#define EXPECTED(words)        .expected = (words)
#define READ(function)         .read = (function)
#define READ_KEY(function)     .kind = FIELD_CUSTOM, .read_key = (function)
#define IN_DEFAULTS            .in_defaults = true
#define NOT_IN_DEFAULTS(words) .in_defaults = true, .elsewhere = (words)

struct field_table {
    const char *name; /* "tool", "retry", "loop.poll"; error messages call the table so */
    const char *type; /* its class for editors: "toolgate.Retry" */
    const char *sentence;
    const struct field *fields;
    size_t count;
    const struct field_table *also; /* its rows follow those of this table; NULL: none */
    const char *items[2];           /* the types of its items without a name; NULL: it takes none */
    bool defaults_only;             /* it has only the rows that are in_defaults */
};
#define FIELD_TABLE_OF(called, luacats, text, rows, ...)                                                     \
    {                                                                                                        \
        .name = (called), .type = (luacats), .sentence = (text), .fields = (rows),                           \
        .count = sizeof(rows) / sizeof((rows)[0]), __VA_ARGS__                                               \
    }
#define ITEMS(...) .items = {__VA_ARGS__}
#define ALSO(more) .also = &(more) /* NOLINT(bugprone-macro-parentheses): an initialiser takes none */

#define FIELDS_MAX  64u /* rows of one table */
#define CHOICES_MAX 16u

struct strings {
    const struct str *list;
    size_t count;
};

/* declare_fields.c: what `defaults` holds, into a struct policy, and limits, into a struct policy_limits. */
extern const struct field_table policy_defaults_table, policy_limits_table;

/* The next row of the table from *at on; NULL after the last. Begin with 0. */
const struct field *field_next(const struct field_table *table, size_t *at);

/* The row of this name; if none exists, NULL, and *meant is the closest name or STR_NONE. */
const struct field *field_find(const struct field_table *table, struct str name, struct str *meant);

/* Stores the value at `into`, strings in the arena. The value, or the item of a list, that does not fit the
 * row; NULL: all does. Of every kind up to FIELD_DATE. */
const struct json *field_store(const struct field *field, const struct json *value, struct arena *arena,
                               void *into);

/* " (did you mean 'name'?)"; empty if `meant` is. */
const char *field_hint(struct arena *arena, struct str meant);

/* "read write" as its parts; and as `"read" or "write"`. */
size_t field_choices(const struct field *field, struct str out[CHOICES_MAX]);
void field_quote_choices(struct buf *out, const struct field *field, const char *between);

/* ---- for the reference, `toolgate words` and editors ---- */

/* The tables of policies in the order of the reference. */
const struct field_table *const *field_tables(size_t *count);

/* An example value, and the type in LuaCATS. */
const char *field_form(struct arena *arena, const struct field *field);
const char *field_type(struct arena *arena, const struct field *field);

#endif
