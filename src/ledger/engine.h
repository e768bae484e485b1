/*
 * Which engine runs a script: the local one, or Redis; and what happens to a
 * request while Redis is away.
 *
 *   redis up ─▶ sent ─▶ answered ───────────────────────────────▶ take
 *      │          └─▶ lost, turned down ─┐
 *   redis away ──────────────────────────┴▶ stand in: the local engine, a refusal,
 *                                           a pass uncounted; or kept for later
 *   redis is back: each session's account goes ahead of its next command
 */
#ifndef TOOLGATE_LEDGER_ENGINE_H
#define TOOLGATE_LEDGER_ENGINE_H

#include "ledger/ledger.h"
#include "ledger/pack.h"
#include "ledger/redis.h"

struct engine;

/* How a kind of request fares while Redis is away. */
enum standing {
    STANDS_FOR_A_CALL, /* admit: the stand-in counts it; or it is refused, or passes uncounted */
    STANDS_BEHIND_ONE, /* settle: where its admission is; else it is kept for later */
    STANDS_LATER,      /* ids: to the stand-in, else kept for later */
    STANDS_HERE,       /* looks only: the stand-in shows what it has */
    STANDS_ALONE,      /* a turn: the stand-in takes it, and its account tells of it */
    STANDS_IN_BOTH     /* reset: the stand-in, and later Redis too */
};

enum reply_how { REPLY_SAID, REPLY_UNCOUNTED, REPLY_LATER, REPLY_FAILED };

struct engine_reply {
    enum reply_how how;
    const char *engine; /* "redis", "local", "none" */
    bool stand_in;      /* said by the local engine in Redis' place */
    struct str text;    /* REPLY_SAID; valid during the call only */
    enum err error;     /* REPLY_FAILED */
    const char *why;
};

struct ask {
    const struct ask_kind *kind;
    const void *request;
    void *answer;
    struct arena *arena;
    ledger_done *done;
    void *owner;
};

struct ask_kind {
    enum script script;
    enum standing standing;
    void (*take)(const struct ask *ask, const struct engine_reply *reply); /* fills in the answer */
    uint64_t (*admission)(const struct ask *ask);                          /* admit and settle */
    /* Of an admit that nobody waits for any more: the run that gives it up. */
    void (*release)(const struct ask *ask, const struct pack_options *options, struct script_run *run);
};

/* `redis` NULL: only the local engine. */
enum err engine_new(const struct ledger_options *options, const struct redis_options *redis,
                    struct engine **out, struct why *why);
void engine_free(struct engine *engine);
const struct pack_options *engine_options(const struct engine *engine);
bool engine_is_settled(const struct engine *engine);

/* As ledger.h says of its functions. `run` lives with the ask's arena. */
enum ledger_state engine_run(struct engine *engine, const struct script_run *run, const struct ask *ask);
void engine_cancel(struct engine *engine, void *owner);

void engine_status(const struct engine *engine, struct ledger_status *out);

#endif
