/*
 * When to leave one that fails alone for a while:
 *
 *   closed ─▶ BREAKER_OPENS_AFTER failures in a row ─▶ open ◀────────────┐
 *     ▲                                                 │ its time is over │ it fails: for
 *     │                                                 ▼                  │ twice as long
 *     └── any call succeeds ◀────────────────── probing: one call goes ────┘
 *
 * Knows no clock and no upstream: the caller hands over the time, in
 * milliseconds that never go back.
 */
#ifndef TOOLGATE_UPSTREAM_CIRCUIT_BREAKER_H
#define TOOLGATE_UPSTREAM_CIRCUIT_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

#define BREAKER_OPENS_AFTER 5u     /* failures in a row */
#define BREAKER_OPEN_MS     1000u  /* the first time; doubled with each probe that fails */
#define BREAKER_OPEN_MAX_MS 60000u /* and never longer than this */

enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_PROBING };

/* Embedded; all zero is closed. */
struct breaker {
    enum breaker_state state;
    uint32_t failures; /* in a row */
    uint32_t open_ms;  /* how long it is open this time */
    int64_t until_ms;  /* when it is over */
};

/* What becomes of a call that wants to go through. */
enum breaker_decision { BREAKER_ALLOW, BREAKER_PROBE, BREAKER_REJECT };
enum breaker_decision breaker_admit(struct breaker *breaker, int64_t now_ms);

/* How one that went through has ended; `probe`: breaker_admit said so of it. True: the state has changed. */
bool breaker_success(struct breaker *breaker);
bool breaker_failure(struct breaker *breaker, bool probe, int64_t now_ms);
/* It ended without telling anything (nobody waited any more): the next one may probe. */
bool breaker_cancelled(struct breaker *breaker, bool probe, int64_t now_ms);

/* Whole seconds until asking again makes sense, at least 1; 0 where it does now. */
int64_t breaker_after_s(const struct breaker *breaker, int64_t now_ms);

const char *breaker_state_name(enum breaker_state state); /* "closed", "open", "probing" */

#endif
