/* Writes what a finished check, report or call answers. */
#include "gate/call_reply.h"

#include "base/arena.h"
#include "catalog/mcp_version.h"
#include "catalog/tool.h"
#include "gate/verdict.h"
#include "json/write.h"
#include "policy/policy_hooks.h"

void call_reply_check(struct json_out *out, struct call *call)
{
    const struct call_outcome *outcome = call_outcome(call);
    json_field_str(out, "callId", call_id(call));
    if (outcome->alias.len) /* the agent runs the tool by its present name */
        json_field_str(out, "tool", call_tool(call)->name);
    json_field_optional(out, "arguments", outcome->arguments);
    json_field_optional_str(out, "text", outcome->feedback.len ? outcome->feedback : outcome->advice);
    json_field_optional_str(out, "advice", outcome->advice);
    if (outcome->traces) {
        const struct call_trace *traces = call_outcome(call)->traces;
        json_field_open(out, "trace", '[');
        for (size_t i = 0; i < call_outcome(call)->trace_count; i++) {
            json_open(out, '{');
            json_field_text(out, "stage", traces[i].stage);
            json_field_str(out, "decision", traces[i].decision);
            json_key(out, "us");
            json_put_double(out, (double)traces[i].ns / 1000.0);
            json_close(out, '}');
        }
        json_close(out, ']');
    }
}

void call_reply_text_block(struct json_out *out, struct str text)
{
    if (!text.len)
        return;
    json_open(out, '{');
    json_field_text(out, "type", "text");
    json_field_str(out, "text", text);
    json_close(out, '}');
}

void call_reply_content(struct arena *arena, struct json_out *out, const struct call *call,
                        struct str protocol, const struct json *unsent)
{
    const struct call_outcome *outcome = call_outcome(call);
    const struct json *content = outcome->content;
    bool is_error = verdict_replaces_result(outcome->verdict);
    uint32_t count = !is_error && json_is(content, JSON_ARRAY) ? content->len : 0;
    json_field_open(out, "content", '[');
    for (uint32_t i = 0; i < count; i++)
        json_put(out, mcp_version_content(arena, protocol, &content->items[i]));
    if (unsent && !count)
        call_reply_text_block(out, json_to_str(arena, unsent));
    if (!is_error)
        call_reply_text_block(out, outcome->advice);
    else
        call_reply_text_block(out, outcome->feedback.len ? outcome->feedback : outcome->verdict->detail);
    json_close(out, ']');
}

void call_reply_report(struct json_out *out, const struct call *call)
{
    json_field_optional_str(out, "text", call_outcome(call)->feedback);
    json_field_optional_str(out, "advice", call_outcome(call)->advice);
    call_reply_content(NULL, out, call, STR_NONE, NULL);
}

/* ---- the user's answers: only the very question that was answered counts, a hook that asks another one asks
 * again
 * ---- */

void consent_apply(struct arena *arena, const struct consent *consents, size_t count,
                   struct policy_outcome *outcome)
{
    for (size_t i = 0; outcome->kind == OUTCOME_ASK && i < count; i++) {
        if (!str_eq(consents[i].question, outcome->detail))
            continue;
        if (consents[i].given)
            outcome->kind = OUTCOME_PASS;
        else {
            outcome->kind = OUTCOME_REFUSE;
            outcome->code = STR_LIT("declined");
            outcome->detail =
                consents[i].choice.len
                    ? arena_printf(arena, "the user was asked \"" STR_FMT "\" and chose \"" STR_FMT "\"",
                                   STR_ARG(consents[i].question), STR_ARG(consents[i].choice))
                : consents[i].by_operator
                    ? arena_printf(arena, "an operator was asked \"" STR_FMT "\" and denied it",
                                   STR_ARG(consents[i].question))
                    : arena_printf(arena, "the user was asked \"" STR_FMT "\" and said no",
                                   STR_ARG(consents[i].question));
            outcome->hint = STR_LIT("Do not make this call again; ask the user what to do instead.");
            outcome->choices = NULL;
        }
    }
}

static bool is_yes_or_no(const struct json *choices)
{
    return !json_is(choices, JSON_ARRAY) || !choices->len;
}

static struct str choice_text(struct arena *arena, const struct json *choice)
{
    return json_is(choice, JSON_STRING) ? json_str(choice) : json_to_str(arena, choice);
}

bool consent_fits_form(struct str question, const struct json *choices)
{
    return question.len && (is_yes_or_no(choices) || choices->len <= CONSENT_CHOICES_MAX);
}

void consent_write_form(struct json_out *out, struct arena *arena, struct str question,
                        const struct json *choices)
{
    bool yes_or_no = is_yes_or_no(choices);
    json_field_str(out, "message", str_cut(question, CONSENT_TEXT_MAX_BYTES));
    json_field_open(out, "requestedSchema", '{');
    json_field_text(out, "type", "object");
    json_field_open(out, "properties", '{');
    json_field_open(out, CONSENT_PROPERTY, '{');
    json_field_text(out, "type", yes_or_no ? "boolean" : "string");
    json_field_text(out, "title", yes_or_no ? "Go on?" : "Answer");
    if (!yes_or_no) {
        json_field_open(out, "enum", '[');
        for (uint32_t i = 0; i < choices->len; i++)
            json_put_str(out, choice_text(arena, &choices->items[i]));
        json_close(out, ']');
    }
    json_close(out, '}');
    json_close(out, '}');
    json_field_raw(out, "required", STR_LIT("[\"" CONSENT_PROPERTY "\"]"));
    json_close(out, '}');
}

bool consent_read(struct arena *arena, const struct json *result, const struct json *choices,
                  struct consent *consent)
{
    struct str action = json_str(json_get_text(result, "action"));
    const struct json *given = json_get_text(json_get_text(result, "content"), CONSENT_PROPERTY);
    if (str_is(action, "decline") || str_is(action, "cancel"))
        return true;
    if (!str_is(action, "accept"))
        return false;
    if (is_yes_or_no(choices)) {
        consent->given = json_is_true(given);
        return json_is(given, JSON_BOOL);
    }
    for (uint32_t i = 0; json_is(given, JSON_STRING) && i < choices->len; i++)
        if (str_eq(choice_text(arena, &choices->items[i]), json_str(given))) {
            consent->choice = arena_dup(arena, json_str(given));
            consent->given = i == 0;
            return true;
        }
    return false;
}
