/*
 * The ledger's scripts and one run of one: which, on which session's keys,
 * with which arguments. What an engine is asked for.
 */
#ifndef TOOLGATE_LEDGER_SCRIPT_H
#define TOOLGATE_LEDGER_SCRIPT_H

#include "base/str.h"

struct arena;

enum script {
    SCRIPT_ADMIT,
    SCRIPT_SETTLE,
    SCRIPT_TURN,
    SCRIPT_SEE,
    SCRIPT_VIEW,
    SCRIPT_RESET,
    SCRIPT_PEEK,
    SCRIPT_LEAVE,
    SCRIPT_MERGE,
    SCRIPT_COUNT
};

#define SCRIPT_KEYS        4u
#define SCRIPT_KEY_LETTERS "shdi"          /* the last letter of each */
#define SCRIPT_ARGS_MAX    (4u + 2u * 32u) /* the fixed ones, and name and JSON of each fact of one result */

struct script_run {
    enum script script;
    struct str keys[SCRIPT_KEYS];
    struct str args[SCRIPT_ARGS_MAX];
    size_t arg_count;
};

/* A run on the keys of `session`: tg1:{<hash>}:s, …h, …d, …i. `key_bytes` holds their text. */
#define SCRIPT_KEY_BYTES 40u
void script_begin(struct script_run *run, enum script script, struct str session,
                  char key_bytes[SCRIPT_KEYS][SCRIPT_KEY_BYTES]);

static inline void script_arg(struct script_run *run, struct str arg)
{
    run->args[run->arg_count++] = arg;
}

const char *script_name(enum script script);

/* What a server runs: what this script shares with others, then its own text. */
struct str script_text(struct arena *arena, enum script script);

/* The same in parts, for an engine that reads what all of them share only once. */
struct str script_shared(struct arena *arena);
struct str script_body(enum script script);

#endif
