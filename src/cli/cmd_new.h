/* The parts of `toolgate new`: what is known of a tool, and its first policy as text. */
#ifndef TOOLGATE_CLI_CMD_NEW_H
#define TOOLGATE_CLI_CMD_NEW_H

#include "base/buf.h"
#include "cli/local_generation.h"
#include "json/value.h"

struct arena;

/* What the policy is made from. */
struct new_tool {
    struct str name, description;
    const struct json *schema, *annotations; /* annotations: NULL where none */
    const char *tools_file; /* where the definition stands, which serves it; NULL: the policy alone defines
                               the tool */
    struct str upstream;    /* whose tool it is: "docs", "docs/find"; empty: nobody's */
    const struct json *definition; /* as the daemon told it; NULL: it was not asked */
    struct str
        schema_beside; /* the schema's file beside the policy; empty: params{…}, or the definition's own */
    bool with_schema;  /* in the policy, though somebody else could tell it */
    bool blank;        /* made from nothing */
};

/* ---- cmd_new_source.c ---- */

struct new_source {
    const char *schema;                 /* --schema FILE; NULL: not given */
    const char *socket;                 /* --socket PATH; NULL: not given */
    const struct local_options *loaded; /* --tools, -c */
};

/* False, with a complaint, where it is not there. A tool from a file of tools has `tools_file` set. */
bool new_tool_find(const struct command *command, const struct new_source *source, struct arena *arena,
                   struct new_tool *tool);

/* ---- cmd_new_policy.c ---- */

/* The whole file. */
void new_policy_write(struct buf *out, struct arena *arena, const struct new_tool *tool);

/* ---- cmd_new_params.c ---- */

/* `params { … }` for the schema, its lines after the first behind so many spaces. False where params cannot
 * say all of it: then nothing is written. */
bool new_params_write(struct buf *out, struct arena *arena, const struct json *schema, int indent);

/* ---- cmd_new_guess.c: what a name or a description lets one suppose ---- */

struct new_effects {
    const char *effects; /* "read", …; NULL: nothing can be said */
    struct str because;  /* "a guess: its name says 'delete'" */
    bool told;           /* no guess: the definition says that it only reads */
};
struct new_effects new_guess_effects(struct arena *arena, const struct new_tool *tool);

/* Does a parameter look as if it held an id. */
bool new_looks_like_id(struct str parameter);

/* The sentences of a description that say when to use the tool, and when not. */
struct new_advice {
    struct str description, use_when, avoid_when; /* empty: none */
};
struct new_advice new_split_description(struct arena *arena, struct str description);

/* ---- cmd_new_lua.c: JSON as Lua writes it ---- */

void lua_write_text(struct buf *out, struct str text);
void lua_write_key(struct buf *out, struct str key);
void lua_write_value(struct buf *out, const struct json *value);

/* JSON on several lines, for a file that people read. */
void json_write_pretty(struct buf *out, const struct json *value, int indent);

/* ---- cmd_new_examples.c ---- */

/* `examples = { … }`, each of which holds; a comment where no sample call could be made. */
void new_examples_write(struct buf *out, struct arena *arena, const struct new_tool *tool);

#endif
