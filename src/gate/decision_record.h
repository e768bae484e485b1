/* One record of the decision log: a line of JSON about a finished call. docs/running.md has its fields. */
#ifndef TOOLGATE_GATE_DECISION_RECORD_H
#define TOOLGATE_GATE_DECISION_RECORD_H

#include "base/buf.h"
#include "base/hash.h"
#include "policy/config.h"

struct call;
struct decision_mask;

#define DECISION_RECORD_VERSION 1
#define DECISION_RECORD_MAX_BYTES                                                                            \
    131072u /* a longer one loses its result, then its arguments; fits a datagram to journald */

/* Longer arguments or results are not masked value by value, which takes tens of milliseconds: a record has
 * the hash of such arguments, and no text that may quote them. */
#define DECISION_MASKED_MAX_BYTES 262144u

struct decision_record_options {
    enum decisions_detail arguments, results;
    struct decision_mask *mask;
    const uint8_t *key; /* of hashes: 2 * SIPHASH_KEY_BYTES */
    char head[48];      /* cache: {"v":1,"ts":"2026-11-22T09:00:00. */
    int64_t second_at;  /* of it; 0: empty */
};

/* Appends the record and its newline. */
void decision_record_write(struct buf *out, struct decision_record_options *options, struct call *call);

#define DECISION_NAME_MAX_BYTES 256u /* of a tool's name, a session, a label: clients choose them */
#endif
