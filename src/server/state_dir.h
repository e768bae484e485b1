/* Where the daemon keeps files between runs: the quarantine, the tools of lazy upstreams. */
#ifndef TOOLGATE_SERVER_STATE_DIR_H
#define TOOLGATE_SERVER_STATE_DIR_H

#include "policy/config.h"

struct guarded_tool;

#define DECISIONS_FILE_NAME "decisions.ndjson"

/* Makes the folder, for this user alone, if it is missing. ERR_CONFIG: another user could write into it,
 * replace it or has made it, so nothing in it can be trusted; `why` has the fix. A folder that cannot be made
 * is no error here: whoever needs a file of it reports that. */
enum err state_dir_prepare(const struct config *config, struct why *why);

/* STATE/name in the configuration's `state` or systemd's StateDirectory=, else SOCKET.name. Allocated in the
 * arena. */
const char *state_dir_path(struct arena *arena, const struct config *config, const char *name);

/* SOCKET.name: what must not be lost together with the state folder. */
const char *state_dir_beside_socket(struct arena *arena, const struct config *config, const char *name);

/* The decision log of the configuration; NULL: it is off, or writes no file. Makes no folder. */
const char *state_dir_decisions(struct arena *arena, const struct config *config);

/* The folder, in the arena; NULL: none is given. */
const char *state_dir_folder(struct arena *arena, const struct config *config);

/* False: its files are beside the socket, whose folder is mostly in memory. */
bool state_dir_is_given(const struct config *config);

/* Which upstream's tool each policy without `upstream` guards, between runs: the file `guarded`, "POLICY
 * UPSTREAM" a line. Without a state folder nothing is kept. See struct guarded_tool (catalog/generation.h).
 */
#define GUARDED_FILE_MAX_BYTES 1048576u

/* The list is allocated in the arena; empty if there is no file. A file that cannot be read is logged. */
struct guarded_tool *guarded_file_read(struct arena *arena, const struct config *config, size_t *count);

/* Does nothing if the file has this list already. What cannot be written is logged. */
void guarded_file_write(const struct config *config, const struct guarded_tool *list, size_t count);

#endif
