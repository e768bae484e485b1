/*
 * Checks that nobody reports. A program that checks its calls and never reports them has no budgets, no loop
 * detection and no result hooks, and nothing else would tell it.
 */
#ifndef TOOLGATE_SERVER_UNREPORTED_H
#define TOOLGATE_SERVER_UNREPORTED_H

#include "base/str.h"

#include <stdint.h>

struct client;

#define UNREPORTED_MAX 8u /* checks in a row without a report; from the next one on, each verdict says so */

struct unreported {      /* of a client; initially zero */
    uint32_t count;      /* since its last report; those of one step, which run in parallel, are one */
    uint64_t step;       /* hash of the step that the last one named; 0: none */
    uint32_t next_noted; /* logged again at this count, twice the one before */
};

/* A check has passed. Returns the count if it is beyond UNREPORTED_MAX, else 0. */
uint32_t unreported_add(struct client *client, struct str step);

/* The client has reported a call. */
void unreported_clear(struct client *client);

#endif
