/*
 * What is remembered of sessions, checks and the call that is judged. Private to the replay: replay.c reads
 * the recording and asks the judges, replay_count.c counts what they say.
 */
#ifndef TOOLGATE_REPLAY_REPLAY_INTERNAL_H
#define TOOLGATE_REPLAY_REPLAY_INTERNAL_H

#include "base/lru.h"
#include "replay/replay.h"

#define SEEN_MAX     32u /* calls of one session whose last result is known; the oldest goes */
#define STOPPED_MAX  4u  /* different calls of one session that were stopped; others are only counted */
#define AWAITED_MAX  4u  /* refused calls of one session whose next attempt is awaited */
#define AWAITED_ROWS 8u  /* of the tool, class and code of such a call, and of its first problems */

/* A refused call, until the session calls the tool again in a later step. */
struct replay_awaited {
    struct replay_row *tool;               /* NULL: free */
    struct replay_row *rows[AWAITED_ROWS]; /* where --policies refused it */
    size_t row_count;                      /* 0: only --against did */
    struct replay_row *difference;         /* NULL: none */
    struct hash128 step;
};

/* What a call brought last. */
struct replay_seen {
    uint64_t call, result; /* hashes; 0: free */
};

struct replay_session {
    struct lru_node node; /* first */
    int64_t clock_ms;
    bool is_counted;                            /* it has made a call */
    int64_t tokens, call_tokens;                /* that it took so far, and up to its last call */
    struct replay_timeline *timeline;           /* NULL: there are as many as are kept */
    struct replay_loop loop;                    /* its session is on the heap, once a call was stopped */
    struct replay_stopped stopped[STOPPED_MAX]; /* their arguments are on the heap */
    struct replay_seen seen[SEEN_MAX];
    uint32_t next_seen;
    uint32_t next_awaited;
    struct replay_awaited awaited[AWAITED_MAX];
};

/* A check without its result. */
struct replay_open {
    struct lru_node node; /* first */
    struct replay_row *tool;
    struct replay_row *difference;
    struct judge_open sides[2];
    bool refused[2];              /* that side has judged already: it would not have run */
    bool counted;                 /* as a call without a result */
    bool unjudged;                /* as a call whose result was not judged */
    bool stopped;                 /* as a call that is saved */
    bool asked;                   /* a person would have been asked: the result is not lost */
    char *mark;                   /* in its session's timeline; NULL: none */
    uint64_t call;                /* its hash */
    struct str code;              /* of a refused one */
    struct str arguments, reason; /* as JSON, and of a refused one; cut, on the heap */
};

struct replay {
    struct judge *sides[2]; /* --policies, --against */
    struct replay_report *report;
    struct recorded_reader reader;
    struct lru sessions, open; /* of struct replay_session and struct replay_open */
    struct peer *peers;
    size_t peer_count;
    struct replay_row *classes[CLASS_COUNT]; /* of the table, made with the first call */
};

/* One call while it is judged. */
struct replay_pass {
    const struct recorded_call *call;
    struct arena *arena;
    struct replay_session *session;
    struct judged sides[2]; /* --policies, --against */
    size_t side_count;
    struct replay_row *tool;
    struct replay_row *difference;
    uint64_t key;         /* the call's hash: tool and arguments */
    bool is_news;         /* its recorded result was another than the last time, or the first */
    bool stopped;         /* counted as saved */
    char *mark;           /* in the timeline; NULL: none */
    bool unjudged, waits; /* on one of the sides: for the result */
    struct replay_row *rows[AWAITED_ROWS]; /* where the call is counted, if it was refused */
    size_t row_count;
};

/* A copy that is cut as an example is; a name may have zero bytes. */
struct str replay_heap_copy(struct str text);

/* The session's stopped call with this hash, or a free one for it; NULL: others are kept. */
struct replay_stopped *replay_stopped_of(struct replay_session *session, uint64_t key);

/* Why the call is refused or failed, in words. */
struct str replay_reason(struct arena *arena, const struct verdict *verdict);

void replay_count_call(struct replay *replay, struct replay_pass *pass);

/* The check was counted as a pass; the result may say otherwise. */
void replay_count_result(struct replay *replay, struct replay_pass *pass);

/* A call that brought something new, and would have been refused. `reason` may be empty. */
void replay_count_lost(struct replay *replay, const struct replay_pass *pass, struct str tool,
                       struct str code, struct str reason);

/* What --against says of the call. */
void replay_compare(struct replay *replay, struct replay_pass *pass);

/* What the recording has of this call: it ran well or badly, or it was refused then, too. */
void replay_count_outcome(struct replay_row *difference, const struct recorded_call *call);

#endif
