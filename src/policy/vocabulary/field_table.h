/*
 * The fields that one Lua table may hold, as rows: the loader reads by them,
 * words check their options by them, and the reference is made from them.
 * Only files of this room include this header.
 */
#ifndef TOOLGATE_POLICY_VOCABULARY_FIELD_TABLE_H
#define TOOLGATE_POLICY_VOCABULARY_FIELD_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct declaration;
struct field;
struct field_table;

enum field_kind {
    FIELD_STRING,
    FIELD_BOOL,
    FIELD_COUNT,
    FIELD_CHOICE,
    FIELD_STRINGS,
    FIELD_WHOLE,    /* a whole number in the row's range */
    FIELD_LIMIT,    /* the same, or false for no limit, which is 0 */
    FIELD_DURATION, /* "5s", "PT5S", "200ms" or seconds, as milliseconds; `most` seconds at most */
    FIELD_CUSTOM,   /* `read` reads it */
    FIELD_ANY
};

/* Reads the value at `at`, which is not nil, into d->policy or d->out. */
typedef void field_reader(struct declaration *d, const struct field *field, int at);

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
    uint32_t least, most;
    const char *expected; /* the range, in words */
    field_reader *read;
    const struct field_table *table; /* for a reader: the rows of its value */
    bool required;
};
#define CHOICES(list, number)  .choices = (list), .first = (number)
#define LEAST(count)           .least = (count)
#define RANGE(from, to, words) .least = (from), .most = (to), .expected = (words)
#define READ(function)         .read = (function)

struct field_table {
    const char *name; /* "tool", "retry", "loop.poll"; error messages call the table so */
    const char *type; /* its class for editors: "toolgate.Retry" */
    const char *sentence;
    const struct field *fields;
    size_t count;
    const struct field_table *also; /* its rows follow those of this table; NULL: none */
    const char *items[2];           /* the types of its items without a name; NULL: it takes none */
    bool read_only;                 /* toolgate fills it in, and a policy reads it */
};
#define FIELD_TABLE(called, luacats, text, rows, ...)                                                        \
    {                                                                                                        \
        .name = (called), .type = (luacats), .sentence = (text), .fields = (rows),                           \
        .count = sizeof(rows) / sizeof((rows)[0]), __VA_ARGS__                                               \
    }
#define ITEMS(...) .items = {__VA_ARGS__}
#define ALSO(more) .also = &(more) /* NOLINT(bugprone-macro-parentheses): an initialiser takes none */

static inline size_t field_table_rows(const struct field_table *table)
{
    return table->count + (table->also ? table->also->count : 0);
}

static inline const struct field *field_table_row(const struct field_table *table, size_t i)
{
    return i < table->count ? &table->fields[i] : &table->also->fields[i - table->count];
}

#endif
