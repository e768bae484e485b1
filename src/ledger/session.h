/*
 * What the fleet remembers of one conversation: the struct that the rules work on, and whose fields
 * are what stores (store.h) keep (codec.c). Every limit of what a session remembers is here. Journal,
 * seen ids, facts and the goal are parts of their own (below): most calls need none of them.
 */
#ifndef TOOLGATE_LEDGER_SESSION_H
#define TOOLGATE_LEDGER_SESSION_H

#include "base/buf.h"
#include "ledger/ledger.h"

#define SESSION_CALLS_MAX    LEDGER_WINDOW /* calls in the window; which one leaves: find_leaving */
#define SESSION_AGENTS_MAX   3u            /* agents that called last: of each, the window keeps some calls */
#define SESSION_SPENT_MAX    256u /* counts of a turn that outlast the window; plain writes go first */
#define SESSION_CHAINS_MAX   16u  /* repair chains of a turn; the oldest counts as given up beyond */
#define SESSION_PROBLEMS_MAX 16u  /* of a chain's last attempt; with more, the next is no progress */
#define SESSION_COUNTERS_MAX 32u  /* tools with limits; those beyond share one count */
#define SESSION_PACED_MAX    32u  /* calls with loop.poll.every whose last time is kept */
#define SESSION_REQUESTS_MAX 4u   /* ids of turns and resets that were applied */
#define SESSION_MARKS_MAX    4u   /* daemons whose last request is known */
#define SESSION_TURNS_MAX    16u  /* texts that named turns; the one heard first goes */
#define SESSION_LAX_MAX      16u  /* problems that were asked about; the one touched longest ago goes */
#define SESSION_NAME_BYTES   64u  /* of a chain's tool and ext in the log; longer ones are cut */
#define SESSION_COUNT_MAX    255u /* counts in a row stop here */

/* How a call ended, in the order that the rules compare: up to CALL_TRANSIENT it was let run, up to
 * CALL_TOOL_ERROR it ran or runs. */
enum session_call_class {
    CALL_PENDING, /* let run, not settled yet */
    CALL_OK,
    CALL_PARTIAL,
    CALL_GARBAGE, /* also: empty, or unchanged */
    CALL_MISMATCH,
    CALL_TOOL_ERROR,
    CALL_UNKNOWN, /* let run and never settled in its time, or settled without its admit */
    CALL_TRANSIENT,
    CALL_RELEASED, /* as if it had never been asked */
    CALL_INVALID,
    CALL_FABRICATED,
    CALL_REFUSED,  /* by the gate: unknown tool, forbidden, a policy */
    CALL_DENIED,   /* by the ledger */
    CALL_BOUNDARY, /* no call: Redis was away until here, and runs start again */
    CALL_CLASS_COUNT
};

/* Numbers are stored, so lists of names only ever grow at their end. */
#define SESSION_CODES(F)                                                                                     \
    F(CODE_NONE, "")                                                                                         \
    F(CODE_RETRY_BUDGET, "retry_budget_exceeded")                                                            \
    F(CODE_SAME_CALL, "same_call")                                                                           \
    F(CODE_LOOP, "loop")                                                                                     \
    F(CODE_CYCLE, "cycle")                                                                                   \
    F(CODE_TRANSIENT_BUDGET, "transient_budget")                                                             \
    F(CODE_DUPLICATE_IN_STEP, "duplicate_in_step")                                                           \
    F(CODE_ALREADY_BROKEN, "already_broken")                                                                 \
    F(CODE_POLL_BUDGET, "poll_budget")                                                                       \
    F(CODE_CALLS_PER_TURN, "calls_per_turn")                                                                 \
    F(CODE_CALLS_PER_SESSION, "calls_per_session")                                                           \
    F(CODE_COST_PER_TURN, "cost_per_turn")                                                                   \
    F(CODE_COST_PER_SESSION, "cost_per_session")                                                             \
    F(CODE_SECONDS_PER_TURN, "seconds_per_turn")                                                             \
    F(CODE_LLM_GAVE_UP, "llm_gave_up") /* in the journal only */                                             \
    F(CODE_TOO_SOON, "too_soon")                                                                             \
    F(CODE_SAME_FAILURE, "same_failure")                                                                     \
    F(CODE_RATE_LIMIT, "rate_limit")                                                                         \
    F(CODE_WRITES_PER_TURN, "writes_per_turn")                                                               \
    F(CODE_APPROVED, "approved") /* this and the next in the journal only */                                 \
    F(CODE_DECLINED, "declined")

/* How a repair chain ended. */
#define SESSION_OUTCOMES(F)                                                                                  \
    F(OUTCOME_NONE, "")                                                                                      \
    F(OUTCOME_NO_RETRY, "no_retry")                                                                          \
    F(OUTCOME_SUCCESS, "success")                                                                            \
    F(OUTCOME_REDUNDANT, "redundant")                                                                        \
    F(OUTCOME_EXHAUSTED, "exhausted")                                                                        \
    F(OUTCOME_LLM_GAVE_UP, "llm_gave_up")                                                                    \
    F(OUTCOME_FABRICATED_ON_RETRY, "fabricated_id_on_retry")

#define SESSION_NUMBER(number, name) number,
enum session_code { SESSION_CODES(SESSION_NUMBER) CODE_COUNT };
enum session_outcome { SESSION_OUTCOMES(SESSION_NUMBER) OUTCOME_COUNT };

/*
 * From here on the structs are what is stored, byte by byte: little-endian, in this order, without padding,
 * and CODEC_FORMAT changes with them. `unused` bits are 0.
 */
#define SESSION_STORED __attribute__((packed))
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "sessions are stored as they are in memory");

/* One call of the window. */
struct SESSION_STORED session_call {
    uint32_t tool; /* hash of its name */
    union SESSION_STORED {
        struct SESSION_STORED {
            uint64_t arguments : 48; /* hash of the canonical arguments */
        };
        uint32_t arguments_low; /* compared first: quicker than 48 bits */
    };
    union SESSION_STORED {
        struct SESSION_STORED {   /* of a call that ran */
            uint64_t result : 39; /* hash of its result; 0: nothing is known of it */
            uint64_t asked : 8;   /* how often in a row it was made until then, whatever came of it */
            bool under_way : 1;   /* what it asks for goes on, says its result */
        };
        struct SESSION_STORED {
            uint64_t deadline_ms : 48; /* CALL_PENDING: when its reservation ends */
        };
        struct SESSION_STORED {   /* CALL_DENIED */
            uint8_t says;         /* enum ledger_says */
            uint8_t code;         /* enum session_code */
            uint8_t denied_asked; /* as `asked` */
            uint32_t denied_unused : 24;
        };
    };
    enum session_call_class class : 4;
    enum ledger_effects effects : 2; /* of its tool, when it was called; so are `hard` and the next two */
    bool
        changed : 1; /* its result differed from the last time, and that excuses it (polls, reads, unknown) */
    bool may_settle : 1; /* CALL_UNKNOWN whose reservation ended: its result may still come */
    bool hard : 1;       /* same_call_hard */
    bool hinted : 1, edits_files : 1;
    uint16_t slot : 5;  /* no other call of the window has it: for details of its own */
    uint8_t turn, step; /* their low bytes */
    union SESSION_STORED {
        struct SESSION_STORED {
            uint64_t admission : 40; /* cut_admission */
        };
        uint32_t admission_low; /* the same */
    };
    uint32_t second;      /* when it was recorded */
    uint64_t masked : 40; /* of a call that ran: hash of its result without what is masked; 0: not known */
    uint16_t agent;       /* who called it; 0: the session's main agent */
};
_Static_assert(sizeof(struct session_call) == 36 && SESSION_CALLS_MAX == 1 << 5, "a slot has 5 bits");

/* Calls in a row that brought an agent nothing new. */
struct SESSION_STORED session_idle {
    uint16_t agent;
    uint8_t calls;
};

/* How often a call was let run before the calls of the window, of those whose budget must not be forgotten:
 * writes, calls that destroy, and any whose same_call is written (window_add). */
struct SESSION_STORED session_spent {
    uint32_t tool;
    uint64_t arguments : 48;
    uint8_t count;                   /* steps */
    enum ledger_effects effects : 2; /* as in the call that left last */
    bool hard : 1, hinted : 1, edits_files : 1;
    bool failed : 1; /* that call ended with a tool_error */
    uint8_t unused : 2;
};

struct SESSION_STORED session_problem {
    uint32_t path, code; /* hashes */
};

/* Invalid calls of a tool in this turn (chains.c). Of the arrays only what is used is stored. */
struct SESSION_STORED session_chain {
    uint32_t tool;
    uint32_t call; /* hash of the last attempt's dev.toolgate/call; 0: none */
    uint8_t attempts, free_attempts;
    uint8_t step;          /* of the last attempt */
    bool ended : 1;        /* exhausted: valid arguments still pass, invalid ones are refused */
    bool problems_cut : 1; /* the last attempt had more than fit */
    uint8_t unused : 6;
    uint8_t problem_count, name_len, ext_len;
    struct session_problem problems[SESSION_PROBLEMS_MAX];  /* of the last attempt */
    char name[SESSION_NAME_BYTES], ext[SESSION_NAME_BYTES]; /* for the log line */
};

/* What a tool with limits has used. */
struct SESSION_STORED session_counter {
    uint32_t tool; /* 0: all tools beyond SESSION_COUNTERS_MAX together */
    uint32_t turn; /* that the counts of a turn are of */
    uint32_t calls_turn, calls;
    uint64_t cost_turn : 48, cost : 48; /* in LEDGER_COST_UNIT */
    uint32_t began_s;                   /* the tool's first call of the turn */
};

/* When a call with loop.poll.every was let run last. */
struct SESSION_STORED session_paced {
    uint32_t tool;
    uint64_t arguments : 48, at_ms : 48;
};

/* A problem that a model may insist on, and what the server has said to it. */
enum session_lax_state { LAX_ASKED, LAX_ACCEPTED, LAX_REFUSED, LAX_STATE_COUNT };
struct SESSION_STORED session_lax {
    uint32_t tool, problem;  /* hashes; the problem's of its place in the schema */
    uint8_t state;           /* enum session_lax_state */
    uint8_t step;            /* that it was asked about in */
    uint64_t admission : 40; /* of the last call that was let run with it, until it is settled; 0: none */
};

enum session_ids { IDS_NONE, IDS_COMPLETE, IDS_FORGOTTEN };

/* The last request of a daemon that the session has seen: those up to it are not applied again, however many
 * calls of others came in between. */
struct SESSION_STORED session_mark {
    uint32_t daemon;  /* 0: none */
    uint32_t request; /* its own count; it wraps */
};

struct session {
    struct SESSION_STORED {
        uint64_t version; /* of the stored value; changes with each commit. 0: not stored yet */
        uint8_t chain_count, counter_count, paced_count;
        uint8_t call_count;    /* in the window */
        uint8_t oldest;        /* index of the oldest call once the window is full */
        uint64_t last_ms : 48; /* of the last request: time goes back only with a clock that was set back */
        uint32_t renewed_s;    /* when the time to live was renewed last */

        uint32_t turn;
        uint32_t told_turn; /* the last one that was named or begun by the client; 0: all were guessed */
        uint32_t turn_began_s;
        uint32_t heard_s; /* the last request, where silence begins a turn; 0: none yet */
        uint32_t label;   /* hash of the step's name; 0: it has none */
        uint8_t step;     /* its low byte */
        bool spoken : 1;  /* feedback was sent in this step: the next unnamed call begins another */
        bool stuck : 1;   /* an agent's idle calls reached LEDGER_STUCK in this turn */
        bool has_goal : 1;
        enum session_ids ids : 2;
        bool spent_full : 1; /* in this turn, `spent` had no room for a call that is no plain write */
        uint8_t unused : 2;
        struct session_idle idle[SESSION_AGENTS_MAX]; /* of the agent that called last first */

        uint32_t calls_made, calls_in_turn; /* let run and not given back */
        uint64_t cost : 48, cost_in_turn : 48;

        uint32_t journal_count; /* entries ever written */
        uint16_t journal_max;   /* entries that its ring holds, set when the session began; 0: none */
        uint16_t ids_changes, details_changes; /* a cached part is current while these are as it knows them */
        struct session_mark
            marks[SESSION_MARKS_MAX]; /* of the daemons that committed last, the latest first */
        uint8_t request_at;
        uint32_t requests[SESSION_REQUESTS_MAX]; /* a ring */
        uint8_t lax_count, turn_text_count;
        uint16_t spent_count;
    };
    struct session_call calls[SESSION_CALLS_MAX];    /* a ring: calls[(oldest + i) % SESSION_CALLS_MAX] */
    struct session_chain chains[SESSION_CHAINS_MAX]; /* the one extended last at the end */
    struct session_counter counters[SESSION_COUNTERS_MAX];
    struct session_paced paced[SESSION_PACED_MAX]; /* the one let run last at the end */
    struct session_lax lax[SESSION_LAX_MAX];       /* the one touched last at the end */
    uint32_t turn_texts[SESSION_TURNS_MAX]; /* hashes of the texts that named turns, never 0, the latest at
                                               the end */
    struct session_spent spent[SESSION_SPENT_MAX]; /* of this turn */

    /* As this daemon knows it: not stored. */
    uint64_t batch;     /* of the last call (ledger_place) */
    uint8_t batch_step; /* of the batch's first call */
};

/* An entry of the journal: one logical call. */
struct SESSION_STORED session_note {
    uint32_t second;
    uint32_t tool : 24; /* of the hash of its name */
    uint16_t label : 5; /* ledger_label_number */
    uint16_t code : 5;  /* enum session_code */
    uint16_t retries : 4;
    bool halted : 1;       /* the run was to end with it */
    bool not_enforced : 1; /* mode shadow: it ran, whatever was said against it */
    uint16_t turn;
    uint8_t step;
};
_Static_assert(sizeof(struct session_note) == 12 && CODE_COUNT <= 1u << 5, "a session keeps a hundred notes");
#define SESSION_RETRIES_MAX 15u /* of a note */

/* Takes an element out of a list; those behind it move up. */
#define DROP_AT(list, count, at)                                                                             \
    ((count)--, memmove(&(list)[at], &(list)[(at) + 1], ((count) - (at)) * sizeof(*(list))))

static inline uint8_t session_chain_retries(const struct session_chain *chain)
{
    return chain->attempts ? chain->attempts - 1 : 0;
}

/* Cuts it to what there is room for; returns the length. */
static inline uint8_t session_keep_text(char *to, size_t room, struct str text)
{
    struct str cut = str_cut(text, room);
    memset(to, 0, room);
    if (cut.len)
        memcpy(to, cut.at, cut.len);
    return (uint8_t)cut.len;
}

/* The i-th call of the window, oldest first; i < call_count. */
static inline struct session_call *session_call_at(const struct session *s, unsigned i)
{
    return (struct session_call *)&s->calls[(s->oldest + i) % SESSION_CALLS_MAX];
}

/* ---- the rules of budgets, loops, repair chains and limits, as pure functions over a session: no I/O, no
 * clock, no allocation, no globals. Each applies one request and says what it changed. All are idempotent: a
 * request that the session has already seen changes nothing and is answered as before. ---- */

#define SESSION_NOTES_MAX                                                                                    \
    (SESSION_CALLS_MAX + SESSION_CHAINS_MAX + 2u) /* of one request: all that expire, all given up */

/* What one request did beside the session. */
struct session_changes {
    bool new_tool; /* the tool of an admitted request was not in the window: its name must be kept */
    uint32_t note_count;
    struct session_note notes[SESSION_NOTES_MAX];
    uint32_t gave_up_count;
    struct session_chain gave_up[SESSION_CHAINS_MAX]; /* chains that were open when their turn ended */
};

/* A call that was made during an outage, and what was decided then. It counts, and refuses nothing. */
struct session_past {
    enum ledger_says says;
    enum session_code code;
};

/* A new session. `version` is its first: random, so that no two sessions of one name are mistaken for each
 * other. */
void session_begin(struct session *session, uint64_t version, int64_t now_ms);

/* `past` NULL: judge it now. `rate_wait_ms` > 0: a rate has no room for it for this long. Fills in all of
 * `answer` but engine, unseen, ids_complete, goal, history and facts, which need the session's parts. */
void session_admit(struct session *session, const struct ledger_call *request,
                   const struct session_past *past, uint32_t rate_wait_ms, int64_t now_ms,
                   struct ledger_answer *answer, struct session_changes *changes);

/* Returns true if the request was counted now, false if it was already: then its ids and facts are known,
 * too. */
bool session_settle(struct session *session, const struct ledger_call *request, int64_t now_ms,
                    struct ledger_answer *settled, struct session_changes *changes);

/* The turn that a call of this place would be of, without beginning it: a turn that is past is the current
 * one. */
uint32_t session_turn_of(const struct session *session, const struct ledger_place *place, int64_t now_ms);

/* `id` of the request, never 0: a turn begun without a number is not begun twice. Returns true if the goal is
 * the current turn's and has to be kept. */
bool session_turn(struct session *session, const struct ledger_call *request, uint32_t id, int64_t now_ms,
                  struct ledger_answer *turned, struct session_changes *changes);

/* A person ends a tool's run: its calls of the window count no more, its budgets and chain start again. */
void session_reset(struct session *session, struct str tool, uint32_t id, int64_t now_ms,
                   struct session_changes *changes);

/* After an outage: calls before are in no run with those after. */
void session_boundary(struct session *session);

/* The session's last call, if it is one of this turn that is in a loop: refused as one, or made
 * SESSION_LOOP_CALLS times in a row without anything new coming of it. */
#define SESSION_LOOP_CALLS 3u
struct session_loop {
    uint32_t tool;
    unsigned times;         /* that call in a row; of CODE_CYCLE: rounds of the cycle */
    enum session_code code; /* that it was refused for; CODE_NONE: it was let run */
    bool halted;
};
bool session_find_loop(const struct session *session, struct session_loop *loop);

/* What is asked without changing anything. */
uint8_t session_idle_calls(const struct session *session, uint32_t agent);
const struct session_call *session_find(const struct session *session,
                                        uint64_t admission); /* NULL: not in the window */
/* The newest call of the same tool that failed; NULL: none did. */
const struct session_call *session_last_failure(const struct session *session, const struct session_call *of);
uint32_t session_tool(struct str name); /* the hash that calls, chains and counters have of a tool */

/* ---- names on the wire and in the journal (codec.c) ---- */
struct str ledger_code_name(enum session_code code);
struct str ledger_outcome_name(enum session_outcome outcome);
struct str ledger_label_name(uint8_t label);
uint8_t ledger_label_number(struct str label); /* 0: "unknown" */

/* ---- codec.c: a session as bytes, which is what stores keep and daemons of different builds share:
 *
 *   head   the format (1 byte), the fixed fields of struct session (the version first), chains, each with its
 *          problems and names, counters, paced calls, problems that were asked about, texts that named turns,
 *          counts of calls that left the window; then zeros up to a multiple of CODEC_PAD_BYTES
 *   calls  at most SESSION_CALLS_MAX, in the order of the array
 *
 * What decodes is encoded as the same bytes. Bytes that were not written by this codec are an error of that
 * session, never of the daemon.
 *
 * Beside this core a session has a journal, seen ids, and details: goal, facts, names of tools, arguments of
 * open calls. They are loaded and cached together with the core. Details are fields one after another, each
 * the lengths of its name and value (4 bytes each) and then both. A name is one letter and what follows it:
 *   g            the turn's goal; it counts if session.has_goal
 *   e            what failed last: 8 bytes of its arguments' hash, then the error
 *   u            unseen ids that the turn named: 4 bytes of turn, then 8 each
 *   f + name     a fact, as JSON
 *   t + 4 bytes  the name of a tool, by its hash (little-endian)
 *   a + 1 byte   an open call's arguments, by its slot (session.h): 8 bytes admission (little-endian),
 *                then JSON
 * ---- */

#define CODEC_FORMAT      7u /* the first byte */
#define CODEC_VERSION_AT  1u /* eight bytes: session.version; they are compared before a commit */
#define CODEC_GUARD_BYTES 9u /* format and version: the beginning of every value */
#define CODEC_PAD_BYTES   32u
#define CODEC_MAX_BYTES   16384u /* of any session; a longer value is not ours */

/* Unless CODEC_OK or CODEC_OLDER, `session` is unspecified. Array elements beyond their counts are left as
 * they are. */
enum codec_result {
    CODEC_OK,
    CODEC_DAMAGED,
    CODEC_OLDER, /* of an earlier format: only `version` is set, and the session begins again */
    CODEC_NEWER  /* of a later one: leave it alone */
};
enum codec_result codec_decode(struct str bytes, struct session *session);
void codec_encode(const struct session *session, struct buf *core); /* instead of what `core` held */

/* The guard of a session stored in this format at this version: CODEC_GUARD_BYTES. */
void codec_guard(uint8_t format, uint64_t version, char out[CODEC_GUARD_BYTES]);

#define SESSION_ID_BYTES   8u
#define SESSION_FIELDS_MAX 2048u /* details with more were not written by us */
#define SESSION_FACTS_MAX  1024u /* so that no details have SESSION_FIELDS_MAX */

struct session_parts {
    struct buf journal, ids, details;
};

/* PART_BITs of those that exist as a stored core tells. */
unsigned session_parts_with(const struct session *session);

/* `number` of the note, counting all that were ever written from 0. */
void session_parts_add_note(struct session_parts *parts, const struct session *session, uint32_t number,
                            const struct session_note *note);

#define DETAIL_HEAD_BYTES 8u /* lengths of name and value */
struct detail {
    struct str name, value;
};
/* Takes the next field off `rest`; false: none exists. */
static inline bool detail_next(struct str *rest, struct detail *detail)
{
    uint32_t lengths[2];
    if (rest->len < sizeof(lengths))
        return false;
    memcpy(lengths, rest->at, sizeof(lengths));
    const char *name = rest->at + DETAIL_HEAD_BYTES;
    size_t bytes = DETAIL_HEAD_BYTES + (size_t)lengths[0] + lengths[1];
    if (rest->len < bytes)
        return false;
    *detail = (struct detail){{name, lengths[0]}, {name + lengths[0], lengths[1]}};
    *rest = str_from(*rest, bytes);
    return true;
}
/* Behind the others; there must be none of this name. */
void detail_add(struct buf *details, struct str name, struct str value);
struct str detail_find(struct str details, struct str name); /* empty: none exists */
/* What follows `key` in a field that begins with it; empty: none exists, or of another key. */
struct str detail_find_keyed(struct str details, struct str name, uint64_t key);

/* The names of fields. `out` holds SESSION_FIELD_BYTES. */
#define SESSION_FIELD_BYTES 8u
struct str session_field_tool(uint32_t tool, char out[SESSION_FIELD_BYTES]);
struct str session_field_open(unsigned slot, char out[SESSION_FIELD_BYTES]);

/* ---- as JSON for people and policies (session_json.c): in the arena, borrowing nothing ---- */

/* Array, oldest first, one entry per logical call: {tool, class, code, turn, step, at_ms, retries}. Open
 * repair chains come last; they have "open": true instead of a time and a turn. */
struct json session_json_history(struct arena *arena, const struct session *session,
                                 const struct session_parts *parts);
/* Object, sorted by name. */
struct json session_json_facts(struct arena *arena, const struct session_parts *parts);
/* Everything: {session, turn, step, goal, budgets, ids, facts, history}. `name` is the session's. */
struct json session_json(struct arena *arena, struct str name, const struct session *session,
                         const struct session_parts *parts);
/* How many of its calls have no result yet. */
unsigned session_waiting(const struct session *session);

#endif
