/*
 * Who runs tools for us, as the operator names them: `upstreams = { name = {…} }`
 * of the configuration, and one entry of an mcpServers file (config/mcp_servers_file.c),
 * read into the same upstream_spec and held to the same rules.
 */
#ifndef TOOLGATE_CONFIG_CONFIG_UPSTREAMS_H
#define TOOLGATE_CONFIG_CONFIG_UPSTREAMS_H

#include "config/config.h"
#include "config/key_table.h"

#define CONFIG_UPSTREAMS_MAX 256u /* in all */

/* upstreams = { files = { command = "npx", args = { … } }, docs = { url = "https://…" } } */
key_reader config_upstreams_read;

/* ---- one entry ------------------------------------------------------------- */

struct texts {
    const struct str *list;
    size_t count;
};

/* What the keys of one entry said, before it is known what kind it is. */
struct config_upstream {
    struct upstream_spec spec;
    struct str command, url, rest;
    struct texts args, tools;
    unsigned start, prefix;
};

void config_upstream_init(struct config_upstream *entry);
/* Checks it as a whole and adds it to the configuration; `path` is its full name, `given` its keys. */
void config_upstream_add(struct settings *settings, struct str path, struct str name,
                         const struct json *given, struct config_upstream *entry, struct config *config);

/* Readers for struct config_upstream. What is wrong is told without the value: it may be a secret. */
key_reader config_upstream_string;  /* a text, into a struct str */
key_reader config_upstream_strings; /* a list of texts, into a struct texts */
key_reader config_upstream_pairs;   /* names and texts, into a struct name_values */
key_reader config_upstream_command; /* a program: where it names a folder, relative to the file's */
key_reader config_upstream_folder;  /* a path, into a struct str */

/* Once all are there: in the order of their names. */
void config_upstreams_sort(struct config *config);

#endif
