/*
 * The daemon's files between runs: in the configuration's `state` or systemd's StateDirectory=, else in
 * SOCKET.state. Among them the quarantine; and what confined processes cannot read.
 */
#ifndef TOOLGATE_SERVER_STATE_DIR_H
#define TOOLGATE_SERVER_STATE_DIR_H

#include "policy/config.h"
#include "policy/policy_set.h"

struct json_out;
struct loop;

#define DECISIONS_FILE_NAME "decisions.ndjson"

/* Makes the folder, for this user alone, if it is missing. ERR_CONFIG: another user could write into it,
 * replace it or has made it, so nothing in it can be trusted; `why` has the fix. A folder that cannot be made
 * is no error here: what needs a file of it reports that. */
enum err state_dir_prepare(struct arena *arena, const struct config *config, struct why *why);

/* The path of one of these files, in the arena. */
const char *state_dir_path(struct arena *arena, const struct config *config, const char *name);

/* SOCKET.name: what must not be lost together with the state folder. */
const char *state_dir_beside_socket(struct arena *arena, const struct config *config, const char *name);

/* The decision log of the configuration; NULL: it is off, or writes no file. Makes no folder. */
const char *state_dir_decisions(struct arena *arena, const struct config *config);

/* The folder, in the arena. */
const char *state_dir_folder(struct arena *arena, const struct config *config);

/* False: its folder is beside the socket, mostly in memory. */
bool state_dir_is_given(const struct config *config);

/* Which upstream's tool each policy without `upstream` guards, between runs: the file `guarded`, "POLICY
 * UPSTREAM" a line. See struct guarded_tool (catalog/generation.h). */

/* The list is allocated in the arena; empty if there is no file. A file that cannot be read is logged. */
struct guarded_tool *guarded_file_read(struct arena *arena, const struct config *config, size_t *count);

/* Does nothing if the file has this list already. What cannot be written is logged. */
void guarded_file_write(const struct config *config, const struct guarded_tool *list, size_t count);

/* ---- policies that stalled or crashed the process, remembered after its end. The watchdog and the crash
 * handler append a line for each fault to the file `quarantine` (sandbox/deadline.h), and the next start
 * reads them. A text that ended the process QUARANTINE_FAULTS times does not run until it changes: each
 * further fault would be an outage for everybody ---- */

#define QUARANTINE_FAULTS 2u /* of one text */

/* Reads the list and opens it for the watchdog. If that fails, a warning is logged and nothing is remembered.
 */
struct quarantine *quarantine_new(const struct config *config);

/* `remove_empty`: deletes the file if it has no line. NULL is allowed. */
void quarantine_free(struct quarantine *quarantine, bool remove_empty);

/* The quarantined texts; borrowed until quarantine_keep. */
const struct policy_stall *quarantine_stalls(const struct quarantine *quarantine, size_t *count);

/* Removes the texts that have changed in `policies`, and logs which quarantine ends and which texts stay. */
void quarantine_keep(struct quarantine *quarantine, const struct policy_set *policies);

/* Writes "quarantined": the files of `policies` that do not run, for an operator: they have file names. */
void quarantine_write_status(const struct quarantine *quarantine, struct json_out *out,
                             const struct policy_set *policies);

/* ---- what no confined process that starts from now on reads by default: configuration, policies, the files
 * of secrets, other users' credentials, the state folder, the sockets, and the paths `more`. Looks for
 * ${file:…} also in the texts of the policies, since upstreams start before these are loaded ---- */

void hidden_paths_apply(struct loop *loop, const struct config *config, const char *const *more,
                        size_t count);

#endif
