/*
 * The Lua scripts that a connection must be able to call: from Redis 7 on the functions of one library,
 * before that scripts by SHA1. The handshake loads them and tries them once on keys of its own, so that a
 * user without the rights is found at connect. Names contain a hash of the text: builds of different versions
 * load theirs side by side.
 */
#ifndef TOOLGATE_LEDGER_REDIS_SCRIPTS_H
#define TOOLGATE_LEDGER_REDIS_SCRIPTS_H

#include "ledger/redis_command.h"

struct arena;

#define REDIS_SCRIPTS_MAX       9u
#define REDIS_SCRIPT_NAME_BYTES 40u /* of a function; a SHA1 has as many */

struct redis_scripts {
    size_t count;
    struct str (*library)(struct arena *arena);             /* the text for FUNCTION LOAD */
    struct str (*text)(struct arena *arena, size_t script); /* the text for SCRIPT LOAD */
    /* The handshake's first write, a plain command on a key that expires; `name` makes it unique. */
    void (*write_probe)(struct redis_command *command, const char *name);
    /* Writes command `i` of the trial, mostly a call of a script, on keys that `name` makes unique; NULL:
     * there are no more. Returns what it tries, for a message. */
    const char *(*write_trial)(struct redis_command *command, size_t i, const char *name);
    bool (*is_expected)(size_t i, const struct redis_value *value);
    char functions[REDIS_SCRIPTS_MAX][REDIS_SCRIPT_NAME_BYTES];
    char shas[REDIS_SCRIPTS_MAX]
             [REDIS_SCRIPT_NAME_BYTES]; /* learned at the first handshake; same everywhere */
};

/* Names `count` functions after their library's text: PREFIX_<hash>_<the first three letters of each>. */
void redis_scripts_name(struct redis_scripts *scripts, const char *prefix, struct str text,
                        const char *const *names);

#endif
