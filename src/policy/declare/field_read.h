/*
 * Reading one field of a Lua table by its name and type, with errors that
 * name line, expected and got. Only files of this room include this header.
 */
#ifndef TOOLGATE_POLICY_DECLARE_FIELD_READ_H
#define TOOLGATE_POLICY_DECLARE_FIELD_READ_H

#include "policy/declare/declare.h"

enum field_kind {
    FIELD_TEXT,
    FIELD_FLAG,
    FIELD_COUNT,
    FIELD_CHOICE,
    FIELD_TEXTS,
    FIELD_OWN,
    FIELD_ANY,
    FIELD_ABSENT
};

struct field {
    const char *name;
    enum field_kind kind;
    size_t offset;       /* into the struct that is filled */
    const char *choices; /* FIELD_CHOICE: "read write destructive", numbered from `from`; FIELD_ABSENT: the
                            sentence */
    int from;
    uint32_t least; /* FIELD_COUNT */
    void (*read)(struct declaration *d, const struct field *field,
                 int at); /* FIELD_OWN; the value is at `at` */
    size_t given;         /* offset of a bool that tells whether the field was there, plus 1; 0: none */
    const char *form; /* for the reference: the value as it is written, "{ repair = 2 }"; NULL: by its kind */
    const char *type; /* for editors, in LuaCATS: "toolgate.Retry"; NULL: by its kind */
    const char *sentence; /* for both: what it is, in the operator's words */
    bool required;
};

/* All the fields that one table may hold; field_tables.c knows each of these. */
struct field_table {
    const char *of;   /* "policy", "retry", "loop.poll"; what error messages call the parent */
    const char *type; /* its class for editors: "toolgate.Retry" */
    const struct field *fields;
    size_t count;
    const char *sentence;
    bool given;           /* toolgate fills it in and the policy reads it */
    const char *items[2]; /* the types of what stands in it without a name; NULL: nothing does */
};
#define FIELD_TABLE(rows) .fields = (rows), .count = sizeof(rows) / sizeof((rows)[0])

/* Reads the table at `at` into `out`; unknown names are errors. `parent`: the field that holds the table, or
 * NULL. */
void fields_read(struct declaration *d, int at, const char *parent, const struct field *fields, size_t count,
                 void *out);

/* Raises "file:line: 'parent.name': …". */
int fields_complain(struct declaration *d, const char *parent, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5), noreturn));

/* "expected X, got Y", Y being the value at `at`. */
int fields_wrong(struct declaration *d, const char *parent, const char *name, int at, const char *expected)
    __attribute__((noreturn));

struct str fields_text(struct declaration *d, int at);

#endif
