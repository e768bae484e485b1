/* The tables behind words.h; lua/ledger/session.lua has the numbers of codes, outcomes and of the labels it
 * picks. */
#include "ledger/words.h"

static const struct str codes[] = {
    STR(""),
    STR("retry_budget_exceeded"),
    STR("same_call"),
    STR("loop"),
    STR("cycle"),
    STR("transient_budget"),
    STR("duplicate_in_step"),
    STR("already_broken"),
    STR("poll_budget"),
    STR("calls_per_turn"),
    STR("calls_per_session"),
    STR("cost_per_turn"),
    STR("cost_per_session"),
    STR("seconds_per_turn"),
    STR("llm_gave_up"),
    STR("too_soon"),
};

static const struct str outcomes[] = {
    STR(""),
    STR("no_retry"),
    STR("success"),
    STR("redundant"),
    STR("exhausted"),
    STR("llm_gave_up"),
    STR("fabricated_id_on_retry"),
};

static const struct str labels[] = {
    STR("unknown"),
    STR("ok"),
    STR("partial_data"),
    STR("semantic_garbage"),
    STR("schema_mismatch"),
    STR("tool_error"),
    STR("transient"),
    STR("invalid_arguments"),
    STR("fabricated_id"),
    STR("unknown_tool"),
    STR("forbidden"),
    STR("policy_error"),
    STR("loop"),
    STR("retry_budget"),
    STR("unavailable"),
    STR("need_user_input"),
    STR("agent_runs_this"),
    STR("cancelled"),
    STR("ask"),
    STR("refused"),
};

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

struct str word_code(uint8_t code)
{
    return code < COUNT(codes) ? codes[code] : STR_NONE;
}

struct str word_outcome(uint8_t outcome)
{
    return outcome < COUNT(outcomes) ? outcomes[outcome] : STR_NONE;
}

struct str word_label(uint8_t label)
{
    return labels[label < COUNT(labels) ? label : 0];
}

uint8_t word_label_number(struct str label)
{
    for (size_t i = 0; i < COUNT(labels); i++)
        if (str_eq(labels[i], label))
            return (uint8_t)i;
    return 0;
}
