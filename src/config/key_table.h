/*
 * A table of data checked against a table of keys: every key is known, of its
 * type, within its bounds, and stored in a struct. All errors are collected,
 * one line each, so that a file is fixed in one go.
 */
#ifndef TOOLGATE_CONFIG_KEY_TABLE_H
#define TOOLGATE_CONFIG_KEY_TABLE_H

#include "base/buf.h"
#include "json/value.h"

#include <stdint.h>

struct arena;

/* One reading of one file. */
struct config_reader {
    struct arena *arena; /* owns every string that is kept */
    const char *file;    /* begins each error */
    struct buf errors;   /* "FILE:3: limits.depth: expected …, got …" per line; empty: none */
};

struct config_key;

/* A key as it was found in a table. */
struct key_value {
    struct config_reader *reader;
    const struct config_key *key;
    struct str path; /* its full name: "limits.depth" */
    const struct json *json;
    void *base; /* the struct into which key->offset points */
};

typedef void key_reader(const struct key_value *value);

struct key_choice { /* NULL ends a list */
    const char *name;
    unsigned value;
};

struct config_key { /* one without a name ends a table */
    struct str name;
    key_reader *read;
    size_t offset;
    int64_t min, max;                 /* of numbers */
    const struct key_choice *choices; /* of key_one_of */
    /* of key_subtable; of any other reader that takes a table: for key_table_list */
    const struct config_key *keys;
    const char *item; /* `keys` are those of each item: "[]" of a list, ".NAME" of a map */
    const char *text; /* key_absent: the error; key_files: what an item is */
};

static inline void *key_target(const struct key_value *value)
{
    return (char *)value->base + value->key->offset;
}

/* Reads all keys of a table into `base`. `path`: the name of the table; empty: the root. */
void key_table_read(struct config_reader *reader, const struct config_key *keys, struct str path,
                    const struct json *table, void *base);

/* A line for each key, "PATH<tab>type<tab>default", and for each of its subtables. The default is that of
 * `base`; empty if the key has none, or one that depends on something else. Keys that are always errors are
 * left out. */
void key_table_list(struct buf *out, const struct config_key *keys, struct str path, const void *base);

/* The line of a key such as "limits.depth" or "allow[2].tools". 0: it is computed, or written in a way that
 * the search does not find. */
unsigned key_table_line(struct config_reader *reader, struct str path);

/* "FILE:LINE: PATH: sentence"; without the line if the file does not show where the key is. */
void key_table_error(struct config_reader *reader, struct str path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "FILE: PATH: expected WHAT, got VALUE". */
void key_expected(const struct key_value *value, const char *what);

/* A list with items; false, with an error, for anything else. */
bool key_is_list(const struct key_value *value, const char *what);

/* The same key with another value, an item of its list: "allow[2]", or (name) "env.PATH". */
struct key_value key_item(const struct key_value *value, const struct json *json, size_t index);
struct key_value key_member(const struct key_value *value, const struct json_member *member);

struct path_list { /* that can be opened */
    const char *const *list;
    size_t count;
};

key_reader key_bool;     /* bool */
key_reader key_u32;      /* uint32_t within min and max */
key_reader key_size;     /* size_t within min and max */
key_reader key_duration; /* uint32_t milliseconds within min and max, from 30, 0.5, "30s" */
key_reader key_one_of;   /* unsigned, one of the choices */
key_reader key_path;     /* const char *, relative to the file's folder */
key_reader key_files;    /* struct path_list, from one name or a list of them */
key_reader key_subtable; /* `keys`, into the same struct */
key_reader key_absent;   /* a key that this version does not support */

/* Of the content of a file, and of those before it. */
uint64_t key_table_hash(uint64_t before, const struct json *table);

/* A path relative to the file's folder, as one that can be opened. */
const char *key_table_path(struct config_reader *reader, struct str path);

#endif
