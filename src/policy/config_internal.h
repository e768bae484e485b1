/* The parts of a configuration's loading. Only files of this room include this header. */
#ifndef TOOLGATE_POLICY_CONFIG_INTERNAL_H
#define TOOLGATE_POLICY_CONFIG_INTERNAL_H

#include "policy/config.h"
#include "policy/key_table.h"

/* Reads the file; then, when the command line has been applied, reports keys that contradict each other. */
void config_read_keys(struct config_reader *reader, const struct json *file, struct config *config);
void config_check_keys(struct config_reader *reader, struct config *config);

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
    unsigned start;
    bool spawned;
};

extern const struct field_table config_upstream_table;
void config_upstream_init(struct config_upstream *entry);
/* Checks the entry as a whole and adds it to the configuration. `path`: its full name; `given`: its table. */
void config_upstream_add(struct config_reader *reader, struct str path, struct str name,
                         const struct json *given, struct config_upstream *entry, struct config *config);

/* Errors of these readers do not quote the value: it may be a secret. */
key_reader config_upstream_string;  /* struct str */
key_reader config_upstream_strings; /* struct strings */
key_reader config_upstream_pairs;   /* struct name_values */
key_reader config_upstream_command; /* struct str: a program; one with a folder is relative to the file's */
key_reader config_upstream_folder;  /* struct str: a path */

/* Gives upstreams with spawned = true the socket of the spawner; an error if there is none. */
void config_upstreams_set_spawner(struct config_reader *reader, struct config *config);

/* By name; after the last config_upstream_add. */
void config_upstreams_sort(struct config *config);

/* mcp_servers_file.c: adds the upstreams of all config->mcp_configs. `why` has one line for each error. */
enum err mcp_servers_file_read(struct config *config, struct why *why);

#endif
