/* How programs of this host connect to a daemon. */
#ifndef TOOLGATE_CLI_DAEMON_CLIENT_H
#define TOOLGATE_CLI_DAEMON_CLIENT_H

#include "base/err.h"

/* The connected socket, or a negative enum err; `why` has the command that starts a daemon. ERR_UNAVAILABLE:
 * no process listens; ERR_CONFIG: the path is no socket of a daemon that this user may use. */
int daemon_client_socket(const char *path, struct why *why);

#endif
