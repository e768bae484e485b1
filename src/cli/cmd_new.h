/* What the files cmd_new*.c share: the tool that `toolgate new` found, and the policy written for it. */
#ifndef TOOLGATE_CLI_CMD_NEW_H
#define TOOLGATE_CLI_CMD_NEW_H

#include "base/buf.h"
#include "cli/local_generation.h"
#include "json/value.h"

struct arena;

struct new_tool {
    struct str name, title, description; /* title and description empty: none */
    const struct json *schema;           /* NULL: a template has its own */
    const struct json *annotations;      /* of the definition; NULL: none */
    bool defined;                        /* a definition has this name, so it may be any */
    const char *tools_file;              /* serves the definition; NULL: only the policy does */
    struct str upstream;                 /* "docs", "docs/find"; empty: not an upstream's tool */
    const struct json *definition;       /* from the daemon; NULL: not asked */
    struct str schema_file;              /* the schema's file in the folder of policies; empty: none */
    bool with_schema;                    /* written into the policy although the definition has it */
    const char *template;                /* of lua/templates, without ".lua" */
};

struct new_source {
    const char *schema;                /* --schema FILE; NULL: not given */
    const char *socket;                /* --socket PATH; NULL: not given */
    const char *template;              /* --template NAME; NULL: not given */
    const struct local_options *local; /* --tools, -c */
};

/* Fills `tool` from its source. False after an error on stderr: a file or name that does not exist, two
 * sources. */
bool new_tool_find(const struct command *command, const struct new_source *source, struct arena *arena,
                   struct new_tool *tool);

/* The annotation is there, and is this boolean. */
bool new_tool_hints(const struct new_tool *tool, const char *hint, bool value);

/* The whole policy file. */
void new_template_write(struct buf *out, struct arena *arena, const struct new_tool *tool);

/* Arguments that the schema accepts, with nothing optional in them; NULL if none was found. */
const struct json *new_template_sample(struct arena *arena, const struct new_tool *tool);

#endif
