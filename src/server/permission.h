/* What only whoever runs the daemon (its own user) and root may ask. */
#ifndef TOOLGATE_SERVER_PERMISSION_H
#define TOOLGATE_SERVER_PERMISSION_H

#include "server/request.h"

bool permission_has(const struct client *client);

/* OK, or ERR_PARSE after answering that `what` needs it. */
enum err permission_needed(struct request *request, const char *what);

#endif
