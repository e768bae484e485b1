/*
 * The tools that one peer sees, as definitions for tools/list or for a provider's API. Policies may reword or
 * hide tools (prepare, prepare_tools).
 */
#ifndef TOOLGATE_CATALOG_CATALOG_H
#define TOOLGATE_CATALOG_CATALOG_H

#include "catalog/generation.h"
#include "catalog/provider_formats.h"

struct buf;
struct client_tools;

struct catalog_request {
    struct provider_options provider;
    bool all;                /* with tools that the agent runs, and the client's own (toolgate/tools) */
    const struct peer *peer; /* NULL: no access rules apply */
    struct client_tools *client_tools; /* NULL: none */
    struct str session, goal, step;
    const struct json *context;       /* for the hooks; NULL: none */
    const struct ledger_answer *past; /* what hooks see of the session; NULL: nothing. If it is stuck, what
                                       prepare_tools leaves out is shown, too */
    /* Gets members of an object; NULL: not wanted. For tools that run in an upstream "runs_at":{"search":
     * {"kind":"mcp","upstream":"docs","tool":"find"}}, of effects that the name alone suggests
     * "guessed_effects":{"create_event":"write"}, and, if `guards`, of files of several tools that lie over
     * one "guarded_by":{"edit_file":["policies/paths.lua"]}. */
    struct buf *details;
    bool guards;
};

/* Writes a JSON array, sorted by name. If a prepare hook breaks, that is logged and its tool is hidden; if
 * prepare_tools breaks, only tools that are declared or annotated as reading are left. */
void catalog_write(struct arena *arena, struct generation *generation, const struct catalog_request *request,
                   struct buf *out);

/* The same in steps of at most one tool, for an event loop, as there may be ten thousand, and a provider's
 * format takes 0.2 ms for each.
 * `request`, the generation and the client's tools are borrowed until catalog_write_next returns false: all
 * is written, or until catalog_write_end. */
struct catalog_writing;
struct catalog_writing *catalog_write_begin(struct arena *arena, struct generation *generation,
                                            const struct catalog_request *request, struct buf *out);
bool catalog_write_next(struct catalog_writing *writing);
/* A tool is written in part: no other list may be written in a provider's format until it is whole. */
bool catalog_write_is_inside(const struct catalog_writing *writing);
void catalog_write_end(struct catalog_writing *writing); /* before all is written */

/* Whether hooks can hide this tool, or any tool: only then do goal, context and session matter. `own`: the
 * client's own tools; NULL: none. */
bool catalog_may_hide(struct generation *generation, struct client_tools *own, struct str tool);
bool catalog_has_hooks(const struct generation *generation);

/* What the hooks read of a session: sets wants_history and wants_facts. */
void catalog_wants(struct generation *generation, struct ledger_call *look);

/* Whether the peer may call the tool, of the generation or of request->client_tools, and no hook hides it. */
bool catalog_shows(struct arena *arena, struct generation *generation, const struct catalog_request *request,
                   const struct tool *tool);

/* Frees what is remembered of hidden tools, with the generation. */
void catalog_forget(struct generation *generation);

#endif
