/*
 * Elicitation: a server asks the user. A modern server answers the call with
 * its questions. A legacy server asks while the call runs, but no model can
 * wait for that: the question becomes the answer and the call is cancelled;
 * when the client retries with the user's response, the same question gets it.
 * Responses of earlier rounds travel with the client, in requestState.
 */
#include "base/arena.h"
#include "base/log.h"
#include "json/build.h"
#include "json/canonical.h"
#include "json/parse.h"
#include "json/write.h"
#include "upstream/mcp/mcp_client_internal.h"

#define FIELDS_MAX       20u /* of a form, described in words */
#define CHOICES_MAX      20u
#define ELICITATIONS_MAX 16u /* of one call, answered ones included */
#define FIELD_MAX_BYTES  200u
#define CANCEL           "{\"action\":\"cancel\"}"
#define URL_REQUIRED     (-32042)

static void write_choices(struct buf *out, const struct json *choices)
{
    for (uint32_t i = 0; json_is(choices, JSON_ARRAY) && i < choices->len && i < CHOICES_MAX; i++) {
        const struct json *value = json_get_text(&choices->items[i], "const");
        buf_text(out, i ? ", " : ", one of ");
        json_write(out, value ? value : &choices->items[i]);
    }
}

/* size (string, required, one of "s", "m") — which one to send */
static void write_field(struct buf *out, const struct json *schema, const struct json_member *field)
{
    struct str type = str_cut(json_str(json_get_text(&field->value, "type")), FIELD_MAX_BYTES);
    struct str about = str_cut(json_str(json_get_text(&field->value, "description")), FIELD_MAX_BYTES);
    buf_printf(out, "\n- " STR_FMT " (" STR_FMT "%s", STR_ARG(str_cut(field->key, FIELD_MAX_BYTES)),
               STR_ARG(type.len ? type : STR_LIT("any")),
               json_array_has(json_get_text(schema, "required"), field->key) ? ", required" : "");
    write_choices(out, json_get_text(&field->value, "enum"));
    write_choices(out, json_get_text(&field->value, "oneOf"));
    buf_byte(out, ')');
    if (about.len)
        buf_printf(out, " — " STR_FMT, STR_ARG(about));
}

static void write_question(struct buf *out, const struct json *params)
{
    const struct json *schema = json_get_text(params, "requestedSchema");
    const struct json *fields = json_get_text(schema, "properties");
    struct str url = json_str(json_get_text(params, "url"));
    buf_text(out, out->len ? "\n" : "");
    buf_str(out, str_cut(json_str(json_get_text(params, "message")), MCP_QUOTE_MAX_BYTES / 2));
    if (url.len) {
        buf_text(out, "\n- to be opened: ");
        buf_str(out, str_cut(url, MCP_QUOTE_MAX_BYTES / 4));
    }
    for (uint32_t i = 0; json_is(fields, JSON_OBJECT) && i < fields->len && i < FIELDS_MAX; i++)
        write_field(out, schema, &fields->members[i]);
}

static void finish(struct pending_request *pending, const struct buf *question, const struct json *input)
{
    struct mcp_client *client = pending->client;
    struct upstream_call *call = mcp_request_end(pending);
    call->answer->question = str_cut(buf_view(question), MCP_QUOTE_MAX_BYTES);
    call->answer->input = call->request->can_elicit ? input : NULL;
    upstream_call_answer(call, UPSTREAM_INPUT_REQUIRED, "input_required",
                         "the server '" STR_FMT "', which %s, has a question for the user first",
                         STR_ARG(client->spec->name), upstream_call_service(call));
    call->finish(call);
}

/* {inputRequests, requestState?} in the arena. */
static const struct json *make_input(struct arena *arena, const struct json *requests,
                                     const struct json *state)
{
    struct json_member members[2] = {json_member(STR_LIT("inputRequests"), *requests)};
    struct json *input = arena_alloc(arena, sizeof(*input));
    if (state)
        members[1] = json_member(STR_LIT("requestState"), *state);
    *input = json_object(arena, members, state ? 2 : 1);
    return input;
}

bool mcp_elicitation_from_result(struct pending_request *pending, const struct json *result)
{
    const struct json *requests = json_get_text(result, "inputRequests");
    struct buf question = buf_in(pending->call->arena);
    if (!str_is(json_str(json_get_text(result, "resultType")), "input_required"))
        return false;
    if (!json_is(requests, JSON_OBJECT) || !requests->len) {
        struct upstream_call *call = mcp_request_end(pending);
        call->answer->after_s = 1;
        upstream_call_answer(call, UPSTREAM_TRANSIENT, "come_again",
                             "the server '" STR_FMT "', which %s, is busy and asks for a retry",
                             STR_ARG(pending->client->spec->name), upstream_call_service(call));
        call->finish(call);
        return true;
    }
    for (uint32_t i = 0; i < requests->len; i++) {
        const struct json *request = &requests->members[i].value;
        if (!str_is(json_str(json_get_text(request, "method")), "elicitation/create"))
            return false;
        if (question.len < MCP_QUOTE_MAX_BYTES)
            write_question(&question, json_get_text(request, "params"));
    }
    finish(pending, &question,
           make_input(pending->call->arena, requests, json_get_text(result, "requestState")));
    return true;
}

/* The user has to open a page before the call can succeed. */
bool mcp_elicitation_from_error(struct pending_request *pending, const struct json *error)
{
    const struct json *pages = json_get_text(json_get_text(error, "data"), "elicitations");
    struct buf question = buf_in(pending->call->arena);
    int64_t code;
    if (!json_int(json_get_text(error, "code"), &code) || code != URL_REQUIRED ||
        !json_is(pages, JSON_ARRAY) || !pages->len)
        return false;
    for (uint32_t i = 0; i < pages->len && question.len < MCP_QUOTE_MAX_BYTES; i++)
        write_question(&question, &pages->items[i]);
    finish(pending, &question, NULL);
    return true;
}

static void ask_user(struct pending_request *pending, struct str name, const struct json *params,
                     const struct json *responses)
{
    struct arena *arena = pending->call->arena;
    struct buf question = buf_in(arena);
    struct json_member request[2] = {
        json_member(STR_LIT("method"), json_string(STR_LIT("elicitation/create"))),
        json_member(STR_LIT("params"), *params)};
    struct json_member named = json_member(name, json_object(arena, request, 2));
    struct json requests = json_object(arena, &named, 1), state;
    write_question(&question, params);
    state = json_string(json_to_str(arena, responses));
    const struct json *input = make_input(arena, &requests, responses->len ? &state : NULL);
    mcp_request_cancel(pending->client, pending->id, "the user is asked first");
    finish(pending, &question, input);
}

void mcp_elicitation_request(struct mcp_client *client, uint64_t about, const struct mcp_message *message)
{
    static const struct str without[] = {STR("_meta")};
    struct pending_request *pending = pending_subject(client, about);
    struct json_error error;
    struct json params;
    if (!pending || ++pending->elicitations > ELICITATIONS_MAX) {
        mcp_client_ignore(client, "an elicitation for no call, for one of several, or one too many",
                          STR_NONE);
        mcp_request_respond(client, message->id, "result", STR_LIT(CANCEL));
        return;
    }
    struct arena *arena = pending->call->arena;
    bool read = mcp_request_read(arena, arena_dup(arena, message->params), &params, &error);
    if (!read || !str_trim(json_str(json_get_text(&params, "message"))).len) {
        mcp_request_respond(client, message->id, "error",
                            read
                                ? STR_LIT("{\"code\":-32602,\"message\":\"Invalid params: expected a "
                                          "question to the user in `message`\"}")
                                : STR_LIT("{\"code\":-32602,\"message\":\"Invalid params: no valid JSON\"}"));
        return;
    }
    struct buf name = buf_in(arena); /* equal questions have equal names, in every round */
    buf_text(&name, "question-");
    buf_hex64(&name, json_fingerprint(arena, &params, without, 1).low);
    const struct upstream_request *request = pending->call->request;
    const struct json *now = request->input_responses;
    struct json responses; /* the user's, of earlier rounds and of this one */
    if (!request->request_state.len ||
        json_parse(arena, request->request_state, NULL, &responses, &error) != OK ||
        responses.type != JSON_OBJECT)
        responses = json_object(arena, NULL, 0);
    for (uint32_t i = 0; json_is(now, JSON_OBJECT) && i < now->len; i++)
        responses = json_with(arena, &responses, now->members[i].key, now->members[i].value);
    const struct json *response = json_get(&responses, buf_view(&name));
    if (response && json_str(json_get_text(response, "action")).len) {
        mcp_request_respond(client, message->id, "result", json_to_str(arena, response));
        return;
    }
    mcp_request_respond(client, message->id, "result", STR_LIT(CANCEL));
    ask_user(pending, buf_view(&name), &params, &responses);
}
