/* Only the very question that was answered counts: a hook that asks another one asks again. */
#include "gate/consent.h"

#include "base/arena.h"
#include "json/write.h"
#include "policy/policy_hooks.h"

static void refuse(struct arena *arena, const struct consent *consent, struct policy_outcome *outcome)
{
    outcome->kind = OUTCOME_REFUSE;
    outcome->code = STR_LIT("declined");
    outcome->detail =
        consent->choice.len
            ? arena_printf(arena, "the user was asked \"" STR_FMT "\" and chose \"" STR_FMT "\"",
                           STR_ARG(consent->question), STR_ARG(consent->choice))
        : consent->by_operator ? arena_printf(arena, "an operator was asked \"" STR_FMT "\" and denied it",
                                              STR_ARG(consent->question))
                               : arena_printf(arena, "the user was asked \"" STR_FMT "\" and said no",
                                              STR_ARG(consent->question));
    outcome->hint = STR_LIT("Do not make this call again; ask the user what to do instead.");
    outcome->choices = NULL;
}

void consent_apply(struct arena *arena, const struct consent *consents, size_t count,
                   struct policy_outcome *outcome)
{
    for (size_t i = 0; outcome->kind == OUTCOME_ASK && i < count; i++) {
        if (!str_eq(consents[i].question, outcome->detail))
            continue;
        if (consents[i].given)
            outcome->kind = OUTCOME_PASS;
        else
            refuse(arena, &consents[i], outcome);
    }
}

/* ---- as a form ---- */

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
