/* Hints are found by words of the reason; the first that is found counts. */
#include "ledger/redis.h"

#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Logged where the last connect did not find it. */
__attribute__((format(printf, 4, 5))) static void warn(struct redis_diagnostics *d,
                                                       const struct redis_diagnostics *before,
                                                       const char *event, const char *format, ...)
{
    bool is_new = true;
    va_list args;
    va_start(args, format);
    vsnprintf(d->said[d->count], REDIS_DIAGNOSTICS_BYTES, format, args);
    va_end(args);
    for (size_t i = 0; i < before->count; i++)
        is_new &= strcmp(before->events[i], event) != 0;
    if (is_new)
        log_event(LOG_WARN, event, LOG_TEXT("why", d->said[d->count]));
    d->events[d->count++] = event;
}

void redis_diagnostics_run(struct redis_diagnostics *d, const struct redis_facts *facts, uint32_t timeout_ms)
{
    struct redis_diagnostics before = *d;
    d->count = 0;
    if (facts->evicts[0])
        warn(
            d, &before, "redis_eviction_enabled",
            "its maxmemory-policy is %s: short of memory, it drops budgets and loops of sessions that go on; "
            "CONFIG SET maxmemory-policy noeviction",
            facts->evicts);
    /* INFO does not tell about snapshots, and they would keep no more than what was counted before the last.
     */
    if (facts->version && !facts->aof)
        warn(d, &before, "redis_no_persistence",
             "it writes no append-only file: what was counted since its last snapshot is lost when it ends; "
             "CONFIG SET appendonly yes");
    if (facts->version && facts->version < REDIS_FUNCTIONS_SINCE)
        warn(d, &before, "redis_unsupported_version",
             "it is %s, which makes the ledger's scripts anew for every call; from version %d on they are a "
             "library, in a third of the time",
             facts->server, REDIS_FUNCTIONS_SINCE);
    if (facts->write_us >= (int64_t)timeout_ms * 1000 / REDIS_DIAGNOSTICS_SLOW_PART)
        warn(d, &before, "redis_slow",
             "a write took it %.1f ms, and an answer that takes %u ms counts as an outage: look at its load "
             "and the way there, or raise ledger.timeout_ms",
             (double)facts->write_us / 1000, timeout_ms);
}

/* ---- hints to reasons ---- */

#define REASON_MAX_BYTES 380u /* of a server's words; the hint stands behind them */

static const struct {
    const char *word, *hint;
} hints[] = {
    {"behind ?sentinels=", "set the sentinels' own user and password there"},
    {"WRONGPASS", "set its user and password in ledger.redis, or the password in ledger.password_file"},
    {"NOAUTH", "name its user and password in ledger.redis, or the password in ledger.password_file"},
    {"invalid password", "set its password in ledger.redis or ledger.password_file"},
    {"without any password configured", "it knows no password: take yours out of ledger.redis"},
    {"unknown command 'AUTH'", "it has no AUTH: take user and password out of ledger.redis"},
    {"no password is set", "it knows no password: take yours out of ledger.redis"},
    {"NOPERM", "give its user the rights that docs/configuration.md lists"},
    {"ACL failure in script", "give its user the rights that docs/configuration.md lists"}, /* from 7.2 on */
    {"can't run this command", "give its user the rights that docs/configuration.md lists"},
    {"DB index is out of range", "name a database that it has in ledger.redis, or raise its 'databases'"},
    {"OOM", "give it memory (CONFIG SET maxmemory), or let sessions end sooner (ledger.ttl_s)"},
    {"MISCONF", "it cannot save: its own log says why, mostly a full disk"},
    {"NOREPLICAS", "its replicas are gone, and its min-replicas-to-write demands them"},
    {"Connection refused", "nothing listens there: start it, or name its address in ledger.redis"},
    {"No such file", "nothing listens there: start it, or name its socket in ledger.redis"},
    {"Permission denied", "let the daemon's user open its socket (unixsocketperm, or its group)"},
};

void redis_diagnostics_add_hint(const char *why, char *out, size_t size)
{
    const char *hint = NULL;
    for (size_t i = 0; !hint && i < sizeof(hints) / sizeof(*hints); i++)
        if (strstr(why, hints[i].word))
            hint = hints[i].hint;
    size_t len = strlen(why);
    if (hint && len && why[len - 1] == '.')
        len--;
    snprintf(out, size, "%.*s%s%s", (int)(len < REASON_MAX_BYTES ? len : REASON_MAX_BYTES), why,
             hint ? "; " : "", hint ? hint : "");
}

/* ---- passwords ---------------------------------------------------------- */

static const char repeats[] = ", with args beginning with";
static const char mask[] = "***";

void redis_redact(const char *said, struct str password, char *out, size_t size)
{
    const char *cut = strstr(said, repeats), *end = cut ? cut : said + strlen(said);
    size_t len = 0;
    for (const char *at = said; at < end && len + sizeof(mask) < size;) {
        if (password.len && (size_t)(end - at) >= password.len &&
            memcmp(at, password.at, password.len) == 0) {
            memcpy(out + len, mask, sizeof(mask) - 1);
            len += sizeof(mask) - 1;
            at += password.len;
        } else {
            out[len++] = *at++;
        }
    }
    out[len] = '\0';
}
