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
typedef void setting_read(struct settings *settings, const struct setting *setting, struct str path,
                          const struct json *value, void *into);

struct files { /* as paths that can be opened */
    const char *const *list;
    size_t count;
};

struct setting_choice { /* NULL ends a list */
    const char *name;
    unsigned value;
};

struct setting {
    struct str name;
    setting_read *read;
    size_t offset;
    int64_t min, max;                     /* numbers */
    const struct setting_choice *choices; /* choices */
    const struct setting *keys;           /* tables: ended by one without a name */
    const char *words;                    /* setting_absent: what the reader is told */
};

/* Reads all keys of a table. */
void settings_read(struct settings *settings, const struct setting *keys, struct str path,
                   const struct json *table, void *into);

/* "FILE: PATH: sentence". */
void settings_fault(struct settings *settings, struct str path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "FILE: PATH: expected WHAT, got VALUE". */
void settings_expected(struct settings *settings, struct str path, const char *what,
                       const struct json *value);

/* The member of a list, empty tables counted as empty lists; false, with a complaint, for anything else or
 * nothing. */
bool settings_list(struct settings *settings, struct str path, const char *what, const struct json *value);

setting_read setting_bool;     /* bool */
setting_read setting_u32;      /* uint32_t within min and max */
setting_read setting_size;     /* size_t within min and max */
setting_read setting_duration; /* uint32_t milliseconds within min and max, from 30, 0.5, "30s" */
setting_read setting_one_of;   /* unsigned, one of the choices */
setting_read setting_path;     /* const char *, relative to the file's folder */
setting_read setting_files;    /* struct files, from one name or a list of them */
setting_read setting_table;    /* keys, into the same struct */
setting_read setting_absent;   /* a key that this version does not serve: refused with its words */

/* The same, for a path inside a list. */
const char *settings_file_path(struct settings *settings, struct str path);

#endif
