/* By the kernel's word about the peer, never by anything it says. */
#include "server/permission.h"

#include <unistd.h>

bool permission_granted(const struct client *client)
{
    return client->peer.uid == 0 || client->peer.uid == geteuid();
}

enum err permission_require(struct request *request, const char *what)
{
    if (permission_granted(request->client))
        return OK;
    reply_error(request, RPC_FORBIDDEN,
                "%s is for the user that runs the daemon (uid %u) and for root; you are %s (uid %u)", what,
                (unsigned)geteuid(), request->client->peer.user, (unsigned)request->client->peer.uid);
    return ERR_PARSE;
}
