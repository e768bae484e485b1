/*
 * A record of the decision log as its readers use it: `toolgate decisions` and `toolgate shadow`. Unknown
 * members are ignored; a member of another type counts as absent.
 */
#ifndef TOOLGATE_REPLAY_DECISION_H
#define TOOLGATE_REPLAY_DECISION_H

#include "json/value.h"

/* What was decided, or in mode shadow would have been. */
struct decision_verdict {
    struct str verdict, class, code, detail, hint;
    const struct json *messages; /* NULL: none */
};

/* The strings and values belong to the record's line. */
struct decision {
    const struct json *record;
    struct str ts, id, generation, mode, user, session, step, tool, method, stage;
    int64_t ts_us;                        /* since 1970; -1: the record has no time that can be read */
    int64_t uid, turn;                    /* -1: unknown */
    const struct json *arguments;         /* NULL: not recorded */
    struct str arguments_hash;            /* in their place; empty: none */
    const struct json *masked;            /* paths; NULL: none */
    struct decision_verdict given, would; /* would.verdict empty: what was decided was enforced */
    struct str result_class;              /* of a call that ran; empty: it did not, or that is not known */
};

/* False: the object is no record of a call; `why` says what is missing. */
bool decision_read(const struct json *record, struct decision *out, const char **why);

/* The gate kept the call from its tool, or would have if the policy's mode were enforce. A tool that ran and
 * failed, or that could not be reached, was not refused. */
bool decision_is_refused(const struct decision *decision);
bool decision_would_be_refused(const struct decision *decision);

/* The one that a reader of problems looks at: `would` if there is one. */
const struct decision_verdict *decision_problem(const struct decision *decision);

/* A report completes the record of its check, which has the same id. */
bool decision_is_report(const struct decision *decision);

/* The hash of the arguments, or of `arguments_hash`; 0: neither was recorded. */
uint64_t decision_arguments_hash(const struct decision *decision);

/* "2026-11-22T09:00:00.123456Z", with any fraction and offset, to microseconds since 1970. False: no time. */
bool decision_time(struct str text, int64_t *us);

#endif
