/* Names of codes, of outcomes of repair chains, and of labels of the journal. Their numbers are stored, so
 * these tables only ever grow at their end. */
#include "ledger/rules.h"

static const struct str codes[CODE_COUNT] = {
    [CODE_NONE] = STR(""),
    [CODE_RETRY_BUDGET] = STR("retry_budget_exceeded"),
    [CODE_SAME_CALL] = STR("same_call"),
    [CODE_LOOP] = STR("loop"),
    [CODE_CYCLE] = STR("cycle"),
    [CODE_TRANSIENT_BUDGET] = STR("transient_budget"),
    [CODE_DUPLICATE_IN_STEP] = STR("duplicate_in_step"),
    [CODE_ALREADY_BROKEN] = STR("already_broken"),
    [CODE_POLL_BUDGET] = STR("poll_budget"),
    [CODE_CALLS_PER_TURN] = STR("calls_per_turn"),
    [CODE_CALLS_PER_SESSION] = STR("calls_per_session"),
    [CODE_COST_PER_TURN] = STR("cost_per_turn"),
    [CODE_COST_PER_SESSION] = STR("cost_per_session"),
    [CODE_SECONDS_PER_TURN] = STR("seconds_per_turn"),
    [CODE_LLM_GAVE_UP] = STR("llm_gave_up"),
    [CODE_TOO_SOON] = STR("too_soon"),
    [CODE_SAME_FAILURE] = STR("same_failure"),
    [CODE_RATE_LIMIT] = STR("rate_limit"),
    [CODE_WRITES_PER_TURN] = STR("writes_per_turn"),
};

static const struct str outcomes[OUTCOME_COUNT] = {
    [OUTCOME_NONE] = STR(""),
    [OUTCOME_NO_RETRY] = STR("no_retry"),
    [OUTCOME_SUCCESS] = STR("success"),
    [OUTCOME_REDUNDANT] = STR("redundant"),
    [OUTCOME_EXHAUSTED] = STR("exhausted"),
    [OUTCOME_LLM_GAVE_UP] = STR("llm_gave_up"),
    [OUTCOME_FABRICATED_ON_RETRY] = STR("fabricated_id_on_retry"),
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

struct str ledger_code_name(enum session_code code)
{
    return (unsigned)code < CODE_COUNT ? codes[code] : STR_NONE;
}

struct str ledger_outcome_name(enum session_outcome outcome)
{
    return (unsigned)outcome < OUTCOME_COUNT ? outcomes[outcome] : STR_NONE;
}

struct str ledger_label_name(uint8_t label)
{
    return labels[label < COUNT(labels) ? label : 0];
}

uint8_t ledger_label_number(struct str label)
{
    for (size_t i = 0; i < COUNT(labels); i++)
        if (str_eq(labels[i], label))
            return (uint8_t)i;
    return 0;
}
