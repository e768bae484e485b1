/*
 * Policies that stalled the process, remembered after its end: the watchdog
 * writes them down and ends the process; the next start reads them, and none
 * of them runs until its file changes.
 *
 * The file is `quarantine` in the configuration's `state` or in systemd's
 * STATE_DIRECTORY, else the socket's name with ".quarantine" after it. Each
 * line is "<hash of the policy's text> <file>".
 */
#ifndef TOOLGATE_SERVER_QUARANTINE_H
#define TOOLGATE_SERVER_QUARANTINE_H

#include "config/config.h"
#include "policy/policy_set.h"

#define QUARANTINE_FILE_MAX_BYTES 65536u /* read from the file's end */
#define QUARANTINE_MAX            256u   /* files */

struct quarantine;

/* Reads the list and opens it for the watchdog. If that fails, a warning is logged and nothing is remembered.
 */
struct quarantine *quarantine_new(const struct config *config);

/* `remove_empty`: deletes the file if it has no line. NULL is allowed. */
void quarantine_free(struct quarantine *quarantine, bool remove_empty);

const struct policy_stall *quarantine_stalls(const struct quarantine *quarantine, size_t *count);
const char *quarantine_path(const struct quarantine *quarantine);

/* Keeps only these policies in the list. Logs each that stays and each that is removed. */
void quarantine_keep(struct quarantine *quarantine, const struct policy_stall *stalls, size_t count);

#endif
