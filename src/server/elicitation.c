/* Reads the client's capability and answers, and picks the questions that it can put to its user. */
#include "server/elicitation.h"

#include "server/mcp_keys.h"

enum err elicitation_read(struct request *r, struct call_request *call)
{
    const struct json *responses = json_get_text(r->params, "inputResponses");
    const struct json *mode = json_get_text(json_get_text(r->meta, MCP_CAPABILITIES_KEY), "elicitation");
    if (!r->modern)
        return OK;
    /* {"elicitation":{}} means forms; a client that lists modes must list that one. */
    call->supports_elicitation = json_is(mode, JSON_OBJECT) && (!mode->len || json_get_text(mode, "form"));
    if (responses && !json_is(responses, JSON_OBJECT)) {
        reply_error(
            r, RPC_INVALID_PARAMS,
            "params.inputResponses: expected an object with an answer for each key of inputRequests, got %s",
            param_kind(responses));
        return ERR_PARSE;
    }
    call->input_responses = responses;
    return param_string(r, r->params, "params.", "requestState", &call->request_state);
}

/* All questions or none: the tool cannot use half of the answers. */
const struct json *elicitation_requested(const struct request *r)
{
    const struct json *input = call_outcome(r->call)->input_requests;
    const struct json *requests = json_get_text(input, "inputRequests");
    uint32_t count = json_is(requests, JSON_OBJECT) ? requests->len : 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct json *request = &requests->members[i].value;
        struct str mode = json_str(json_get_text(json_get_text(request, "params"), "mode"));
        if (!str_is(json_str(json_get_text(request, "method")), "elicitation/create") ||
            (mode.len && !str_is(mode, "form")))
            return NULL;
    }
    return count || json_get_text(input, "requestState") ? input : NULL;
}
