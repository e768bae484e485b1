/* Words that stand in what a server, or the system, says. The first that is found counts. */
#include "ledger/mend.h"

#include <stdio.h>
#include <string.h>

#define REASON_MAX_BYTES 380u /* of a server's words; the mend stands behind them */

static const struct {
    const char *word, *mend;
} mends[] = {
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

static const char *mend_for(const char *why)
{
    for (size_t i = 0; i < sizeof(mends) / sizeof(*mends); i++)
        if (strstr(why, mends[i].word))
            return mends[i].mend;
    return NULL;
}

void mend_add(const char *why, char *out, size_t size)
{
    const char *mend = mend_for(why);
    size_t len = strlen(why);
    if (mend && len && why[len - 1] == '.')
        len--;
    snprintf(out, size, "%.*s%s%s", (int)(len < REASON_MAX_BYTES ? len : REASON_MAX_BYTES), why,
             mend ? "; " : "", mend ? mend : "");
}
