/*
 * A policy's question (ask) put to the user of a client of the legacy era that declared `elicitation`:
 *
 *   client               daemon
 *   tools/call       ─▶  the check hook asks
 *                    ◀─  elicitation/create, whose schema has one property: the choices, or yes and no
 *   its user's answer ─▶ the same call again, with that question answered
 *                    ◀─  the result; or the refusal `declined`
 *
 * toolgate/check asks likewise, of an agent that runs its own tools: then the check's reply follows.
 *
 * A client that does not answer within ELICITATION_MS, answers with an error or with what fits no schema
 * gets the question as text, with an approval, as any other client does.
 */
#ifndef TOOLGATE_SERVER_ELICITATION_H
#define TOOLGATE_SERVER_ELICITATION_H

#include "gate/call.h"
#include "server/request.h"

#define ELICITATION_MS 300000u /* for a person to read and decide */

/* Before a call that may be asked about starts: keeps its request, which the call after the answer repeats.
 */
void elicitation_keep(struct request *request, const struct call_request *call);

/* The request's call has finished. True: its question is on its way to the user, and the request waits. */
bool elicitation_begin(struct request *request);

/* The client has cancelled the call: its user need not answer any more. No effect on any other request. */
void elicitation_take_back(struct request *request);

/* A message without a method: true if it answers one of this client's questions. */
bool elicitation_answer(struct client *client, const struct json *message);

#endif
