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
setting_read setting_upstreams;

/* ---- one entry ------------------------------------------------------------- */

struct texts {
    const struct str *list;
    size_t count;
};

/* What the keys of one entry said, before it is known what kind it is. */
struct upstream_entry {
    struct upstream_spec spec;
    struct str command, url, rest;
    struct texts args, tools;
    unsigned start, prefix;
};

void upstream_entry_init(struct upstream_entry *entry);
/* Checks it as a whole and adds it to the configuration; `path` is its full name, `given` its keys. */
void upstream_entry_add(struct settings *settings, struct str path, struct str name, const struct json *given,
                        struct upstream_entry *entry, struct config *config);

/* Readers for struct upstream_entry. What is wrong is told without the value: it may be a secret. */
setting_read setting_words;   /* a text, into a struct str */
setting_read setting_texts;   /* a list of texts, into a struct texts */
setting_read setting_pairs;   /* names and texts, into a struct pairs */
setting_read setting_command; /* a program: where it names a folder, relative to the file's */
setting_read setting_folder;  /* a path, into a struct str */

/* Once all are there: in the order of their names. */
void upstreams_sort(struct config *config);

#endif
