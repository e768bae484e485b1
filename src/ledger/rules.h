/*
 * The rules of budgets, loops, repair chains and limits, as pure functions over a session: no I/O, no clock,
 * no allocation, no globals. Each applies one request and says what it changed. All are idempotent: a request
 * that the session has already seen changes nothing and is answered as before.
 */
#ifndef TOOLGATE_LEDGER_RULES_H
#define TOOLGATE_LEDGER_RULES_H

#include "ledger/session.h"

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
                    struct ledger_settled *settled, struct session_changes *changes);

/* The turn that a call of this place would be of, without beginning it: a turn that is past is the current
 * one. */
uint32_t session_turn_of(const struct session *session, const struct ledger_place *place, int64_t now_ms);

/* `id` of the request, never 0: a turn begun without a number is not begun twice. Returns true if the goal is
 * the current turn's and has to be kept. */
bool session_turn(struct session *session, const struct ledger_turn *request, uint32_t id, int64_t now_ms,
                  struct ledger_turned *turned, struct session_changes *changes);

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

#endif
