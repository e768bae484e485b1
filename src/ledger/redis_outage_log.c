/* What is not said as an error is said to whoever debugs. */
#include "ledger/redis_outage_log.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

/* One line more every REDIS_OUTAGE_LOG_LINE_MS. */
static void refill(struct redis_outage_log *p)
{
    int64_t now = clock_mono_us() / 1000, more = (now - p->refilled_ms) / REDIS_OUTAGE_LOG_LINE_MS;
    if (more <= 0)
        return;
    p->lines_used = more < p->lines_used ? p->lines_used - (uint32_t)more : 0;
    p->refilled_ms = now;
}

static bool is_news(struct redis_outage_log *p, const char *why)
{
    refill(p);
    bool news = !p->is_said || strcmp(p->why, why) != 0;
    return news && p->lines_used < REDIS_OUTAGE_LOG_LINES;
}

static void say(struct redis_outage_log *p, struct str address, const char *why, const char *on_outage)
{
    char unsaid[24] = "";
    if (p->unsaid > 1)
        snprintf(unsaid, sizeof(unsaid), "%llu", (unsigned long long)p->unsaid);
    log_event(LOG_ERROR, "redis_down", LOG_STR("address", address), LOG_TEXT("why", why),
              LOG_TEXT("on_outage", on_outage), LOG_TEXT("outages_since_told", unsaid));
    snprintf(p->why, sizeof(p->why), "%s", why);
    p->is_said = true;
    p->unsaid = 0;
    p->lines_used++;
}

void redis_outage_log_away(struct redis_outage_log *p, struct str address, const char *why,
                           const char *on_outage)
{
    if (!p->is_away) {
        p->since_ms = clock_wall_ms();
        p->outages++;
        p->unsaid++;
        p->is_said = false;
    }
    p->is_away = true;
    if (is_news(p, why))
        say(p, address, why, on_outage);
    else
        log_event(LOG_DEBUG, "redis_down", LOG_STR("address", address), LOG_TEXT("why", why));
}

void redis_outage_log_back(struct redis_outage_log *p, uint64_t sessions)
{
    if (p->is_away)
        log_event(p->is_said ? LOG_INFO : LOG_DEBUG, "redis_up",
                  LOG_NUM("away_ms", clock_wall_ms() - p->since_ms), LOG_NUM("sessions_to_tell", sessions));
    p->is_away = false;
}
