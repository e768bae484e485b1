/*
 * A circuit breaker: when to send no calls to an upstream that fails.
 *
 *   closed ─▶ BREAKER_OPENS_AFTER failures in a row ─▶ open ◀─────────────┐
 *     ▲                                                 │ its time is over │ the probe fails:
 *     │                                                 ▼                  │ twice as long
 *     └── any call succeeds ◀────────────────── probing: one call goes ────┘
 *
 * Has no clock of its own: the caller passes monotonic milliseconds.
 */
#ifndef TOOLGATE_UPSTREAM_CIRCUIT_BREAKER_H
#define TOOLGATE_UPSTREAM_CIRCUIT_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

#define BREAKER_OPENS_AFTER 5u    /* failures in a row */
#define BREAKER_OPEN_MS     1000u /* the first time; doubled with each failed probe */
#define BREAKER_OPEN_MAX_MS 60000u

enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_PROBING };

/* Embedded; all zero is closed. */
struct breaker {
    enum breaker_state state;
    uint32_t failures; /* in a row */
    uint32_t open_ms;  /* length of this opening */
    int64_t until_ms;  /* its end */
};

enum breaker_decision { BREAKER_ALLOW, BREAKER_PROBE, BREAKER_REJECT };
enum breaker_decision breaker_admit(struct breaker *breaker, int64_t now_ms);

/* The outcome of an admitted call; `probe`: breaker_admit returned BREAKER_PROBE for it. True: the state has
 * changed. */
bool breaker_success(struct breaker *breaker);
/* `at_once`: it opens, however few failures came before. */
bool breaker_failure(struct breaker *breaker, bool probe, bool at_once, int64_t now_ms);
/* It was cancelled, which proves nothing: the next call may probe. */
bool breaker_cancelled(struct breaker *breaker, bool probe, int64_t now_ms);

/* Whole seconds until a call can be admitted, at least 1; 0: now. */
int64_t breaker_after_s(const struct breaker *breaker, int64_t now_ms);

#endif
