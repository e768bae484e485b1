/*
 * Writes down which file's policy stalled or crashed the process, in the
 * instant before it ends: one line, from a signal handler.
 *
 *   <text: 16 hex> <time: seconds since 1970> <caller: 16 hex> <stall|crash> <file>
 *
 * The caller is a hash of user and session, or zero while a generation loads:
 * then nobody's arguments are to blame.
 */
#ifndef TOOLGATE_SANDBOX_FAULT_RECORD_H
#define TOOLGATE_SANDBOX_FAULT_RECORD_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define FAULT_RECORD_STACK_BYTES 65536u /* for the handler: the usual stack may have overflowed */

/* Whose call a policy runs for; all zero outside of calls. */
struct fault_caller {
    uint32_t uid;
    struct str session;
    bool is_call;
};

/* The file to write to, open for appending; 0: none. With a file, SIGSEGV, SIGBUS, SIGABRT, SIGILL and SIGFPE
 * are caught while a policy runs, written down, and end the process as they would have. */
void fault_record_open(int fd);

/* While a generation loads, also while its examples run. */
void fault_record_loading(bool on);

/* Async-signal-safe. */
void fault_record_write(const char *kind, uint64_t text, const struct fault_caller *caller, const char *file);

#endif
