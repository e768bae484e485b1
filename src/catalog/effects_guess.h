/*
 * Guesses from a tool's name what a call of it may change. Only for tools whose policy and annotations do not
 * say it.
 */
#ifndef TOOLGATE_CATALOG_EFFECTS_GUESS_H
#define TOOLGATE_CATALOG_EFFECTS_GUESS_H

#include "policy/policy.h"

/* By the verb that the name begins with: "get_events", "deleteFile", "calendar__create-event" and
 * "users.list". EFFECTS_UNDECLARED: it begins with none of the table, or with a verb that reads while a later
 * word changes something. */
enum policy_effects effects_guess(struct str name);

#endif
