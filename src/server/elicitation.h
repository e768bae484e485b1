/*
 * Questions of a tool to the user during a call (MCP: input_required). They go
 * to a client that can put them to its user, and its answers back. The model
 * of any other client reads the question in the result (gate/feedback.c).
 */
#ifndef TOOLGATE_SERVER_ELICITATION_H
#define TOOLGATE_SERVER_ELICITATION_H

#include "server/request.h"

struct call_request;

/* Sets whether the client supports elicitation, and its answers to earlier questions. ERR_PARSE after an
 * error reply. */
enum err elicitation_read(struct request *request, struct call_request *call);

/* The finished call's questions that this client can answer; NULL: none. */
const struct json *elicitation_requested(const struct request *request);

#endif
