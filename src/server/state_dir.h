/* Where what outlives the process is kept: quarantine, what lazy upstreams offered. */
#ifndef TOOLGATE_SERVER_STATE_DIR_H
#define TOOLGATE_SERVER_STATE_DIR_H

#include "config/config.h"

/* In the folder of the configuration's `state`, else of systemd's StateDirectory=, else beside the socket:
 * STATE/name, SOCKET.name. */
const char *state_dir_path(struct arena *arena, const struct config *config, const char *name);

#endif
