/* Only the very question that was answered counts: a hook that asks another one asks again. */
#include "gate/consent.h"

#include "base/arena.h"
#include "policy/policy_hooks.h"

static void refuse(struct arena *arena, const struct consent *consent, struct policy_outcome *outcome)
{
    outcome->kind = OUTCOME_REFUSE;
    outcome->code = STR_LIT("declined");
    outcome->detail =
        consent->choice.len
            ? arena_printf(arena, "the user was asked \"" STR_FMT "\" and chose \"" STR_FMT "\"",
                           STR_ARG(consent->question), STR_ARG(consent->choice))
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
