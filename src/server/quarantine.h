/*
 * Files that stalled the process, remembered over its end: the watchdog
 * writes them down before it ends the process, the next start reads them, and
 * none of them runs until its text is another.
 *
 * The file is `quarantine` in the configuration's `state`, else in systemd's
 * STATE_DIRECTORY; where there is neither, the socket's name with
 * ".quarantine" after it. One line each: "<hash of the text> <file>".
 */
#ifndef TOOLGATE_SERVER_QUARANTINE_H
#define TOOLGATE_SERVER_QUARANTINE_H

#include "config/config.h"

#define QUARANTINE_FILE_MAX_BYTES 65536u /* read at most */
#define QUARANTINE_MAX            256u   /* files */

struct quarantine;

/* Reads what is there and opens it for the watchdog. A file that can't be had is said in the log: then
 * nothing is remembered, and that is all. */
struct quarantine *quarantine_new(const struct config *config);

/* `ours`: a file without a line goes with the daemon. NULL is fine. */
void quarantine_free(struct quarantine *quarantine, bool ours);

const struct policy_stall *quarantine_stalls(const struct quarantine *quarantine, size_t *count);
const char *quarantine_path(const struct quarantine *quarantine);

/* Only these hold now: whatever else is in the file is struck out, and each is said in the log. */
void quarantine_keep(struct quarantine *quarantine, const struct policy_stall *holding, size_t count);

#endif
