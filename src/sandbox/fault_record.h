/*
 * Writes down which file's policy stalled or crashed the process, in the
 * instant before it ends: one line, from a signal handler.
 *
 *   <text: 16 hex> <stall|crash> <file>
 */
#ifndef TOOLGATE_SANDBOX_FAULT_RECORD_H
#define TOOLGATE_SANDBOX_FAULT_RECORD_H

#include <stdint.h>

#define FAULT_RECORD_STACK_BYTES 65536u /* for the handler: the usual stack may have overflowed */

/* The file to write to, open for appending; 0: none. With a file, SIGSEGV, SIGBUS, SIGABRT, SIGILL and SIGFPE
 * are caught while a policy runs, written down, and end the process as they would have. */
void fault_record_open(int fd);

/* Async-signal-safe. */
void fault_record_write(const char *kind, uint64_t text, const char *file);

#endif
