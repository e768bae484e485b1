/*
 * What a server has against our AUTH, without our password: of a command that
 * it does not know Redis repeats the arguments, cut at 128 bytes.
 */
#ifndef TOOLGATE_LEDGER_REDIS_REDACT_H
#define TOOLGATE_LEDGER_REDIS_REDACT_H

#include "base/str.h"

/* `password` may be empty. */
void redis_redact(const char *said, struct str password, char *out, size_t size);

#endif
