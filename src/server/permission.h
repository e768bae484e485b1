/* What only whoever runs the daemon (its own user) and root may ask. */
#ifndef TOOLGATE_SERVER_PERMISSION_H
#define TOOLGATE_SERVER_PERMISSION_H

#include "server/request.h"

bool permission_granted(const struct client *client);

/* OK, or ERR_PARSE after answering that `what` needs it. */
enum err permission_require(struct request *request, const char *what);

#endif
