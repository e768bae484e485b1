/* See elicitation.h. */
#include "server/elicitation.h"

#include "server/mcp_keys.h"

/* {"elicitation":{}} means forms; a client that names modes must name that one. */
static bool takes_forms(const struct request *r)
{
    const struct json *can = json_get_text(json_get_text(r->meta, MCP_CAPABILITIES_KEY), "elicitation");
    return r->modern && json_is(can, JSON_OBJECT) && (!can->len || json_get_text(can, "form"));
}

enum err elicitation_read(struct request *r, struct call_request *call)
{
    const struct json *responses = r->modern ? json_get_text(r->params, "inputResponses") : NULL;
    call->supports_elicitation = takes_forms(r);
    if (!r->modern)
        return OK;
    if (responses && !json_is(responses, JSON_OBJECT)) {
        reply_error(
            r, RPC_INVALID_PARAMS,
            "params.inputResponses: expected an object, an answer by each key of inputRequests, got %s",
            param_kind(responses));
        return ERR_PARSE;
    }
    call->input_responses = responses;
    return param_string(r, r->params, "params.", "requestState", &call->request_state);
}

static bool is_form(const struct json *asked)
{
    struct str mode = json_str(json_get_text(json_get_text(asked, "params"), "mode"));
    return str_is(json_str(json_get_text(asked, "method")), "elicitation/create") &&
           (!mode.len || str_is(mode, "form"));
}

/* All of it or nothing: half an answer is no use to the tool. */
const struct json *elicitation_requested(const struct request *r)
{
    const struct json *input = call_input_requests(r->call), *asked = json_get_text(input, "inputRequests");
    for (uint32_t i = 0; json_is(asked, JSON_OBJECT) && i < asked->len; i++)
        if (!is_form(&asked->members[i].value))
            return NULL;
    bool any = (json_is(asked, JSON_OBJECT) && asked->len) || json_get_text(input, "requestState");
    return any ? input : NULL;
}
