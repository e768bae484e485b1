/*
 * A table of plain data held against a table of keys: every key known, of its
 * type, within its bounds, and put where it belongs. All complaints are
 * collected, one line each, so that a file is mended in one go.
 */
#ifndef TOOLGATE_CONFIG_KEY_TABLE_H
#define TOOLGATE_CONFIG_KEY_TABLE_H

#include "base/buf.h"
#include "json/value.h"

#include <stdint.h>

struct arena;

/* One reading of one file. */
struct settings {
    struct arena *arena; /* owns every text that is kept */
    const char *file;    /* begins each complaint */
    struct buf faults; /* "FILE: limits.depth: expected …, got …", joined by newlines; empty: all is well */
};

struct setting;

/* Reads `value` to where `setting` says within `into`. `path` is the full name: "limits.depth". */
typedef void key_reader(struct settings *settings, const struct setting *setting, struct str path,
                        const struct json *value, void *into);

struct files { /* as paths that can be opened */
    const char *const *list;
    size_t count;
};

struct key_choice { /* NULL ends a list */
    const char *name;
    unsigned value;
};

struct setting {
    struct str name;
    key_reader *read;
    size_t offset;
    int64_t min, max;                 /* numbers */
    const struct key_choice *choices; /* choices */
    const struct setting *keys;       /* tables: ended by one without a name */
    const char *words;                /* key_absent: what the reader is told */
};

/* Reads all keys of a table. */
void key_table_read(struct settings *settings, const struct setting *keys, struct str path,
                    const struct json *table, void *into);

/* "FILE: PATH: sentence". */
void key_table_error(struct settings *settings, struct str path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "FILE: PATH: expected WHAT, got VALUE". */
void key_table_expected(struct settings *settings, struct str path, const char *what,
                        const struct json *value);

/* The member of a list, empty tables counted as empty lists; false, with a complaint, for anything else or
 * nothing. */
bool key_table_list(struct settings *settings, struct str path, const char *what, const struct json *value);

key_reader key_bool;     /* bool */
key_reader key_u32;      /* uint32_t within min and max */
key_reader key_size;     /* size_t within min and max */
key_reader key_duration; /* uint32_t milliseconds within min and max, from 30, 0.5, "30s" */
key_reader key_one_of;   /* unsigned, one of the choices */
key_reader key_path;     /* const char *, relative to the file's folder */
key_reader key_files;    /* struct files, from one name or a list of them */
key_reader key_subtable; /* keys, into the same struct */
key_reader key_absent;   /* a key that this version does not serve: refused with its words */

/* The same, for a path inside a list. */
const char *key_table_path(struct settings *settings, struct str path);

#endif
