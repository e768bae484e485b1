/* One function a check; each says nothing, or one sentence with its mend. */
#include "ledger/checkup.h"

#include "base/log.h"

#include <stdio.h>

struct subject {
    const struct server_facts *facts;
    uint32_t timeout_ms;
};

static bool evicts(const struct subject *s, char said[CHECKUP_BYTES])
{
    if (!s->facts->evicts[0])
        return false;
    snprintf(
        said, CHECKUP_BYTES,
        "its maxmemory-policy is %s: short of memory, it drops budgets and loops of sessions that go on; "
        "CONFIG SET maxmemory-policy noeviction",
        s->facts->evicts);
    return true;
}

/* INFO does not tell about snapshots, and they would keep no more than what was counted before the last. */
static bool keeps_no_file(const struct subject *s, char said[CHECKUP_BYTES])
{
    if (!s->facts->version || s->facts->aof)
        return false;
    snprintf(said, CHECKUP_BYTES,
             "it writes no append-only file: what was counted since its last snapshot is lost when it ends; "
             "CONFIG SET appendonly yes");
    return true;
}

static bool is_old(const struct subject *s, char said[CHECKUP_BYTES])
{
    if (!s->facts->version || s->facts->version >= GREETING_FUNCTIONS_SINCE)
        return false;
    snprintf(said, CHECKUP_BYTES,
             "it is %s, which makes the ledger's scripts anew for every call; from version %d on they are a "
             "library, in a third of the time",
             s->facts->server, GREETING_FUNCTIONS_SINCE);
    return true;
}

static bool is_slow(const struct subject *s, char said[CHECKUP_BYTES])
{
    if (s->facts->write_us < (int64_t)s->timeout_ms * 1000 / CHECKUP_SLOW_PART)
        return false;
    snprintf(said, CHECKUP_BYTES,
             "a write took it %.1f ms, and an answer that takes %u ms counts as an outage: look at its load "
             "and the way there, or raise ledger.timeout_ms",
             (double)s->facts->write_us / 1000, s->timeout_ms);
    return true;
}

static const struct {
    const char *event;
    bool (*finds)(const struct subject *subject, char said[CHECKUP_BYTES]);
} checks[CHECKUP_MAX] = {
    {"redis_eviction_enabled", evicts},
    {"redis_no_persistence", keeps_no_file},
    {"redis_unsupported_version", is_old},
    {"redis_slow", is_slow},
};

static bool holds(const struct checkup *checkup, const char *event)
{
    for (size_t i = 0; i < checkup->count; i++)
        if (checkup->events[i] == event)
            return true;
    return false;
}

void checkup_make(struct checkup *checkup, const struct server_facts *facts, uint32_t timeout_ms)
{
    struct subject subject = {facts, timeout_ms};
    struct checkup now = {.count = 0};
    for (size_t i = 0; i < CHECKUP_MAX; i++) {
        if (!checks[i].finds(&subject, now.said[now.count]))
            continue;
        if (!holds(checkup, checks[i].event))
            log_event(LOG_WARN, checks[i].event, LOG_TEXT("why", now.said[now.count]));
        now.events[now.count++] = checks[i].event;
    }
    *checkup = now;
}
