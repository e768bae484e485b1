/*
 * Policies that stalled or crashed the process, remembered after its end. The watchdog and the crash handler
 * append a line for each fault (sandbox/deadline.h), and the next start reads them. A text that ended the
 * process QUARANTINE_FAULTS times does not run until it changes: each further fault would be an outage for
 * everybody.
 *
 * The file is `quarantine` in the configuration's `state` or in systemd's STATE_DIRECTORY, else the socket's
 * name with ".quarantine" after it.
 */
#ifndef TOOLGATE_SERVER_QUARANTINE_H
#define TOOLGATE_SERVER_QUARANTINE_H

#include "policy/config.h"
#include "policy/policy_set.h"

#define QUARANTINE_FILE_MAX_BYTES 65536u /* read from the file's end */
#define QUARANTINE_MAX            256u   /* texts, those whose faults are newest */
#define QUARANTINE_FAULTS         2u     /* of one text */

struct json_out;
struct quarantine;

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

#endif
