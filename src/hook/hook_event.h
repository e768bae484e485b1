/*
 * An event of a coding assistant's hooks, as it arrives on stdin. The shapes are those of Claude Code's hook
 * reference (2026-09); Codex CLI (0.153) sends the same.
 */
#ifndef TOOLGATE_HOOK_HOOK_EVENT_H
#define TOOLGATE_HOOK_HOOK_EVENT_H

#include "json/value.h"

enum hook_kind {
    HOOK_BEFORE,  /* PreToolUse */
    HOOK_AFTER,   /* PostToolUse */
    HOOK_FAILED,  /* PostToolUseFailure */
    HOOK_PROMPT,  /* UserPromptSubmit */
    HOOK_UNKNOWN, /* another event of the assistant */
    HOOK_BROKEN   /* none at all: `why` */
};

enum hook_client { HOOK_CLIENT_AUTO, HOOK_CLIENT_CLAUDE, HOOK_CLIENT_CODEX };

/* Borrows the JSON that it was read from. */
struct hook_event {
    enum hook_kind kind;
    enum hook_client client; /* never AUTO */
    struct str name;         /* "PreToolUse" */
    struct str session, tool, tool_use;
    struct str prompt, error;
    const struct json *input, *response; /* NULL: the event has none */
    const char *why;                     /* of HOOK_BROKEN: what is missing */
};

/* `client` AUTO: found out by the id of the tool's use. */
struct hook_event hook_event_read(const struct json *event, enum hook_client client);

const char *hook_client_name(enum hook_client client); /* "claude", "codex" */

#endif
