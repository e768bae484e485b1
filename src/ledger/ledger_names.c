/* Names of codes, of outcomes of repair chains, and of labels of the journal. */
#include "ledger/rules.h"

#define NAME(number, name) [number] = STR(name),
static const struct str codes[CODE_COUNT] = {SESSION_CODES(NAME)};
static const struct str outcomes[OUTCOME_COUNT] = {SESSION_OUTCOMES(NAME)};

/* Their numbers are stored, too. */
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
