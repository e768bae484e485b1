/* What an operator does about a reason for which Redis is away: the reason's own words tell. */
#ifndef TOOLGATE_LEDGER_MEND_H
#define TOOLGATE_LEDGER_MEND_H

#include <stddef.h>

/* The reason, and behind it the mend where there is one. */
void mend_add(const char *why, char *out, size_t size);

#endif
