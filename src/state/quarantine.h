/*
 * Policies that stalled or crashed the process, remembered after its end: the
 * watchdog and the crash handler write a line each (sandbox/fault_record.h),
 * and the next start reads them. What is quarantined does not run.
 *
 * One fault while a file loads is enough: no caller has a part in it, so each
 * start would end in the same way, until the text changes. A fault during a
 * call may be due to the arguments of one caller, who must not take the tool
 * from all others: it takes callers of several sessions, and lasts a day. Many
 * faults of one session are enough, too, as each is an outage for everybody.
 *
 * The file is `quarantine` in the configuration's `state` or in systemd's
 * STATE_DIRECTORY, else the socket's name with ".quarantine" after it. A line
 * "<hash of the text> <file>", of version 1, is a fault while loading.
 */
#ifndef TOOLGATE_STATE_QUARANTINE_H
#define TOOLGATE_STATE_QUARANTINE_H

#include "config/config.h"
#include "policy/policy_set.h"

#define QUARANTINE_FILE_MAX_BYTES 65536u /* read from the file's end */
#define QUARANTINE_MAX            256u   /* faults */
#define QUARANTINE_SESSIONS       3u     /* whose calls must have stalled or crashed the process */
#define QUARANTINE_FAULTS         10u    /* during calls of fewer sessions */
#define QUARANTINE_LASTS_S        86400  /* a fault during a call counts for so long */

struct quarantine;

/* What is remembered of one text of a file. */
struct quarantine_faults {
    struct str file;
    uint64_t text;
    size_t count, sessions;  /* during calls, and of how many sessions */
    bool in_load, crashed;   /* one while it was loaded; one was a signal */
    int64_t last_s, until_s; /* 1970; when too few are left to count, 0: only if the text changes */
    bool quarantined;
};

/* Reads the list and opens it for the watchdog. If that fails, a warning is logged and nothing is remembered.
 */
struct quarantine *quarantine_new(const struct config *config);

/* `remove_empty`: deletes the file if it has no line. NULL is allowed. */
void quarantine_free(struct quarantine *quarantine, bool remove_empty);

/* The quarantined texts, as of now. */
const struct policy_stall *quarantine_stalls(struct quarantine *quarantine, size_t *count);
const char *quarantine_path(const struct quarantine *quarantine);

/* The texts with a fault, at most `most` of them; returns how many. */
size_t quarantine_list(const struct quarantine *quarantine, struct quarantine_faults *out, size_t most);

/* Of the texts that quarantine_stalls named, keeps these; forgets what is too old. Logs each that stays and
 * each that is removed. */
void quarantine_keep(struct quarantine *quarantine, const struct policy_stall *stalls, size_t count);

/* Seconds until a text leaves the quarantine by itself; -1: none does. */
int64_t quarantine_next_s(const struct quarantine *quarantine);

/* "it stalled the process while it was loaded": how `faults` came about, for a person. */
struct str quarantine_sentence(struct arena *arena, const struct quarantine_faults *faults);

#endif
