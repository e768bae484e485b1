/*
 * A table of data checked against rows (policy/field.h): every key is known, of
 * its type, within its bounds, and stored in a struct. All errors are collected,
 * one line each, so that a file is fixed in one go.
 */
#ifndef TOOLGATE_POLICY_KEY_TABLE_H
#define TOOLGATE_POLICY_KEY_TABLE_H

#include "base/buf.h"
#include "policy/field.h"

#include <stdint.h>

struct arena;
struct token;

/* One reading of one file. */
struct config_reader {
    struct arena *arena;        /* owns every string that is kept */
    const char *file;           /* begins each error */
    struct buf errors;          /* "FILE:3: limits.depth: expected …, got …" per line; empty: none */
    const struct token *tokens; /* of the file, once a line was asked for */
};

/* A key as it was found in a table. */
struct key_value {
    struct config_reader *reader;
    const struct field *key;
    struct str path; /* its full name: "limits.depth" */
    const struct json *json;
    void *base; /* the struct into which key->offset points */
};

static inline void *key_target(const struct key_value *value)
{
    return (char *)value->base + value->key->offset;
}

#define KEYS(rows)                                                                                           \
    {                                                                                                        \
        .fields = (rows), .count = sizeof(rows) / sizeof((rows)[0])                                          \
    }

/* Reads all keys of a table into `base`. `path`: the name of the table; empty: the root. */
void key_table_read(struct config_reader *reader, const struct field_table *keys, struct str path,
                    const struct json *table, void *base);

/* Reads one key by its row. */
void key_read(const struct key_value *value);

/* A line for each key, "PATH<tab>type<tab>default", and for each of its subtables. The default is that of
 * `base`; empty if the key has none, or one that depends on something else. Keys that are always errors are
 * left out. */
void key_table_list(struct buf *out, const struct field_table *keys, struct str path, const void *base);

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

void key_path(const struct key_value *value); /* const char *, relative to the file's folder */

/* Of the content of a file, and of those before it. */
uint64_t key_table_hash(uint64_t before, const struct json *table);

/* A path relative to the file's folder, as one that can be opened. */
const char *key_table_path(struct config_reader *reader, struct str path);

#endif
