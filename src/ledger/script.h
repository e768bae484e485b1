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

/* Two ways to have a server run them. SCRIPT LOAD, for each alone: the text is what it shares with others,
 * then its own; a server makes all of that anew for every run. */
struct str script_text(struct arena *arena, enum script script);

/* FUNCTION LOAD, from version 7 on, for all together: what they share is made once, which is two thirds of a
 * run's price. The library's name and its functions' change with the text, so that daemons of two versions
 * don't meet. `prelude` goes before all; tests put a clock of theirs there. */
#define SCRIPT_NAME_BYTES 40u /* of a function; a SHA1 has as many */
struct script_names {
    char of[SCRIPT_COUNT][SCRIPT_NAME_BYTES];
};
struct str script_library(struct arena *arena, const char *prelude, struct script_names *names);

/* The same for an engine of our own: a chunk that returns one function for each, in their order. */
struct str script_functions(struct arena *arena);

#endif
