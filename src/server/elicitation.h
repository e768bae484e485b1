/*
 * What a tool asks of the user while it is called (MCP: input_required): on
 * to a client that can put the question itself, and its answer back. Any
 * other client's model is told the question in words (gate/feedback.c).
 */
#ifndef TOOLGATE_SERVER_ELICITATION_H
#define TOOLGATE_SERVER_ELICITATION_H

#include "server/request.h"

/* Whether the client can be asked, and what it brings along on its second try. ERR_PARSE: answered with
 * -32602 already. */
enum err elicitation_read(struct request *request, struct call_request *call);

/* What the finished call asks of this client; NULL: nothing that it can be asked. */
const struct json *elicitation_requested(const struct request *request);

#endif
