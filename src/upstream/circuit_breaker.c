/* The three states of circuit_breaker.h, and their transitions. */
#include "upstream/circuit_breaker.h"

enum breaker_decision breaker_admit(struct breaker *b, int64_t now_ms)
{
    if (b->state == BREAKER_CLOSED)
        return BREAKER_ALLOW;
    if (b->state == BREAKER_PROBING || now_ms < b->until_ms)
        return BREAKER_REJECT;
    b->state = BREAKER_PROBING;
    return BREAKER_PROBE;
}

/* A call that began before the breaker opened also proves that the upstream answers. */
bool breaker_success(struct breaker *b)
{
    bool changed = b->state != BREAKER_CLOSED;
    *b = (struct breaker){.state = BREAKER_CLOSED};
    return changed;
}

/* A call that began before the breaker opened proves nothing new, and does not prolong the opening. */
bool breaker_failure(struct breaker *b, bool probe, bool at_once, int64_t now_ms)
{
    if (b->state == BREAKER_CLOSED) {
        if (++b->failures < BREAKER_OPENS_AFTER && !at_once)
            return false;
        b->open_ms = BREAKER_OPEN_MS;
    } else if (b->state == BREAKER_PROBING && probe) {
        b->open_ms = b->open_ms >= BREAKER_OPEN_MAX_MS / 2 ? BREAKER_OPEN_MAX_MS : 2 * b->open_ms;
    } else {
        return false;
    }
    b->state = BREAKER_OPEN;
    b->until_ms = now_ms + b->open_ms;
    return true;
}

bool breaker_cancelled(struct breaker *b, bool probe, int64_t now_ms)
{
    if (b->state != BREAKER_PROBING || !probe)
        return false;
    b->state = BREAKER_OPEN;
    b->until_ms = now_ms;
    return true;
}

int64_t breaker_after_s(const struct breaker *b, int64_t now_ms)
{
    if (b->state == BREAKER_CLOSED)
        return 0;
    return b->until_ms > now_ms ? (b->until_ms - now_ms + 999) / 1000 : b->state == BREAKER_PROBING;
}
