/* toolgate's own keys of params._meta: one table, and what is said of a key that has no effect. */
#ifndef TOOLGATE_SERVER_GATE_KEYS_H
#define TOOLGATE_SERVER_GATE_KEYS_H

#include "server/problems.h"

#include <stdbool.h>

struct request;

#define GATE_NOTICES_MAX 4u /* of a request; further mistakes show once these are corrected */

/* Looks for unknown keys, keys beside _meta and an empty session. For a method of toolgate/, which a program
 * calls, the first is an error: replies and returns false. Else they become request->notices: an error would
 * end a model's run. */
bool gate_keys_check(struct request *request);

/* Adds to request->notices, whatever the method; the text lives in the request's arena. */
void gate_keys_notice(struct request *request, enum problem_kind kind, struct str text);

#endif
