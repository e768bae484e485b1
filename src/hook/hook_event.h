/*
 * An event of a coding assistant's hooks, as it arrives on stdin. The shapes are those of Claude Code's hook
 * reference (2026-09); Codex CLI (0.153) sends the same.
 */
#ifndef TOOLGATE_HOOK_HOOK_EVENT_H
#define TOOLGATE_HOOK_HOOK_EVENT_H

#include "json/value.h"

struct arena;

enum hook_kind {
    HOOK_BEFORE,    /* PreToolUse */
    HOOK_AFTER,     /* PostToolUse */
    HOOK_FAILED,    /* PostToolUseFailure */
    HOOK_BATCH,     /* PostToolBatch: all calls of one model message have ended */
    HOOK_PROMPT,    /* UserPromptSubmit */
    HOOK_COMPACTED, /* PreCompact, SessionStart after `compact` or `clear` */
    HOOK_NOTHING,   /* SessionStart otherwise */
    HOOK_UNKNOWN,   /* another event of the assistant */
    HOOK_BROKEN     /* none at all: `why` */
};

/* In an event, AUTO: it may be either's, so that only what both understand may be answered. */
enum hook_client { HOOK_CLIENT_AUTO, HOOK_CLIENT_CLAUDE, HOOK_CLIENT_CODEX };

#define HOOK_AGENT_MAX_BYTES 128u

/* Borrows the JSON that it was read from. */
struct hook_event {
    enum hook_kind kind;
    enum hook_client client;
    struct str name; /* "PreToolUse" */
    struct str session, tool, tool_use;
    struct str agent; /* empty: the session's main agent */
    struct str prompt, error;
    const struct json *input, *response; /* NULL: the event has none */
    const char *why;                     /* of HOOK_BROKEN: what is missing */
};

/* `client` AUTO: found out by the event. */
struct hook_event hook_event_read(const struct json *event, enum hook_client client);

/* The text of an event whose results are too large or too deep to be read, without them: in their place are
 * words of their size and hash, so that another result is another one. STR_NONE: it has none. */
struct str hook_event_without_results(struct arena *arena, struct str text);

/* Those words. `bytes`: the result as JSON. */
struct str hook_event_unread(struct arena *arena, struct str bytes);

const char *hook_client_name(enum hook_client client); /* "claude", "codex", "unknown" */

#endif
