/* The table of outcome classes. */
#include "gate/error_class.h"

#include "gate/feedback_writer.h"

/* Short names for the columns that hold ledger constants. */
#define ADMIT(word)  LEDGER_SO_FAR_##word
#define SETTLE(word) LEDGER_CLASS_##word

#define DO_NOT_REPEAT "Do not repeat the call now. Use another tool, or tell the user."

/* One row per class: what programs see, what the ledger counts, what the model reads. */
const struct error_class_info error_class_table[CLASS_COUNT] = {
    [CLASS_OK] = {"ok", VERDICT_PASS, false, ADMIT(VALID), SETTLE(OK), .coverage = NULL},

    [CLASS_PARTIAL_DATA] = {"partial_data", VERDICT_PASS, false, ADMIT(VALID), SETTLE(PARTIAL),
                            .coverage = "NEEDS_MORE_TOOLS"},

    [CLASS_SEMANTIC_GARBAGE] = {"semantic_garbage", VERDICT_REPAIR, true, ADMIT(VALID), SETTLE(GARBAGE),
                                .coverage = "NEEDS_MORE_TOOLS",
                                .headline = "ran, but its result is not usable",
                                .next = "Change the arguments, or use another tool."},

    [CLASS_SCHEMA_MISMATCH] = {"schema_mismatch", VERDICT_REFUSE, true, ADMIT(VALID), SETTLE(SCHEMA_MISMATCH),
                               .coverage = "FAILED", .headline = "ran, but its result is broken",
                               .next =
                                   "The tool is broken, not your call: do not retry it. Use another tool, "
                                   "or tell the user."},

    [CLASS_TRANSIENT] = {"transient", VERDICT_WAIT, true, ADMIT(VALID), SETTLE(TRANSIENT),
                         .headline = "failed temporarily", .write = feedback_transient},

    [CLASS_TOOL_ERROR] =
        {"tool_error", VERDICT_REPAIR, true, ADMIT(VALID), SETTLE(TOOL_ERROR), .coverage = "FAILED",
         .headline = "ran and failed",
         .next = "If the message names an argument, change that and call again; else use another "
                 "tool, or tell the user."},

    [CLASS_INVALID_ARGUMENTS] = {"invalid_arguments", VERDICT_REPAIR, true, ADMIT(INVALID), SETTLE(INVALID),
                                 .write = feedback_invalid_arguments},

    [CLASS_FABRICATED_ID] = {"fabricated_id", VERDICT_REFUSE, true, ADMIT(FABRICATED), SETTLE(FABRICATED),
                             .headline = "was not run: an id in its arguments was made up.",
                             .next =
                                 "Look the id up with a search or list tool, or ask the user for it; do not "
                                 "guess it."},

    [CLASS_UNKNOWN_TOOL] = {"unknown_tool", VERDICT_REFUSE, true, ADMIT(REFUSED), SETTLE(REFUSED),
                            .write = feedback_unknown_tool},

    [CLASS_FORBIDDEN] = {"forbidden", VERDICT_REFUSE, true, ADMIT(REFUSED), SETTLE(REFUSED),
                         .headline = "was refused",
                         .next =
                             "Do not repeat this call. Use another tool, or tell the user why it cannot be "
                             "done."},

    [CLASS_AGENT_RUNS_THIS] = {"agent_runs_this", VERDICT_REFUSE, true, ADMIT(REFUSED), SETTLE(RELEASED),
                               .headline = "is run by the agent itself, not by toolgate.",
                               .next =
                                   "Do not call it here again: your program must call toolgate/check, run "
                                   "the tool, and call toolgate/report."},

    [CLASS_RETRY_BUDGET] = {"retry_budget", VERDICT_REFUSE, true, ADMIT(REFUSED), SETTLE(RELEASED),
                            .write = feedback_retry_budget},

    [CLASS_LOOP] = {"loop", VERDICT_REFUSE, true, ADMIT(REFUSED), SETTLE(RELEASED), .write = feedback_loop},

    [CLASS_POLICY_ERROR] = {"policy_error", VERDICT_REFUSE, true, ADMIT(REFUSED), SETTLE(REFUSED),
                            .headline = "was not run: the gateway's policy for this tool is broken, not your "
                                        "call.",
                            .next = "Do not repeat the call. Use another tool, or tell the user that the "
                                    "operator must fix the policy.",
                            .write = feedback_policy_error},

    [CLASS_UNAVAILABLE] = {"unavailable", VERDICT_REFUSE, true, ADMIT(REFUSED), SETTLE(REFUSED),
                           .headline = "is unavailable", .next = DO_NOT_REPEAT,
                           .write = feedback_unavailable},

    [CLASS_NEED_USER_INPUT] = {"need_user_input", VERDICT_ASK, true, ADMIT(VALID), SETTLE(RELEASED),
                               .coverage = "NEED_USER_INPUT", .write = feedback_need_user_input},

    [CLASS_CANCELLED] = {"cancelled", VERDICT_REFUSE, true, ADMIT(VALID), SETTLE(RELEASED),
                         .headline = "was cancelled", .next = DO_NOT_REPEAT},
};

enum err error_class_named(struct str name, enum error_class *out)
{
    for (int i = 0; i < CLASS_COUNT; i++)
        if (str_is(name, error_class_table[i].name)) {
            *out = (enum error_class)i;
            return OK;
        }
    return ERR_NOT_FOUND;
}
