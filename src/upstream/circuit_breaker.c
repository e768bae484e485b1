/* See circuit_breaker.h for the picture. */
#include "upstream/circuit_breaker.h"

static void open_for(struct breaker *b, uint32_t ms, int64_t now_ms)
{
    b->state = BREAKER_OPEN;
    b->open_ms = ms;
    b->until_ms = now_ms + ms;
}

enum breaker_decision breaker_admit(struct breaker *b, int64_t now_ms)
{
    if (b->state == BREAKER_CLOSED)
        return BREAKER_ALLOW;
    if (b->state == BREAKER_PROBING || now_ms < b->until_ms)
        return BREAKER_REJECT;
    b->state = BREAKER_PROBING;
    return BREAKER_PROBE;
}

/* Also of a call that began before it opened: whoever answers is there. */
bool breaker_success(struct breaker *b)
{
    bool changed = b->state != BREAKER_CLOSED;
    *b = (struct breaker){.state = BREAKER_CLOSED};
    return changed;
}

/* Calls that began before it opened tell nothing new, and make it no longer. */
bool breaker_failure(struct breaker *b, bool probe, int64_t now_ms)
{
    if (b->state == BREAKER_CLOSED && ++b->failures < BREAKER_OPENS_AFTER)
        return false;
    if (b->state == BREAKER_CLOSED)
        open_for(b, BREAKER_OPEN_MS, now_ms);
    else if (b->state == BREAKER_PROBING && probe)
        open_for(b, b->open_ms >= BREAKER_OPEN_MAX_MS / 2 ? BREAKER_OPEN_MAX_MS : 2 * b->open_ms, now_ms);
    else
        return false;
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

const char *breaker_state_name(enum breaker_state state)
{
    static const char *const names[] = {"closed", "open", "probing"};
    return names[state];
}
