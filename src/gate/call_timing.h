/*
 * Where the time of a call went, for the metrics and the decision log. It is only measured if struct gate
 * says so: each boundary between two parts reads the clock once.
 */
#ifndef TOOLGATE_GATE_CALL_TIMING_H
#define TOOLGATE_GATE_CALL_TIMING_H

#include <stdint.h>

enum call_part {
    CALL_PART_QUEUE,    /* from the socket's read to stage 1: the calls before it, and its own JSON */
    CALL_PART_SCHEMA,   /* stage 2 */
    CALL_PART_POLICY,   /* stages 1, 3, 5 and 7: Lua, formats of ids, the judgement of the result */
    CALL_PART_LEDGER,   /* stages 4 and 8, and each wait for the ledger in another stage */
    CALL_PART_UPSTREAM, /* stage 6: the tool itself, its retries and their pauses included */
    CALL_PARTS
};

struct call_timing {
    int64_t total_ns; /* 0: not measured. More than the sum of the parts: the feedback is in none of them */
    int64_t part_ns[CALL_PARTS];
};

/* "queue", "schema", "policy", "ledger", "upstream". */
const char *call_part_name(enum call_part part);

#endif
