/*
 * One set of policies with a ledger of its own, which judges recorded calls through the pipeline of
 * gate/call.c: what the daemon would have said if it had run with them. It runs no tool: recorded results
 * stand in.
 */
#ifndef TOOLGATE_REPLAY_JUDGE_H
#define TOOLGATE_REPLAY_JUDGE_H

#include "catalog/generation.h"
#include "policy/config.h"
#include "gate/verdict.h"
#include "replay/recorded_call.h"

struct judge;

#define TOOL_FILE_MAX_BYTES 67108864u

/* A file of tool definitions in any form that is around: MCP's tools/list, the `tools` array of OpenAI's or
 * Anthropic's API. All become {name, description, inputSchema}. */
struct tool_file {
    struct str toolset; /* of NAME=FILE: for records with this `toolset`; empty: for all */
    struct str file;
    const struct json *list;
};

/* `word` is FILE or NAME=FILE. */
enum err tool_file_read(struct arena *arena, const char *word, struct tool_file *out, struct why *why);

#define JUDGE_TOOLSETS_MAX 64u /* of records that name theirs */
#define JUDGE_TOOL_SETS_MAX                                                                                  \
    32u /* of conversations that carry their tools; a further one replaces the oldest */

struct judge_options {
    const struct config_sources *sources;
    bool no_policies;              /* neither a folder nor a configuration was named */
    const char *upstreams;         /* the state folder's tool lists; NULL: none */
    const struct tool_file *tools; /* borrowed as long as the judge */
    size_t tool_file_count;
};

/* NULL: the load failed, and the report has the errors. */
struct judge *judge_new(const struct judge_options *options, struct generation_report *report);
void judge_free(struct judge *judge); /* may be NULL */

struct peer;

/* A check that passed and waits for its result. */
struct judge_open {
    bool is_open;
    uint32_t world;
    struct hash128 session_id;
    uint64_t admission;
};

struct judged {
    bool known;                    /* it has a schema or a policy */
    bool runs;                     /* it would have run */
    bool unjudged;                 /* it has rules for results, and the recording has no result */
    bool masked;                   /* a problem at a masked path was ignored */
    const struct verdict *verdict; /* in the arena */
    const struct json *rewrites;   /* JSON Patch of what was repaired in the arguments; NULL: nothing */
    struct str tool;               /* its name; of an alias the tool's */
    struct judge_open open;
};

/* Judges the call, and its result if it is of RECORDED_CALL and the call would have run. `peer` NULL: the
 * recording names no user. */
void judge_call(struct judge *judge, struct arena *arena, const struct recorded_call *call,
                const struct peer *peer, struct judged *out);

/* Judges the result of an earlier check; `tool` is the name that the check had. */
void judge_report(struct judge *judge, struct arena *arena, const struct recorded_call *call,
                  const struct peer *peer, const struct judge_open *open, struct str tool,
                  struct judged *out);

/* The session's model no longer sees what it has read: reads of it count anew. */
void judge_compaction(struct judge *judge, struct arena *arena, const struct recorded_call *call);

/* "/items/0/price" as the path of a problem, "items[0].price". */
struct str judge_path_of_pointer(struct arena *arena, struct str pointer);

uint64_t judge_evicted(const struct judge *judge); /* sessions that its ledger forgot for want of memory */

#endif
