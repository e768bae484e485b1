/*
 * Results that report a failure, a transient failure or a question to the user although they claim success,
 * by the conventions of the field, and only if another reading is unlikely: a record with an `error` of its
 * own, a list of failed jobs or a log that begins with "Error:" are ordinary results.
 */
#ifndef TOOLGATE_RESULT_FAILURE_ENVELOPE_H
#define TOOLGATE_RESULT_FAILURE_ENVELOPE_H

#include "base/str.h"
#include "result/result.h"

#define ENVELOPE_TEXT_MAX_BYTES  1000u /* a longer text is data */
#define ENVELOPE_LINES_MAX       12u   /* a text with more is data */
#define ENVELOPE_TRACE_MAX_BYTES 8000u /* the same for a text that begins as a stack trace */
#define ENVELOPE_TRACE_LINES_MAX 80u
#define ENVELOPE_WAIT_MAX_S      86400
#define ENVELOPE_QUESTION_BYTES  1000u
#define ENVELOPE_CHOICES_MAX     20u
#define ENVELOPE_CHOICES_BYTES   4096u   /* of all choices as JSON; further ones are left out */
#define ENVELOPE_MEMBERS_MAX     24u     /* an object with more is data */
#define ENVELOPE_DEPTH           5u      /* levels that are searched for a time to wait */
#define ENVELOPE_PHRASE_BYTES    2000u   /* of a message that are searched for phrases */
#define ENVELOPE_SEARCHED_BYTES  131072u /* of all strings of an error; it takes 0.2 us a byte */

enum envelope_kind { ENVELOPE_NONE, ENVELOPE_FAILED, ENVELOPE_TRANSIENT, ENVELOPE_NEEDS_INPUT };

struct envelope {
    enum envelope_kind kind;
    const char *code;    /* the rule that recognised it: "success_false", "rate_limited", …; static */
    int64_t after_s;     /* transient: seconds to wait; -1: unknown */
    struct str question; /* needs input: the tool's question, cut; empty: none */
    const struct json *choices; /* needs input: an array, the first few; NULL: none */
    size_t choices_left_out;
};

/* What is known of the call: tells an answer about a failure from a failure. */
struct envelope_call {
    struct str tool; /* a checker's {"valid": false} and a poll's {"status": "failed"} are answers */
    const struct json *arguments; /* members that repeat one are no data; NULL: unknown */
};

/* Of a result that claims success. */
struct envelope envelope_detect(struct arena *arena, const struct result *result,
                                const struct envelope_call *call);

/* Of a result that is an error: FAILED without a code unless it is one of the other kinds. */
struct envelope envelope_of_error(struct arena *arena, const struct result *result);

/* The same for an error message alone. */
struct envelope envelope_of_message(struct str message);

/* ---- failure_envelope_text.c, for failure_envelope.c: phrases of error messages ---- */

/* The code of a text that is an error message; NULL: it is not. */
const char *envelope_text_failure(struct str text);

/* A shell's answer says that its command failed: "Exit code: 2", "Process exited with code 127",
 * "<returncode>1</returncode>". Code 1 without any output says "no": grep found nothing. */
bool envelope_text_exit(struct str text);

/* "rate_limited", "timed_out", … if the text or the HTTP status means a transient failure; NULL otherwise. */
const char *envelope_text_transient(struct str text);
const char *envelope_status_transient(int64_t http_status);

/* Seconds: 300 for "try again in 5 minutes"; -1: none. */
int64_t envelope_text_wait(struct str text);

/* Whole seconds, at most ENVELOPE_WAIT_MAX_S. */
int64_t envelope_wait_of(double seconds);

/* Seconds of a duration alone: "34s", "500 ms", "2"; -1: not a duration. */
int64_t envelope_duration(struct str text);

/* It begins by naming several matches, and asks which is meant. */
bool envelope_text_asks(struct str text);

#endif
