/*
 * What the user of a client has answered to the questions of check hooks (ask): the same question in the same
 * call is then satisfied, or refused as `declined`.
 */
#ifndef TOOLGATE_GATE_CONSENT_H
#define TOOLGATE_GATE_CONSENT_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

#define CONSENTS_MAX 8u /* questions of one call: several policies may ask, each its own */

struct arena;
struct policy_outcome;

struct consent {
    struct str question; /* as the hook has put it */
    struct str choice;   /* that was taken; empty: none */
    bool given;          /* it was the first one, or yes */
};

/* Turns a question that was answered into a pass, or into a refusal with the code "declined". */
void consent_apply(struct arena *arena, const struct consent *consents, size_t count,
                   struct policy_outcome *outcome);

#endif
