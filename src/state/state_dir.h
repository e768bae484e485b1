/* Where the daemon keeps files between runs: the quarantine, the tools of lazy upstreams. */
#ifndef TOOLGATE_SERVER_STATE_DIR_H
#define TOOLGATE_SERVER_STATE_DIR_H

#include "config/config.h"

#define DECISIONS_FILE_NAME "decisions.ndjson"

/* STATE/name in the configuration's `state` or systemd's StateDirectory=, else SOCKET.name. Allocated in the
 * arena. */
const char *state_dir_path(struct arena *arena, const struct config *config, const char *name);

/* The decision log of the configuration; NULL: it is off, or writes no file. Makes no folder. */
const char *state_dir_decisions(struct arena *arena, const struct config *config);

/* False: its files are beside the socket, whose folder is mostly in memory. */
bool state_dir_is_given(const struct config *config);

#endif
