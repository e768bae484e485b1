/*
 * What a replay remembers of each session and of each open check, in bounded tables: the session's clock,
 * refused calls whose next attempt is awaited, calls that the rules against loops have stopped.
 */
#ifndef TOOLGATE_REPLAY_REPLAY_SESSIONS_H
#define TOOLGATE_REPLAY_REPLAY_SESSIONS_H

#include "base/lru.h"
#include "replay/judge.h"
#include "replay/replay_report.h"

#define REPLAY_SESSIONS_MAX                                                                                  \
    65536u                         /* those silent for longest are forgotten: a later call begins them anew  \
                                    */
#define REPLAY_OPEN_MAX     65536u /* checks that wait for their report, likewise */
#define REPLAY_SEEN_MAX     32u    /* calls of one session whose last result is known; the oldest goes */
#define REPLAY_AWAITED_MAX  4u     /* refused calls of one session whose next attempt is awaited */
#define REPLAY_AWAITED_ROWS 8u     /* of the tool, class and code of such a call, and of its first problems */

/* A refused call, until the session calls the tool again in a later step. */
struct replay_awaited {
    struct replay_row *tool;                      /* NULL: free */
    struct replay_row *rows[REPLAY_AWAITED_ROWS]; /* where --policies refused it */
    size_t row_count;                             /* 0: only --against did */
    struct replay_difference *difference;         /* NULL: none */
    struct hash128 step;
};

/* What a call brought last. */
struct replay_seen {
    uint64_t call, result; /* hashes; 0: free */
};

struct replay_session {
    struct lru_node node; /* first */
    int64_t clock_ms;
    uint64_t calls, stopped;
    const struct replay_row *stopped_tool, *stopped_code; /* of the first one */
    const char *file;
    uint64_t line;
    bool halted;
    struct str name; /* on the heap, once a call was stopped */
    struct replay_seen seen[REPLAY_SEEN_MAX];
    uint32_t next_seen;
    uint32_t next_awaited;
    struct replay_awaited awaited[REPLAY_AWAITED_MAX];
};

/* A check without its result. */
struct replay_open {
    struct lru_node node; /* first */
    struct replay_row *tool;
    struct replay_difference *difference;
    struct judge_open sides[2];
    bool refused[2]; /* that side has judged already: it would not have run */
    bool counted;    /* as a call without a result */
    bool unjudged;   /* as a call whose result nobody judged */
    bool stopped;    /* as a call that is saved */
    uint64_t call;   /* its hash */
};

typedef void replay_session_gone(void *owner, struct replay_session *session);

struct replay_sessions {
    struct lru sessions, open;
    replay_session_gone *gone; /* called for each session before it is forgotten */
    void *owner;
};

void replay_sessions_init(struct replay_sessions *sessions, replay_session_gone *gone, void *owner);
void replay_sessions_clear(struct replay_sessions *sessions); /* all are gone */

/* Found or made; `*is_new` for a new one. */
struct replay_session *replay_session_of(struct replay_sessions *sessions, struct hash128 id, bool *is_new);

struct replay_open *replay_open_add(struct replay_sessions *sessions, struct hash128 id);  /* zeroed */
struct replay_open *replay_open_find(struct replay_sessions *sessions, struct hash128 id); /* NULL: none */
void replay_open_remove(struct replay_sessions *sessions, struct replay_open *open);

#endif
