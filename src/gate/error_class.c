/* The table of outcome classes. */
#include "gate/error_class.h"

#include "gate/feedback_writer.h"

/* Short names for the columns that hold ledger constants. */
#define ADMIT(word)  LEDGER_SO_FAR_##word
#define SETTLE(word) LEDGER_CLASS_##word

#define DO_NOT_REPEAT "Do not repeat the call now. Use another tool, or tell the user."

/* One row per class: what programs see, what the ledger counts, what the model reads. */
static const struct error_class_info classes[CLASS_COUNT] = {
    [CLASS_OK] = {"ok", VERDICT_PASS, false, ADMIT(VALID), SETTLE(OK), NULL, NULL, NULL, NULL},

    [CLASS_PARTIAL_DATA] = {"partial_data", VERDICT_PASS, false, ADMIT(VALID), SETTLE(PARTIAL),
                            "NEEDS_MORE_TOOLS", NULL, NULL, NULL},

    [CLASS_SEMANTIC_GARBAGE] = {"semantic_garbage", VERDICT_REPAIR, true, ADMIT(VALID), SETTLE(GARBAGE),
                                "NEEDS_MORE_TOOLS", "ran, but its result is not usable",
                                "Change the arguments, or use another tool.", NULL},

    [CLASS_SCHEMA_MISMATCH] =
        {"schema_mismatch", VERDICT_REFUSE, true, ADMIT(VALID), SETTLE(SCHEMA_MISMATCH), "FAILED",
         "ran, but its result is broken",
         "The tool is broken, not your call: do not retry it. Use another tool, or tell the "
         "user.",
         NULL},

    [CLASS_TRANSIENT] = {"transient", VERDICT_WAIT, true, ADMIT(VALID), SETTLE(TRANSIENT), NULL,
                         "failed temporarily", NULL, feedback_transient},

    [CLASS_TOOL_ERROR] =
        {"tool_error", VERDICT_REPAIR, true, ADMIT(VALID), SETTLE(TOOL_ERROR), "FAILED", "ran and failed",
         "If the message names an argument, change that and call again; the same call would fail "
         "the same way.",
         NULL},

    [CLASS_INVALID_ARGUMENTS] = {"invalid_arguments", VERDICT_REPAIR, true, ADMIT(INVALID), SETTLE(INVALID),
                                 NULL, NULL, NULL, feedback_invalid_arguments},

    [CLASS_FABRICATED_ID] =
        {"fabricated_id", VERDICT_REFUSE, true, ADMIT(FABRICATED), SETTLE(FABRICATED), NULL,
         "was not run: an id in its arguments was made up.",
         "Look the id up with a search or list tool, or ask the user for it; do not guess it.", NULL},

    [CLASS_UNKNOWN_TOOL] = {"unknown_tool", VERDICT_REFUSE, true, ADMIT(REFUSED), SETTLE(RELEASED), NULL,
                            NULL, NULL, feedback_unknown_tool},

    [CLASS_FORBIDDEN] = {"forbidden", VERDICT_REFUSE, true, ADMIT(REFUSED), SETTLE(REFUSED), NULL,
                         "was refused",
                         "Do not repeat this call. Use another tool, or tell the user why it cannot be done.",
                         NULL},

    [CLASS_AGENT_RUNS_THIS] = {"agent_runs_this", VERDICT_REFUSE, true, ADMIT(REFUSED), SETTLE(RELEASED),
                               NULL, "is run by the agent itself, not by toolgate.",
                               "Do not call it here again: your program must call toolgate/check, run the "
                               "tool, and call toolgate/report.",
                               NULL},

    [CLASS_RETRY_BUDGET] = {"retry_budget", VERDICT_REFUSE, true, ADMIT(REFUSED), SETTLE(RELEASED), NULL,
                            NULL, NULL, feedback_retry_budget},

    [CLASS_LOOP] = {"loop", VERDICT_REFUSE, true, ADMIT(REFUSED), SETTLE(RELEASED), NULL, NULL, NULL,
                    feedback_loop},

    [CLASS_POLICY_ERROR] =
        {"policy_error", VERDICT_REFUSE, true, ADMIT(REFUSED), SETTLE(REFUSED), NULL,
         "was not run: the gateway's policy for this tool is broken, not your call.",
         "Do not repeat the call. Use another tool, or tell the user that the operator must fix the policy.",
         NULL},

    [CLASS_UNAVAILABLE] = {"unavailable", VERDICT_REFUSE, true, ADMIT(REFUSED), SETTLE(REFUSED), NULL,
                           "is unavailable", DO_NOT_REPEAT, feedback_unavailable},

    [CLASS_NEED_USER_INPUT] = {"need_user_input", VERDICT_ASK, true, ADMIT(VALID), SETTLE(RELEASED),
                               "NEED_USER_INPUT", NULL, NULL, feedback_need_user_input},

    [CLASS_CANCELLED] = {"cancelled", VERDICT_REFUSE, true, ADMIT(VALID), SETTLE(RELEASED), NULL,
                         "was cancelled", DO_NOT_REPEAT, NULL},
};

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
