/* The names of a call's parts, for the metrics and the decision log. */
#include "gate/call_timing.h"

const char *call_part_name(enum call_part part)
{
    static const char *const names[] = {[CALL_PART_QUEUE] = "queue",
                                        [CALL_PART_SCHEMA] = "schema",
                                        [CALL_PART_POLICY] = "policy",
                                        [CALL_PART_LEDGER] = "ledger",
                                        [CALL_PART_UPSTREAM] = "upstream"};
    return names[part];
}
