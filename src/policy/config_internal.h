/* The parts of a configuration's loading. A table of data is checked against rows (policy/field.h): every
 * key is known, of its type, within its bounds, and stored in a struct. All errors are collected, one line
 * each, so that a file is fixed in one go. Only files of this room include this header. */
#ifndef TOOLGATE_POLICY_CONFIG_INTERNAL_H
#define TOOLGATE_POLICY_CONFIG_INTERNAL_H

#include "base/buf.h"
#include "policy/config.h"
#include "policy/field.h"

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

/* ---- key_table.c ---- */

/* Reads all keys of a table into `base`. `path`: the name of the table; empty: the root. */
void key_table_read(struct config_reader *reader, const struct field_table *keys, struct str path,
                    const struct json *table, void *base);
void key_read(const struct key_value *value); /* one key, by its row */
void key_read_plain(
    const struct key_value *value); /* the same by its kind up to FIELD_DATE, without read_key */

/* A line for each key and for those of its subtables, "PATH<tab>type<tab>default". The default is that of
 * `base`; empty if it depends on something else. Keys that are always errors are left out. */
void key_table_list(struct buf *out, const struct field_table *keys, struct str path, const void *base);

/* The line of a key such as "allow[2].tools"; 0: the search does not find it, as it is computed. */
unsigned key_table_line(struct config_reader *reader, struct str path);

/* "FILE:LINE: PATH: sentence"; "FILE: PATH: expected WHAT, got VALUE". */
void key_table_error(struct config_reader *reader, struct str path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void key_expected(const struct key_value *value, const char *what);

/* A list with items; false, with an error, for anything else. */
bool key_is_list(const struct key_value *value, const char *what);
/* Of a list that allows: "!name" is an error, as in it nothing is taken back. */
void key_refuse_negation(const struct key_value *value, struct str glob);

/* The same key with another value, an item of its list: "allow[2]", or (name) "env.PATH". */
struct key_value key_item(const struct key_value *value, const struct json *json, size_t index);
struct key_value key_member(const struct key_value *value, const struct json_member *member);

/* A path relative to the file's folder, as one that can be opened; key_path reads it into a const char *, and
 * key_path_of a part of the value. */
const char *key_table_path(struct config_reader *reader, struct str path);
void key_path(const struct key_value *value);
void key_path_of(const struct key_value *value, struct str text);

uint64_t key_table_hash(uint64_t before, const struct json *table); /* of the files so far, and of this one */

/* ---- the keys of the file; with the command line applied, those that contradict each other ---- */

extern const struct field_table config_table;
void config_check_keys(struct config_reader *reader, struct config *config);
/* Warns of keys that do nothing beside the others; of a configuration that is complete. */
void config_check_effects(struct config_reader *reader, struct config *config);
void config_warn(struct config *config, struct str text); /* kept in the configuration's arena */

/* Of `allow` and `operators` (peer.c), into a struct config. */
key_reader peer_read_allow, peer_read_operators;
extern const struct field_table peer_allow_table, peer_operators_table;

/* ---- `upstreams = { name = {…} }`, and one entry of an mcpServers file: both are read into an upstream_spec
 * and checked by the same rules ---- */

#define CONFIG_UPSTREAMS_MAX 256u /* in all */

key_reader config_upstreams_read; /* into a struct config */

/* The keys of one entry, before its kind is known. */
struct config_upstream {
    struct upstream_spec spec;
    struct str command, url, rest;
    struct strings args;
    struct name_values sandbox_env; /* of sandbox.env with values: added to spec.env */
    unsigned lazy;                  /* start: at_once or lazy */
    bool spawned;
};

extern const struct field_table config_upstream_table;
void config_upstream_init(struct config_upstream *entry);
/* Checks the entry as a whole and adds it to the configuration. `path`: its full name; `given`: its table. */
void config_upstream_add(struct config_reader *reader, struct str path, struct str name,
                         const struct json *given, struct config_upstream *entry, struct config *config);

/* Into a struct str, strings or name_values; a command with a folder, and a folder, are relative to the
 * file's. Errors do not quote the value: it may be a secret. */
key_reader config_upstream_string, config_upstream_strings, config_upstream_globs, config_upstream_pairs,
    config_upstream_command, config_upstream_folder;

/* Gives upstreams with spawned = true the socket of the spawner; an error if none exists. */
void config_upstreams_set_spawner(struct config_reader *reader, struct config *config);

/* By name; after the last config_upstream_add. */
void config_upstreams_sort(struct config *config);

/* Adds the upstreams of all config->mcp_configs. `why` has one line for each error. */
enum err mcp_servers_file_read(struct config *config, struct why *why);

#endif
