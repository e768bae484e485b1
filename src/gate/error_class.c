/* The table of outcome classes. */
#include "gate/error_class.h"

/* Short names for the columns that hold ledger constants. */
#define ADMIT(word)  LEDGER_SO_FAR_##word
#define SETTLE(word) LEDGER_CLASS_##word

#define MORE_TOOLS "NEEDS_MORE_TOOLS"
#define FAILED     "FAILED"
#define ASK_USER   "NEED_USER_INPUT"

/* clang-format off */
static const struct error_class_info classes[CLASS_COUNT] = {
    /*                            wire name            verdict         isError  admit              settle                   coverage */
    [CLASS_OK]                = {"ok",                VERDICT_PASS,   false, ADMIT(VALID),      SETTLE(OK),              NULL},
    [CLASS_PARTIAL_DATA]      = {"partial_data",      VERDICT_PASS,   false, ADMIT(VALID),      SETTLE(PARTIAL),         MORE_TOOLS},
    [CLASS_SEMANTIC_GARBAGE]  = {"semantic_garbage",  VERDICT_REPAIR, true,  ADMIT(VALID),      SETTLE(GARBAGE),         MORE_TOOLS},
    [CLASS_SCHEMA_MISMATCH]   = {"schema_mismatch",   VERDICT_REFUSE, true,  ADMIT(VALID),      SETTLE(SCHEMA_MISMATCH), FAILED},
    [CLASS_TRANSIENT]         = {"transient",         VERDICT_WAIT,   true,  ADMIT(VALID),      SETTLE(TRANSIENT),       NULL},
    [CLASS_TOOL_ERROR]        = {"tool_error",        VERDICT_REPAIR, true,  ADMIT(VALID),      SETTLE(TOOL_ERROR),      FAILED},
    [CLASS_INVALID_ARGUMENTS] = {"invalid_arguments", VERDICT_REPAIR, true,  ADMIT(INVALID),    SETTLE(INVALID),         NULL},
    [CLASS_FABRICATED_ID]     = {"fabricated_id",     VERDICT_REFUSE, true,  ADMIT(FABRICATED), SETTLE(FABRICATED),      NULL},
    [CLASS_UNKNOWN_TOOL]      = {"unknown_tool",      VERDICT_REFUSE, true,  ADMIT(REFUSED),    SETTLE(RELEASED),        NULL},
    [CLASS_FORBIDDEN]         = {"forbidden",         VERDICT_REFUSE, true,  ADMIT(REFUSED),    SETTLE(REFUSED),         NULL},
    [CLASS_AGENT_RUNS_THIS]   = {"agent_runs_this",   VERDICT_REFUSE, true,  ADMIT(REFUSED),    SETTLE(RELEASED),        NULL},
    [CLASS_RETRY_BUDGET]      = {"retry_budget",      VERDICT_REFUSE, true,  ADMIT(REFUSED),    SETTLE(RELEASED),        NULL},
    [CLASS_LOOP]              = {"loop",              VERDICT_REFUSE, true,  ADMIT(REFUSED),    SETTLE(RELEASED),        NULL},
    [CLASS_POLICY_ERROR]      = {"policy_error",      VERDICT_REFUSE, true,  ADMIT(REFUSED),    SETTLE(REFUSED),         NULL},
    [CLASS_UNAVAILABLE]       = {"unavailable",       VERDICT_REFUSE, true,  ADMIT(REFUSED),    SETTLE(REFUSED),         NULL},
    [CLASS_NEED_USER_INPUT]   = {"need_user_input",   VERDICT_ASK,    true,  ADMIT(VALID),      SETTLE(RELEASED),        ASK_USER},
    [CLASS_CANCELLED]         = {"cancelled",         VERDICT_REFUSE, true,  ADMIT(VALID),      SETTLE(RELEASED),        NULL},
};
/* clang-format on */

const struct error_class_info *error_class_info(enum error_class class)
{
    return &classes[class];
}

enum err error_class_named(struct str name, enum error_class *out)
{
    for (int i = 0; i < CLASS_COUNT; i++)
        if (str_is(name, classes[i].name)) {
            *out = (enum error_class)i;
            return OK;
        }
    return ERR_NOT_FOUND;
}
