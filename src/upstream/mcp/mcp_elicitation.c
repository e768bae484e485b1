/*
 * A server that wants to know something of the user. The modern way it answers
 * the call with its questions; the legacy way it asks while the call runs, which
 * no model can wait for: its question becomes the answer, the call is
 * cancelled, and when it comes again with the user's answer, that is given
 * where the same question is asked. What was answered in earlier rounds travels
 * with the client, as requestState.
 */
#include "base/arena.h"
#include "base/log.h"
#include "json/build.h"
#include "json/canonical.h"
#include "json/parse.h"
#include "json/write.h"
#include "upstream/mcp/mcp_client_internal.h"

#define FIELDS_MAX      20u /* of a form, told in words */
#define CHOICES_MAX     20u
#define QUESTIONS_MAX   16u /* that one call may ask, answered ones counted */
#define FIELD_MAX_BYTES 200u
#define CANCEL          "{\"action\":\"cancel\"}"
#define URL_REQUIRED    (-32042)

/* ---- in words ------------------------------------------------------------------- */

static struct str short_text(const struct json *object, const char *key)
{
    return str_cut(json_str(json_get_text(object, key)), FIELD_MAX_BYTES);
}

static void tell_choices(struct buf *out, const struct json *choices)
{
    for (uint32_t i = 0; json_is(choices, JSON_ARRAY) && i < choices->len && i < CHOICES_MAX; i++) {
        const struct json *choice = &choices->items[i];
        const struct json *value = json_get_text(choice, "const");
        buf_text(out, i ? ", " : ", one of ");
        json_write(out, value ? value : choice);
    }
}

/* size (string, required, one of "s", "m") — which one to send */
static void tell_field(struct buf *out, const struct json *schema, const struct json_member *field)
{
    struct str type = short_text(&field->value, "type"), about = short_text(&field->value, "description");
    buf_text(out, "\n- ");
    buf_str(out, str_cut(field->key, FIELD_MAX_BYTES));
    buf_text(out, " (");
    buf_str(out, type.len ? type : STR_LIT("any"));
    buf_text(out, json_array_has(json_get_text(schema, "required"), field->key) ? ", required" : "");
    tell_choices(out, json_get_text(&field->value, "enum"));
    tell_choices(out, json_get_text(&field->value, "oneOf"));
    buf_byte(out, ')');
    if (about.len) {
        buf_text(out, " — ");
        buf_str(out, about);
    }
}

static void tell_question(struct buf *out, const struct json *params)
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
        tell_field(out, schema, &fields->members[i]);
}

/* ---- the call ends with a question ------------------------------------------------- */

static void finish_asking(struct mcp_client *mcp, struct pending *pending, const struct buf *question,
                          const struct json *input)
{
    struct upstream_call *run = mcp_call_end(mcp, pending);
    run->answer->question = str_cut(buf_view(question), MCP_QUOTE_MAX_BYTES);
    run->answer->input = run->request->can_elicit ? input : NULL;
    upstream_call_answer(run, UPSTREAM_INPUT_REQUIRED, "input_required",
                         "the server '" STR_FMT
                         "', which runs this tool, wants to know something of the user first",
                         STR_ARG(mcp->spec->name));
    upstream_call_finish(run);
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

static void come_again(struct mcp_client *mcp, struct pending *pending)
{
    struct upstream_call *run = mcp_call_end(mcp, pending);
    run->answer->after_s = 1;
    upstream_call_answer(run, UPSTREAM_TRANSIENT, "come_again",
                         "the server '" STR_FMT
                         "', which runs this tool, has no time now and asks to be called again",
                         STR_ARG(mcp->spec->name));
    upstream_call_finish(run);
}

bool mcp_elicitation_from_result(struct mcp_client *mcp, struct pending *pending, const struct json *result)
{
    const struct json *requests = json_get_text(result, "inputRequests");
    const struct json *state = json_get_text(result, "requestState");
    struct arena *arena = pending->run->arena;
    struct buf question = buf_in(arena);
    if (!str_is(json_str(json_get_text(result, "resultType")), "input_required"))
        return false;
    if (!json_is(requests, JSON_OBJECT) || !requests->len) {
        come_again(mcp, pending);
        return true;
    }
    for (uint32_t i = 0; i < requests->len; i++) {
        const struct json *request = &requests->members[i].value;
        if (!str_is(json_str(json_get_text(request, "method")), "elicitation/create"))
            return false;
        if (question.len < MCP_QUOTE_MAX_BYTES)
            tell_question(&question, json_get_text(request, "params"));
    }
    finish_asking(mcp, pending, &question, make_input(arena, requests, state));
    return true;
}

/* The user is to open a page first; then the same call is fine. */
bool mcp_elicitation_from_error(struct mcp_client *mcp, struct pending *pending, const struct json *error)
{
    const struct json *pages = json_get_text(json_get_text(error, "data"), "elicitations");
    struct buf question = buf_in(pending->run->arena);
    int64_t code;
    if (!json_int(json_get_text(error, "code"), &code) || code != URL_REQUIRED ||
        !json_is(pages, JSON_ARRAY) || !pages->len)
        return false;
    for (uint32_t i = 0; i < pages->len && question.len < MCP_QUOTE_MAX_BYTES; i++)
        tell_question(&question, &pages->items[i]);
    finish_asking(mcp, pending, &question, NULL);
    return true;
}

/* ---- legacy: asked while the call runs --------------------------------------------- */

/* The same question has the same name, in every round. */
static struct str name_of(struct arena *arena, const struct json *params)
{
    static const struct str without[] = {STR("_meta")};
    struct buf name = buf_in(arena);
    buf_text(&name, "question-");
    buf_hex64(&name, json_fingerprint(arena, params, without, 1).low);
    return buf_view(&name);
}

/* All that the user has answered so far: of earlier rounds, and of this one. */
static struct json answers_so_far(struct arena *arena, const struct upstream_request *request)
{
    struct json_error fault;
    struct json all;
    if (!request->request_state.len || json_parse(arena, request->request_state, NULL, &all, &fault) != OK ||
        all.type != JSON_OBJECT)
        all = json_object(arena, NULL, 0);
    const struct json *now = request->input_responses;
    for (uint32_t i = 0; json_is(now, JSON_OBJECT) && i < now->len; i++)
        all = json_with(arena, &all, now->members[i].key, now->members[i].value);
    return all;
}

static void ask_the_user(struct mcp_client *mcp, struct pending *pending, struct str name,
                         const struct json *params, const struct json *answers)
{
    struct arena *arena = pending->run->arena;
    struct buf question = buf_in(arena), text = buf_in(arena);
    struct json_member request[2] = {
        json_member(STR_LIT("method"), json_string(STR_LIT("elicitation/create"))),
        json_member(STR_LIT("params"), *params)};
    struct json_member named = json_member(name, json_object(arena, request, 2));
    struct json requests = json_object(arena, &named, 1), state;
    uint64_t id = pending->id;
    tell_question(&question, params);
    json_write(&text, answers);
    state = json_string(buf_view(&text));
    const struct json *input = make_input(arena, &requests, answers->len ? &state : NULL);
    mcp_call_notify_cancelled(mcp, id, "the user is asked first");
    finish_asking(mcp, pending, &question, input);
}

static void give_answer(struct mcp_client *mcp, const struct mcp_message *line, struct arena *arena,
                        const struct json *answer)
{
    struct buf text = buf_in(arena);
    json_write(&text, answer);
    mcp_client_respond(mcp, line->id, buf_view(&text));
}

static bool asks_something(const struct json *params)
{
    return str_trim(json_str(json_get_text(params, "message"))).len > 0;
}

void mcp_elicitation_request(struct mcp_client *mcp, uint64_t about, const struct mcp_message *line)
{
    struct pending *pending = mcp_notifications_subject(mcp, about);
    struct json_error fault;
    struct json params;
    if (pending && ++pending->questions > QUESTIONS_MAX)
        pending = NULL;
    if (!pending) {
        mcp_client_ignore(
            mcp, "a question to the user that is about no call, or may be about several, or one too many",
            STR_NONE);
        mcp_client_respond(mcp, line->id, STR_LIT(CANCEL));
        return;
    }
    struct arena *arena = pending->run->arena;
    if (json_parse(arena, arena_dup(arena, line->params), NULL, &params, &fault) != OK && !fault.soft) {
        mcp_client_respond_error(mcp, line->id, -32602, "Invalid params: no valid JSON");
        return;
    }
    if (!asks_something(&params)) {
        mcp_client_respond_error(mcp, line->id, -32602,
                                 "Invalid params: expected a question to the user in `message`");
        return;
    }
    struct str name = name_of(arena, &params);
    struct json answers = answers_so_far(arena, pending->run->request);
    const struct json *answer = json_get(&answers, name);
    if (answer && json_str(json_get_text(answer, "action")).len) {
        give_answer(mcp, line, arena, answer);
        return;
    }
    mcp_client_respond(mcp, line->id, STR_LIT(CANCEL));
    ask_the_user(mcp, pending, name, &params, &answers);
}
