/*
 * What all workers of a fleet remember together: repair chains, same-call budgets, loops, limits, seen ids,
 * facts. The rules are in rules.c, the sessions in a store: in memory, or in a Redis that many daemons share.
 *
 * Each request either answers at once (LEDGER_DONE, the answer filled in) or later (LEDGER_PENDING): then
 * `done` fires exactly once, never before the function that started it has returned, and never after
 * ledger_cancel. All borrowed memory must live until then. `done` NULL sends and forgets: then nothing
 * borrowed is read, and no answer written, once the call has returned.
 */
#ifndef TOOLGATE_LEDGER_LEDGER_H
#define TOOLGATE_LEDGER_LEDGER_H

#include "base/err.h"
#include "base/hash.h"
#include "json/value.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct arena;
struct buf;
struct ledger;
struct loop;

#define LEDGER_STUCK            6u   /* calls in a row without progress */
#define LEDGER_WINDOW           32u  /* calls a session remembers hot */
#define LEDGER_HISTORY_DEFAULT  100u /* entries of the cold ring, for people and policies */
#define LEDGER_TTL_S_DEFAULT    86400u
#define LEDGER_ACROSS_WITHIN_MS 600000     /* a turn that begins after such a pause begins all runs again */
#define LEDGER_RESERVATION_MS   60000u     /* a check that is never reported frees its budget after this */
#define LEDGER_SEEN_IDS_MAX     512u       /* ids a session remembers; without older ones they only advise */
#define LEDGER_MEMORY_BYTES     268435456u /* of the local engine */
#define LEDGER_IDS_MAX          64u        /* candidate ids of one call */
#define LEDGER_GIVEN_IDS_MAX    513u       /* ids of one result: one more than is remembered, to know that */
#define LEDGER_FACTS_MAX_BYTES  16384u     /* all facts of a session, as JSON */

/* What becomes of calls while Redis is away. */
enum ledger_outage {
    LEDGER_OUTAGE_LOCAL,  /* the local engine takes over, and what it counted is merged afterwards */
    LEDGER_OUTAGE_CLOSED, /* they are refused */
    LEDGER_OUTAGE_OPEN    /* they pass uncounted, each logged */
};

#define LEDGER_TIMEOUT_MS 50u /* of Redis: an admit that takes longer is an outage for that call */

struct ledger_options {
    int64_t (*now_ms)(void); /* NULL: the wall clock; examples and replay bring their own */
    uint32_t ttl_s, history; /* 0: the defaults above */
    size_t memory_bytes;     /* of the local engine; 0: the default above */
    enum ledger_outage on_outage;
    bool settles_unheard; /* settles are sent and not waited for, where nothing but notes depends on them */
    /* keeps the key of call ids if there is no Redis; NULL: a key for this process only */
    const char *key_file;

    /* Of Redis. */
    struct loop *loop;
    const char *address;       /* see redis_address.h; borrowed for the call only, like the next */
    const char *password_file; /* NULL: what the address says */
    uint32_t timeout_ms;       /* 0: the default above */
};

struct ledger *ledger_new_local(const struct ledger_options *options);
/* Begins to connect. A Redis that is not there is no error: it is an outage. */
enum err ledger_new_redis(const struct ledger_options *options, struct ledger **out, struct why *why);
void ledger_free(struct ledger *ledger);

/* The first attempt to reach Redis has ended, well or not; always true of a local one. */
bool ledger_is_settled(const struct ledger *ledger);

#define LEDGER_WARNINGS_MAX 5u

struct ledger_status {
    const char *engine;         /* "local", "redis": what is configured */
    size_t sessions, bytes;     /* held by the local engine */
    uint64_t forgotten;         /* by it, for want of memory */
    uint64_t loads;             /* sessions read from the store, as they were not in the cache */
    bool connected;             /* what follows is of Redis alone */
    const char *on_outage;      /* "local" … */
    struct str server;          /* "redis 7.0.15"; empty: never connected */
    const char *why_away;       /* "" while it is there */
    int64_t away_since_ms;      /* 0: it is there */
    uint64_t connects, outages; /* that came to be */
    uint64_t by_redis, by_stand_in, uncounted, refused; /* requests, by who answered them */
    uint64_t conflicts;                  /* commits that another daemon came before; they were made again */
    size_t waiting;                      /* sessions whose account Redis has not been told yet */
    uint64_t merged, lost;               /* accounts taken over; commands that found no place to wait */
    const struct histogram *redis_times; /* from sending to the answer, since the start; borrowed */
    int64_t median_us, worst_us; /* from sending to the answer: of the last hundred or so, since connected */
    int64_t clock_ahead_ms;      /* Redis' time minus this host's */
    int64_t keys;                /* of its database, when it was connected to; -1: not told */
    struct str master_name;      /* behind Sentinel; empty: it is not, or no master was reached yet */
    const char *master;          /* its host now */
    uint16_t master_port;
    int64_t master_since_ms;                   /* that this daemon uses it */
    const char *warnings[LEDGER_WARNINGS_MAX]; /* what is odd about it, and the fix; borrowed */
    size_t warning_count;
};
void ledger_status(const struct ledger *ledger, struct ledger_status *out);
/* By which policies this daemon judges now: daemons of one Redis warn of each other if these differ. */
void ledger_tell_policies(struct ledger *ledger, uint64_t hash);

/* Where Redis is, without user and password; empty for a local ledger. */
struct str ledger_address(const struct ledger *ledger, struct arena *arena);

enum ledger_state { LEDGER_DONE, LEDGER_PENDING };

/* Zeroes an answer up to the first byte of `why`, its last member, which is larger than all the rest. */
#define LEDGER_CLEAR(answer) memset((answer), 0, offsetof(__typeof__(*(answer)), why) + 1)

/* What is declared about a tool, and what the defaults say otherwise (POLICY.md, LEDGER.md). 0 in a count
 * means "none allowed"; LEDGER_UNLIMITED means no limit. */
#define LEDGER_UNLIMITED UINT32_MAX
#define LEDGER_COUNT_MAX 31u /* a larger count cannot be told within the window, and is read as this one */

#define LEDGER_SAME_CALL_MAX 255u /* the same of a written same_call, whose calls count beyond the window */

#define LEDGER_COST_UNIT 1000000u /* costs are whole millionths of what the operator counts in */
/* 100 million of them, of one call or of a limit; the sums hold more */
#define LEDGER_COST_MAX 100000000000000u

/* How much may be used up; 0: no limit. */
struct ledger_allowance {
    uint32_t calls_per_turn, calls_per_session, seconds_per_turn;
    uint64_t cost_per_turn, cost_per_session;
};

/* What a call of the tool may change. */
enum ledger_effects {
    LEDGER_EFFECTS_UNKNOWN,
    LEDGER_EFFECTS_READ,
    LEDGER_EFFECTS_WRITE,
    LEDGER_EFFECTS_DESTRUCTIVE
};

/* `count` calls at once after a quiet window, then one for each `window_s` / `count` seconds. */
struct ledger_rate {
    uint32_t count, window_s;
};
/* Whose calls share a bucket of the tool's rates, over the fleet. */
enum ledger_rate_by { LEDGER_RATE_BY_SESSION, LEDGER_RATE_BY_USER, LEDGER_RATE_BY_TOOL };
#define LEDGER_RATES_MAX 4u /* of one tool */

struct ledger_limits {
    uint32_t repair;        /* 2: answers of "repair" before the chain is exhausted */
    uint32_t same_call;     /* 3; read 5, write 2, destructive 1 */
    bool repair_hard;       /* a policy wrote it: an attempt that makes progress counts, too */
    bool hinted;            /* an annotation alone says that it destroys: its budget is a write's */
    bool edits_files;       /* local ones: a shell's success is a reason to write the same again */
    bool same_call_hard;    /* somebody wrote it: each run of the turn counts, with any result */
    uint32_t transient;     /* 3 */
    uint32_t repeats;       /* 3: the run's length that is refused */
    uint32_t halt;          /* 5: the run's length that ends the run */
    uint32_t across_turns;  /* 5 */
    uint32_t poll_max;      /* 20 changed results in a row */
    bool polls;             /* declared with loop.poll: identical results do not count either */
    uint32_t poll_every_ms; /* least time between two of the same call; 0: none */
    bool compare_arguments; /* loop.compare = "arguments": a changed result excuses nothing */
    uint32_t same_failure;  /* 10: this failure in a row with one error is refused */
    enum ledger_effects effects;
    bool costs;                      /* limits by cost apply to it */
    uint64_t cost;                   /* of one call, taken when it is let run; settle may correct it */
    struct ledger_allowance tool;    /* of this tool's calls; seconds count from its first of the turn */
    struct ledger_allowance session; /* of all calls together; seconds count from the start of the turn */
    struct ledger_rate rates[LEDGER_RATES_MAX];
    uint32_t rate_count;
    enum ledger_rate_by rate_by;
};

#define LEDGER_POLL_PACE_S 20u  /* a poll that comes so long after the last one does not count, */
#define LEDGER_POLLS_MAX   200u /* up to so many in a row */

#define LEDGER_SAME_FAILURE_NOTED   3u /* from this failure in a row on, the reply says how many there were */
#define LEDGER_SAME_FAILURE_ADVISED 6u /* and from this one on what to do instead */
#define LEDGER_FAILED_ALIKE_MAX     11u /* runs of one call with one error, between which no write succeeded */
#define LEDGER_FAILED_ALIKE_NOTED   6u  /* from this one of them on, the reply says so */
#define LEDGER_SAME_FAILURE_REFUSED 6u  /* loop.same_failure = "refuse": this one is not run any more */
#define LEDGER_SAME_FAILURE_DEFAULT 10u /* without loop.same_failure, this one is not */

extern const struct ledger_limits ledger_default_limits;

/* Names a session: one half is of what stands before the first '/' (whose it is), so that no name that a user
 * may choose reaches the session of another, whatever can be done to the hash. */
struct hash128 ledger_session_id(struct str session);

/* Which session, and when in it. */
struct ledger_place {
    struct str session;        /* namespaced by the caller, e.g. "uid:1000/chat-7" */
    struct hash128 session_id; /* of a call id, if `session` is empty: ledger_call_id_read */
    uint32_t uid;   /* of the peer: a session that begins takes of this user's share of the memory */
    bool anonymous; /* no session key: budgets and loops advise, see PROTOCOL.md */
    uint32_t anonymous_repeats; /* 8 */
    uint32_t turn;      /* 0: not told; then the session's current one, budgets over the last 32 calls */
    uint32_t turn_text; /* instead of a number (ledger_turn_text): a new one begins the next turn; 0: none */
    uint32_t turn_idle_s; /* in a session without turns, a silence as long begins one; 0: none does */
    struct str step;      /* label of the model message; empty: by time of feedback */
    uint64_t batch;       /* of calls that were sent before an answer to any of them was read; 0: alone */
    uint32_t agent;       /* hash of a sub-agent's name (ledger_turn_text); 0: the session's main agent */
    bool by_person;       /* a person began the turn */
};

struct hash128 ledger_place_id(const struct ledger_place *place); /* of its session */

/* What stages 1 to 3 found. */
enum ledger_so_far {
    LEDGER_SO_FAR_VALID,
    LEDGER_SO_FAR_INVALID,    /* schema, rules: repairable */
    LEDGER_SO_FAR_FABRICATED, /* an id of impossible shape */
    LEDGER_SO_FAR_REFUSED     /* unknown tool, forbidden, policy_error, unavailable */
};

/* One problem of invalid arguments: an attempt whose problems only shrink is progress. */
struct ledger_problem {
    struct str path;  /* "items[0].price"; empty: the arguments as a whole */
    struct str code;  /* "missing", "type", … */
    struct str place; /* in the schema, "items[].price": what a model insists on there is one fact */
};

#define LEDGER_ERROR_MAX_BYTES          300u  /* of the last error, which a refused repetition quotes */
#define LEDGER_OPEN_ARGUMENTS_MAX_BYTES 2048u /* of a check; longer ones are not kept for its report */

/* The classes of PROTOCOL.md's table, as the ledger tells them apart. */
enum ledger_class {
    LEDGER_CLASS_OK,
    LEDGER_CLASS_PARTIAL,
    LEDGER_CLASS_GARBAGE, /* also: empty */
    LEDGER_CLASS_SCHEMA_MISMATCH,
    LEDGER_CLASS_TOOL_ERROR,
    LEDGER_CLASS_TRANSIENT,
    LEDGER_CLASS_INVALID, /* check or retry asked for a repair after admit */
    LEDGER_CLASS_FABRICATED,
    LEDGER_CLASS_RELEASED, /* cancelled, ask: as if it had never been asked */
    LEDGER_CLASS_REFUSED,  /* refused after admit (policy_error, unavailable, forbidden): its budget is
                              released, but asking the same again is a loop like any other */
    LEDGER_CLASS_COUNT
};

/* What is asked of a session (ledger_ask). Each kind of request reads its part. */
struct ledger_call {
    struct ledger_place place;
    uint64_t admission; /* of the callId; never 0. admit and settle are idempotent by it */
    struct str tool;
    /* dev.toolgate/call: retries that repeat it are one repair chain; empty: the tool's chain */
    struct str call;
    struct str ext; /* dev.toolgate/ext: goes into the line that tells of a chain given up */
    const struct ledger_problem *problems; /* for LEDGER_SO_FAR_INVALID, LEDGER_CLASS_INVALID */
    size_t problem_count;
    struct hash128 arguments; /* json_fingerprint */
    const struct ledger_limits *limits;

    /* ---- LEDGER_ADMIT ---- */
    enum ledger_so_far so_far;
    struct str refused_as; /* the class, for LEDGER_SO_FAR_REFUSED: goes into the history */
    bool lax; /* nothing else is wrong, and the model may insist: what was asked about before is let run */
    bool arguments_lost; /* they arrived empty or cut off: the model's output ended, and it may go on */
    bool not_enforced;   /* mode shadow: what is said against it is only recorded. Of a settle: was */
    bool wants_history, wants_facts; /* the policy reads call.history / call.facts; also of LEDGER_LOOK */
    uint64_t lax_known; /* bit i: the fleet has learnt that the server accepts problems[i]: ledger_lax_look */
    struct str open_arguments; /* of a check, as JSON: kept until its report; empty: none */
    struct str peer;           /* whose rates it counts for, e.g. "uid:1000" */
    const struct hash128 *ids; /* candidates that must have been seen before */
    size_t id_count;
    uint32_t reservation_ms; /* as long as it may run; 0: LEDGER_RESERVATION_MS */

    /* ---- LEDGER_SETTLE ---- */
    enum ledger_class class;
    uint64_t refused;        /* bit i: it failed because the server has refused problems[i] as such */
    bool approved, declined; /* by whom a policy has asked */
    bool uncounted;          /* its admit was answered by "none" */
    bool under_way; /* what it asks for goes on, says the result, and the call may be a poll for it */
    bool not_begun; /* where what runs it is out of order: no limit and no cost is used up */
    bool cost_told; /* `cost` is what it really came to; else it cost what the limits declare */
    uint64_t cost;
    struct hash128 (*fingerprint)(const void *of); /* makes `arguments` where a session has forgotten the
                                                      call, which no other asks for; NULL: they are told */
    const void *of;
    struct str error;      /* of a call that failed: its text, cut at LEDGER_ERROR_MAX_BYTES; empty: none */
    struct str label;      /* the wire name for the history: "ok", "tool_error", "ask", "cancelled", … */
    struct hash128 result; /* of what came back: what counts as the same result */
    struct hash128 masked; /* of what counts as nearly the same, half; of a tool_error without all numbers */
    const struct hash128 *gives_ids;
    size_t gives_id_count;
    const struct json *facts; /* object, merged into the session's; NULL: none */
    struct str facts_json;    /* the same as JSON, instead; empty: none */

    /* ---- LEDGER_TURN ---- */
    struct str goal; /* empty: none */
    bool end;        /* the conversation is over: no turn begins, open chains end */
    bool compacted;  /* the model no longer sees what it has read: no turn begins; its reads count again */

    /* ---- LEDGER_LOOK ---- */
    bool newest; /* never from the cache alone, which another daemon may have outdated */
};

enum ledger_says {
    LEDGER_RUN,    /* go on: valid, within budget */
    LEDGER_REPAIR, /* invalid, and the model may try again */
    LEDGER_REFUSE,
    LEDGER_HALT /* a loop that goes on: end the run */
};

/* What came of the same call the last time that it was judged. */
enum ledger_came_of {
    LEDGER_CAME_UNKNOWN,
    LEDGER_CAME_RESULT,
    LEDGER_CAME_ERROR,   /* it ran and failed */
    LEDGER_CAME_INVALID, /* it did not run: its arguments were invalid */
    LEDGER_CAME_REFUSED  /* it did not run: unknown, forbidden, … */
};

struct ledger_open_call {
    struct str tool;      /* empty: no longer known */
    struct str arguments; /* as JSON; empty: not kept */
    struct str session;   /* its name, as in ledger_place, if it is short; empty: only its id is known here */
};

/* Of any request; what does not concern it is empty. */
struct ledger_answer {
    enum err error; /* not OK: no answer was had; `why` says so. ERR_NOT_FOUND: no such session */
    /* who answered: "redis", "local"; "none": it passes uncounted, or there is no answer */
    const char *engine;
    enum ledger_says says;
    /* of a refusal: one of SESSION_CODES (session.h); empty: nothing that the gate did not know */
    struct str code;
    bool of_session;        /* it is the whole session's limit, not the tool's own */
    uint64_t used;          /* calls, seconds or cost so far, where a limit is the code; of "too_soon" and
                               "rate_limit": ms to wait; of "same_failure": failures in a row; of
                               "poll_budget": times in a row */
    uint32_t turn;          /* the turn it was counted in */
    bool lax;               /* it runs with its problems: the model insists, or the server accepts them */
    bool insists;           /* the former */
    bool may_insist;        /* it does not run, and the same call in a later step would */
    uint32_t attempt;       /* 1 for the first of a repair chain */
    uint32_t attempts_left; /* repairs left after this one */
    uint32_t repeats;       /* identical calls in a row before this one */
    uint32_t at_once;       /* identical calls of its step, or still running */
    enum ledger_came_of came_of; /* of the last of them */
    struct str last_error;       /* its text, of a refusal where that failed; empty: not known */
    uint32_t no_progress;        /* calls in a row without progress */
    uint32_t spent;              /* of the same-call budget, this call included */
    bool uncounted;              /* no daemon counted it: Redis is away, and on_outage is "open" */
    struct str would;  /* of a call that is only advised (anonymous, or a read in a guessed turn): the code
                          that would have refused it */
    uint64_t version;  /* of the session that it was judged by: differs from a peek's if another daemon came
                          between */
    uint64_t unseen;   /* bit i: ids[i] was never seen */
    uint64_t insisted; /* of them, those that an earlier step of this turn named, too */
    bool ids_complete; /* the record of seen ids is whole: nothing was evicted */
    uint32_t transient_count; /* transient failures of this call so far */
    struct str goal;          /* of the turn, as told by toolgate/turn */
    struct json history;      /* session_json_history; JSON_NULL if not asked, as facts */
    struct json facts;
    struct str chain; /* of a repair chain that ended now: one of SESSION_OUTCOMES; empty: none did */
    uint32_t chain_retries;
    uint32_t gave_up; /* chains of an earlier turn that this call found open: llm_gave_up, logged here */

    /* ---- of a settle, where `says` is LEDGER_REPAIR, or LEDGER_REFUSE when exhausted, for
     * LEDGER_CLASS_INVALID, and `repeats` are with identical results, this one included ---- */
    bool lax_learnt; /* it ran with problems, the server accepted them, and the session did not know that */
    bool unchanged;  /* the result is the one this call had last time */
    uint32_t same_failure; /* failures of the tool with this error in a row, this one included; 0: it did not
                              fail */
    uint32_t failed_alike; /* of this call with this error since a write succeeded, the same */
    uint32_t asked;        /* this call in a row, whatever came of it */

    /* ---- of a look. Of an unknown session: turn 0, no goal ---- */
    uint32_t step;
    bool stuck; /* calls brought nothing new LEDGER_STUCK times in a row, in this turn */
    struct ledger_open_call open;

    /* ---- of a view ---- */
    bool stand_in;       /* Redis is away: it is what this daemon counted in that time */
    struct json session; /* session_json */

    struct why why; /* filled in if `error` is not OK; only its first byte is cleared otherwise */
};

typedef void ledger_done(void *owner);

enum ledger_kind {
    LEDGER_ADMIT,   /* a call asks to be let run */
    LEDGER_SETTLE,  /* with what became of it */
    LEDGER_RELEASE, /* the ledger's own: a settle of an admit whose caller is gone: only if it was let run and
                       is open */
    LEDGER_SEE,     /* gives_ids became known otherwise: from an example's `seen` */
    LEDGER_TURN, /* a user turn begins: open repair chains end as llm_gave_up (logged here), runs start again.
                    place.turn 0 and no turn_text: the next one */
    LEDGER_RESET,  /* a person ends a tool's run */
    LEDGER_FORGET, /* or the whole session is forgotten */
    LEDGER_LOOK,   /* what prepare hooks and a report see of a session before the call is admitted. With an
                        admission, `open` is filled in, too */
    LEDGER_VIEW,   /* everything known of a session, as one JSON object */
    LEDGER_LAPSED  /* the ledger's own: whether a session with open chains has ended with its time to live */
};
/* `answer` lives with the arena; with LEDGER_SEE it may be NULL. */
enum ledger_state ledger_ask(struct ledger *ledger, enum ledger_kind kind, const struct ledger_call *request,
                             struct arena *arena, struct ledger_answer *answer, ledger_done *done,
                             void *owner);
/* No `done` with this owner fires any more. What has to be counted is counted all the same; an admit that was
 * not answered yet gives back what it took. */
void ledger_cancel(struct ledger *ledger, void *owner);

/* Returns a call's place in its tool's rates, less what has expired since it was judged `held_us` ago. For a
 * call that does not run. No callback reports it; if the request is lost, the call counts. */
void ledger_give_rate_back(struct ledger *ledger, const struct ledger_call *admit, uint64_t held_us);

/* The one log line of a chain that ended, at the level its outcome has; for `chain` of an answer or a settled
 * call. */
void ledger_log_chain(struct str tool, struct str ext, struct str outcome, uint32_t retries);

/* For each repair chain that ends as llm_gave_up, beside its log line. `tool` may be cut at 64 bytes. */
typedef void ledger_gave_up(void *owner, struct str tool);
void ledger_on_gave_up(struct ledger *ledger, ledger_gave_up *hook, void *owner);

/* What names a turn by any text: its hash, never 0. */
uint32_t ledger_turn_text(struct str text);

/* The sessions that this daemon served last, the latest first; without what other daemons did to them since.
 */
#define LEDGER_SESSIONS_MAX 1024u
struct ledger_session {
    struct str name; /* as in ledger_place; a long one is cut */
    int64_t last_ms;
    uint32_t turn, calls, calls_in_turn; /* calls that were let run, by all daemons */
    uint32_t refusals;                   /* by this daemon, since it remembers the session */
    uint32_t no_progress, waiting;       /* waiting: without a result yet */
    uint64_t cost, cost_in_turn;
    uint32_t loop_times;             /* its last call is in a loop: made so often; 0: in none */
    struct str loop_tool, loop_code; /* empty: the name is not known; it is not refused yet */
    bool halted, not_enforced;       /* what was said to it: end the run; mode shadow: it ran all the same */
};
/* `sessions` has room for LEDGER_SESSIONS_MAX. Strings are borrowed until the next request. */
size_t ledger_sessions(const struct ledger *ledger, struct ledger_session *sessions);

/* ---- what the fleet has learnt of schemas that their servers do not keep ---- */

/* `schema`: a digest of the published schema. Returns bit i if servers have accepted problems[i] in enough
 * sessions, as this daemon has read it last; reads it again for the next call. */
uint64_t ledger_lax_look(struct ledger *ledger, uint64_t schema, const struct ledger_problem *problems,
                         size_t count);

/* A problem that a server accepts. */
struct ledger_lax {
    uint64_t schema;             /* digest; not in a list */
    struct str tool, path, code; /* the path is a place in the schema */
    struct hash128 session;      /* that has found it out (ledger_session_id), */
    uint32_t user;               /* of this user, */
    bool alone;                  /* which is the daemon's only one: three sessions are enough */
    bool forgets;     /* the ledger's own: an operator's word about the tool, and the path if there is one */
    uint32_t until_s; /* in a list: since the epoch, then it is asked about again */
};
/* A session has found out that the server accepts these problems; `found` has all but path and code. */
void ledger_lax_found(struct ledger *ledger, const struct ledger_lax *found,
                      const struct ledger_problem *problems, size_t count);
/* Forgets what the fleet has learnt of the tool, at this place of its schema; empty: at any. */
void ledger_lax_forget(struct ledger *ledger, struct str tool, struct str path);
/* All that is known, as this daemon has read it last. */
size_t ledger_lax_list(struct ledger *ledger, struct arena *arena, struct ledger_lax **out);

/* ---- call ids ---- */

/* base64url of the session's hash (16 bytes), the admission (8), a MAC of both, the user and the marks (8),
 * and the marks. Its key is shared in Redis, else kept in options.key_file. */
#define LEDGER_CALL_ID_CHARS 43u
struct ledger_call_id {
    struct hash128 session; /* ledger_session_id */
    uint64_t admission;
    uint32_t uid;
    uint8_t marks; /* 0 to 3: what its report is to know of the check */
};
void ledger_call_id_write(const struct ledger *ledger, const struct ledger_call_id *id,
                          char out[LEDGER_CALL_ID_CHARS + 1]);
/* Fills in all but the uid, which is given. ERR_NOT_FOUND: no daemon of this fleet gave this id to this user.
 * ERR_UNAVAILABLE: this daemon has not reached Redis yet, so it knows only its own ids. */
enum err ledger_call_id_read(const struct ledger *ledger, struct str text, struct ledger_call_id *id);

/* Reads the key of `len` bytes that `file` keeps and only its owner may read. If the file is missing, or
 * holds none (`replaced`), a random one is kept there. Unless OK, `key` is as it was, or random. */
enum err key_file_load(const char *file, uint8_t *key, size_t len, bool *replaced, struct why *why);

/* Where the fleet keeps what it shares beside sessions: Redis, or else this process's memory. */
struct session_store;
struct session_store *ledger_store(struct ledger *ledger);

#endif
